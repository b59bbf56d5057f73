// `headrace bench`: how fast a configuration forwards.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_router.hh"
#include "cli/bench_steps.hh"
#include "cli/bench_sweep.hh"
#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/compile_arguments.hh"
#include "cli/dpdk_option.hh"
#include "cli/machine.hh"
#include "cli/offload_arguments.hh"
#include "cli/output.hh"
#include "cli/pauses.hh"
#include "cli/workers_option.hh"
#include "elements/devices/TrafficSink.hh"
#include "headrace/grouped.hh"
#include "headrace/packet_pool.hh"
#include "headrace/version.hh"
#include "offload/cpu_chains.hh"
#include "offload/engine.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

constexpr const char* kSourceToSink = "TrafficSource -> TrafficSink;";

struct Result {
  double seconds = 0;
  Totals begin, end;
  uint64_t lost = 0;  // buffers that were not returned
  std::vector<Router::Drop> drops;
  struct Row {
    std::string element, class_name;
    ElementProfile profile;
  };
  std::vector<Row> profile;
  nlohmann::ordered_json offload;
  std::string compiled;
  bool timed = false;
  double offered = 0;  // Mpps, with --load
  uint64_t reordered = 0;
  Histogram latency;
  nlohmann::ordered_json pauses;
  nlohmann::ordered_json sequence;  // with sinks that check it
  /// New configurations, and what became of the old ones' jobs.
  struct Swaps {
    uint64_t count = 0;
    double stood_us = 0;  // at most
    double made_ms = 0;   // at most: to make the new router while the old one ran
    uint64_t late_jobs = 0, failed_jobs = 0;
  } swaps;

  uint64_t packets() const { return end.in.packets - begin.in.packets; }
  uint64_t bytes() const { return end.in.bytes - begin.in.bytes; }
  double rate() const { return mpps(packets(), seconds); }
};

/// Replaces the running router by one of the same configuration. False when it cannot be built.
bool swap_router(const lang::Configuration& configuration, const BenchOptions& options, Runtime& runtime,
                 Errors& errors, Result::Swaps& swaps) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<Router> next = Router::create(
      configuration, runtime, errors,
      RouterOptions{.profile = false, .offload = options.offload, .compile = options.compile}, runtime.current());
  if (!next) return false;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const Router& old = *runtime.current();
  const int64_t stood = runtime.replace(std::move(next));
  ++swaps.count;
  swaps.made_ms = std::max(swaps.made_ms, took.count());
  swaps.stood_us = std::max(swaps.stood_us, static_cast<double>(stood) * 1e-3);
  if (old.engine()) {
    swaps.late_jobs += old.engine()->event(offload::kLateJobs);
    swaps.failed_jobs += old.engine()->event(offload::kFailedJobs);
  }
  return true;
}

/// Runs a configuration once. False when it cannot be built.
/// If latencies count (Result::timed), pauses are measured, too.
bool measure(const lang::Configuration& configuration, const BenchOptions& options, bool profile, Result& result) {
  const std::vector<int> cpus = usable_cpus();
  const std::optional<Runtime::Options> runtime_options = bench_runtime(options, result.timed);
  if (!runtime_options) return false;
  Runtime runtime(*runtime_options);
  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  const uint32_t before = PacketPool::instance().in_use();
  {
    std::unique_ptr<Router> router =
        Router::create(configuration, runtime, errors,
                       RouterOptions{.profile = profile, .offload = options.offload, .compile = options.compile});
    if (!router) return false;
    std::optional<PauseMeter> pauses;
    // Of the first CPUs, one is the control thread's.
    if (result.timed) pauses.emplace(runtime, options.workers + 2 <= static_cast<int>(cpus.size()) ? cpus[1] : -1);
    bool warm = false, swapped = true;
    double start = 0, last_swap = 0;
    runtime.run(
        router,
        [&] {
          const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
          if (start == 0) {
            if (!runtime.workers_began()) return true;
            start = now;
          }
          if (!warm && now - start >= options.warmup) {
            warm = true;
            if (profile) router->reset_profile();
            if (router->engine()) router->engine()->reset_statistics();
            for (const auto& e : router->elements())
              if (auto* sink = dynamic_cast<TrafficSink*>(e.get())) sink->reset();
            if (pauses) pauses->reset();
            result.begin = read_totals(*router);
            last_swap = now;
          }
          if (warm && options.swap > 0 && now - last_swap >= options.swap) {
            last_swap = now;
            swapped = swap_router(configuration, options, runtime, errors, result.swaps);
            if (!swapped) return false;
          }
          if (!warm || now - result.begin.seconds < options.seconds) return true;
          result.end = read_totals(*router);
          if (pauses) result.pauses = pauses->report();
          return false;
        },
        1);
    if (!swapped) return false;
    if (result.end.seconds == 0) {
      complain("headrace bench: the router stopped before {} s were over\n", options.warmup + options.seconds);
      return false;
    }
    result.seconds = result.end.seconds - result.begin.seconds;
    result.drops = router->drops();
    result.offload = offload_report(*router);
    if (router->cpu_chains()) result.compiled = router->cpu_chains()->describe();
    for (const auto& e : router->elements())
      if (const auto* sink = dynamic_cast<const TrafficSink*>(e.get())) {
        sink->add_latency(result.latency);
        result.reordered += sink->reordered();
        if (sink->has_sequence()) result.sequence = sequence_json(*sink);
      }
    if (profile)
      for (const auto& e : router->elements())
        if (const ElementProfile p = router->profile(e.get()); p.packets > 0)
          result.profile.push_back({e->name(), e->class_name(), p});
  }
  const uint32_t after = PacketPool::instance().in_use();
  result.lost = after > before ? after - before : 0;
  return true;
}

/// How the cycles of elements were found.
std::string profile_method(const Result& r) {
  return r.compiled.starts_with("compiled")
             ? "cycles of compiled chains, divided among their elements by samples of a program with marks"
             : "cycles between the borders of elements";
}

nlohmann::ordered_json to_json(const Result& r, const BenchOptions& options, const std::string& conf) {
  const double wire = gbps(r.bytes() + kWireOverhead * r.packets(), r.seconds);
  nlohmann::ordered_json j;
  j["conf"] = conf;
  j["traffic"] = options.traffic.empty() ? "as configured" : options.traffic;
  j["workers"] = options.workers;
  j["size"] = r.packets() ? static_cast<double>(r.bytes()) / static_cast<double>(r.packets()) : 0.0;
  j["seconds"] = r.seconds;
  j["mpps"] = r.rate();
  j["mpps_out"] = mpps(r.end.out.packets - r.begin.out.packets, r.seconds);
  j["gbps"] = gbps(r.bytes(), r.seconds);
  j["wire_gbps"] = wire;
  j["cycles_per_packet"] =
      r.packets() ? tsc_hz() * r.seconds * options.workers / static_cast<double>(r.packets()) : 0.0;
  nlohmann::ordered_json drops = nlohmann::ordered_json::object();
  for (const Router::Drop& d : r.drops) drops[d.element + ": " + d.reason] = d.packets;
  j["drops"] = r.end.drops - r.begin.drops;
  j["drops_by_reason"] = drops;
  j["lost"] = r.lost;
  if (!r.sequence.empty()) j["sequence"] = r.sequence;
  if (r.timed) {
    j["offered_mpps"] = r.offered;
    j["reordered"] = r.reordered;
    j["latency_us"] = quantiles_us(r.latency);
    j["pauses"] = r.pauses;
    if (r.swaps.count > 0)
      j["swaps"] = {{"count", r.swaps.count},
                    {"workers_stood_us", r.swaps.stood_us},
                    {"made_ms", r.swaps.made_ms},
                    {"late_jobs", r.swaps.late_jobs},
                    {"failed_jobs", r.swaps.failed_jobs}};
  }
  j["mode"] = options.offload.mode_text();
  j["backend"] = r.offload.empty() ? "none" : options.offload.backend == "auto" ? "cuda" : options.offload.backend;
  if (!r.offload.empty()) j["offload"] = r.offload;
  j["cpu_chains"] = r.compiled.empty() ? "not compiled" : r.compiled;
  add_origin(j);
  if (!r.profile.empty()) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Result::Row& row : r.profile)
      rows.push_back(
          {{"element", row.element},
           {"class", row.class_name},
           {"cycles_per_packet", static_cast<double>(row.profile.cycles) / static_cast<double>(row.profile.packets)},
           {"packets_per_batch",
            static_cast<double>(row.profile.packets) / static_cast<double>(std::max<uint64_t>(row.profile.batches, 1))},
           {"packets", row.profile.packets}});
    j["profile_by"] = profile_method(r);
    j["profile"] = rows;
  }
  return j;
}

void print_pauses(const nlohmann::ordered_json& pauses) {
  const auto times = [](const nlohmann::ordered_json& j) {
    return fmt::format("p99.9 {:.1f} us, max {:.1f}, {} over 100 us", j["p999"].get<double>(), j["max"].get<double>(),
                       j["over_100_us"].get<uint64_t>());
  };
  print("pauses: steps of workers {};", times(pauses["steps_us"]));
  if (!pauses["longest_steps"].empty()) {
    const nlohmann::ordered_json& longest = pauses["longest_steps"][0];
    print(" the longest was {:.1f} us without a CPU;", longest["off_cpu_us"].get<double>());
  }
  if (pauses.contains("bystander_us")) print(" of a thread that does nothing {};", times(pauses["bystander_us"]));
  print(" workers preempted {} times, {} page faults, {:.0f} ms stolen\n", pauses["preemptions"].get<uint64_t>(),
        pauses["page_faults"].get<uint64_t>(), pauses["steal_ms"].get<double>());
}

void print_profile(const Result& r) {
  print("\n{}\n", profile_method(r));
  print("{:<20}{:<20}{:>14}{:>15}{:>16}{:>9}\n", "element", "class", "cycles/packet", "packets/batch", "packets",
        "share");
  uint64_t all = 0;
  for (const Result::Row& row : r.profile) all += row.profile.cycles;
  for (const Result::Row& row : r.profile)
    print("{:<20}{:<20}{:>14.1f}{:>15.1f}{:>16}{:>8.1f}%\n", row.element, row.class_name,
          static_cast<double>(row.profile.cycles) / static_cast<double>(row.profile.packets),
          static_cast<double>(row.profile.packets) / static_cast<double>(std::max<uint64_t>(row.profile.batches, 1)),
          grouped(row.profile.packets),
          all ? 100.0 * static_cast<double>(row.profile.cycles) / static_cast<double>(all) : 0);
}

}  // namespace

int bench_command(int argc, char** argv) {
  BenchOptions options;
  options.offload.wait_for_devices = true;
  SweepOptions sweep;
  std::string steps;
  CommandLine line("headrace bench", "Measures how fast a configuration forwards what its TrafficSource elements send.",
                   "[NAME=VALUE]... CONF");
  options.source.add_options(line);
  add_workers_option(line, options.workers, "default: 1");
  add_batch_option(line);
  const auto measuring = [](CLI::Option* option, const char* value = "") {
    option->option_text(value)->group("Measuring");
  };
  measuring(
      line.add_option("--size", options.size, "Bytes of a frame without check sequence")->check(CLI::Range(60, 1514)),
      "BYTES");
  CLI::Option* const seconds =
      line.add_option(
              "-s,--seconds", options.seconds,
              "Seconds to measure, after half a second of warming up; with --sweep, of each measurement, default "
              "0.3; with --steps, after the last step")
          ->check(CLI::Range(0.1, 3600.0));
  measuring(seconds, "SECONDS");
  measuring(line.add_option("--traffic", options.traffic, "uniform, imix, zipf or a pcap file; default: as configured"),
            "TRAFFIC");
  measuring(
      line.add_option("--repeat", options.repeat, "Measure N times and report the best")->check(CLI::Range(1, 100)),
      "N");
  measuring(line.add_flag("--profile", options.profile,
                          "Cycles a packet and packets a batch by element (costs some speed itself)"));
  measuring(line.add_flag("--ratio", options.ratio,
                          "Also measure a source connected to a sink, in turn, and report the ratio"));
  measuring(line.add_option("--load", options.load,
                            "Offer this fraction of the most that was forwarded in the same run, and report latencies")
                ->check(CLI::Range(0.001, 2.0)),
            "FRACTION");
  measuring(line.add_option("--rate", options.rate, "Offer this many million packets per second, and report latencies")
                ->check(CLI::Range(0.0001, 100000.0)),
            "MPPS");
  measuring(line.add_option("--swap", options.swap,
                            "With --load or --rate: put a new router in the place of the running one so often")
                ->check(CLI::Range(0.01, 3600.0)),
            "SECONDS");
  measuring(line.add_flag("--sequence", options.sequence,
                          "Number the frames of each flow, and count what is lost, doubled or reordered"));
  measuring(line.add_option("--sweep", sweep.points,
                            "Change the settings of the running router in turn, auto among them, and compare: "
                            "fractions x jobs x places, as 0,0.5,1x64,256x2,8; 'default' is " +
                                std::string(SweepOptions::kDefault)),
            "LIST");
  measuring(line.add_option("--rounds", sweep.rounds, "With --sweep: measure each point N times; default: 3")
                ->check(CLI::Range(1, 100)),
            "N");
  measuring(line.add_option("--settle", sweep.settle,
                            "With --sweep: time before each measurement, after a change; default: 0.3")
                ->check(CLI::Range(0.0, 60.0)),
            "SECONDS");
  measuring(line.add_option("--sweep-p99", sweep.p99_us,
                            "With --sweep: also find the highest load at which each point keeps this delay")
                ->check(CLI::Range(0.1, 1e6)),
            "US");
  measuring(
      line.add_option("--steps", steps,
                      "Change load, length, payload, mode or handlers at the times in this file, and report rates "
                      "and delays every 10 ms"),
      "FILE");
  measuring(line.add_flag("--json", options.json, "Print one JSON object"));
  add_offload_arguments(line, options.offload);
  add_compile_arguments(line, options.compile, "wait");
  add_dpdk_option(line);
  if (const auto status = line.read(argc, argv)) return *status;

  if (options.swap > 0 && options.load == 0 && options.rate == 0) {
    complain("headrace bench: --swap needs --load or --rate: without them there are no latencies\n");
    return kUsage;
  }
  if (!sweep.points.empty() && !steps.empty()) {
    complain("headrace bench: --sweep and --steps are two measurements\n");
    return kUsage;
  }
  for (const char* other : {"--load", "--ratio", "--profile", "--swap", "--repeat"})
    if ((!sweep.points.empty() || !steps.empty()) && line.get_option(other)->count() > 0) {
      complain("headrace bench: {} does not go with {}\n", other, steps.empty() ? "--sweep" : "--steps");
      return kUsage;
    }
  for (const char* with : {"--rounds", "--settle", "--sweep-p99"})
    if (sweep.points.empty() && line.get_option(with)->count() > 0) {
      complain("headrace bench: {} needs --sweep\n", with);
      return kUsage;
    }
  if (!sweep.points.empty() && seconds->count() == 0) options.seconds = SweepOptions::kSeconds;
  if (!sweep.points.empty() && !sweep.parse()) {
    complain("headrace bench: --sweep: {}\n", sweep.mistake);
    return kUsage;
  }
  outlive_readers();
  if (options.json) keep_output_to_command();
  const std::string file = options.source.landmark();
  lang::Configuration configuration, baseline;
  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  if (!options.source.load(configuration, errors, ConfigurationSource::Check::kClasses)) return kFailed;
  (void)lang::parse(kSourceToSink, "source-to-sink", {}, baseline, errors);
  if (!apply_traffic(configuration, options)) {
    complain("headrace bench: {} has no TrafficSource, so there is nothing to measure\n", file);
    return kFailed;
  }
  apply_traffic(baseline, options);
  if (!steps.empty()) return bench_steps(std::move(configuration), options, steps);
  if (!sweep.points.empty()) return bench_sweep(std::move(configuration), options, sweep);

  size_packet_pool(options.workers, options.offload, configuration);
  Result best;
  double best_baseline = 0;
  std::vector<double> rates;
  for (int i = 0; i < options.repeat; ++i) {
    if (options.ratio) {
      Result r;
      if (!measure(baseline, options, false, r)) return kFailed;
      best_baseline = std::max(best_baseline, r.rate());
    }
    Result r;
    if (!measure(configuration, options, false, r)) return kFailed;
    rates.push_back(r.rate());
    if (r.rate() > best.rate() || i == 0) best = r;
  }
  if (options.profile) {
    Result r;
    if (!measure(configuration, options, true, r)) return kFailed;
    best.profile = r.profile;
  }
  if (options.load > 0 || options.rate > 0) {
    const double offered = options.rate > 0 ? options.rate : options.load * best.rate();
    lang::Configuration paced = configuration;
    if (!pace(paced, offered)) {
      complain("headrace bench: {} has no TrafficSink, so latency cannot be measured\n", file);
      return kFailed;
    }
    Result r;
    r.timed = true;
    if (!measure(paced, options, false, r)) return kFailed;
    r.offered = offered;
    best = r;
  }
  nlohmann::ordered_json j = to_json(best, options, file);
  std::sort(rates.begin(), rates.end());
  j["mpps_runs"] = rates;
  if (options.ratio) {
    j["source_to_sink_mpps"] = best_baseline;
    j["ratio"] = best.rate() / best_baseline;
  }
  if (options.json) {
    print("{}\n", j.dump(2));
    return 0;
  }
  print("{}: {:.2f} Mpps in, {:.2f} Mpps out, {:.2f} Gbps ({:.2f} on the wire), {:.1f} cycles/packet, {} worker{}\n",
        file, best.rate(), j["mpps_out"].get<double>(), j["gbps"].get<double>(), j["wire_gbps"].get<double>(),
        j["cycles_per_packet"].get<double>(), options.workers, options.workers == 1 ? "" : "s");
  if (options.ratio) print("source to sink: {:.2f} Mpps; ratio {:.3f}\n", best_baseline, best.rate() / best_baseline);
  if (!best.offload.empty())
    print("offloaded: {} of {} packets; doorbell to release p50 {:.1f} us, p99 {:.1f}\n",
          grouped(best.offload["job_packets"].get<uint64_t>()), grouped(best.packets()),
          best.offload["doorbell_to_release_us"]["p50"].get<double>(),
          best.offload["doorbell_to_release_us"]["p99"].get<double>());
  if (best.timed)
    print("offered {:.2f} Mpps: latency p50 {:.1f} us, p99 {:.1f}, p99.9 {:.1f}, max {:.1f}; reordered {}\n",
          best.offered, static_cast<double>(best.latency.quantile(0.5)) * 1e-3,
          static_cast<double>(best.latency.quantile(0.99)) * 1e-3,
          static_cast<double>(best.latency.quantile(0.999)) * 1e-3, static_cast<double>(best.latency.max()) * 1e-3,
          best.reordered);
  if (best.timed) print_pauses(best.pauses);
  if (best.swaps.count > 0)
    print(
        "{} new routers, each made in at most {:.1f} ms; workers stood for at most {:.1f} us; {} late jobs, {} failed\n",
        best.swaps.count, best.swaps.made_ms, best.swaps.stood_us, best.swaps.late_jobs, best.swaps.failed_jobs);
  if (!best.compiled.empty()) print("chains {}\n", best.compiled);
  print("drops {}, lost {}\n", grouped(best.end.drops - best.begin.drops), grouped(best.lost));
  print("{}\n", machine_name());
  if (options.profile) print_profile(best);
  return 0;
}

}  // namespace headrace::cli
