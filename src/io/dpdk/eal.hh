#pragma once
/// \file
/// DPDK's environment (EAL): brought up once in the process, by the first port.

#include <string>
#include <vector>

#include "headrace/error.hh"

namespace headrace::io::dpdk {

/// Brings the environment up, with io::dpdk_arguments() behind our own arguments; a second call returns what the first
/// did. Neither root nor huge pages are needed, but devices may need them.
///
/// Our own: memory for DPDK's objects only, for packets lie in our PacketPool (`--no-huge -m`); no files shared with
/// other processes (`--no-shconf`, `--no-telemetry`); one lcore that no thread of ours is pinned by (`--lcores`); of
/// PCI devices those that the system has left to DPDK (`-a`, `--no-pci`).
Status start_eal(Errors& errors);

namespace detail {
extern constinit thread_local bool t_attached;
void attach_thread_slowly();
}  // namespace detail

/// Makes the calling thread, which must be a worker or the control thread, one that may use ports. Cheap when it is
/// one.
inline void attach_thread() {
  if (!detail::t_attached) [[unlikely]]
    detail::attach_thread_slowly();
}
inline bool thread_attached() { return detail::t_attached; }

/// While it lives, what DPDK logs on any thread is kept instead of printed.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// The lines so far, joined by "; "; empty when there is none.
  std::string text() const;
};

/// Writes a line to standard error.
void say(const std::string& line);

}  // namespace headrace::io::dpdk
