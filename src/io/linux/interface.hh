#pragma once
/// \file
/// What the system says about a network interface.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/error.hh"
#include "src/io/linux/descriptor.hh"

namespace headrace::io {

/// An interface as it is now. Its index is its identity: one that is deleted and made again under the same name has
/// another.
struct Interface {
  std::string name;
  int index = 0;
  int mtu = 0;
  bool up = false;
  /// libpcap's DLT_ number of what frames begin with: DLT_EN10MB or DLT_RAW; -1 for anything else.
  int link_type = -1;
  std::optional<std::array<uint8_t, 6>> address;
  /// No hardware behind it (veth, bridge, tunnel): frames come as the peer's stack left them.
  bool is_virtual = false;
  int receive_queues = 1;

  /// Nothing, with errno, when there is none of that name.
  static std::optional<Interface> find(const std::string& name);
  /// Bytes of the longest frame without check sequence; two VLAN tags have room.
  int longest_frame() const { return mtu + 14 + 8; }
};

/// The interface's index, 0 when there is none; one system call.
int interface_index(const std::string& name);

/// A sentence for errno after a failure to open something: names the rights that are missing.
std::string explain_errno(int error);

/// Keeps an interface in promiscuous mode while it lives.
class Promiscuity {
 public:
  static std::unique_ptr<Promiscuity> begin(const Interface& interface, Errors& errors);

 private:
  Descriptor socket_;
};

/// Keeps the kernel's own protocols from what arrives at an interface while it lives; packet sockets receive it all the
/// same.
class KernelSilence {
 public:
  /// The silence of this interface, shared by all current users; null, with an error, when it cannot be had.
  static std::shared_ptr<KernelSilence> begin(const std::string& interface, Errors& errors);
  ~KernelSilence();

 private:
  std::string interface_;
  int index_ = 0;
  Descriptor link_;
};

}  // namespace headrace::io
