#pragma once
/// \file
/// Network interfaces for a test alone.

#include <sched.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "headrace/worker.hh"

namespace headrace::testing {

/// Runs ip(8) in the network namespace of the calling thread. True if it succeeded.
inline bool run_ip(const std::string& arguments) { return std::system(("ip " + arguments).c_str()) == 0; }

/// Runs `test` on a thread with a network namespace of its own, as the first thread of a router. False: this process may not
/// make one; the test should be skipped for kNamespaceNeeds.
template <typename Test>
bool in_namespace(const Test& test) {
  bool made = false;
  std::thread([&] {
    detail::t_thread_id = 0;
    made = unshare(CLONE_NEWNET) == 0 && run_ip("link set lo up 2>/dev/null");
    if (made) test();
  }).join();
  return made;
}
inline constexpr const char* kNamespaceNeeds = "needs the right to make network namespaces, and ip(8)";

}  // namespace headrace::testing
