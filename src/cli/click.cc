// Click's user-level driver: the same options, messages and exit statuses.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hh"
#include "cli/live_configuration.hh"
#include "cli/man_page.hh"
#include "cli/options.hh"
#include "cli/output.hh"
#include "cli/read_handlers.hh"
#include "cli/source.hh"
#include "headrace/router.hh"
#include "headrace/version.hh"
#include "headrace/worker.hh"
#include "io/dpdk_arguments.hh"
#include "runtime/packages.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

enum OptionId {
  kFile,
  kExpression,
  kHandler,
  kExitHandler,
  kOutput,
  kQuit,
  kThreads,
  kAffinity,
  kTime,
  kNoWarnings,
  kWarnings,
  kSimtime,
  kClickpath,
  kHelp,
  kShowVersion,
  kPort,
  kUnixSocket,
  kSocket,
  kReconfigure,
  kDpdk
};

using Value = Option::Value;
constexpr Option kOptions[] = {
    {kFile, "file", 'f', Value::kRequired},
    {kExpression, "expression", 'e', Value::kRequired},
    {kHandler, "handler", 'h', Value::kRequired},
    {kExitHandler, "exit-handler", 'x', Value::kRequired},
    {kOutput, "output", 'o', Value::kRequired},
    {kQuit, "quit", 'q'},
    {kThreads, "threads", 'j', Value::kRequired},
    {kAffinity, "affinity", 'a', Value::kOptional, true},
    {kAffinity, "cpu", 0, Value::kOptional, true},
    {kTime, "time", 't'},
    {kNoWarnings, nullptr, 'w'},
    {kWarnings, "warnings", 0, Value::kNone, true},
    {kSimtime, "simtime", 0, Value::kOptional},
    {kSimtime, "simulation-time", 0, Value::kOptional},
    {kClickpath, "clickpath", 'C', Value::kRequired},
    {kHelp, "help"},
    {kShowVersion, "version", 'v'},
    {kPort, "port", 'p', Value::kRequired},
    {kUnixSocket, "unix-socket", 'u', Value::kRequired},
    {kSocket, "socket", 0, Value::kRequired},
    {kReconfigure, "allow-reconfigure", 'R', Value::kNone, true},
    {kDpdk, "dpdk"},
};

constexpr const char* kHelpText =
    R"(Usage: click [OPTION]... [NAME=VALUE]... [FILE]

Runs a configuration as the user-level driver of Click does: one thread unless told otherwise, until it is stopped or
a driver event ends it. FILE may be '-' for standard input, which is also what is read when there is none.

Configuration
  -f, --file FILE            read FILE
  -e, --expression TEXT      the configuration is TEXT
      NAME=VALUE             the value of $NAME in the configuration
  -C, --clickpath PATH       folders for required files and packages, separated by ':' (else $CLICKPATH)

Running
  -j, --threads N            N threads (1)
  -a, --affinity[=N]         pin the threads to CPUs N (0), N+1, ...; --no-affinity leaves them where they are
      --simtime[=T]          in simulated time that begins at T seconds (1000000000): waiting takes no time
  -q, --quit                 check and initialize, but do not run
      --dpdk ARGUMENT... --  arguments for DPDK (FromDPDKDevice, ToDPDKDevice), up to "--" or the end

Results
  -h, --handler NAME         afterwards print the value of the read handler element.handler; may be repeated, and the
                             element may be a pattern or a class: -h '*.count'
  -x, --exit-handler NAME    the value of this handler is the exit status
  -o, --output FILE          write the flat configuration to FILE, '-' for standard output
  -t, --time                 print user, system and real time
  -w, --no-warnings          no warnings
      --help, -v, --version

Control
  -p, --port PORT            handlers can be read and written by this TCP port of this machine; PORT+ takes the next
                             free one. Like a ControlSocket in the configuration
  -u, --unix-socket FILE     the same by a UNIX-domain socket
      --socket FD            the same by a connected socket that the program was started with
  -R, --allow-reconfigure    writing the handler 'hotconfig' replaces the configuration while it runs
)";

struct Settings {
  ConfigurationSource source;
  std::vector<std::string> handlers;
  std::string exit_handler, output;
  bool quit = false, time = false, warnings = true;
  int threads = 1;
  int first_cpu = -1;
  bool reconfigure = false;
  std::vector<std::string> sockets;  // arguments of ControlSockets
};

/// What the options ask for: to go on, or to end with a status.
enum class Outcome { kRun, kEnd, kWrong };

Outcome read_options(const std::string& program, int argc, char** argv, Settings& s, Errors& errors) {
  OptionReader reader(program, argc, argv, kOptions);
  for (;;) {
    const int id = reader.next();
    bool good = true;
    switch (id) {
      case OptionReader::kDone:
        return Outcome::kRun;
      case OptionReader::kBad:
        return Outcome::kWrong;
      case OptionReader::kArgument:
        good = s.source.add_argument(reader.value(), errors);
        break;
      case kFile:
      case kExpression:
        good = id == kFile ? s.source.set_file(reader.value()) : s.source.set_expression(reader.value());
        if (!good) (void)errors.error("router configuration specified twice");
        break;
      case kHandler:
        s.handlers.push_back(reader.value());
        break;
      case kExitHandler:
        good = s.exit_handler.empty() || errors.error("--exit-handler specified twice").ok();
        s.exit_handler = reader.value();
        break;
      case kOutput:
        good = s.output.empty() || errors.error("output file specified twice").ok();
        s.output = reader.value();
        break;
      case kQuit:
        s.quit = true;
        break;
      case kThreads:
        good = reader.integer(s.threads);
        if (good && s.threads >= kMaxThreads) good = errors.error("at most {} threads", kMaxThreads - 1).ok();
        s.threads = std::max(s.threads, 1);
        break;
      case kAffinity:
        s.first_cpu = reader.negated() ? -1 : 0;
        if (reader.has_value()) good = reader.integer(s.first_cpu);
        break;
      case kTime:
        s.time = true;
        break;
      case kNoWarnings:
        s.warnings = false;
        break;
      case kWarnings:
        s.warnings = !reader.negated();
        break;
      case kSimtime: {
        double begin = 1000000000;
        if (reader.has_value()) good = reader.number(begin);
        clock::set_warp(clock::Warp::kSimulation);
        clock::set_simulated_now(Timestamp::from_double(begin), Timestamp::from_double(begin));
        break;
      }
      case kClickpath:
        s.source.set_search_path(reader.value());
        break;
      case kHelp:
        write_output(kHelpText);
        return Outcome::kEnd;
      case kShowVersion:
        print("{} (Headrace) {}\n", program, kVersion);
        return Outcome::kEnd;
      case kDpdk:
        if (const std::string_view reason = absent_reason("FromDPDKDevice"); !reason.empty()) {
          reader.complain(fmt::format("option '--dpdk': {}", reason));
          good = false;
        } else {
          io::dpdk_arguments() = reader.rest();
        }
        break;
      case kSocket: {
        int fd = 0;
        good = reader.integer(fd);
        s.sockets.push_back(fmt::format("SOCKET, {}", fd));
        break;
      }
      case kReconfigure:
        s.reconfigure = !reader.negated();
        break;
      case kPort:
        s.sockets.push_back(tcp_socket(reader.value()));
        break;
      case kUnixSocket:
        s.sockets.push_back(unix_socket(reader.value()));
        break;
      default:
        reader.complain(fmt::format("option '{}' is not supported in this version", reader.written()));
        good = false;
    }
    if (!good) return Outcome::kWrong;
  }
}

Status write_flat(const Router& router, const std::string& file, Errors& errors) {
  const std::string text = router.flat_configuration();
  if (file == "-") {
    write_output(text);
    return {};
  }
  std::FILE* out = std::fopen(file.c_str(), "w");
  bool good = out && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out) good = std::fclose(out) == 0 && good;
  return good ? Status() : errors.error("{}: {}", file, std::strerror(errno));
}

/// User and system time of the process, and real time.
class Stopwatch {
 public:
  Stopwatch() : real_(std::chrono::steady_clock::now()) { getrusage(RUSAGE_SELF, &usage_); }
  void print() const {
    rusage now;
    getrusage(RUSAGE_SELF, &now);
    const auto seconds = [](const timeval& a, const timeval& b) {
      return static_cast<double>(a.tv_sec - b.tv_sec) + static_cast<double>(a.tv_usec - b.tv_usec) * 1e-6;
    };
    const double real = std::chrono::duration<double>(std::chrono::steady_clock::now() - real_).count();
    const long hundredths = std::lround(real * 100);
    cli::print("{:.3f}u {:.3f}s {}:{:02}.{:02}\n", seconds(now.ru_utime, usage_.ru_utime),
               seconds(now.ru_stime, usage_.ru_stime), hundredths / 6000, hundredths / 100 % 60, hundredths % 100);
  }

 private:
  rusage usage_;
  std::chrono::steady_clock::time_point real_;
};

/// Prints this command's part of the man page or of the completion script if `option` is one of these hidden ones.
bool print_part(std::string_view option) {
  if (option == "--man") {
    print(".SS headrace click\n.EX\n{}.EE\n", troff(kHelpText));
    return true;
  }
  if (option != "--bash-completion") return false;
  std::string options;
  for (const Option& o : kOptions) {
    if (o.letter) options += fmt::format(" -{}", o.letter);
    if (o.name) options += fmt::format(" --{}", o.name);
  }
  print("    click)\n      options='{}' kind=CONF\n      case $before in\n", options.substr(1));
  for (const Option& o : kOptions) {
    if (o.value != Value::kRequired) continue;
    const bool file = o.id == kFile || o.id == kOutput || o.id == kUnixSocket;
    print("        {}--{}) kind={} ;;\n", o.letter ? fmt::format("-{} | ", o.letter) : std::string(), o.name,
          file                 ? "FILE"
          : o.id == kClickpath ? "PATH"
                               : "NONE");
  }
  write_output("        *) ;;\n      esac\n      ;;\n");
  return true;
}

}  // namespace

int click_command(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "click";
  const std::string program(path.substr(path.rfind('/') + 1));
  if (path == "headrace click" && argc == 2 && print_part(argv[1])) return 0;
  Errors errors(Errors::Output::kStderr);
  Settings s;
  switch (read_options(program, argc, argv, s, errors)) {
    case Outcome::kEnd:
      return 0;
    case Outcome::kWrong:
      complain("Usage: {0} [OPTION]... [FILE]\nTry '{0} --help' for more information.\n", program);
      return 1;
    case Outcome::kRun:
      break;
  }
  outlive_readers();

  lang::Configuration configuration;
  if (!s.source.load(configuration, errors, ConfigurationSource::Check::kClasses)) return 1;
  Runtime::Options options{.threads = s.threads, .cpus = {}, .control_thread = false};
  if (s.first_cpu >= 0)
    for (int i = 0; i < s.threads; ++i) options.cpus.push_back(s.first_cpu + i);
  Runtime runtime(options);
  // As Click does: no devices, no threads besides.
  RouterOptions router_options;
  router_options.offload.mode = OffloadOptions::Mode::kCpu;
  LiveConfiguration live(runtime, router_options, [&](const std::string& text, lang::Configuration& out, Errors& e) {
    return s.source.parse(text, "hotconfig", out, e, ConfigurationSource::Check::kClasses);
  });
  if (s.reconfigure) live.allow_reconfigure();
  for (const std::string& socket : s.sockets) live.add_socket(socket);
  const bool empty = configuration.elements.empty();
  std::unique_ptr<Router> router = live.make(configuration, errors);
  if (!router) return 1;

  int status = 0;
  if (!s.output.empty() && !write_flat(*router, s.output, errors)) status = 1;
  const Stopwatch stopwatch;
  if (!s.quit && !(empty && s.sockets.empty()))
    runtime.run(router);
  else if (!s.quit && s.warnings)
    errors.warning_at({s.source.landmark(), 0}, "configuration has no elements, exiting");
  if (s.time) stopwatch.print();
  if (!print_handlers(*router, s.handlers, errors)) status = 1;
  if (!s.exit_handler.empty()) status = read_exit_status(*router, s.exit_handler, errors);
  return status;
}

}  // namespace headrace::cli
