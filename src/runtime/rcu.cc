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

/// The kThread readers of this thread, linked through next_of_thread_.
thread_local Reader* own_readers = nullptr;

struct Retired {
  Epoch grace;
  std::function<void()> function;
};

}  // namespace

/// Who reads, and what waits for them. Never destroyed, since threads may outlive static objects.
struct Registry {
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }

  void add(Reader* reader) {
    const std::lock_guard lock(readers_mutex);
    list_of(reader->kind_).push_back(reader);
  }

  void remove(Reader* reader) {
    const std::lock_guard lock(readers_mutex);
    std::vector<Reader*>& list = list_of(reader->kind_);
    list.erase(std::find(list.begin(), list.end(), reader));
  }

  static Epoch begin_grace() { return Reader::current_.fetch_add(1, std::memory_order_acq_rel) + 1; }

  /// The newest grace period that no online reader precedes.
  Epoch oldest_seen() {
    Epoch oldest = Reader::current_.load(std::memory_order_acquire);
    const std::lock_guard lock(readers_mutex);
    // Threads come first: a thread hands a job over before it passes a quiescent state itself, so once a thread has
    // been seen to pass, whatever it handed over is visible in the job readers.
    for (const std::vector<Reader*>* list : {&threads, &jobs}) {
      for (const Reader* reader : *list) {
        const Epoch seen = reader->seen_.load(std::memory_order_acquire);
        if (seen != 0) oldest = std::min(oldest, seen);
      }
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

  std::vector<Reader*>& list_of(Reader::Kind kind) { return kind == Reader::Kind::kThread ? threads : jobs; }

  std::mutex readers_mutex;
  std::vector<Reader*> threads;
  std::vector<Reader*> jobs;
  std::mutex retired_mutex;
  /// In rising order of `grace`.
  std::deque<Retired> retired;

  /// Takes the calling thread's readers offline while it waits.
  class OwnReadersOffline {
   public:
    OwnReadersOffline() {
      for (Reader* reader = own_readers; reader != nullptr; reader = reader->next_of_thread_) {
        if (reader->epoch() == 0) continue;
        reader->offline();
        were_online_.push_back(reader);
      }
    }
    ~OwnReadersOffline() {
      for (Reader* reader : were_online_) reader->online();
    }
    OwnReadersOffline(const OwnReadersOffline&) = delete;
    OwnReadersOffline& operator=(const OwnReadersOffline&) = delete;

   private:
    std::vector<Reader*> were_online_;
  };

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

Reader::Reader(Kind kind) : kind_(kind) {
  Registry::get().add(this);
  if (kind == Kind::kThread) {
    Registry::link(this);
    online();
  }
}

Reader::~Reader() {
  offline();
  if (kind_ == Kind::kThread) Registry::unlink(this);
  Registry::get().remove(this);
}

Epoch start_grace() { return Registry::begin_grace(); }

bool elapsed(Epoch grace) { return Registry::get().oldest_seen() >= grace; }

void synchronize() {
  Registry& registry = Registry::get();
  const Epoch grace = Registry::begin_grace();
  {
    const Registry::OwnReadersOffline offline;
    // Workers pass a quiescent state every few microseconds; a device job may take its deadline, some 50 ms.
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

void retire(std::function<void()> function) {
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
