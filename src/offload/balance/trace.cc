#include "offload/balance/trace.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace headrace::balance {

namespace {

using Json = nlohmann::ordered_json;

// --- Writing --------------------------------------------------------------------------------------------------------

// The functions `fields` name the members of each type once, for writing and reading.

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = to_json(value);
  }
  /// A field that was not always there: left out if it has its default, so that older traces replay byte for byte.
  template <typename T>
  void unless(const T& usual, const char* name, const T& value) {
    if (value != usual) (*this)(name, value);
  }
  Json take() { return std::move(json_); }

  template <typename T>
  static Json to_json(const T& value) {
    if constexpr (requires(Writer & w, T & v) { fields(w, v); }) {
      Writer writer;
      // `fields` serves reading, too, and so takes what it may change; a Writer changes nothing.
      fields(writer, const_cast<T&>(value));
      return writer.take();
    } else {
      return Json(value);
    }
  }
  template <typename T>
  static Json to_json(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(to_json(value));
    return list;
  }

 private:
  Json json_ = Json::object();
};

template <typename F>
void fields(F& f, BalanceSetup::Chain& v) {
  f("name", v.name);
  f("balanced", v.balanced);
  f("payload", v.payload);
  f("bytes_there", v.bytes_there);
  f("bytes_back", v.bytes_back);
  f("most_job", v.most_job);
  f.unless(0, "job_bytes", v.job_bytes);
  f("most_places", v.most_places);
  f("most_wait_us", v.most_wait_us);
  f("p99_us", v.p99_us);
}
template <typename F>
void fields(F& f, BalanceSetup::Device& v) {
  f("name", v.name);
  f("node", v.node);
  f.unless(true, "resident", v.resident);
  f.unless(false, "stream", v.stream);
  f.unless(0, "resident_idle_us", v.resident_idle_us);
}
template <typename F>
void fields(F& f, BalanceSetup& v) {
  f("workers", v.workers);
  f("cycles_per_second", v.cycles_per_second);
  f("chains", v.chains);
  f("devices", v.devices);
  f("first_device", v.first_device);
}
template <typename F>
void fields(F& f, BatchSums& v) {
  f("batches", v.batches);
  f("packets", v.packets);
  f("squares", v.squares);
  f("cycles", v.cycles);
  f("products", v.products);
}
template <typename F>
void fields(F& f, SideSample& v) {
  f("packets", v.packets);
  f("timed", v.timed);
  f("cycles", v.cycles);
}
template <typename F>
void fields(F& f, DeviceSample& v) {
  fields(f, static_cast<SideSample&>(v));
  f("jobs", v.jobs);
  f("job_ns", v.job_ns);
  f.unless(uint64_t{0}, "stream_jobs", v.stream_jobs);
  f.unless(uint64_t{0}, "stream_job_ns", v.stream_job_ns);
  f("full", v.full);
  f("polls", v.polls);
  f("starved", v.starved);
  f("share", v.share);
  f("well", v.well);
  f.unless(true, "lane", v.lane);
}
template <typename F>
void fields(F& f, ChainSample& v) {
  f("arrived", v.arrived);
  f("bytes", v.bytes);
  f("cpu", v.cpu);
  f("cpu_batches", v.cpu_batches);
  f("devices", v.devices);
  f("delays", v.delays);
  f("delay_p50_ns", v.delay_p50_ns);
  f("delay_p99_ns", v.delay_p99_ns);
  f.unless(0.0, "heaviest", v.heaviest);
}
template <typename F>
void fields(F& f, WorkerSample& v) {
  f("worker", v.worker);
  f("decision", v.decision);
  f("ns", v.ns);
  f("cycles", v.cycles);
  f("busy", v.busy);
  f("waiting", v.waiting);
  f("bursts", v.bursts);
  f("full_bursts", v.full_bursts);
  f("stretch_ns", v.stretch_ns);
  f("outside", v.outside);
  f("chains", v.chains);
}
template <typename F>
void fields(F& f, BalanceSample& v) {
  f("at_ns", v.at_ns);
  f("workers", v.workers);
}
template <typename F>
void fields(F& f, ChainDecision& v) {
  f("shares", v.shares);
  f("follow", v.follow);
  f("job", v.job);
  f("max_wait_us", v.max_wait_us);
  f("places", v.places);
  f("slice", v.slice);
  f.unless(false, "stream", v.stream);
  f("probe", v.probe);
  f("probe_device", v.probe_device);
}
template <typename F>
void fields(F& f, BalanceDecision& v) {
  f("workers", v.workers);
  f("why", v.why);
  f("optimum_mpps", v.optimum_mpps);
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// --- Reading --------------------------------------------------------------------------------------------------------

/// Reads the fields of an object into a value. A field that is not there keeps its default; one that nobody knows is a
/// mistake. The first mistake is kept.
class Reader {
 public:
  Reader(const Json& json, std::string path, std::string& error) : json_(json), path_(std::move(path)), error_(error) {
    if (!json.is_object()) expected("an object", json);
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    names_.emplace_back(name);
    if (!error_.empty() || !json_.is_object()) return;
    const auto found = json_.find(name);
    if (found != json_.end()) read(*found, path_.empty() ? name : path_ + "." + name, value, error_);
  }
  template <typename T>
  void unless(const T&, const char* name, T& value) {
    (*this)(name, value);
  }
  void done() {
    if (!error_.empty()) return;
    for (const auto& [name, value] : json_.items())
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
        error_ = fmt::format("{} has no field '{}'", path_, name);
        return;
      }
  }

 private:
  static std::string shown(const Json& json) {
    std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    return text;
  }
  void expected(const char* what, const Json& json) {
    if (error_.empty()) error_ = fmt::format("{}: expected {}, found {}", path_, what, shown(json));
  }
  static void expected(const std::string& path, const char* what, const Json& json, std::string& error) {
    if (error.empty()) error = fmt::format("{}: expected {}, found {}", path, what, shown(json));
  }

  static void read(const Json& j, const std::string& path, std::string& value, std::string& error) {
    if (!j.is_string()) return expected(path, "a text", j, error);
    value = j.get<std::string>();
  }
  static void read(const Json& j, const std::string& path, bool& value, std::string& error) {
    if (!j.is_boolean()) return expected(path, "true or false", j, error);
    value = j.get<bool>();
  }
  static void read(const Json& j, const std::string& path, double& value, std::string& error) {
    if (!j.is_number() || !std::isfinite(j.get<double>())) return expected(path, "a number", j, error);
    value = j.get<double>();
  }
  static void read(const Json& j, const std::string& path, uint64_t& value, std::string& error) {
    if (!j.is_number_unsigned()) return expected(path, "a whole number from 0", j, error);
    value = j.get<uint64_t>();
  }
  static void read(const Json& j, const std::string& path, int64_t& value, std::string& error) {
    if (!j.is_number_integer() || (j.is_number_unsigned() && j.get<uint64_t>() > INT64_MAX))
      return expected(path, "a whole number", j, error);
    value = j.get<int64_t>();
  }
  static void read(const Json& j, const std::string& path, int& value, std::string& error) {
    int64_t wide = 0;
    read(j, path, wide, error);
    if (!error.empty()) return;
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
      return expected(path, "a whole number of 32 bits", j, error);
    value = static_cast<int>(wide);
  }
  template <typename T>
  static void read(const Json& j, const std::string& path, std::vector<T>& values, std::string& error) {
    if (!j.is_array()) return expected(path, "a list", j, error);
    values.clear();
    for (size_t i = 0; i < j.size() && error.empty(); ++i)
      read(j[i], fmt::format("{}[{}]", path, i), values.emplace_back(), error);
  }
  template <typename T>
  requires requires(Reader& r, T& v) { fields(r, v); }
  static void read(const Json& j, const std::string& path, T& value, std::string& error) {
    Reader reader(j, path, error);
    fields(reader, value);
    reader.done();
  }

  const Json& json_;
  std::string path_;
  std::string& error_;
  std::vector<std::string> names_;
};

/// What a program can hold, and somebody may have.
std::string wrong_with(const BalanceSetup& setup) {
  constexpr int kMostWorkers = 4096;
  constexpr size_t kMostChains = 4096, kMostDevices = 256, kMostLanes = 1 << 20;
  if (setup.workers < 1 || setup.workers > kMostWorkers)
    return fmt::format("setup.workers: expected 1 to {}", kMostWorkers);
  if (setup.chains.size() > kMostChains) return fmt::format("setup.chains: expected at most {}", kMostChains);
  if (setup.devices.size() > kMostDevices) return fmt::format("setup.devices: expected at most {}", kMostDevices);
  if (static_cast<size_t>(setup.workers) * setup.chains.size() * std::max<size_t>(setup.devices.size(), 1) > kMostLanes)
    return fmt::format("setup: expected at most {} workers x chains x devices", kMostLanes);
  if (setup.cycles_per_second <= 0) return "setup.cycles_per_second: expected more than 0";
  for (size_t k = 0; k < setup.chains.size(); ++k) {
    const BalanceSetup::Chain& chain = setup.chains[k];
    if (chain.most_job < 1 || chain.job_bytes < 0 || chain.most_places < 1 || chain.most_wait_us < 0 ||
        chain.p99_us < 0)
      return fmt::format(
          "setup.chains[{}]: expected most_job and most_places from 1, job_bytes, most_wait_us and p99_us from 0", k);
  }
  return {};
}

}  // namespace

std::string trace_line(const TraceHead& head) {
  Json json;
  json["setup"] = Writer::to_json(head.setup);
  json["balancer"] = head.balancer;
  if (!head.learnt.empty()) json["learnt"] = head.learnt;
  if (head.beside) json["beside"] = true;
  return line_of(json);
}

std::string trace_line(const BalanceSample& sample) {
  Json json;
  json["sample"] = Writer::to_json(sample);
  return line_of(json);
}

std::string trace_line(const BalanceDecision& decision, const std::string& balancer) {
  Json json;
  json["decision"] = Writer::to_json(decision);
  if (!balancer.empty()) json["balancer"] = balancer;
  return line_of(json);
}

bool TraceReader::knows(const std::string& balancer) const {
  return std::find(balancers_.begin(), balancers_.end(), balancer) != balancers_.end();
}

bool TraceReader::read(std::string_view text, TraceLine& line) {
  ++lines_;
  error_.clear();
  const Json json = Json::parse(text, nullptr, false);
  std::string why;
  if (json.is_discarded()) {
    why = "expected a JSON object";
  } else if (!json.is_object()) {
    why = "expected an object";
  } else if (json.contains("setup")) {
    TraceHead head;
    Reader reader(json, "", why);
    reader("setup", head.setup);
    reader("balancer", head.balancer);
    reader("learnt", head.learnt);
    reader("beside", head.beside);
    reader.done();
    if (why.empty()) why = wrong_with(head.setup);
    if (why.empty() && !head.setup.devices.empty())
      head.setup.first_device.resize(static_cast<size_t>(head.setup.workers));
    if (why.empty() && head.beside && (!in_heads_ || knows(head.balancer)))
      why = "beside: expected the setup of another balancer in the line before";
    if (why.empty()) {
      if (!head.beside) balancers_.clear();
      balancers_.push_back(head.balancer);
      line = std::move(head);
    }
  } else if (balancers_.empty()) {
    why = "expected the setup: {\"setup\": ..., \"balancer\": ...}";
  } else if (json.contains("sample")) {
    BalanceSample sample;
    Reader reader(json, "", why);
    reader("sample", sample);
    reader.done();
    if (why.empty()) line = std::move(sample);
  } else if (json.contains("decision")) {
    BalanceDecision decision;
    std::string balancer;
    Reader reader(json, "", why);
    reader("decision", decision);
    reader("balancer", balancer);
    reader.done();
    if (why.empty() && (balancers_.size() > 1 || !balancer.empty()) && !knows(balancer))
      why = fmt::format("balancer: expected one that has a setup, found '{}'", balancer);
    if (why.empty()) line = std::move(decision);
  } else {
    why = "expected {\"sample\": ...} or {\"decision\": ...}";
  }
  if (why.empty()) {
    in_heads_ = json.contains("setup");
    return true;
  }
  error_ = fmt::format("line {}: {}", lines_, why);
  return false;
}

}  // namespace headrace::balance
