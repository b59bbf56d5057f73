#pragma once
/// \file
/// Independent pieces of work, two at a time.

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace headrace::testing {

/// Runs all of `work`, two pieces at a time: a compiler takes seconds for each, and much memory.
inline void side_by_side(const std::vector<std::function<void()>>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < work.size(); i = next++) work[i]();
  };
  std::thread other(run);
  run();
  other.join();
}

}  // namespace headrace::testing
