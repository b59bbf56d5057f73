#pragma once
#include <string>
#include <string_view>

#include "headrace/error.hh"
#include "headrace/packet.hh"

namespace headrace {

/// The default data of sources: the 69 bytes that Click documents, which its users look for in captures.
inline constexpr std::string_view kDefaultData =
    "Random bullshit in a packet, at least 64 bytes long. Well, now it is.";

/// The bytes of a source's packets: `data`, cut or repeated to `length` unless that is negative.
inline Status fill_packet_bytes(const std::string& data, int length, std::string& bytes, Errors& errors) {
  const size_t size = length < 0 ? data.size() : static_cast<size_t>(length);
  if (size > Packet::kMaxLength) return errors.error("packet too long, maximum is {}", Packet::kMaxLength);
  bytes.clear();
  while (bytes.size() < size) bytes += data.empty() ? std::string(1, '\0') : data;
  bytes.resize(size);
  return {};
}

}  // namespace headrace
