#pragma once
/// \file
/// What the kernel says about network interfaces, as soon as it says so (rtnetlink(7)).

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "headrace/device_state.hh"
#include "headrace/error.hh"

struct nl_cache;
struct nl_cache_mngr;
struct nl_sock;

namespace headrace::io {

/// All interfaces of this process's network namespace. One watch serves the whole process, while anybody has it; messages
/// are read on the control thread.
class LinkWatch : public std::enable_shared_from_this<LinkWatch> {
 public:
  /// As Runtime::watch(): calls `ready` on the control thread whenever `fd` is readable; an empty `ready` ends that.
  using Watch = std::function<void(int fd, std::function<void()> ready)>;

  /// Calls a function while it lives.
  class Subscription {
   public:
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    /// The interface as of the last message about it; nothing if it is not there. Any thread; no system call.
    std::optional<DeviceState> state() const { return watch_->find(name_); }
    /// What the kernel counts now; nothing if it is not there. Any thread but workers.
    std::optional<DeviceCounters> counters() const { return watch_->counters(name_); }

   private:
    friend class LinkWatch;
    Subscription(std::shared_ptr<LinkWatch> watch, std::string name, std::function<void()> changed)
        : watch_(std::move(watch)), name_(std::move(name)), changed_(std::move(changed)) {}

    const std::shared_ptr<LinkWatch> watch_;
    const std::string name_;
    const std::function<void()> changed_;
  };

  /// The watch, which reads messages by `watch` if it is new. Null, with an error, if the kernel gives none.
  static std::shared_ptr<LinkWatch> at(const Watch& watch, Errors& errors);
  /// For at() only.
  explicit LinkWatch(Watch watch) : watch_(std::move(watch)) {}
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  /// Calls `changed` on the control thread after the interface of this name has come, gone or changed. It must neither make
  /// nor destroy subscriptions. Once a subscription is destroyed its function does not run any more.
  std::unique_ptr<Subscription> subscribe(std::string name, std::function<void()> changed);

  /// As Subscription::state() and counters(); what drivers say (speeds) is known of interfaces with a subscription.
  std::optional<DeviceState> find(const std::string& name) const;
  std::optional<DeviceCounters> counters(const std::string& name) const;

  /// Readable when run() has something to do.
  int fd() const;
  /// Reads what the kernel has said.
  void run();
  /// How often messages were lost, and everything was read anew.
  uint64_t resynchronizations() const { return resynchronizations_; }

 private:
  bool open(Errors& errors);
  /// Takes over what libnl has read; returns the names of interfaces that have changed.
  std::set<std::string> renew();

  const Watch watch_;
  nl_sock* events_ = nullptr;
  nl_cache_mngr* manager_ = nullptr;
  nl_cache* cache_ = nullptr;  // the manager's
  uint64_t resynchronizations_ = 0;

  mutable std::mutex requests_lock_;
  nl_sock* requests_ = nullptr;

  mutable std::mutex links_lock_;
  std::map<int, DeviceState> links_;  // by index

  std::mutex subscriptions_lock_;
  std::list<Subscription*> subscriptions_;
};

}  // namespace headrace::io
