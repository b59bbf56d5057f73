// `headrace run`: a configuration on all cores, with a line every second and a closing table.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <set>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/compile_arguments.hh"
#include "cli/dpdk_option.hh"
#include "cli/live_configuration.hh"
#include "cli/machine.hh"
#include "cli/offload_arguments.hh"
#include "cli/output.hh"
#include "cli/source.hh"
#include "cli/totals.hh"
#include "cli/workers_option.hh"
#include "headrace/grouped.hh"
#include "headrace/packet_pool.hh"
#include "headrace/shader_host.hh"
#include "headrace/version.hh"
#include "offload/cpu_chains.hh"
#include "offload/engine.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

/// More workers than this are summed up instead of listed.
constexpr size_t kMaxWorkersListed = 8;

struct RunOptions {
  ConfigurationSource source;
  int workers = 0;
  double duration = 0;
  double interval = 1;
  bool quiet = false;
  bool pin = true;
  std::vector<std::string> handlers;
  std::vector<std::string> tcp_sockets, unix_sockets;
  bool reconfigure = false;
  OffloadOptions offload;
  CompileOptions compile{.mode = CompileOptions::Mode::kAuto, .file = {}};
};

/// Set by SIGHUP: the configuration file is to be read again.
volatile std::sig_atomic_t g_reload = 0;

/// Reads the configuration file again and lets it take over. With a mistake in it all stays as it is.
void reload(const ConfigurationSource& source, LiveConfiguration& live, const Runtime& runtime) {
  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<std::string> text = source.read_text(errors);
  if (!text || !live.replace(*text, errors).ok()) {
    complain("{}: not in effect, the running configuration goes on\n", source.landmark());
    return;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print("{}: in effect after {:.2f} s, workers stood {:.1f} us\n", source.landmark(), seconds,
        static_cast<double>(runtime.swaps().last_ns) * 1e-3);
}

/// The least, the middle and the most of `values`.
struct Spread {
  uint64_t min = 0, median = 0, max = 0;
  explicit Spread(std::vector<uint64_t> values) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    min = values.front();
    median = values[values.size() / 2];
    max = values.back();
  }
};

/// Prints what happens while the router runs.
class Reporter {
 public:
  /// \param router that which runs, whichever it is at the time
  Reporter(const std::unique_ptr<Router>& router, const RunOptions& options) : router_(router), options_(options) {
    first_ = last_ = read_totals(*router);
  }

  /// Called often; prints when an interval is over. False when the duration is over.
  bool poll() {
    tell_of_chains();
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    if (now - last_.seconds >= options_.interval) {
      const Totals totals = read_totals(*router_);
      if (!options_.quiet) print_line(totals);
      last_ = totals;
    }
    return options_.duration <= 0 || now - first_.seconds < options_.duration;
  }

  void print_closing() {
    tell_of_chains();  // the router may have ended before anybody polled
    for (const auto& element : router_->elements()) {
      if (auto* const shader = dynamic_cast<ShaderElementBase*>(element.get())) shader->write_out();
      if (auto* const port = dynamic_cast<DevicePort*>(element.get())) port->write_out();
    }
    const Totals end = read_totals(*router_);
    const double seconds = end.seconds - first_.seconds;
    print_ports(end, seconds);
    print_kept_or_discarded();
    print("\n");
    if (end.drops == 0 && end.missed == 0) {
      print("{}\n", received_nothing(end) ? "no packets came in" : "no drops");
    } else {
      print("{:<28}{:>16}  {}\n", "drops at", "packets", "reason");
      for (const Router::Drop& d : router_->drops())
        print("{:<28}{:>16}  {}\n", d.element, grouped(d.packets), d.reason);
      if (end.missed) print("{:<28}{:>16}  no buffer left\n", "(sources)", grouped(end.missed));
    }
    print("ran {:.1f} s\n", seconds);
  }

 private:
  /// Whether there are ports that receive, and none of them did.
  bool received_nothing(const Totals& end) const {
    const std::vector<PortRecord> ports = router_->ports();
    return end.in.packets == 0 && std::any_of(ports.begin(), ports.end(), [](const PortRecord& port) {
             return port.direction == DevicePort::Direction::kIn;
           });
  }

  /// Totals of each device port and each worker; nothing for a configuration without ports.
  void print_ports(const Totals& end, double seconds) {
    const std::vector<PortRecord> ports = router_->ports();
    if (ports.empty()) return;
    print("\n{:<22}{:>15}{:>19}{:>12}{:>12}\n", "port", "packets", "bytes", "packets/s", "bits/s");
    for (const PortRecord& port : ports) {
      PortTotals t;
      for (const PortTotals& one : port.of_thread) {
        t.packets += one.packets;
        t.bytes += one.bytes;
      }
      const char* arrow = port.direction == DevicePort::Direction::kIn ? "in " : "out";
      print("{:<22}{:>15}{:>19}{:>12}{:>12}\n", fmt::format("{} {}", arrow, port.name), grouped(t.packets),
            grouped(t.bytes), packet_rate(t.packets, seconds), bit_rate(t.bytes, seconds));
    }
    print("\n{:<22}{:>15}{:>19}{:>12}\n", "worker", "packets", "share", "packets/s");
    const auto line = [&](const std::string& name, uint64_t packets) {
      const double all = static_cast<double>(std::max<uint64_t>(end.in.packets, 1));
      print("{:<22}{:>15}{:>18.1f}%{:>12}\n", name, grouped(packets), 100.0 * static_cast<double>(packets) / all,
            packet_rate(packets, seconds));
    };
    if (end.in_of_worker.size() <= kMaxWorkersListed) {
      for (size_t w = 0; w < end.in_of_worker.size(); ++w) line(std::to_string(w), end.in_of_worker[w]);
      return;
    }
    const Spread spread(end.in_of_worker);
    line(fmt::format("{}: least", end.in_of_worker.size()), spread.min);
    line("median", spread.median);
    line("most", spread.max);
  }

  /// With the ports and the drops, this accounts for every packet that came in.
  void print_kept_or_discarded() {
    const std::vector<Router::Drop> all = router_->kept_or_discarded();
    if (!all.empty()) print("\n{:<28}{:>16}\n", "kept or discarded at", "packets");
    for (const Router::Drop& d : all) print("{:<28}{:>16}  {}\n", d.element, grouped(d.packets), d.reason);
  }

  /// Says, once, what became of the chains that were being compiled when the header was printed.
  void tell_of_chains() {
    if (told_of_chains_) return;
    const offload::CpuChains* const chains = router_->cpu_chains();
    if (chains && chains->busy()) return;
    told_of_chains_ = true;
    if (chains) print("chains: {}\n", chains->describe());
  }

  void print_line(const Totals& now) {
    const double dt = now.seconds - last_.seconds;
    const uint64_t drops = now.drops + now.missed - last_.drops - last_.missed;
    const offload::BalanceLoop* const loop = balance();
    const double optimum = loop ? loop->optimum_mpps() : 0;
    print("{:>5.0f} s  in {:>10} {:>10}  out {:>10} {:>10}  drops {}{}\n", now.seconds - first_.seconds,
          packet_rate(now.in.packets - last_.in.packets, dt), bit_rate(now.in.bytes - last_.in.bytes, dt),
          packet_rate(now.out.packets - last_.out.packets, dt), bit_rate(now.out.bytes - last_.out.bytes, dt),
          drops ? packet_rate(drops, dt) : "0", optimum > 0 ? fmt::format("  optimum {:.2f} Mpps", optimum) : "");
    print_workers(now, dt);
    if (drops) print_reasons(dt);
    print_balance();
  }

  /// Null where no balancer decides.
  const offload::BalanceLoop* balance() const {
    const offload::Engine* const engine = router_->engine();
    return engine && engine->mode() == "auto" ? engine->balance() : nullptr;
  }

  /// What the balancer says, when it says something new.
  void print_balance() {
    const offload::BalanceLoop* const loop = balance();
    if (!loop) return;
    for (const std::string& mistake : loop->mistakes())
      if (mistakes_.insert(mistake).second) print("        balance: {}\n", mistake);
    const std::string now = loop->summary();
    if (now == balance_) return;
    balance_ = now;
    print("        balance: {}\n", now);
  }

  /// What each worker received, where there are several.
  void print_workers(const Totals& now, double dt) {
    std::vector<uint64_t> packets(now.in_of_worker.size());
    for (size_t w = 0; w < packets.size(); ++w) packets[w] = now.in_of_worker[w] - last_.in_of_worker[w];
    if (packets.size() < 2 || now.in.packets == last_.in.packets) return;
    std::vector<std::string> parts;
    if (packets.size() <= kMaxWorkersListed) {
      for (size_t w = 0; w < packets.size(); ++w) parts.push_back(fmt::format("{} {}", w, packet_rate(packets[w], dt)));
    } else {
      const Spread spread(packets);
      parts = {"least " + packet_rate(spread.min, dt), "median " + packet_rate(spread.median, dt),
               "most " + packet_rate(spread.max, dt)};
    }
    print_parts("workers", parts);
  }

  void print_reasons(double dt) {
    std::map<std::string, uint64_t> by_reason;
    for (const Router::Drop& d : router_->drops()) by_reason[d.reason] += d.packets;
    std::vector<std::string> parts;
    for (const auto& [reason, n] : by_reason)
      if (const uint64_t before = reasons_[reason]; n > before)
        parts.push_back(fmt::format("{} {}", reason, packet_rate(n - before, dt)));
    reasons_ = by_reason;
    if (!parts.empty()) print_parts("drops", parts);
  }

  /// "        workers: A, B, C", in lines that fit a terminal.
  static void print_parts(const char* what, const std::vector<std::string>& parts) {
    constexpr size_t kWidth = 80;
    std::string line = fmt::format("        {}:", what);
    const size_t indent = line.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string part = " " + parts[i] + (i + 1 < parts.size() ? "," : "");
      if (line.size() > indent && line.size() + part.size() > kWidth) {
        print("{}\n", line);
        line.assign(indent, ' ');
      }
      line += part;
    }
    print("{}\n", line);
  }

  const std::unique_ptr<Router>& router_;
  const RunOptions& options_;
  Totals first_, last_;
  std::map<std::string, uint64_t> reasons_;
  bool told_of_chains_ = false;
  std::string balance_;
  std::set<std::string> mistakes_;
};

void print_header(const std::string& file, const std::string& machine, const Router& router, double build_seconds) {
  print("headrace {} ({}): {}\n", kVersion, kCommit, file);
  print("{}\n", machine);
  size_t noted = 0;
  for (const auto& e : router.elements()) {
    const std::string note = e->note();
    if (note.empty() || ++noted > 20) continue;
    print("{}: {}\n", e->declaration(), note);
  }
  const PacketPool& pool = PacketPool::instance();
  print("{} elements, ready in {:.2f} s; {} worker{}; {} buffers; {}\n\n", router.elements().size(), build_seconds,
        router.worker_count(), router.worker_count() == 1 ? "" : "s", grouped(pool.buffers()),
        router.engine() ? router.engine()->summary() : "packets are processed on the CPU");
  if (router.engine()) print("{}\n", router.engine()->describe());
}

/// Whether each handler can be read, so that a run of hours does not end with the news that one cannot.
bool check_handlers(const std::vector<std::string>& names, const Router& router, Errors& errors) {
  bool good = true;
  for (const std::string& name : names) {
    Element* element = nullptr;
    const Handler* h = router.find_handler(name, nullptr, element, errors);
    if (h && !h->read) (void)errors.error("'{}' is a write handler", name);
    good = good && h && h->read;
  }
  return good;
}

bool print_handler_values(const std::vector<std::string>& names, const Router& router, Errors& errors) {
  bool good = true;
  for (const std::string& name : names) {
    Element* element = nullptr;
    std::string value;
    const Handler* h = router.find_handler(name, nullptr, element, errors);
    if (h && router.call_read(*h, "", value, errors))
      print("{}: {}{}", name, value, value.ends_with('\n') ? "" : "\n");
    else
      good = false;
  }
  return good;
}

void add_options(CommandLine& line, RunOptions& options) {
  options.source.add_options(line);
  add_workers_option(line, options.workers, "default: one for each CPU");
  add_batch_option(line);
  line.add_flag("!--no-pin", options.pin, "Let workers move between CPUs")->group("Running");
  line.add_option("-d,--duration", options.duration, "Seconds to run; default: until stopped")
      ->check(CLI::NonNegativeNumber)
      ->option_text("SECONDS")
      ->group("Running");
  line.add_option("-i,--interval", options.interval, "Seconds between lines; default: 1")
      ->check(CLI::Range(0.1, 3600.0))
      ->option_text("SECONDS")
      ->group("Running");
  line.add_flag("-q,--quiet", options.quiet, "No line every interval, only the closing table")->group("Running");
  const auto repeatable = [](CLI::Option* option, const char* value) {
    // One value each time: what follows is the configuration.
    option->allow_extra_args(false)->option_text(value)->group("Control");
  };
  repeatable(line.add_option("-r,--read", options.handlers,
                             "Read handler ELEMENT.NAME at the end and print it; may be repeated"),
             "HANDLER");
  repeatable(line.add_option("-u,--unix-socket", options.unix_sockets,
                             "Let programs read and write handlers by this socket file; may be repeated"),
             "FILE");
  repeatable(line.add_option("-p,--port", options.tcp_sockets,
                             "The same by a TCP port of this machine; PORT+ takes the next free one"),
             "PORT");
  line.add_flag("-R,--allow-reconfigure", options.reconfigure,
                "Writing handler hotconfig replaces the configuration. SIGHUP, which reads CONF again, needs no option")
      ->group("Control");
  add_offload_arguments(line, options.offload);
  add_compile_arguments(line, options.compile, "auto");
  add_dpdk_option(line);
}

}  // namespace

int run_command(int argc, char** argv) {
  RunOptions options;
  CommandLine line("headrace run", "Runs a configuration on all cores and shows what it does once a second.",
                   "[NAME=VALUE]... CONF");
  add_options(line, options);
  if (const auto status = line.read(argc, argv)) return *status;

  outlive_readers();
  const ConfigurationSource& source = options.source;
  // Before all that takes time, so that SIGHUP does not end a router that is being built.
  struct sigaction on_hangup {};
  on_hangup.sa_handler = [](int) { g_reload = 1; };
  if (source.is_file()) sigaction(SIGHUP, &on_hangup, nullptr);
  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  lang::Configuration configuration;
  if (!source.load(configuration, errors, ConfigurationSource::Check::kClasses)) return kFailed;
  const std::vector<int> cpus = usable_cpus();
  // Later this thread has only the CPUs that workers leave.
  const std::string machine = machine_name();
  Runtime::Options runtime_options;
  runtime_options.threads = options.workers > 0 ? options.workers : static_cast<int>(std::max<size_t>(cpus.size(), 1));
  if (options.pin && runtime_options.threads <= static_cast<int>(cpus.size())) runtime_options.cpus = cpus;
  runtime_options.control_thread = true;
  if (!plan_scheduling("headrace run", runtime_options)) return kFailed;
  size_packet_pool(runtime_options.threads, options.offload, configuration);
  Runtime runtime(runtime_options);
  const auto begin = std::chrono::steady_clock::now();
  LiveConfiguration live(runtime,
                         RouterOptions{.profile = false, .offload = options.offload, .compile = options.compile},
                         [&](const std::string& text, lang::Configuration& out, Errors& e) {
                           return source.parse(text, source.landmark(), out, e, ConfigurationSource::Check::kClasses);
                         });
  if (options.reconfigure) live.allow_reconfigure();
  for (const std::string& port : options.tcp_sockets) live.add_socket(tcp_socket(port));
  for (const std::string& name : options.unix_sockets) live.add_socket(unix_socket(name));
  std::unique_ptr<Router> router = live.make(configuration, errors);
  if (!router || !check_handlers(options.handlers, *router, errors)) return kFailed;
  // Who reads that the router is ready may stop it.
  runtime.catch_stop_signals();
  print_header(source.landmark(), machine, *router,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());

  Reporter reporter(router, options);
  runtime.run(
      router,
      [&] {
        if (g_reload) {
          g_reload = 0;
          reload(source, live, runtime);
        }
        return reporter.poll();
      },
      10);
  reporter.print_closing();
  return print_handler_values(options.handlers, *router, errors) ? 0 : kFailed;
}

}  // namespace headrace::cli
