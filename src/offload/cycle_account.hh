#pragma once
/// \file
/// To whom a thread's cycles are charged, for profiles.

#include <x86intrin.h>

#include <cstdint>

namespace headrace::offload {

struct CycleAccount {
  /// Charges the cycles since the last change to the account that ran, and further cycles to `to` (null: nobody).
  static void charge(uint64_t* to) {
    const uint64_t now = __rdtsc();
    if (t_running) *t_running += now - t_since;
    t_since = now;
    t_running = to;
  }
  static inline thread_local uint64_t* t_running = nullptr;
  static inline thread_local uint64_t t_since = 0;
};

}  // namespace headrace::offload
