#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Marks the position of the MAC header.
///
///     MarkMACHeader([OFFSET, LENGTH])
///
/// Sets the MAC header annotation to OFFSET bytes into the packet and, with LENGTH, the network header annotation to
/// LENGTH bytes behind that. A packet too short for either is dropped and counted.
///
/// OFFSET: default 0.
/// LENGTH: default 0, the network header annotation stays.
struct MarkMACHeader : Shader<MarkMACHeader> {
  static constexpr auto kRegions = regions(Read{meta::length}, Write{meta::mac_header}, Write{meta::network_header});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("shorter than OFFSET"));

  int32_t offset = 0;
  int32_t header_length = 0;

  Status configure(Args& args);

  void move(Offsets& at) const {
    at.mac = at.data + offset;
    if (header_length) at.network = at.mac + header_length;
    at.transport = at.network;
  }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (static_cast<int>(p.length()) < offset + header_length) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    p.set_mac_header(offset);
    if (header_length) p.set_network_header(offset + header_length, 0);
    return 0;
  }
};

HEADRACE_ELEMENT(MarkMACHeader)

}  // namespace headrace
