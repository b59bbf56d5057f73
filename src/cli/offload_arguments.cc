#include "cli/offload_arguments.hh"

#include <algorithm>

#include "headrace/packet_pool.hh"
#include "offload/backend.hh"
#include "offload/engine.hh"

namespace headrace::cli {

void add_offload_arguments(CLI::App& app, OffloadOptions& options) {
  const auto device = [](CLI::Option* option, const char* value) { option->option_text(value)->group("Devices"); };
  device(
      app.add_option_function<std::string>(
             "--mode",
             [&options](const std::string& text) {
               if (!options.set_mode(text))
                 throw CLI::ValidationError("--mode",
                                            "expected auto, cpu, device or fixed=FRACTION, got '" + text + "'");
             },
             "Where chains of shaders run: cpu; device; fixed=FRACTION, with that part of the flows on the device; auto, "
             "the default: where a balancer says")
          ->type_name("{auto,cpu,device,fixed=}"),
      "MODE");
  device(app.add_option_function<std::string>(
             "--balancer",
             [&options](const std::string& text) {
               // A package of the configuration may bring it: the router says if nothing does.
               options.balancer = text;
             },
             "For auto: what decides; `headrace balance --list` names them; default: Model"),
         "NAME[=ARG]");
  device(app.add_option_function<std::string>(
             "--p99",
             [&options](const std::string& text) {
               if (!options.set_p99(text))
                 throw CLI::ValidationError("--p99", "expected a time such as 50us, got '" + text + "'");
             },
             "For auto: the time in the router that 99 % of the packets are to stay below, such as 50us"),
         "TIME");
  device(app.add_option("--balance-trace", options.balance_trace,
                        "For auto: write what was measured and decided to FILE, for `headrace balance --replay`"),
         "FILE");
  device(app.add_option("--backend", options.backend,
                        "cuda, or reference: a device that the CPU emulates; default: cuda where there is one")
             ->check(CLI::IsMember({"auto", "cuda", "reference"})),
         "NAME");
  device(app.add_option_function<std::string>(
                "--run", [&options](const std::string& text) { options.set_run(text); },
                "resident: a program that stays on the device; stream: a copy and a start for each job; default: auto, "
                "resident, and stream where a balancer says so")
             ->check(CLI::IsMember({"auto", "resident", "stream"})),
         "HOW");
  device(
      app.add_option("--job", options.job,
                     "Most packets of a job; default: 1024, or where a resident chain scans payloads 256, and 32 KiB "
                     "of packets if these are 64 or more")
          ->check(CLI::Range(1, 65536)),
      "N");
  device(
      app.add_option("--jobs", options.jobs,
                     "Jobs that a worker may have under way; default: 8, or 16 where a resident chain scans payloads")
          ->check(CLI::Range(1, 256)),
      "N");
  device(app.add_option("--maxwait", options.max_wait_us, "Microseconds that a packet waits at most for others")
             ->check(CLI::Range(0, 1000000)),
         "US");
  device(app.add_option("--deadline", options.deadline_ms, "Milliseconds after which a job runs again on the CPU")
             ->check(CLI::Range(1, 60000)),
         "MS");
  device(
      app.add_option("--devices", options.devices, "How many devices to use; default: all")->check(CLI::Range(0, 64)),
      "N");
  device(
      app.add_option_function<std::string>(
          "--reference",
          [&options](const std::string& text) {
            if (!options.reference.set(text))
              throw CLI::ValidationError(
                  "--reference",
                  "expected threads=, delay=, gbps=, memory=, late=, late-by=, hang=, hang-for= or fail=, "
                  "each with a number, separated by commas, got '" +
                      text + "'");
          },
          "What the reference device can do and does wrong: threads=N that process jobs; delay=US of each job; gbps=F "
          "of the link; memory=MB for tables; late=N, every N-th job comes late-by=MS; hang=N, none from the N-th on "
          "is done, or not for hang-for=MS; fail=N, the device fails at the N-th"),
      "LIST");
}

void size_packet_pool(int workers, const OffloadOptions& options, const lang::Configuration& configuration) {
  using Mode = OffloadOptions::Mode;
  const bool device = options.mode == Mode::kDevice || options.mode == Mode::kFixed ||
                      (options.mode == Mode::kAuto && offload::may_have_devices(options)) ||
                      std::any_of(configuration.elements.begin(), configuration.elements.end(),
                                  [](const lang::ElementDecl& e) { return e.class_name == "Offload"; });
  const int64_t under_way = device ? int64_t{options.job_size(false)} * options.job_count(false) : 0;
  // What a source cycles through, what caches of free buffers hold, what is on a device, and output buffers there.
  const int64_t wanted = int64_t{workers} * (16384 + 2 * under_way);
  constexpr int64_t kMost = 4 << 20;
  PacketPool::instance().expect(static_cast<uint32_t>(std::min<int64_t>(4096 + 2 * under_way, 32768)));
  PacketPool::instance().set_buffers(
      static_cast<uint32_t>(std::clamp<int64_t>(wanted, PacketPool::kDefaultBuffers, kMost)));
}

nlohmann::ordered_json offload_report(const Router& router) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  const offload::Engine* engine = router.engine();
  if (!engine) return j;
  const OffloadOptions& o = engine->options();
  j["mode"] = engine->mode();
  j["run"] = o.run_text();
  j["job_size"] = o.job;
  j["jobs_under_way"] = o.jobs;
  j["maxwait_us"] = o.max_wait_us;
  for (int e = 0; e < offload::kEvents; ++e) j[offload::kEventNames[e]] = engine->event(static_cast<offload::Event>(e));
  const auto latency = [](const Histogram& h) {
    return nlohmann::ordered_json{{"p50", static_cast<double>(h.quantile(0.5)) * 1e-3},
                                  {"p99", static_cast<double>(h.quantile(0.99)) * 1e-3},
                                  {"p999", static_cast<double>(h.quantile(0.999)) * 1e-3},
                                  {"max", static_cast<double>(h.max()) * 1e-3}};
  };
  j["doorbell_to_release_us"] = latency(engine->doorbell_latency());
  j["arrival_to_release_us"] = latency(engine->arrival_latency());
  nlohmann::ordered_json chains = nlohmann::ordered_json::array();
  for (int p = 0; p < static_cast<int>(engine->plans().size()); ++p)
    chains.push_back({{"doorbell_to_release_us", latency(engine->doorbell_latency(p))},
                      {"arrival_to_release_us", latency(engine->arrival_latency(p))}});
  j["chains"] = chains;
  if (const offload::BalanceLoop* const balance = engine->balance()) j["balance"] = balance->describe();
  j["in_effect"] = engine->describe();
  return j;
}

}  // namespace headrace::cli
