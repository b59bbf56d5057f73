#pragma once
/// \file
/// The devices that configurations have open, so that one that takes over shares those of its predecessor.

#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace headrace::io {

/// Devices of one kind, by name. The n-th device of a name in one configuration is the n-th of its successor.
template <typename Device>
class DeviceRegistry {
 public:
  /// The device that the last other configuration has open, if `fits(device)`, or else what `open(n)` returns; null if
  /// that is null. It counts as open until the pointer and its copies are gone.
  /// \param user the configuration: any pointer that tells it from others
  template <typename Fits, typename Open>
  std::shared_ptr<Device> open(const std::string& name, const void* user, Fits&& fits, Open&& open) {
    std::lock_guard guard(lock_);
    int n = 0;
    const void* other = nullptr;
    for (const Lease* lease : leases_) {
      if (lease->name != name) continue;
      if (lease->user == user)
        ++n;
      else
        other = lease->user;
    }
    std::shared_ptr<Device> device = other ? find(name, other, n) : nullptr;
    if (device && !fits(*device)) device = nullptr;
    if (!device) device = open(n);
    if (!device) return nullptr;
    auto lease = std::make_shared<Lease>(*this, name, user, std::move(device));
    leases_.push_back(lease.get());
    return {lease, lease->device.get()};
  }

  /// True if `is(device)` for any open device of that name.
  template <typename Is>
  bool any(const std::string& name, Is&& is) {
    std::lock_guard guard(lock_);
    for (const Lease* lease : leases_)
      if (lease->name == name && is(*lease->device)) return true;
    return false;
  }

 private:
  struct Lease {
    Lease(DeviceRegistry& registry, std::string name, const void* user, std::shared_ptr<Device> device)
        : registry(registry), name(std::move(name)), user(user), device(std::move(device)) {}
    ~Lease() {
      std::lock_guard guard(registry.lock_);
      registry.leases_.remove(this);
    }
    DeviceRegistry& registry;
    const std::string name;
    const void* const user;
    const std::shared_ptr<Device> device;
  };

  std::shared_ptr<Device> find(const std::string& name, const void* user, int n) const {
    for (const Lease* lease : leases_)
      if (lease->name == name && lease->user == user && n-- == 0) return lease->device;
    return nullptr;
  }

  std::mutex lock_;
  std::list<Lease*> leases_;
};

}  // namespace headrace::io
