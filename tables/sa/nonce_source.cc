#include "tables/sa/nonce_source.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>

#include "headrace/text.hh"

namespace headrace {

namespace {

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~FileDescriptor() { (void)close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// A short file as it is, or an errno.
int read_short(const std::string& path, std::string& text) {
  const FileDescriptor file(path, O_RDONLY);
  if (!file) return errno;
  char buffer[512];
  const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
  if (n < 0) return errno;
  text.assign(buffer, static_cast<size_t>(n));
  return 0;
}

/// FNV-1a.
uint64_t check_sum(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return sum;
}

std::string state_text(uint64_t bound) {
  const std::string text = fmt::format("headrace nonces 1\nbound {}\n", bound);
  return text + fmt::format("check {:016x}\n", check_sum(text));
}

std::optional<uint64_t> parse_state(std::string_view text) {
  std::string_view rest = text;
  for (const std::string_view word : {"headrace", "nonces", "1", "bound"})
    if (next_word(rest) != word) return std::nullopt;
  const auto bound = whole_number<uint64_t>(next_word(rest));
  if (!bound || text != state_text(*bound)) return std::nullopt;
  return bound;
}

}  // namespace

bool NonceCounter::refill(NonceBlock& block) {
  const uint64_t limit = limit_->now();
  uint64_t begin = next_.load(std::memory_order_relaxed);
  do {
    if (limit < kBlock || begin > limit - kBlock) return false;
  } while (!next_.compare_exchange_weak(begin, begin + kBlock, std::memory_order_relaxed));
  block = NonceBlock(begin, begin + kBlock);
  return true;
}

/// The file with the bound, and the lock beside it. The lock has a file of its own, since each new bound is a new file.
class NonceSource::StateFile {
 public:
  explicit StateFile(std::string path) : path_(std::move(path)), lock_(path_ + ".lock", O_RDWR | O_CREAT) {}

  const std::string& path() const { return path_; }

  /// An empty text, or why the lock cannot be had.
  std::string lock() {
    if (!lock_) return fmt::format("{}.lock: {}", path_, std::strerror(errno));
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return fmt::format("{}.lock: {}", path_, std::strerror(errno));
      std::string holder;
      (void)read_short(path_ + ".lock", holder);
      const auto process = whole_number<uint32_t>(trimmed(holder));
      return fmt::format("{}: another process{} uses this nonce file", path_,
                         process ? fmt::format(" ({})", *process) : std::string());
    }
    // Only for the message above.
    const std::string me = fmt::format("{}\n", ::getpid());
    if (ftruncate(lock_.get(), 0) == 0) (void)lock_.write_all(me);
    return {};
  }

  /// Reads the bound; none if there is no file.
  std::string read(std::optional<uint64_t>& bound) const {
    std::string text;
    const int error = read_short(path_, text);
    if (error == ENOENT) return {};
    if (error != 0) return fmt::format("{}: {}", path_, std::strerror(error));
    bound = parse_state(text);
    if (bound) return {};
    return fmt::format(
        "{}: damaged, or no nonce file: which numbers have been used is not known. Give all outbound associations new "
        "keys, then remove the file",
        path_);
  }

  /// Puts a bound on the disk. An empty text, or why it may not be there.
  std::string write(uint64_t bound) const {
    const std::string next = path_ + ".new";
    const auto failed = [&] { return fmt::format("{}: {}", next, std::strerror(errno)); };
    {
      FileDescriptor file(next, O_WRONLY | O_CREAT | O_TRUNC);
      if (!file || !file.write_all(state_text(bound)) || fsync(file.get()) != 0 || !file.close()) return failed();
    }
    if (::rename(next.c_str(), path_.c_str()) != 0) return failed();
    const FileDescriptor folder(std::filesystem::path(path_).parent_path().string(), O_RDONLY | O_DIRECTORY);
    if (!folder || fsync(folder.get()) != 0) return failed();
    return {};
  }

 private:
  const std::string path_;
  FileDescriptor lock_;
};

uint64_t NonceSource::wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

NonceSource& NonceSource::process() {
  static NonceSource source;
  return source;
}

NonceSource::NonceSource(Clock clock, uint64_t ahead)
    : ahead_(ahead), limit_(std::make_shared<NonceLimit>(clock)), floor_(clock()) {}

NonceSource::~NonceSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (extender_.joinable()) extender_.join();
  // Whoever still has a counter must not go on beside the next owner of the file.
  limit_->bound.store(0, std::memory_order_release);
  limit_->follows_clock.store(false, std::memory_order_release);
}

std::string NonceSource::open(const std::string& path) {
  std::error_code error;
  const std::string whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error).string();
  if (error) return fmt::format("{}: {}", path, error.message());
  const std::lock_guard lock(mutex_);
  if (file_) {
    if (file_->path() == whole) return {};
    return fmt::format("{}: this process uses the nonce file {} already", path, file_->path());
  }
  auto file = std::make_unique<StateFile>(whole);
  std::optional<uint64_t> old_bound;
  if (std::string reason = file->lock(); !reason.empty()) return reason;
  if (std::string reason = file->read(old_bound); !reason.empty()) return reason;
  const uint64_t start = std::max(highest(), old_bound.value_or(0));
  if (start > std::numeric_limits<uint64_t>::max() - 2 * ahead_)
    return fmt::format("{}: all numbers have been used. Give all outbound associations new keys, then remove the file",
                       path);
  if (std::string reason = file->write(start + ahead_); !reason.empty()) return reason;

  file_ = std::move(file);
  floor_ = start;
  for (const auto& [key, counter] : counters_) {
    uint64_t next = counter->next_.load(std::memory_order_relaxed);
    while (next < start && !counter->next_.compare_exchange_weak(next, start, std::memory_order_relaxed)) {
    }
  }
  limit_->bound.store(start + ahead_, std::memory_order_release);
  limit_->follows_clock.store(false, std::memory_order_release);
  extender_ = std::thread([this] {
    std::unique_lock wait(mutex_);
    while (!stop_.wait_for(wait, std::chrono::seconds(1), [this] { return stopping_; })) {
      wait.unlock();
      extend();
      wait.lock();
    }
  });
  return {};
}

bool NonceSource::has_file() const {
  const std::lock_guard lock(mutex_);
  return file_ != nullptr;
}

std::shared_ptr<NonceCounter> NonceSource::counter(const KeyFingerprint& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = counters_.find(key); found != counters_.end()) return found->second;
  if (counters_.size() >= forget_at_) {
    forget_unused();
    forget_at_ = std::max<size_t>(64, 2 * counters_.size());
  }
  auto made = std::make_shared<NonceCounter>(limit_, floor_);
  counters_.emplace(key, made);
  return made;
}

void NonceSource::extend() {
  const std::lock_guard lock(mutex_);
  if (!file_) return;
  const uint64_t bound = limit_->bound.load(std::memory_order_relaxed);
  const uint64_t used = highest();
  if (used < bound && bound - used > ahead_ / 2) return;
  if (used > std::numeric_limits<uint64_t>::max() - 2 * ahead_) {
    problem_ = fmt::format("{}: all numbers have been used", file_->path());
    return;
  }
  problem_ = file_->write(used + ahead_);
  if (problem_.empty()) limit_->bound.store(used + ahead_, std::memory_order_release);
}

std::string NonceSource::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

/// No number at or above this has been handed out.
uint64_t NonceSource::highest() const {
  uint64_t most = floor_;
  for (const auto& [key, counter] : counters_) most = std::max(most, counter->next_.load(std::memory_order_relaxed));
  return most;
}

/// Lets go of the counters that nobody has: nobody gets one while the lock is held. The floor rises above their numbers.
void NonceSource::forget_unused() {
  std::erase_if(counters_, [&](const auto& entry) {
    const auto& counter = entry.second;
    if (counter.use_count() != 1) return false;
    // A read-modify-write sees the last value whatever thread wrote it.
    floor_ = std::max(floor_, counter->next_.fetch_add(0, std::memory_order_acq_rel));
    return true;
  });
}

}  // namespace headrace
