#pragma once
/// \file
/// The explicit IVs of outbound associations: 64-bit numbers that never repeat under a key.
///
/// Counter modes lose everything when an IV repeats under a key (RFC 3686, section 2.1; RFC 4106, section 2). ESP's
/// sequence numbers do not do for it, since they start anew with every association. So each key has a counter of its
/// own, and this is why no number of it comes twice:
///
/// - *Across workers*: a counter is one atomic word of the process. Workers take blocks of 2^16 numbers from it by
///   compare-and-exchange, and a block has one user.
/// - *Across hot swaps and associations*: the counters belong to the process, not to a router. Two associations with one
///   key share its counter. A counter that nobody uses any more leaves its value in the floor, at or above which all
///   later counters start.
/// - *Across restarts, with a state file*: the file holds a bound, and no number at or above the bound in the file is
///   ever handed out. A process that starts reads the bound and starts all its counters at or above it. A higher bound
///   reaches the disk (written, fsync, renamed, fsync of the folder) before the first number that it allows. So it does
///   not matter where a process is killed, or what the clock says. Counters start at the wall clock in nanoseconds if
///   that is higher, which also covers a file that was lost.
/// - *Across restarts, without a file*: counters start at the wall clock of the start of the process, in nanoseconds,
///   and never run ahead of the clock. So they do not repeat as long as the clock of a start lies behind the clocks of
///   earlier processes. Who cannot rely on the clock needs the file.
/// - *Across processes*: while a process uses a state file it holds a lock (flock) on `FILE.lock`. Another process is
///   refused the file. Processes without a file must not share keys.
///
/// When the bound is reached, because the file cannot be written, or because numbers would run ahead of the clock,
/// nothing is handed out until it is higher again: the association stops and counts.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tables/sa/key_fingerprint.hh"

namespace headrace {

/// Numbers that belong to one user.
class NonceBlock {
 public:
  NonceBlock() = default;
  NonceBlock(uint64_t begin, uint64_t end) : next_(begin), end_(end) {}
  NonceBlock(const NonceBlock&) = delete;
  NonceBlock& operator=(const NonceBlock&) = delete;
  NonceBlock(NonceBlock&& other) noexcept { *this = std::move(other); }
  NonceBlock& operator=(NonceBlock&& other) noexcept {
    next_ = std::exchange(other.next_, 0);
    end_ = std::exchange(other.end_, 0);
    return *this;
  }

  bool empty() const { return next_ == end_; }
  /// The next number; the block must not be empty.
  uint64_t next() { return next_++; }

 private:
  uint64_t next_ = 0, end_ = 0;
};

/// What the counters of a source share.
struct NonceLimit {
  using Clock = uint64_t (*)();  // nanoseconds since 1970

  explicit NonceLimit(Clock clock) : clock(clock) {}

  uint64_t now() const {
    return follows_clock.load(std::memory_order_acquire) ? clock() : bound.load(std::memory_order_acquire);
  }

  const Clock clock;
  std::atomic<bool> follows_clock{true};
  std::atomic<uint64_t> bound{0};
};

/// The numbers of a key.
class NonceCounter {
 public:
  static constexpr uint64_t kBlock = uint64_t{1} << 16;

  NonceCounter(std::shared_ptr<const NonceLimit> limit, uint64_t start) : limit_(std::move(limit)), next_(start) {}

  /// Replaces the block by kBlock numbers that nobody else gets. False, and no change, if they would exceed the bound.
  /// Any thread; never waits.
  bool refill(NonceBlock& block);

 private:
  friend class NonceSource;

  const std::shared_ptr<const NonceLimit> limit_;
  alignas(64) std::atomic<uint64_t> next_;
};

/// The user's end of a counter, for one thread at a time.
class NonceStream {
 public:
  NonceStream() = default;
  explicit NonceStream(std::shared_ptr<NonceCounter> counter) : counter_(std::move(counter)) {}

  /// The next number, or nothing when the bound is reached.
  std::optional<uint64_t> next() {
    if (block_.empty() && !counter_->refill(block_)) return std::nullopt;
    return block_.next();
  }

 private:
  std::shared_ptr<NonceCounter> counter_;
  NonceBlock block_;
};

/// The counters of a process, and their state file. Any thread may call; only NonceCounter::refill() is for the data
/// path.
class NonceSource {
 public:
  using Clock = NonceLimit::Clock;
  /// So far above the highest number in use the file's bound is set, and it is raised when half of that is used: in
  /// 2^39 numbers an hour has passed at 150 million packets per second.
  static constexpr uint64_t kAhead = uint64_t{1} << 40;

  static uint64_t wall_clock();
  /// The source of this process.
  static NonceSource& process();

  explicit NonceSource(Clock clock = wall_clock, uint64_t ahead = kAhead);
  ~NonceSource();
  NonceSource(const NonceSource&) = delete;
  NonceSource& operator=(const NonceSource&) = delete;

  /// Uses a state file, made if it is missing, until this source goes; opening the same file again does nothing.
  /// Counters that exist already jump above its bound. Returns an empty text, or, with nothing changed, why not:
  /// another process has the file, it is damaged, it cannot be written, or this source has another file already.
  std::string open(const std::string& path);
  bool has_file() const;

  /// The counter of a key, made if nobody uses the key. If two keys had the same fingerprint they would share a counter,
  /// and nothing worse.
  std::shared_ptr<NonceCounter> counter(const KeyFingerprint& key);

  /// Raises the bound in the file if it is near. A thread of this source calls it every second.
  void extend();
  /// Why the bound could not be raised the last time, or an empty text.
  std::string problem() const;

 private:
  class StateFile;

  uint64_t highest() const;
  void forget_unused();

  const uint64_t ahead_;
  const std::shared_ptr<NonceLimit> limit_;
  mutable std::mutex mutex_;
  std::map<KeyFingerprint, std::shared_ptr<NonceCounter>> counters_;
  size_t forget_at_ = 64;
  uint64_t floor_;
  std::unique_ptr<StateFile> file_;
  std::string problem_;
  bool stopping_ = false;
  std::condition_variable stop_;
  std::thread extender_;
};

}  // namespace headrace
