#include "io/dpdk/watch.hh"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include <chrono>

#include "headrace/rcu.hh"
#include "headrace/thread_name.hh"
#include "io/dpdk/eal.hh"

namespace headrace::io::dpdk {

namespace {

/// Between looks at ports that cannot tell, and between attempts to bring a device back.
constexpr std::chrono::milliseconds kOften{20};
constexpr int kLooksUntilRetry = 25;

/// A tap device makes its interface; the others open one that exists.
bool makes_interface(const std::string& device) { return device.starts_with("net_tap"); }

}  // namespace

Watch& Watch::instance() {
  static Watch* watch = new Watch;
  return *watch;
}

void Watch::add(Port* port, const std::shared_ptr<LinkWatch>& links) {
  std::unique_ptr<LinkWatch::Subscription> link;
  if (links && !port->interface_name_.empty()) link = links->subscribe(port->interface_name_, [this] { wake(); });
  std::lock_guard guard(lock_);
  ports_.push_back({port, std::move(link)});
  if (!thread_.joinable())
    thread_ = std::thread([this] {
      name_thread("port watch");
      run();
    });
  wake();
}

void Watch::remove(Port* port) {
  std::thread finished;
  std::list<Watched> removed;
  {
    std::lock_guard guard(lock_);
    for (auto it = ports_.begin(); it != ports_.end();) {
      const auto here = it++;
      if (here->port == port) removed.splice(removed.end(), ports_, here);
    }
    if (ports_.empty()) finished = std::move(thread_);
  }
  wake();
  if (finished.joinable()) finished.join();
}

void Watch::wake() {
  {
    const std::lock_guard guard(wake_lock_);
    woken_ = true;
  }
  wake_changed_.notify_all();
}

void Watch::wait(bool often) {
  std::unique_lock guard(wake_lock_);
  const auto woken = [this] { return woken_; };
  if (often) {
    wake_changed_.wait_for(guard, kOften, woken);
  } else {
    wake_changed_.wait(guard, woken);
  }
  woken_ = false;
}

void Watch::run() {
  const std::thread::id self = std::this_thread::get_id();
  for (;;) {
    bool often = false;
    {
      const std::lock_guard guard(lock_);
      // When the last port went, and a new first one came, there is another thread.
      if (thread_.get_id() != self) break;
      for (Watched& w : ports_) {
        look(w);
        often |= w.gone || !w.link;
      }
    }
    wait(often);
  }
  // The other thread may have been meant.
  wake();
}

void Watch::look(Watched& w) {
  Port& port = *w.port;
  if (w.gone) {
    // At once when its interface is back; again later if that was too early, or nobody tells.
    const bool back = w.link && w.link->state();
    const bool appeared = back && !w.back;
    w.back = back;
    if (!appeared && --w.looks_until_retry > 0) return;
    w.looks_until_retry = kLooksUntilRetry;
    if (restart(w)) say(fmt::format("{}: the device is back", port.name()));
    return;
  }
  if (port.removed_) {
    lose(w, "the device was removed");
    return;
  }
  char name[IF_NAMESIZE] = "";
  if (port.interface_ && !if_indextoname(port.interface_, name)) {
    lose(w, "its interface is gone");
    return;
  }
  rte_eth_link link{};
  bool up = rte_eth_link_get_nowait(port.id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  if (up && w.link) {
    // Not known while the first message about a new interface is under way.
    const std::optional<DeviceState> state = w.link->state();
    up = !state || state->carrier;
  }
  if (port.link_up_.exchange(up, std::memory_order_relaxed) != up) announce_device_change();
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
  announce_device_change();
  w.gone = true;
  w.back = false;
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
  announce_device_change();
  return true;
}

}  // namespace headrace::io::dpdk
