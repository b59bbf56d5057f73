#pragma once
/// \file
/// What all kinds of `headrace bench` share: options, traffic, and a router whose settings change while it runs.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/source.hh"
#include "cli/totals.hh"
#include "elements/devices/TrafficSink.hh"
#include "headrace/histogram.hh"
#include "headrace/offload_options.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

struct BenchOptions {
  ConfigurationSource source;
  int workers = 1;
  int size = 0;
  double seconds = 3;
  double warmup = 0.5;
  int repeat = 1;
  std::string traffic;
  bool profile = false;
  bool ratio = false;
  bool json = false;
  bool sequence = false;
  OffloadOptions offload;
  CompileOptions compile{.mode = CompileOptions::Mode::kWait, .file = {}};
  double load = 0;
  double rate = 0;
  double swap = 0;  // seconds between new configurations; 0: none
};

/// Puts the sizes and traffic of the command line into every TrafficSource; false without one.
bool apply_traffic(lang::Configuration& configuration, const BenchOptions& options);
/// Lets sinks measure latencies; how many there are.
int measure_latencies(lang::Configuration& configuration);
/// Gives sources a rate and lets sinks measure; false when there is no sink.
bool pace(lang::Configuration& configuration, double mpps);

/// The command line's workers, on the last CPUs. Nothing, with a message, if they cannot be scheduled as asked.
std::optional<Runtime::Options> bench_runtime(const BenchOptions& options, bool time_steps);

nlohmann::ordered_json quantiles_us(const Histogram& h);
nlohmann::ordered_json sequence_json(const TrafficSink& sink);
/// Program, build and machine, as every result names them.
void add_origin(nlohmann::ordered_json& j);

/// What ports and sinks have counted until now.
struct Snapshot {
  Totals totals;
  Histogram latency;
};
Snapshot take_snapshot(const Router& router);

/// A router whose settings `headrace bench` changes while it runs.
class LiveRouter {
 public:
  /// What becomes of the run after a call of `control`.
  enum class Next : uint8_t { kGoOn, kDone, kFailed };

  /// \param devices devices are opened, whatever the mode: it may change
  LiveRouter(const BenchOptions& options, bool devices) : options_(options), devices_(devices) {}

  /// Runs `configuration`. False, with messages, when it cannot be built or something failed.
  /// \param prepare called before packets flow; false: something is wrong
  /// \param control called about every millisecond on the control thread, from the end of the warm-up
  bool run(const lang::Configuration& configuration, const std::function<bool()>& prepare,
           const std::function<Next(double now)>& control);

  Router& router() { return *router_; }
  Errors& errors() { return errors_; }
  /// True if there are devices to choose.
  bool has_devices() const { return router_->engine() != nullptr; }
  /// Writes a handler of the router, or `handler` of every TrafficSource. False with an error.
  bool write(const std::string& handler, const std::string& value);
  bool write_sources(const std::string& handler, const std::string& value);
  /// Of all sources together; 0: as many as possible.
  bool set_rate(double mpps);
  /// What TrafficSources send at most together, in Mpps; 0: one of them as many as possible, or there are none.
  double rate();
  /// Buffers that were not returned, after run().
  uint64_t lost() const { return lost_; }
  /// Counts of sinks, drops and offloading, in the end.
  const nlohmann::ordered_json& report() const { return report_; }

 private:
  const BenchOptions& options_;
  const bool devices_;
  Errors errors_{Errors::Output::kStderr};
  std::unique_ptr<Router> router_;
  uint64_t lost_ = 0;
  nlohmann::ordered_json report_;
};

}  // namespace headrace::cli
