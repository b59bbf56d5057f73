#include "headrace/rcu.hh"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace headrace::rcu {

namespace {

/// The readers of this thread, linked through next_of_thread_.
thread_local Reader* own_readers = nullptr;

struct Retired {
  Epoch grace;
  std::function<void()> function;
};

}  // namespace

/// The readers, and the callbacks that wait for them. Never destroyed, since threads may outlive static objects.
struct Registry {
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }

  void add(Reader* reader) {
    const std::lock_guard lock(readers_mutex);
    readers.push_back(reader);
  }

  void remove(Reader* reader) {
    const std::lock_guard lock(readers_mutex);
    readers.erase(std::find(readers.begin(), readers.end(), reader));
  }

  static Epoch begin_grace() { return Reader::current_.fetch_add(1, std::memory_order_acq_rel) + 1; }

  /// The newest grace period that every online reader has reached.
  Epoch oldest_seen() {
    Epoch oldest = Reader::current_.load(std::memory_order_acquire);
    const std::lock_guard lock(readers_mutex);
    for (const Reader* reader : readers) {
      const Epoch seen = reader->seen_.load(std::memory_order_acquire);
      if (seen != 0) oldest = std::min(oldest, seen);
    }
    return oldest;
  }

  /// Runs what was retired up to grace period `limit`.
  size_t run_retired(Epoch limit) {
    std::vector<std::function<void()>> ready;
    {
      const std::lock_guard lock(retired_mutex);
      while (!retired.empty() && retired.front().grace <= limit) {
        ready.push_back(std::move(retired.front().function));
        retired.pop_front();
      }
    }
    for (const std::function<void()>& function : ready) function();
    return ready.size();
  }

  std::mutex readers_mutex;
  std::vector<Reader*> readers;
  std::mutex copies_mutex;
  std::vector<const Copy*> copies;
  std::mutex retired_mutex;
  /// Ordered by `grace`.
  std::deque<Retired> retired;

  static void link(Reader* reader) {
    reader->next_of_thread_ = own_readers;
    own_readers = reader;
  }

  static void unlink(Reader* reader) {
    for (Reader** at = &own_readers; *at != nullptr; at = &(*at)->next_of_thread_) {
      if (*at == reader) {
        *at = reader->next_of_thread_;
        return;
      }
    }
  }
};

Reader::Reader() {
  Registry::get().add(this);
  Registry::link(this);
  online();
}

Reader::~Reader() {
  offline();
  Registry::unlink(this);
  Registry::get().remove(this);
}

Offline::Offline() {
  for (Reader* reader = own_readers; reader != nullptr; reader = reader->next_of_thread_) {
    if (!reader->is_online()) continue;
    reader->offline();
    were_online_.push_back(reader);
  }
}

Offline::~Offline() {
  for (Reader* reader : were_online_) reader->online();
}

Epoch start_grace() { return Registry::begin_grace(); }

bool elapsed(Epoch grace) { return Registry::get().oldest_seen() >= grace; }

Epoch now() { return Reader::current_.load(std::memory_order_acquire); }

Copy::Copy(std::function<Epoch()> oldest) : oldest_(std::move(oldest)) {
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.copies_mutex);
  registry.copies.push_back(this);
}

Copy::~Copy() {
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.copies_mutex);
  registry.copies.erase(std::find(registry.copies.begin(), registry.copies.end(), this));
}

bool returned(Epoch grace) {
  if (!elapsed(grace)) return false;
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.copies_mutex);
  // Twice: a job that was begun with an old copy is known by then, if the copy was found to be new.
  for (int round = 0; round < 2; ++round)
    for (const Copy* copy : registry.copies)
      if (const Epoch oldest = copy->oldest_(); oldest != 0 && oldest < grace) return false;
  return true;
}

void synchronize() {
  Registry& registry = Registry::get();
  const Epoch grace = Registry::begin_grace();
  {
    const Offline offline;
    // Workers pass a quiescent state every few microseconds.
    constexpr int kEagerRounds = 64;
    constexpr auto kNap = std::chrono::microseconds(50);
    for (int round = 0; registry.oldest_seen() < grace; ++round) {
      if (round < kEagerRounds) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
  }
  registry.run_retired(grace);
}

namespace {

thread_local Retirements* keeps_retirements = nullptr;

}  // namespace

Retirements::Retirements() : outer_(keeps_retirements) {
  if (outer_ == nullptr) keeps_retirements = this;
}

Retirements::~Retirements() {
  if (outer_ != nullptr) return;
  keeps_retirements = nullptr;
  for (std::function<void()>& function : functions_) retire(std::move(function));
}

void retire(std::function<void()> function) {
  if (keeps_retirements != nullptr) return keeps_retirements->functions_.push_back(std::move(function));
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.retired_mutex);
  registry.retired.push_back({Registry::begin_grace(), std::move(function)});
}

size_t reclaim() {
  Registry& registry = Registry::get();
  return registry.run_retired(registry.oldest_seen());
}

size_t pending() {
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.retired_mutex);
  return registry.retired.size();
}

}  // namespace headrace::rcu
