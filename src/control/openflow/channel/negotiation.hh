#pragma once
/// \file
/// Which version a connection speaks (ONF TS-023, section 6.3.1).

#include <cstdint>
#include <optional>
#include <string>

#include "control/openflow/codec.hh"

namespace headrace::openflow {

/// Versions that a switch may speak.
struct Versions {
  bool v1_0 = true, v1_3 = true;

  /// Bit 1 for 1.0, bit 4 for 1.3.
  uint32_t bitmap() const { return (v1_0 ? 1u << 1 : 0u) | (v1_3 ? 1u << 4 : 0u); }
  Version highest() const { return v1_3 ? Version::k1_3 : Version::k1_0; }
  bool operator==(const Versions&) const = default;
};

/// The hello of a switch: the highest version, and a bitmap of all.
Message hello_of(Versions ours, uint32_t xid);
/// The version to speak with a peer that has sent `hello`: the highest that both have in their bitmaps, or, if the peer
/// sent none, the lower one of both hellos' headers. None if we may not speak that.
std::optional<Version> negotiate(Versions ours, const Message& hello);
/// Why there is none, for the peer and for our own log.
std::string incompatible(Versions ours, const Message& hello);

}  // namespace headrace::openflow
