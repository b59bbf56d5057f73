#include "control/openflow/channel/channel.hh"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

namespace headrace::openflow {

namespace {

/// How long a listener rests when the process has no descriptor left.
constexpr int64_t kListenerRest = kSecond;

std::mutex g_channels_lock;
std::map<std::string, std::weak_ptr<Channel>> g_channels;

int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void write_stderr(const std::string& line) { std::fwrite(line.data(), 1, line.size(), stderr); }

}  // namespace

// --- Setting up -----------------------------------------------------------------------------------------------------

std::shared_ptr<Channel> Channel::at(const std::string& name, const Watch& watch) {
  const std::lock_guard guard(g_channels_lock);
  std::weak_ptr<Channel>& known = g_channels[name];
  if (std::shared_ptr<Channel> channel = known.lock()) return channel;
  auto channel = std::make_shared<Channel>(name);
  known = channel;
  if (watch) {
    channel->watch_ = watch;
    watch(channel->fd(), [known] {
      if (const std::shared_ptr<Channel> locked = known.lock()) locked->run();
    });
  }
  return channel;
}

Channel::Channel(std::string name, Clock clock, Log log)
    : name_(std::move(name)),
      clock_(clock ? std::move(clock) : steady_now),
      log_(log ? std::move(log) : write_stderr) {}

Channel::~Channel() {
  if (watch_) watch_(fd(), nullptr);
}

std::unique_ptr<Channel::Setup> Channel::prepare(const Options& options, Errors& errors) {
  auto setup = std::make_unique<Setup>();
  setup->options = options;
  Options& wanted = setup->options;
  const int errors_before = errors.error_count();
  const bool tls = std::any_of(wanted.targets.begin(), wanted.targets.end(),
                               [](const Target& target) { return target.kind == Target::Kind::kSsl; });
  if (tls && !wanted.tls) {
    (void)errors.error("ssl: and pssl: need a private key, a certificate and a CA certificate");
  } else if (tls) {
    std::string error;
    setup->tls = TlsContext::load(*wanted.tls, error);
    if (!setup->tls) (void)errors.error("{}", error);
  }
  const std::lock_guard guard(lock_);
  std::set<Target> seen;
  for (const Target& target : wanted.targets) {
    if (!seen.insert(target).second) (void)errors.error("{}: given twice", to_string(target));
    if (!target.passive || listening_.contains(target)) continue;
    std::string error;
    if (std::unique_ptr<Listener> listener = Listener::open(target, error))
      setup->listeners.push_back(std::move(listener));
    else
      (void)errors.error("{}", error);
  }
  return errors.error_count() > errors_before ? nullptr : std::move(setup);
}

void Channel::adopt(std::unique_ptr<Setup> setup, Handler* handler) {
  const Options& next = setup->options;
  const bool other_keys = next.tls != options_.tls;
  const bool other_versions = next.versions != options_.versions;
  // What is no longer wanted, or no longer so, ends; other connections do not notice.
  const auto stays = [&](const Target& target) {
    return !other_versions && !(other_keys && target.kind == Target::Kind::kSsl) &&
           std::find(next.targets.begin(), next.targets.end(), target) != next.targets.end();
  };
  for (auto& [id, entry] : entries_) {
    const Target* target = entry.dialer     ? &entry.dialer->target()
                           : entry.listener ? &entry.listener->target()
                                            : nullptr;
    if (target != nullptr && stays(*target)) continue;
    entry.connection->finish("no longer configured so");
    entry.dialer = nullptr;
    entry.listener = nullptr;
  }
  std::erase_if(dialers_,
                [&](const auto& dialer) { return !stays(dialer->target()) || dialer->auxiliary() > next.auxiliary; });
  for (auto& [id, entry] : entries_) {
    if (entry.dialer == nullptr || entry.reported) continue;
    const bool there = std::any_of(dialers_.begin(), dialers_.end(),
                                   [&, &of = entry](const auto& dialer) { return dialer.get() == of.dialer; });
    if (there) continue;
    entry.dialer = nullptr;
    entry.connection->finish("no longer configured so");
  }
  std::erase_if(listeners_, [&](const auto& listener) {
    if (std::find(next.targets.begin(), next.targets.end(), listener->target()) != next.targets.end()) return false;
    poller_.forget(listener->fd());
    return true;
  });
  const std::lock_guard guard(lock_);
  options_ = next;
  tls_ = std::move(setup->tls);
  for (auto& listener : setup->listeners) listeners_.push_back(std::move(listener));
  listening_.clear();
  for (const auto& listener : listeners_) {
    listening_.insert(listener->target());
    watch_listener(*listener);
  }
  for (const Target& target : options_.targets) {
    if (target.passive) continue;
    for (unsigned number = 0; number <= options_.auxiliary; ++number) {
      const bool there = std::any_of(dialers_.begin(), dialers_.end(), [&](const auto& dialer) {
        return dialer->target() == target && dialer->auxiliary() == number;
      });
      if (there) continue;
      Dialer::Place place{poller_, clock_, [this](Dialer& dialer, int fd) { dialed(dialer, fd); },
                          [this, target](const std::string& text) { write_log(to_string(target), text); }};
      dialers_.push_back(
          std::make_unique<Dialer>(std::move(place), target, options_.most_backoff, static_cast<uint8_t>(number)));
    }
  }
  handler_ = handler;
  there_at_ = now();
  told_.reset();
  wake();
}

void Channel::leave(Handler* handler) {
  if (handler_ == handler) handler_ = nullptr;
}

// --- Connections ----------------------------------------------------------------------------------------------------

Connection& Channel::add(int fd, const Target& target, Connection::Origin origin) {
  std::unique_ptr<TlsStream> tls;
  if (target.kind == Target::Kind::kSsl) tls = std::make_unique<TlsStream>(tls_, target.passive);
  const uint64_t id = next_id_++;
  Connection::Host& host = *this;
  auto connection =
      std::make_unique<Connection>(host, id, std::move(origin), std::make_unique<Link>(fd, std::move(tls)));
  return *(entries_[id].connection = std::move(connection));
}

void Channel::dialed(Dialer& dialer, int fd) {
  Versions versions = options_.versions;
  if (dialer.auxiliary() > 0) versions.v1_0 = false;
  Connection& connection = add(fd, dialer.target(), {to_string(dialer.target()), true, dialer.auxiliary(), versions});
  entries_[connection.id()].dialer = &dialer;
}

void Channel::watch_listener(Listener& listener) {
  (void)poller_.watch(listener.fd(), EPOLLIN, [this, &listener](uint32_t) { accept_client(listener); });
}

void Channel::accept_client(Listener& listener) {
  std::string from;
  const int fd = accept_from(listener.fd(), from);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    poller_.change(listener.fd(), 0);
    listener.paused_until = now() + kListenerRest;
    return;
  }
  const auto clients = std::count_if(entries_.begin(), entries_.end(),
                                     [](const auto& entry) { return !entry.second.connection->primary(); });
  const std::string peer =
      from.empty() ? to_string(listener.target()) : fmt::format("{} {}", to_string(listener.target()), from);
  const bool full = static_cast<size_t>(clients) >= options_.limits.clients;
  Connection& connection = add(fd, listener.target(), {peer, false, 0, options_.versions});
  entries_[connection.id()].listener = &listener;
  if (!full) return;
  ++clients_refused_;
  connection.finish(fmt::format("{} controllers have connected already", clients));
}

void Channel::watch_connection(Entry& entry) {
  Connection& connection = *entry.connection;
  uint32_t events = 0;
  if (connection.wants_to_read()) events |= EPOLLIN;
  if (connection.wants_to_write()) events |= EPOLLOUT;
  if (events == 0) {
    // The end of a connection would be reported all the time.
    if (entry.watched) poller_.forget(connection.fd());
    entry.watched = false;
  } else if (entry.watched) {
    poller_.change(connection.fd(), events);
  } else {
    entry.watched = poller_.watch(connection.fd(), events, [&connection](uint32_t come) {
      if ((come & ~static_cast<uint32_t>(EPOLLOUT)) != 0) connection.readable();
    });
    if (!entry.watched) connection.finish(std::strerror(errno));
  }
}

void Channel::report_ended(Entry& entry) {
  if (std::exchange(entry.reported, true)) return;
  Connection& connection = *entry.connection;
  const int64_t since = connection.established_at();
  if (since > 0 && handler_ != nullptr) handler_->on_disconnected(connection);
  log(connection, fmt::format("{}: {}", since > 0 ? "disconnected" : "no connection", connection.why_ended()));
  past_ += connection.counters();
  if (entry.dialer != nullptr) entry.dialer->lost(since > 0 ? std::max<int64_t>(now() - since, 1) : 0);
  entry.dialer = nullptr;
  entry.listener = nullptr;
}

Connection* Channel::connection_of(const Dialer& dialer) {
  for (auto& [id, entry] : entries_)
    if (entry.dialer == &dialer) return entry.connection.get();
  return nullptr;
}

Connection* Channel::main_to(const Target& target) {
  for (auto& [id, entry] : entries_)
    if (entry.dialer != nullptr && entry.dialer->auxiliary() == 0 && entry.dialer->target() == target)
      return entry.connection.get();
  return nullptr;
}

Connection* Channel::main_of(Connection& connection) {
  if (connection.auxiliary() == 0) return &connection;
  const auto it = entries_.find(connection.id());
  return it == entries_.end() || it->second.dialer == nullptr ? nullptr : main_to(it->second.dialer->target());
}

void Channel::set_role(Connection& connection, Role role) {
  if (role == Role::kMaster)
    for (auto& [id, entry] : entries_)
      if (entry.connection->auxiliary() == 0 && entry.connection->role() == Role::kMaster)
        entry.connection->set_role(Role::kSlave);
  connection.set_role(role);
}

Connection* Channel::find(uint64_t id) {
  const auto it = entries_.find(id);
  return it == entries_.end() || it->second.reported ? nullptr : it->second.connection.get();
}

void Channel::each(const std::function<void(Connection&)>& action) {
  for (auto& [id, entry] : entries_)
    if (entry.connection->established()) action(*entry.connection);
}

// --- Messages that nobody asked for ---------------------------------------------------------------------------------

void Channel::notify(Body body) {
  Message message;
  message.body = std::move(body);
  for (auto& [id, entry] : entries_)
    if (entry.connection->wants(message.body)) entry.connection->notify(message);
}

Connection& Channel::carrier(Connection& main) {
  const auto it = entries_.find(main.id());
  if (options_.auxiliary == 0 || it == entries_.end() || it->second.dialer == nullptr) return main;
  std::vector<Connection*> carriers;
  for (auto& [id, entry] : entries_)
    if (entry.dialer != nullptr && entry.dialer->auxiliary() > 0 && entry.connection->established() &&
        entry.dialer->target() == it->second.dialer->target())
      carriers.push_back(entry.connection.get());
  return carriers.empty() ? main : *carriers[packet_in_turn_++ % carriers.size()];
}

void Channel::packet_in(const PacketIn& packet, bool by_miss_send_len, bool only_1_0) {
  Message message;
  message.body = packet;
  for (auto& [id, entry] : entries_) {
    Connection& connection = *entry.connection;
    const bool is_1_0 = connection.version() == Version::k1_0;
    if (!connection.wants(message.body) || (only_1_0 && !is_1_0)) continue;
    const bool by_entry = is_1_0 && !only_1_0 && packet.reason == PacketInReason::kNoMatch;
    std::get<PacketIn>(message.body).reason = by_entry ? PacketInReason::kAction : packet.reason;
    const bool cut = by_miss_send_len && packet.buffer != kNoBuffer && connection.miss_send_len() < packet.data.size();
    if (!cut) {
      carrier(connection).notify(message);
      continue;
    }
    Message shorter = message;
    std::get<PacketIn>(shorter.body).data.resize(connection.miss_send_len());
    carrier(connection).notify(shorter);
  }
}

bool Channel::wants_packet_in(PacketInReason reason) {
  PacketIn packet;
  packet.reason = reason;
  const Body body = packet;
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const auto& entry) { return entry.second.connection->wants(body); });
}

// --- The loop -------------------------------------------------------------------------------------------------------

void Channel::wake() {
  if (running_ || std::exchange(woken_, true)) return;
  poller_.wake_after(0);
}

void Channel::run() {
  running_ = true;
  woken_ = false;
  poller_.dispatch();
  for (const auto& listener : listeners_)
    if (listener->paused_until != 0 && now() >= listener->paused_until) {
      listener->paused_until = 0;
      poller_.change(listener->fd(), EPOLLIN);
    }
  for (const auto& dialer : dialers_) {
    const bool allowed = may_dial(*dialer);
    if (!allowed)
      if (Connection* const connection = connection_of(*dialer)) connection->finish("the main connection has ended");
    dialer->step(allowed);
  }
  // What one handles may end or feed another.
  for (auto& [id, entry] : entries_) {
    entry.connection->on_time();
    entry.connection->turn();
  }
  bool reported = false;
  for (auto& [id, entry] : entries_) {
    if (!entry.connection->ended() || entry.reported) continue;
    report_ended(entry);
    reported = true;
  }
  tell_handler();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    watch_connection(entry);
    it = entry.connection->over() && entry.reported ? entries_.erase(it) : std::next(it);
  }
  arm(reported);  // others may depend on those that have ended
  running_ = false;
}

bool Channel::may_dial(const Dialer& dialer) {
  if (dialer.auxiliary() == 0) return true;
  const Connection* const main = main_to(dialer.target());
  return main != nullptr && main->established() && main->version() == Version::k1_3;
}

void Channel::tell_handler() {
  bool there = false, any = false;
  for (const auto& dialer : dialers_) {
    any = true;
    const Connection* const connection = dialer->auxiliary() == 0 ? connection_of(*dialer) : nullptr;
    there = there || (connection != nullptr && connection->established());
  }
  if (there) there_at_ = now();
  const bool lost = !there && (!any || now() - there_at_ >= options_.lost_after);
  if (handler_ == nullptr || !(there || lost) || told_ == there) return;
  told_ = there;
  handler_->on_controllers(there);
}

void Channel::arm(bool at_once) {
  int64_t due = INT64_MAX;
  bool there = false;
  for (const auto& [id, entry] : entries_) {
    due = std::min(due, entry.connection->next_due());
    at_once = at_once || entry.connection->has_turn() || (entry.connection->ended() && !entry.reported) ||
              (entry.connection->over() && entry.reported);
    there = there || (entry.dialer != nullptr && entry.connection->established());
  }
  for (const auto& dialer : dialers_)
    if (may_dial(*dialer)) due = std::min(due, dialer->next_due());
  for (const auto& listener : listeners_)
    if (listener->paused_until != 0) due = std::min(due, listener->paused_until);
  if (handler_ != nullptr && !there && told_ != false) due = std::min(due, there_at_ + options_.lost_after);
  if (at_once)
    poller_.wake_after(0);
  else
    poller_.wake_after(due == INT64_MAX ? -1 : std::max<int64_t>(due - now(), 0));
}

// --- What it shows --------------------------------------------------------------------------------------------------

void Channel::write_log(const std::string& peer, const std::string& text) {
  log_(fmt::format("{}: {}: {}\n", name_, peer, text));
}

void Channel::log(const Connection& connection, const std::string& text) { write_log(connection.peer(), text); }

ConnectionCounters Channel::counters() const {
  ConnectionCounters sum = past_;
  for (const auto& [id, entry] : entries_)
    if (!entry.reported) sum += entry.connection->counters();
  return sum;
}

std::vector<uint16_t> Channel::ports() const {
  std::vector<uint16_t> ports;
  for (const Target& target : options_.targets)
    for (const auto& listener : listeners_)
      if (listener->target() == target) ports.push_back(listener->port());
  return ports;
}

std::string Channel::describe() {
  static constexpr const char* kRoles[] = {"nochange", "equal", "master", "slave"};
  std::string text;
  for (auto& [id, entry] : entries_) {
    Connection& connection = *entry.connection;
    if (!connection.established()) continue;
    text += fmt::format("{} connected, OpenFlow {}, {}", connection.peer(),
                        connection.version() == Version::k1_0 ? "1.0" : "1.3",
                        kRoles[static_cast<size_t>(connection.role())]);
    if (connection.auxiliary() > 0) text += fmt::format(", auxiliary {}", connection.auxiliary());
    text += fmt::format(", {} bytes unsent, {} packet-ins, {} dropped\n", connection.unsent(),
                        connection.counters().packet_ins, connection.counters().packet_ins_dropped);
  }
  for (const auto& dialer : dialers_)
    if (dialer->auxiliary() == 0 && !dialer->resting())
      text += fmt::format("{} not connected{}{}\n", to_string(dialer->target()), dialer->error().empty() ? "" : ": ",
                          dialer->error());
  return text;
}

}  // namespace headrace::openflow
