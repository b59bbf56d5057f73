#include <list>
#include <mutex>

#include "headrace/device_state.hh"

namespace headrace {

namespace {

struct Listeners {
  std::mutex lock;
  std::list<const DeviceChangeListener*> all;
};

/// Never destroyed: a thread of a driver may announce until the process ends.
Listeners& listeners() {
  static Listeners* const listeners = new Listeners;
  return *listeners;
}

}  // namespace

DeviceChangeListener::DeviceChangeListener(std::function<void()> changed) : changed_(std::move(changed)) {
  const std::lock_guard guard(listeners().lock);
  listeners().all.push_back(this);
}

DeviceChangeListener::~DeviceChangeListener() {
  const std::lock_guard guard(listeners().lock);
  listeners().all.remove(this);
}

void announce_device_change() {
  const std::lock_guard guard(listeners().lock);
  for (const DeviceChangeListener* const listener : listeners().all) listener->changed_();
}

}  // namespace headrace
