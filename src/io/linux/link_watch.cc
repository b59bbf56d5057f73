#include "src/io/linux/link_watch.hh"

#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>

#include "src/io/linux/link_settings.hh"

namespace headrace::io {

namespace {

/// Room for messages while the control thread is busy: some hundred of them.
constexpr int kReceiveBuffer = 1 << 20;
/// In a row, from a socket that is being emptied.
constexpr int kMostErrors = 100;

std::mutex g_watch_lock;
std::weak_ptr<LinkWatch> g_watch;

DeviceState state_of(rtnl_link* link) {
  DeviceState state;
  const char* const name = rtnl_link_get_name(link);
  state.name = name != nullptr ? name : "";
  nl_addr* const address = rtnl_link_get_addr(link);
  if (rtnl_link_get_arptype(link) == ARPHRD_ETHER && address != nullptr && nl_addr_get_len(address) == 6)
    state.address = EtherAddress::from_bytes(nl_addr_get_binary_addr(address));
  state.mtu = static_cast<int>(rtnl_link_get_mtu(link));
  const unsigned flags = rtnl_link_get_flags(link);
  state.enabled = (flags & IFF_UP) != 0;
  state.carrier = state.enabled && (flags & IFF_RUNNING) != 0;
  return state;
}

void copy_settings(const DeviceState& from, DeviceState& to) {
  to.speed = from.speed;
  to.most_speed = from.most_speed;
  to.current = from.current;
  to.advertised = from.advertised;
  to.supported = from.supported;
  to.peer = from.peer;
}

}  // namespace

std::shared_ptr<LinkWatch> LinkWatch::at(const Watch& watch, Errors& errors) {
  const std::lock_guard guard(g_watch_lock);
  if (std::shared_ptr<LinkWatch> there = g_watch.lock()) return there;
  auto made = std::make_shared<LinkWatch>(watch);
  if (!made->open(errors)) return nullptr;
  g_watch = made;
  watch(made->fd(), [weak = std::weak_ptr(made)] {
    if (const std::shared_ptr<LinkWatch> there = weak.lock()) there->run();
  });
  return made;
}

bool LinkWatch::open(Errors& errors) {
  requests_ = nl_socket_alloc();
  events_ = nl_socket_alloc();
  int error = requests_ != nullptr && events_ != nullptr ? 0 : -NLE_NOMEM;
  if (error == 0) error = nl_connect(requests_, NETLINK_ROUTE);
  if (error == 0) error = nl_cache_mngr_alloc(events_, NETLINK_ROUTE, 0, &manager_);
  // With the rights, more than the system's limit; else as much as there is.
  if (error == 0 && setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) < 0)
    (void)setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  // Subscribes first and reads all interfaces then, so that nothing is missed.
  if (error == 0) error = nl_cache_mngr_add(manager_, "route/link", nullptr, nullptr, &cache_);
  if (error < 0) {
    (void)errors.error("rtnetlink: {}", nl_geterror(error));
    return false;
  }
  (void)renew();
  return true;
}

LinkWatch::~LinkWatch() {
  if (manager_ != nullptr && watch_) watch_(fd(), nullptr);
  nl_cache_mngr_free(manager_);
  nl_socket_free(events_);
  nl_socket_free(requests_);
}

int LinkWatch::fd() const { return nl_cache_mngr_get_fd(manager_); }

void LinkWatch::run() {
  if (nl_cache_mngr_data_ready(manager_) < 0) {
    // Messages were lost: more came than the socket has room for. Those that are left are older than what is read anew.
    ++resynchronizations_;
    for (int i = 0; i < kMostErrors && nl_cache_mngr_data_ready(manager_) < 0; ++i) {
    }
    const std::lock_guard guard(requests_lock_);
    (void)nl_cache_resync(requests_, cache_, nullptr, nullptr);
  }
  const std::set<std::string> changed = renew();
  if (changed.empty()) return;
  {
    const std::lock_guard guard(subscriptions_lock_);
    for (const Subscription* const subscription : subscriptions_)
      if (changed.contains(subscription->name_)) subscription->changed_();
  }
  announce_device_change();
}

std::set<std::string> LinkWatch::renew() {
  std::map<int, DeviceState> next;
  for (nl_object* object = nl_cache_get_first(cache_); object != nullptr; object = nl_cache_get_next(object)) {
    auto* const link = reinterpret_cast<rtnl_link*>(object);
    const int family = rtnl_link_get_family(link);
    // What is said for other families, such as AF_INET6, are objects of their own. An interface in a bridge has one of
    // AF_BRIDGE besides, but a bridge itself has only that one.
    if (family == AF_UNSPEC) {
      next.insert_or_assign(rtnl_link_get_ifindex(link), state_of(link));
    } else if (family == AF_BRIDGE) {
      next.try_emplace(rtnl_link_get_ifindex(link), state_of(link));
    }
  }
  std::set<std::string> subscribed, changed;
  {
    const std::lock_guard guard(subscriptions_lock_);
    for (const Subscription* const subscription : subscriptions_) subscribed.insert(subscription->name_);
  }
  const std::lock_guard guard(links_lock_);
  for (auto& [index, state] : next) {
    const auto before = links_.find(index);
    if (before != links_.end()) {
      copy_settings(before->second, state);
      if (state == before->second) continue;
      changed.insert(before->second.name);
    }
    changed.insert(state.name);
    if (subscribed.contains(state.name)) read_link_settings(state);
  }
  for (const auto& [index, state] : links_)
    if (!next.contains(index)) changed.insert(state.name);
  links_.swap(next);
  return changed;
}

std::unique_ptr<LinkWatch::Subscription> LinkWatch::subscribe(std::string name, std::function<void()> changed) {
  std::unique_ptr<Subscription> subscription(new Subscription(shared_from_this(), std::move(name), std::move(changed)));
  {
    const std::lock_guard guard(subscriptions_lock_);
    subscriptions_.push_back(subscription.get());
  }
  const std::lock_guard guard(links_lock_);
  for (auto& [index, state] : links_)
    if (state.name == subscription->name_) read_link_settings(state);
  return subscription;
}

LinkWatch::Subscription::~Subscription() {
  const std::lock_guard guard(watch_->subscriptions_lock_);
  watch_->subscriptions_.remove(this);
}

std::optional<DeviceState> LinkWatch::find(const std::string& name) const {
  const std::lock_guard guard(links_lock_);
  for (const auto& [index, state] : links_)
    if (state.name == name) return state;
  return std::nullopt;
}

std::optional<DeviceCounters> LinkWatch::counters(const std::string& name) const {
  rtnl_link* link = nullptr;
  {
    const std::lock_guard guard(requests_lock_);
    if (rtnl_link_get_kernel(requests_, 0, name.c_str(), &link) < 0) return std::nullopt;
  }
  const auto count = [link](rtnl_link_stat_id_t id) { return rtnl_link_get_stat(link, id); };
  DeviceCounters counters;
  counters.rx_packets = count(RTNL_LINK_RX_PACKETS);
  counters.rx_bytes = count(RTNL_LINK_RX_BYTES);
  counters.rx_dropped = count(RTNL_LINK_RX_DROPPED);
  counters.rx_errors = count(RTNL_LINK_RX_ERRORS);
  counters.rx_frame_errors = count(RTNL_LINK_RX_FRAME_ERR);
  counters.rx_overruns = count(RTNL_LINK_RX_OVER_ERR);
  counters.rx_crc_errors = count(RTNL_LINK_RX_CRC_ERR);
  counters.tx_packets = count(RTNL_LINK_TX_PACKETS);
  counters.tx_bytes = count(RTNL_LINK_TX_BYTES);
  counters.tx_dropped = count(RTNL_LINK_TX_DROPPED);
  counters.tx_errors = count(RTNL_LINK_TX_ERRORS);
  counters.collisions = count(RTNL_LINK_COLLISIONS);
  rtnl_link_put(link);
  return counters;
}

}  // namespace headrace::io
