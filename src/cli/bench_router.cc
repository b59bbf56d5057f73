#include "cli/bench_router.hh"

#include <algorithm>
#include <chrono>

#include "base/argument_text.hh"
#include "cli/machine.hh"
#include "cli/offload_arguments.hh"
#include "cli/output.hh"
#include "cli/workers_option.hh"
#include "headrace/args.hh"
#include "headrace/packet_pool.hh"
#include "headrace/version.hh"
#include "offload/engine.hh"

namespace headrace::cli {

namespace {

/// Sets `KEY value` among an element's arguments, in place of one that is there (by keyword, or at `position`).
void set_argument(lang::ElementDecl& element, const std::string& key, const std::string& value, int position = -1) {
  std::vector<std::string> arguments = lang::split_arguments(element.config);
  const std::string text = key + " " + value;
  for (std::string& a : arguments) {
    const auto parts = lang::split_keyword(a);
    if (!parts || parts->first != key) continue;
    a = text;
    element.config = lang::unparse_arguments(arguments);
    return;
  }
  if (position >= 0 && position < static_cast<int>(arguments.size()) && !lang::split_keyword(arguments[position]))
    arguments[position] = text;
  else
    arguments.push_back(text);
  element.config = lang::unparse_arguments(arguments);
}

}  // namespace

bool apply_traffic(lang::Configuration& configuration, const BenchOptions& options) {
  bool any = false;
  for (lang::ElementDecl& e : configuration.elements)
    if (options.sequence && (e.class_name == "TrafficSource" || e.class_name == "TrafficSink"))
      set_argument(e, "SEQUENCE", "true");
  for (lang::ElementDecl& e : configuration.elements) {
    if (e.class_name != "TrafficSource") continue;
    any = true;
    if (options.size > 0) set_argument(e, "LENGTH", std::to_string(options.size));
    if (!options.traffic.empty()) set_argument(e, "TRAFFIC", options.traffic, 0);
  }
  return any;
}

int measure_latencies(lang::Configuration& configuration) {
  int sinks = 0;
  for (lang::ElementDecl& e : configuration.elements) {
    if (e.class_name != "TrafficSink") continue;
    set_argument(e, "LATENCY", "true");
    ++sinks;
  }
  return sinks;
}

bool pace(lang::Configuration& configuration, double mpps) {
  int sources = 0;
  for (const lang::ElementDecl& e : configuration.elements) sources += e.class_name == "TrafficSource";
  for (lang::ElementDecl& e : configuration.elements)
    if (e.class_name == "TrafficSource") set_argument(e, "RATE", fmt::format("{}", mpps * 1e6 / sources));
  return measure_latencies(configuration) > 0 && sources > 0;
}

std::optional<Runtime::Options> bench_runtime(const BenchOptions& options, bool time_steps) {
  const std::vector<int> cpus = usable_cpus();
  Runtime::Options runtime_options;
  runtime_options.threads = options.workers;
  if (options.workers <= static_cast<int>(cpus.size())) {
    // The last CPUs first: the control thread and interrupts tend to sit on the first.
    runtime_options.cpus.assign(cpus.rbegin(), cpus.rend());
  }
  runtime_options.control_thread = true;
  runtime_options.time_steps = time_steps;
  if (!plan_scheduling("headrace bench", runtime_options)) return std::nullopt;
  return runtime_options;
}

nlohmann::ordered_json quantiles_us(const Histogram& h) {
  return {{"p50", static_cast<double>(h.quantile(0.5)) * 1e-3},
          {"p99", static_cast<double>(h.quantile(0.99)) * 1e-3},
          {"p999", static_cast<double>(h.quantile(0.999)) * 1e-3},
          {"max", static_cast<double>(h.max()) * 1e-3}};
}

nlohmann::ordered_json sequence_json(const TrafficSink& sink) {
  const FlowSequence::Counts counts = sink.sequence();
  return {
      {"checked", counts.checked}, {"lost", counts.lost}, {"doubled", counts.doubled}, {"reordered", counts.reordered}};
}

void add_origin(nlohmann::ordered_json& j) {
  j["tsc_ghz"] = tsc_hz() * 1e-9;
  j["commit"] = kCommit;
  j["build"] = kBuild;
  j["machine"] = machine_name();
  j["cpu"] = cpu_details();
}

Snapshot take_snapshot(const Router& router) {
  Snapshot s;
  s.totals = read_totals(router);
  for (const auto& e : router.elements())
    if (const auto* sink = dynamic_cast<const TrafficSink*>(e.get())) sink->add_latency(s.latency);
  return s;
}

bool LiveRouter::run(const lang::Configuration& configuration, const std::function<bool()>& prepare,
                     const std::function<Next(double now)>& control) {
  OffloadOptions offload = options_.offload;
  if (devices_) offload.mode = OffloadOptions::Mode::kDevice;
  size_packet_pool(options_.workers, offload, configuration);
  const std::optional<Runtime::Options> runtime_options = bench_runtime(options_, false);
  if (!runtime_options) return false;
  Runtime runtime(*runtime_options);
  errors_.limit(ConfigurationSource::kMaxErrors);
  const uint32_t before = PacketPool::instance().in_use();
  router_ = Router::create(configuration, runtime, errors_,
                           RouterOptions{.profile = false, .offload = offload, .compile = options_.compile});
  if (!router_) return false;
  if (router_->engine()) router_->engine()->set_mode(options_.offload.mode_text());
  if (!prepare()) return false;
  Next next = Next::kGoOn;
  double start = 0;
  bool warm = false;
  runtime.run(
      router_,
      [&] {
        const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        if (start == 0 && runtime.workers_began()) start = now;
        if (start == 0 || now - start < options_.warmup) return true;
        if (!warm) {
          warm = true;
          for (const auto& e : router_->elements())
            if (auto* sink = dynamic_cast<TrafficSink*>(e.get())) sink->reset();
        }
        next = control(now);
        return next == Next::kGoOn;
      },
      1);
  if (next == Next::kGoOn) complain("headrace bench: the router stopped before the measurement was over\n");
  uint64_t reordered = 0;
  for (const auto& e : router_->elements())
    if (const auto* sink = dynamic_cast<const TrafficSink*>(e.get())) {
      reordered += sink->reordered();
      if (sink->has_sequence()) report_["sequence"] = sequence_json(*sink);
    }
  report_["reordered"] = reordered;
  nlohmann::ordered_json drops = nlohmann::ordered_json::object();
  for (const Router::Drop& d : router_->drops()) drops[d.element + ": " + d.reason] = d.packets;
  report_["drops_by_reason"] = drops;
  if (has_devices()) report_["offload"] = offload_report(*router_);
  router_.reset();
  const uint32_t after = PacketPool::instance().in_use();
  lost_ = after > before ? after - before : 0;
  report_["lost"] = lost_;
  return next == Next::kDone;
}

bool LiveRouter::write(const std::string& handler, const std::string& value) {
  HandlerCall call(handler);
  return call.bind(*router_, nullptr, true, errors_) && call.write(errors_, value);
}

bool LiveRouter::write_sources(const std::string& handler, const std::string& value) {
  bool good = true;
  for (const auto& e : router_->elements())
    if (e->class_name() == std::string_view("TrafficSource")) good &= write(e->name() + "." + handler, value);
  return good;
}

bool LiveRouter::set_rate(double mpps) {
  const auto sources = std::count_if(router_->elements().begin(), router_->elements().end(), [](const auto& e) {
    return e->class_name() == std::string_view("TrafficSource");
  });
  return write_sources("rate", fmt::format("{}", mpps * 1e6 / static_cast<double>(sources)));
}

double LiveRouter::rate() {
  double sum = 0;
  for (const auto& e : router_->elements()) {
    if (e->class_name() != std::string_view("TrafficSource")) continue;
    HandlerCall call(e->name() + ".rate");
    std::string text;
    double rate = 0;
    if (!call.bind(*router_, nullptr, false, errors_).ok() || !call.read(text, errors_).ok() ||
        !parse_argument(text, rate, ArgContext()) || rate == 0)
      return 0;
    sum += rate * 1e-6;
  }
  return sum;
}

}  // namespace headrace::cli
