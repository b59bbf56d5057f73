#pragma once
/// \file
/// The names of threads.

#include <pthread.h>

#include <string>

namespace headrace {

/// Names the calling thread, for `top -H`, `perf` and debuggers. They show 15 characters.
inline void name_thread(const std::string& name) {
  constexpr size_t kShown = 15;
  (void)pthread_setname_np(pthread_self(), name.substr(0, kShown).c_str());
}

}  // namespace headrace
