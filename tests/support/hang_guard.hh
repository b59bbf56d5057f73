#pragma once
/// \file
/// Ends a test that hangs.

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace headrace::testing {

/// Aborts the process if it is not destroyed within so many seconds: threads that wait for each other cannot be ended
/// otherwise. Choose a time that no machine needs, however busy.
class HangGuard {
 public:
  explicit HangGuard(int seconds)
      : thread_([this, seconds] {
          std::unique_lock lock(lock_);
          if (over_changed_.wait_for(lock, std::chrono::seconds(seconds), [this] { return over_; })) return;
          std::fprintf(stderr, "the test hangs: no end after %d s\n", seconds);
          std::abort();
        }) {}
  ~HangGuard() {
    {
      const std::lock_guard lock(lock_);
      over_ = true;
    }
    over_changed_.notify_all();
    thread_.join();
  }
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

 private:
  std::mutex lock_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace headrace::testing
