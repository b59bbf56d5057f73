#pragma once
/// \file
/// The two small programs that ports give to the kernel, loaded by the bpf() system call itself: no compiler, no object
/// files and no library are needed where Headrace runs. Attachments are links: they end with this process.

#include <cstdint>
#include <memory>

#include "src/io/linux/descriptor.hh"

namespace headrace::io {

enum class XdpMode { kNative, kGeneric };

/// A program at an interface that gives each frame to the AF_XDP socket of its receive queue, or to the kernel as usual
/// where there is none.
class XdpRedirect {
 public:
  /// Null, with errno, when the kernel or the driver cannot do that. \param queues receive queues of the interface
  static std::unique_ptr<XdpRedirect> attach(int interface, int queues, XdpMode mode);

  /// Puts a socket in place, or takes it out (-1). False with errno.
  bool set(int queue, int socket);

 private:
  Descriptor map_, program_, link_;
};

/// A program that drops what arrives at an interface behind the packet sockets and before the protocols. Invalid, with
/// errno, before Linux 6.6.
Descriptor attach_tcx_drop(int interface);

}  // namespace headrace::io
