// What the engine tells and takes by handlers and at start-up.

#include <fmt/format.h>

#include <algorithm>

#include "headrace/text.hh"
#include "offload/engine.hh"

namespace headrace::offload {

bool Engine::set_mode(std::string_view text) {
  OffloadOptions wanted;
  wanted.fraction = options_.fraction;
  if (!wanted.set_mode(text)) return false;
  // Only these: a thread that opens devices may be using others.
  options_.mode = wanted.mode;
  options_.fraction = wanted.fraction;
  for (ChainEntry* entry : entries_) {
    entry->in_effect().mode = wanted.mode;
    entry->in_effect().fraction = wanted.fraction;
  }
  return true;
}

std::string Engine::mode() const { return entries_.front()->in_effect().mode_text(); }

std::string Engine::summary() const {
  if (state_ == State::kOpening)
    return fmt::format("{} chain{} on the CPU while devices are opened", plans_.size(), plans_.size() == 1 ? "" : "s");
  std::string text =
      fmt::format("{} chain{} on {} device{} ({}, jobs of {})", plans_.size(), plans_.size() == 1 ? "" : "s",
                  devices_.size(), devices_.size() == 1 ? "" : "s", options_.run_text(), options_.job);
  return text;
}

std::string Engine::describe() const {
  std::string text = fmt::format("mode: {}\njob: {} packets, {} under way, at most {} us of waiting\n", mode(),
                                 options_.job, options_.jobs, options_.max_wait_us);
  for (size_t p = 0; p < plans_.size(); ++p) text += fmt::format("chain {}: {}\n", p, plans_[p].describe());
  if (state_ == State::kOpening) text += "devices: being opened\n";
  if (state_ == State::kNone) text += "devices: none\n";
  for (const std::string& line : on_cpu_) text += fmt::format("on the CPU: {}\n", line);
  for (size_t d = 0; d < devices_.size(); ++d) {
    text += fmt::format("device {}:{}\n", d, devices_[d]->well() ? "" : devices_[d]->failed() ? " failed" : " hung");
    if (devices_.size() > 1) {
      std::string workers;
      for (size_t w = 0; w < first_device_.size(); ++w)
        if (first_device_[w] == static_cast<int>(d)) workers += fmt::format(" {}", w);
      text += fmt::format("first for workers:{}\n", workers.empty() ? " none" : workers);
    }
    const Parameters& tables = *devices_[d]->parameters;
    text += fmt::format("tables: {} MB, {} updates\n", tables.bytes() >> 20, tables.updates());
    text += devices_[d]->backend->describe();
  }
  return text;
}

uint64_t Engine::event(Event e) const {
  uint64_t sum = 0;
  for (const auto& q : queues_) sum += q->event(e);
  return sum;
}

Histogram Engine::sum(const Histogram& (JobQueue::*latency)(int) const, int plan) const {
  Histogram all;
  for (const auto& q : queues_)
    for (int p = 0; p < static_cast<int>(plans_.size()); ++p)
      if (plan < 0 || plan == p) all.add((*q.*latency)(p));
  return all;
}

Histogram Engine::doorbell_latency(int plan) const { return sum(&JobQueue::doorbell_latency, plan); }

Histogram Engine::arrival_latency(int plan) const { return sum(&JobQueue::arrival_latency, plan); }

void Engine::reset_statistics() {
  for (const auto& q : queues_) q->reset_statistics();
}

void Engine::add_handlers(Handlers& handlers) {
  handlers.read("offload", [this] { return describe(); });
  handlers.read("offload_mode", [this] { return mode(); });
  handlers.write("offload_mode", [this](const std::string& value, Errors& errors) -> Status {
    if (state_ == State::kNone) return errors.error("there is no device");
    if (!set_mode(value)) return errors.error("expected auto, cpu, device or fixed=FRACTION");
    return {};
  });
  handlers.read("balance", [this] { return loop_ ? loop_->describe() : std::string("no balancer\n"); });
  handlers.read_with(
      "balance_trace", [this](const std::string& parameters, std::string& value, Errors& errors) -> Status {
        const std::optional<size_t> steps = whole_number<size_t>(parameters.empty() ? "100" : parameters);
        if (!steps) return errors.error("expected a number of steps, got '{}'", parameters);
        value = loop_ ? loop_->trace(*steps) : std::string();
        return {};
      });
  handlers.read("offload_tuning", [this] {
    std::string text;
    for (size_t w = 0; w < queues_.size(); ++w)
      for (size_t p = 0; p < plans_.size(); ++p)
        text += fmt::format("worker={} chain={} {}\n", w, p, queues_[w]->tuning(static_cast<int>(p)).text());
    return text;
  });
  handlers.write("offload_tuning", [this](const std::string& value, Errors& errors) { return tune(value, errors); });
  handlers.read("offload_counts", [this] {
    std::string text;
    for (int e = 0; e < kEvents; ++e) text += fmt::format("{}: {}\n", kEventNames[e], event(static_cast<Event>(e)));
    return text;
  });
  handlers.read("offload_latency", [this] {
    std::string text;
    const auto add = [&text](const std::string& name, const Histogram& h) {
      text += fmt::format("{}: p50 {:.1f} us, p99 {:.1f}, p99.9 {:.1f}, max {:.1f}\n", name,
                          static_cast<double>(h.quantile(0.5)) * 1e-3, static_cast<double>(h.quantile(0.99)) * 1e-3,
                          static_cast<double>(h.quantile(0.999)) * 1e-3, static_cast<double>(h.max()) * 1e-3);
    };
    add("doorbell", doorbell_latency());
    add("arrival", arrival_latency());
    for (int p = 0; plans_.size() > 1 && p < static_cast<int>(plans_.size()); ++p) {
      add(fmt::format("chain {} doorbell", p), doorbell_latency(p));
      add(fmt::format("chain {} arrival", p), arrival_latency(p));
    }
    return text;
  });
}

Status Engine::tune(std::string_view text, Errors& errors) {
  // First all of it on copies, so that a mistake changes nothing.
  int worker = -1, chain = -1;
  std::vector<std::pair<std::string_view, std::string_view>> settings;
  for (std::string_view item = next_word(text); !item.empty(); item = next_word(text)) {
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view key = item.substr(0, equals), value = item.substr(std::min(equals + 1, item.size()));
    const std::optional<size_t> number = whole_number<size_t>(value);
    if (key == "worker" || key == "chain" || key == "device") {
      const size_t count = key == "worker" ? queues_.size() : key == "chain" ? plans_.size() : devices_.size();
      if (!number || *number >= count)
        return errors.error("{}: expected a number below {}, got '{}'", key, count, value);
    }
    if (key == "worker" || key == "chain") {
      (key == "worker" ? worker : chain) = static_cast<int>(*number);
    } else if (Tuning checked; checked.set(key, value)) {
      settings.emplace_back(key, value);
    } else {
      return errors.error(
          "expected worker=, chain=, device=, places=, job=, maxwait= (with a number), quiet=true or quiet=false, "
          "got '{}'",
          item);
    }
  }
  for (size_t w = 0; w < queues_.size(); ++w)
    for (size_t p = 0; p < plans_.size(); ++p)
      if ((worker < 0 || worker == static_cast<int>(w)) && (chain < 0 || chain == static_cast<int>(p)))
        for (const auto& [key, value] : settings) queues_[w]->tuning(static_cast<int>(p)).set(key, value);
  return {};
}

bool Tuning::set(std::string_view key, std::string_view value) {
  if (key == "quiet") {
    at_quiet = value == "true";
    return at_quiet || value == "false";
  }
  int* const to = key == "places"    ? &places
                  : key == "job"     ? &job
                  : key == "maxwait" ? &max_wait_us
                  : key == "device"  ? &device
                                     : nullptr;
  const std::optional<int> number = whole_number<int>(value);
  if (!to || !number || (*number == 0 && (to == &places || to == &job))) return false;
  *to = *number;
  return true;
}

std::string Tuning::text() const {
  return fmt::format("places={} job={} maxwait={} quiet={} device={}", places, job, max_wait_us, at_quiet, device);
}

}  // namespace headrace::offload
