#include "io/dpdk/watch.hh"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "headrace/rcu.hh"
#include "io/dpdk/eal.hh"

namespace headrace::io::dpdk {

namespace {

constexpr std::chrono::milliseconds kPeriod{100};
constexpr int kLooksUntilRetry = 5;

/// Whether an interface of Linux has a carrier, for drivers that do not look. True where it cannot be told.
bool has_carrier(const char* interface) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  ifreq request{};
  std::memcpy(request.ifr_name, interface, strnlen(interface, sizeof request.ifr_name - 1));
  const bool known = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
  close(fd);
  return !known || (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

/// A tap device makes its interface; the others open one that exists.
bool makes_interface(const std::string& device) { return device.starts_with("net_tap"); }

}  // namespace

Watch& Watch::instance() {
  static Watch* watch = new Watch;
  return *watch;
}

void Watch::add(Port* port) {
  std::lock_guard guard(lock_);
  ports_.push_back({port});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Watch::remove(Port* port) {
  std::thread finished;
  {
    std::lock_guard guard(lock_);
    std::erase_if(ports_, [&](const Watched& w) { return w.port == port; });
    if (ports_.empty()) finished = std::move(thread_);
  }
  changed_.notify_all();
  if (finished.joinable()) finished.join();
}

void Watch::run() {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock guard(lock_);
  // When the last port went, and a new first one came, there is another thread.
  while (thread_.get_id() == self) {
    for (Watched& w : ports_) look(w);
    changed_.wait_for(guard, kPeriod);
  }
}

void Watch::look(Watched& w) {
  Port& port = *w.port;
  if (w.gone) {
    if (--w.looks_until_retry > 0) return;
    w.looks_until_retry = kLooksUntilRetry;
    if (restart(w)) say(fmt::format("{}: the device is back", port.name()));
    return;
  }
  if (port.removed_) {
    lose(w, "the device was removed");
    return;
  }
  char interface[IF_NAMESIZE] = "";
  if (port.interface_ && !if_indextoname(port.interface_, interface)) {
    lose(w, "its interface is gone");
    return;
  }
  rte_eth_link link{};
  bool up = rte_eth_link_get_nowait(port.id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  if (up && port.interface_) up = has_carrier(interface);
  port.link_up_.store(up, std::memory_order_relaxed);
  if (up == w.up && w.known) return;
  // A port that comes up is as it should be; so is one of which we only now look for the first time.
  if (!up)
    say(fmt::format("{}: link down", port.name()));
  else if (w.known)
    say(fmt::format("{}: link up", port.name()));
  w.up = up;
  w.known = true;
}

void Watch::lose(Watched& w, const char* why) {
  Port& port = *w.port;
  port.usable_.store(false, std::memory_order_release);
  port.link_up_.store(false, std::memory_order_relaxed);
  w.gone = true;
  w.looks_until_retry = 1;
  const bool returns = !port.device_arguments_.empty();
  say(fmt::format("{}: {}{}", port.name(), why, returns ? ", waiting for it to come back" : ""));
}

/// Makes the device again. Workers have seen that it is not usable: they look at each burst, and a grace period covers
/// the bursts under way.
bool Watch::restart(Watched& w) {
  Port& port = *w.port;
  if (port.device_arguments_.empty()) return false;
  if (!makes_interface(port.name_) && if_nametoindex(port.interface_name_.c_str()) == 0) return false;
  const rcu::Epoch grace = rcu::start_grace();
  // Bounded: the thread waiting for us may be the one the workers are waiting for (deadlock).
  for (int i = 0; !rcu::elapsed(grace); ++i) {
    if (i == 100) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  port.before_ = port.stats();
  std::lock_guard guard(port.control_lock_);
  LogCapture capture;
  port.stop();
  uint16_t id;
  if (rte_dev_probe(port.device_arguments_.c_str()) != 0 || rte_eth_dev_get_port_by_name(port.name_.c_str(), &id) != 0)
    return false;
  port.id_ = id;
  if (!port.configure_and_start().empty()) return false;
  w.gone = false;
  w.known = false;
  return true;
}

}  // namespace headrace::io::dpdk
