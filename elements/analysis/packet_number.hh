#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "headrace/packet.hh"

namespace headrace {

/// Where packets carry a number of 8 bytes, as NumberPacket writes it.
struct PacketNumber {
  int32_t offset = 40;
  bool net_order = false;

  static constexpr uint32_t kSize = 8;

  bool fits(const Packet& p) const { return p.length() >= static_cast<uint32_t>(offset) + kSize; }
  uint64_t read(const Packet& p) const {
    uint64_t number;
    std::memcpy(&number, p.data() + offset, sizeof number);
    return in_order(number);
  }
  void write(Packet& p, uint64_t number) const {
    number = in_order(number);
    std::memcpy(p.data() + offset, &number, sizeof number);
  }

 private:
  uint64_t in_order(uint64_t number) const {
    return net_order && std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
  }
};

}  // namespace headrace
