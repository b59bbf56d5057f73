#pragma once
/// \file
/// Where controllers are, as ovs-vsctl(8) and ovs-ofctl(8) write it.

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::openflow {

/// Of OpenFlow, assigned by IANA.
inline constexpr uint16_t kDefaultPort = 6653;

/// `tcp:HOST[:PORT]`, `ssl:HOST[:PORT]`, `unix:FILE`: the switch connects; `ptcp:[PORT][:HOST]`, `pssl:[PORT][:HOST]`,
/// `punix:FILE`: it listens.
struct Target {
  enum class Kind : uint8_t { kTcp, kSsl, kUnix };
  Kind kind = Kind::kTcp;
  bool passive = false;
  std::string host;              ///< without brackets; empty: all addresses of IPv4
  uint16_t port = kDefaultPort;  ///< 0, passive only: any that is free
  std::string file;              ///< of kUnix

  auto operator<=>(const Target&) const = default;
};

/// Reads a target. False with what was expected in `error`, which names the target.
bool parse_target(std::string_view text, Target& target, std::string& error);
/// With the port always written out, and brackets around IPv6 addresses.
std::string to_string(const Target& target);

}  // namespace headrace::openflow
