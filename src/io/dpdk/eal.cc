#include "io/dpdk/eal.hh"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>

#include "headrace/packet_pool.hh"
#include "io/dpdk/mbuf.hh"
#include "io/dpdk_arguments.hh"

namespace headrace::io::dpdk {

namespace detail {
constinit thread_local bool t_attached = false;
}

namespace {

/// MiB for rings, queues and tables of DPDK and its drivers. Only what is used of it is ever touched.
constexpr int kMemoryMib = 256;

// --- What DPDK logs

struct Log {
  std::mutex lock;
  std::string partial;
  std::vector<std::string> kept;
  int captures = 0;
  bool user_level = false;  // the user asked for a level and gets all lines
};

Log& log() {
  static Log* log = new Log;  // DPDK's own threads may log until the very end
  return *log;
}

ssize_t write_log(void*, const char* text, size_t size) {
  Log& l = log();
  std::lock_guard guard(l.lock);
  l.partial.append(text, size);
  for (size_t end; (end = l.partial.find('\n')) != std::string::npos; l.partial.erase(0, end + 1)) {
    const std::string line = l.partial.substr(0, end);
    if (line.empty()) continue;
    if (l.captures > 0) l.kept.push_back(line);
    if (l.captures == 0 || l.user_level) say("DPDK: " + line);
  }
  return static_cast<ssize_t>(size);
}

void redirect_log() {
  const cookie_io_functions_t functions{nullptr, &write_log, nullptr, nullptr};
  if (FILE* stream = fopencookie(nullptr, "w", functions)) {
    setvbuf(stream, nullptr, _IOLBF, 4096);
    rte_openlog_stream(stream);
  }
}

void set_log_level() {
  Log& l = log();
  if (!l.user_level) rte_log_set_global_level(l.captures > 0 ? RTE_LOG_NOTICE : RTE_LOG_ERR);
}

// --- Bringing it up

/// "0@(0,1,5)": lcore 0 may run on every CPU that this process may use.
std::string one_lcore() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cpus += fmt::format("{}{}", cpus.empty() ? "" : ",", c);
  return cpus.empty() ? "0" : fmt::format("0@({})", cpus);
}

/// True if an argument is one of these options: `--name`, `--name=value`, `-x` or `-xvalue`.
bool gives(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> names) {
  return std::any_of(arguments.begin(), arguments.end(), [&](std::string_view a) {
    a = a.substr(0, a.find('='));
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return a == name || (name.size() == 2 && a.size() > 2 && a.starts_with(name) && a[1] != '-');
    });
  });
}

/// PCI devices that somebody left to DPDK: bound to a driver for that, or to one that shares the device with it. Others
/// are the kernel's, and it is not for us to try whether they can be taken from it.
std::vector<std::string> pci_devices() {
  std::vector<std::string> devices;
  for (const char* driver : {"vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core", "mlx5_core"}) {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("/sys/bus/pci/drivers/{}", driver), ignored)) {
      const std::string name = entry.path().filename();
      if (name.find(':') != std::string::npos) devices.push_back(name);
    }
  }
  return devices;
}

std::vector<std::string> eal_arguments() {
  const std::vector<std::string>& users = dpdk_arguments();
  std::vector<std::string> all{"headrace"};
  if (!gives(users, {"-l", "-c", "--lcores", "-S", "-s"})) all.insert(all.end(), {"--lcores", one_lcore()});
  if (!gives(users, {"-m", "--no-huge", "--in-memory", "--huge-dir", "--huge-unlink", "--socket-mem", "--socket-limit",
                     "--legacy-mem", "--single-file-segments", "--huge-worker-stack"}))
    all.insert(all.end(), {"--no-huge", "-m", std::to_string(kMemoryMib)});
  if (!gives(users, {"--file-prefix", "--proc-type", "--in-memory"})) all.emplace_back("--no-shconf");
  if (!gives(users, {"--telemetry", "--no-telemetry"})) all.emplace_back("--no-telemetry");
  if (!gives(users, {"-a", "-b", "--allow", "--block", "--no-pci"})) {
    const std::vector<std::string> devices = pci_devices();
    for (const std::string& device : devices) all.insert(all.end(), {"-a", device});
    if (devices.empty()) all.emplace_back("--no-pci");
  }
  all.insert(all.end(), users.begin(), users.end());
  return all;
}

/// Empty when it worked.
std::string bring_up() {
  PacketPool::instance().prepare();
  log().user_level = gives(dpdk_arguments(), {"--log-level"});
  redirect_log();
  LogCapture capture;
  std::vector<std::string> words = eal_arguments();
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  int result = 0, error = 0;
  // On a thread of its own: the caller of rte_eal_init() becomes DPDK's main lcore, with the CPUs of that, and ours is
  // a worker or the control thread.
  std::thread([&] {
    result = rte_eal_init(static_cast<int>(words.size()), argv.data());
    error = rte_errno;
  }).join();
  if (result < 0)
    return fmt::format("DPDK's environment does not start ({}): {}",
                       fmt::join(std::vector(words.begin() + 1, words.end()), " "),
                       capture.text().empty() ? rte_strerror(error) : capture.text());
  return make_mempool();
}

}  // namespace

void say(const std::string& line) {
  const std::string whole = line + '\n';
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

Status start_eal(Errors& errors) {
  static std::mutex lock;
  static bool tried = false;
  static std::string failure;
  std::lock_guard guard(lock);
  if (!tried) {
    tried = true;
    failure = bring_up();
  }
  attach_thread();
  return failure.empty() ? Status() : errors.error("{}", failure);
}

LogCapture::LogCapture() {
  std::lock_guard guard(log().lock);
  if (log().captures++ == 0) log().kept.clear();
  set_log_level();
}

LogCapture::~LogCapture() {
  std::lock_guard guard(log().lock);
  --log().captures;
  set_log_level();
}

std::string LogCapture::text() const {
  std::lock_guard guard(log().lock);
  return fmt::format("{}", fmt::join(log().kept, "; "));
}

// --- Threads

namespace {
/// Gives back at the end of a thread what it has of DPDK.
struct Attachment {
  bool registered = false;
  ~Attachment() {
    flush_mempool_cache();
    if (registered) rte_thread_unregister();
    detail::t_attached = false;
  }
};
}  // namespace

void detail::attach_thread_slowly() {
  thread_local Attachment attachment;
  // Beyond DPDK's most threads (128) there is no lcore left: then the thread does without DPDK's per-lcore caches.
  attachment.registered = rte_thread_register() == 0;
  t_attached = true;
}

}  // namespace headrace::io::dpdk
