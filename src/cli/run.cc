#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "cli/commands.hh"
#include "cli/dpdk_option.hh"
#include "cli/live_configuration.hh"
#include "cli/offload_arguments.hh"
#include "cli/session.hh"
#include "headrace/packet_pool.hh"
#include "headrace/shader_host.hh"
#include "headrace/version.hh"
#include "offload/engine.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

struct RunOptions {
  std::vector<std::string> words;
  int workers = 0;
  double duration = 0;
  double interval = 1;
  bool quiet = false;
  bool pin = true;
  std::vector<std::string> handlers;
  std::vector<std::string> tcp_sockets, unix_sockets;
  bool reconfigure = false;
  OffloadOptions offload;
};

/// Set by SIGHUP: the configuration file is to be read again.
volatile std::sig_atomic_t g_reload = 0;

/// Reads the configuration file again and lets it take over; what is wrong with it is said, and all stays as it is.
void reload(const std::string& file, LiveConfiguration& live, const Runtime& runtime) {
  Errors errors(Errors::Output::kStderr);
  std::string text;
  const auto begin = std::chrono::steady_clock::now();
  if (!read_configuration(file, text, errors) || !live.replace(text, errors).ok()) {
    fmt::print(stderr, "{}: not in effect, the running configuration goes on\n", file);
    return;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}: in effect after {:.2f} s, workers stood {:.1f} us\n", file, seconds,
             static_cast<double>(runtime.swaps().last_ns) * 1e-3);
  std::fflush(stdout);
}

/// Prints what happens while the router runs.
class Reporter {
 public:
  /// \param router that which runs, whichever it is at the time
  Reporter(const std::unique_ptr<Router>& router, const RunOptions& options) : router_(router), options_(options) {
    first_ = last_ = read_totals(*router);
  }

  /// Called often; prints when an interval is over. False when the duration is over.
  bool poll() {
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    if (now - last_.seconds >= options_.interval) {
      const Totals totals = read_totals(*router_);
      if (!options_.quiet) print_line(totals);
      last_ = totals;
    }
    return options_.duration <= 0 || now - first_.seconds < options_.duration;
  }

  void print_closing() {
    for (const auto& element : router_->elements())
      if (auto* const shader = dynamic_cast<ShaderElementBase*>(element.get())) shader->write_out();
    const Totals end = read_totals(*router_);
    const double seconds = end.seconds - first_.seconds;
    print_ports(end, seconds);
    fmt::print("\n");
    if (end.drops == 0 && end.missed == 0) {
      fmt::print("no drops\n");
    } else {
      fmt::print("{:<28}{:>18}  {}\n", "drops at", "packets", "reason");
      for (const Router::Drop& d : router_->drops())
        fmt::print("{:<28}{:>18}  {}\n", d.element, grouped(d.packets), d.reason);
      if (end.missed) fmt::print("{:<28}{:>18}  no buffer left\n", "(sources)", grouped(end.missed));
    }
    fmt::print("ran {:.1f} s\n", seconds);
    std::fflush(stdout);
  }

 private:
  /// Totals of each device port and each worker; nothing for a configuration without ports, such as one of captures.
  void print_ports(const Totals& end, double seconds) {
    const std::vector<PortRecord> ports = router_->ports();
    if (ports.empty()) return;
    fmt::print("\n{:<28}{:>18}{:>20}{:>10}{:>10}\n", "port", "packets", "bytes", "Mpps", "Gbps");
    for (const PortRecord& port : ports) {
      PortTotals t;
      for (const PortTotals& one : port.of_thread) {
        t.packets += one.packets;
        t.bytes += one.bytes;
      }
      const char* arrow = port.direction == DevicePort::Direction::kIn ? "in " : "out";
      fmt::print("{:<28}{:>18}{:>20}{:>10.2f}{:>10.2f}\n", fmt::format("{} {}", arrow, port.name), grouped(t.packets),
                 grouped(t.bytes), mpps(t.packets, seconds), gbps(t.bytes, seconds));
    }
    fmt::print("\n{:<28}{:>18}{:>20}{:>10}\n", "worker", "packets", "share", "Mpps");
    for (size_t w = 0; w < end.in_of_worker.size(); ++w)
      fmt::print(
          "{:<28}{:>18}{:>19.1f}%{:>10.2f}\n", w, grouped(end.in_of_worker[w]),
          end.in.packets ? 100.0 * static_cast<double>(end.in_of_worker[w]) / static_cast<double>(end.in.packets) : 0.0,
          mpps(end.in_of_worker[w], seconds));
  }

  void print_line(const Totals& now) {
    const double dt = now.seconds - last_.seconds;
    std::string workers;
    for (size_t w = 0; w < now.in_of_worker.size(); ++w)
      workers += fmt::format(" w{} {:.2f}", w, mpps(now.in_of_worker[w] - last_.in_of_worker[w], dt));
    fmt::print("{:>5.0f} s   in {:>7.2f} Mpps {:>7.2f} Gbps   out {:>7.2f} Mpps {:>7.2f} Gbps   {}  {}\n",
               now.seconds - first_.seconds, mpps(now.in.packets - last_.in.packets, dt),
               gbps(now.in.bytes - last_.in.bytes, dt), mpps(now.out.packets - last_.out.packets, dt),
               gbps(now.out.bytes - last_.out.bytes, dt), drops(now, dt), workers);
    std::fflush(stdout);
  }

  std::string drops(const Totals& now, double dt) {
    if (now.drops == last_.drops && now.missed == last_.missed) return "drops 0";
    std::string s = fmt::format("drops {:.3f} Mpps", mpps(now.drops - last_.drops, dt));
    std::map<std::string, uint64_t> by_reason;
    for (const Router::Drop& d : router_->drops()) by_reason[d.reason] += d.packets;
    std::string parts;
    for (const auto& [reason, n] : by_reason)
      if (const uint64_t before = reasons_[reason]; n > before)
        parts += fmt::format("{}{} {:.3f}", parts.empty() ? "" : ", ", reason, mpps(n - before, dt));
    reasons_ = by_reason;
    return s + " (" + parts + ")";
  }

  const std::unique_ptr<Router>& router_;
  const RunOptions& options_;
  Totals first_, last_;
  std::map<std::string, uint64_t> reasons_;
};

void print_header(const std::string& file, const Router& router, double build_seconds) {
  fmt::print("headrace {} ({}): {}\n", kVersion, kCommit, file);
  fmt::print("{}\n", machine_name());
  size_t noted = 0;
  for (const auto& e : router.elements()) {
    const std::string note = e->note();
    if (note.empty() || ++noted > 20) continue;
    fmt::print("{}: {}\n", e->declaration(), note);
  }
  const PacketPool& pool = PacketPool::instance();
  fmt::print("{} elements, ready in {:.2f} s; {} worker{}; {} buffers; {}\n\n", router.elements().size(), build_seconds,
             router.worker_count(), router.worker_count() == 1 ? "" : "s", grouped(pool.buffers()),
             router.engine() ? router.engine()->summary() : "packets are processed on the CPU");
  if (router.engine()) fmt::print("{}\n", router.engine()->describe());
  std::fflush(stdout);
}

}  // namespace

int run_command(int argc, char** argv) {
  RunOptions options;
  CLI::App app{"Runs a configuration on all cores and shows what it does once a second.", "headrace run"};
  app.add_option("CONF", options.words,
                 "Configuration file ('-' for standard input), then NAME=value for its variables")
      ->required();
  app.add_option("-w,--workers", options.workers, "Worker threads; default: one for each CPU")
      ->check(CLI::Range(1, 255));
  app.add_option("-d,--duration", options.duration, "Seconds to run; default: until stopped")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-i,--interval", options.interval, "Seconds between lines")->check(CLI::Range(0.1, 3600.0));
  app.add_flag("-q,--quiet", options.quiet, "No line every interval, only the closing table");
  app.add_flag("!--no-pin", options.pin, "Let workers move between CPUs");
  app.add_option("-r,--read", options.handlers, "Read handler ELEMENT.NAME at the end and print it (repeatable)");
  app.add_option("-u,--unix-socket", options.unix_sockets, "Let programs read and write handlers by this socket file");
  app.add_option("-p,--port", options.tcp_sockets,
                 "The same by a TCP port of this machine; PORT+ takes the next free one");
  app.add_flag("-R,--allow-reconfigure", options.reconfigure,
               "Writing handler hotconfig replaces the configuration. SIGHUP, which reads CONF again, does it without");
  add_offload_arguments(app, options.offload);
  add_dpdk_option(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }

  std::map<std::string, std::string> variables;
  std::string file;
  for (const std::string& word : options.words) {
    if (split_variable(word, variables)) continue;
    if (!file.empty()) {
      fmt::print(stderr, "headrace run: one configuration at a time, got '{}' and '{}'\n", file, word);
      return 1;
    }
    file = word;
  }
  if (file.empty()) {
    fmt::print(stderr, "headrace run: no configuration file given\n");
    return 1;
  }

  // Before all that takes time, so that SIGHUP does not end a router that is being built.
  struct sigaction on_hangup {};
  on_hangup.sa_handler = [](int) { g_reload = 1; };
  if (file != "-") sigaction(SIGHUP, &on_hangup, nullptr);
  lang::Configuration configuration;
  if (!load_configuration(file, variables, configuration)) return 1;
  const std::vector<int> cpus = usable_cpus();
  Runtime::Options runtime_options;
  runtime_options.threads = options.workers > 0 ? options.workers : static_cast<int>(std::max<size_t>(cpus.size(), 1));
  if (options.pin && runtime_options.threads <= static_cast<int>(cpus.size())) runtime_options.cpus = cpus;
  runtime_options.control_thread = true;
  if (!plan_scheduling("headrace run", runtime_options)) return 1;
  size_packet_pool(runtime_options.threads, options.offload);
  Runtime runtime(runtime_options);
  Errors errors(Errors::Output::kStderr);
  const auto begin = std::chrono::steady_clock::now();
  LiveConfiguration live(runtime, RouterOptions{.profile = false, .offload = options.offload},
                         [&](const std::string& text, lang::Configuration& out, Errors& e) {
                           return parse_configuration(text, file, variables, out, e);
                         });
  if (options.reconfigure) live.allow_reconfigure();
  for (const std::string& port : options.tcp_sockets) live.add_socket(tcp_socket(port));
  for (const std::string& name : options.unix_sockets) live.add_socket(unix_socket(name));
  std::unique_ptr<Router> router = live.make(configuration, errors);
  if (!router) return 1;
  print_header(file, *router, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());

  Reporter reporter(router, options);
  runtime.run(
      router,
      [&] {
        if (g_reload) {
          g_reload = 0;
          reload(file, live, runtime);
        }
        return reporter.poll();
      },
      10);
  reporter.print_closing();
  int status = 0;
  for (const std::string& name : options.handlers) {
    Element* element = nullptr;
    std::string value;
    const Handler* h = router->find_handler(name, nullptr, element, errors);
    if (h && router->call_read(element, *h, "", value, errors))
      fmt::print("{}: {}{}", name, value, value.ends_with('\n') ? "" : "\n");
    else
      status = 1;
  }
  return status;
}

}  // namespace headrace::cli
