#include "elements/ip/ip_options.hh"

#include <algorithm>
#include <cstring>

#include "headrace/checksum.hh"

namespace headrace {

namespace {

/// Milliseconds since midnight UT.
uint32_t option_time() {
  constexpr int64_t kDay = int64_t{86400} * 1000;
  return static_cast<uint32_t>(clock::now().ns / 1000000 % kDay);
}

/// Fills in a Record Route option; the offset of the byte that is wrong, or 0.
int record_route(uint8_t* option, const RouterAddresses& router) {
  const int length = option[1];
  if (length < 3) return 1;
  const int at = option[2] - 1;
  if (at >= 3 && at + 4 <= length) {
    router.address.copy_to(option + at);
    option[2] = static_cast<uint8_t>(option[2] + 4);
    return 0;
  }
  return at >= length ? 0 : 2;  // full, or room for part of an address only
}

/// Fills in a Timestamp option; the offset of the byte that is wrong, or 0.
int record_time(uint8_t* option, const RouterAddresses& router) {
  const int length = option[1];
  if (length < 4) return 1;
  const int at = option[2] - 1;
  if (at < 4) return 2;
  enum { kTimeOnly = 0, kWithAddress = 1, kPrespecified = 3 };
  const int flag = option[3] & 0xf;
  if (flag != kTimeOnly && flag != kWithAddress && flag != kPrespecified) return 3;
  const int need = flag == kTimeOnly ? 4 : 8;
  if (at + need > length) {
    // Room for part of an entry is an error. A full option counts the routers it has no room for, in four bits.
    if (at < length) return 2;
    if (option[3] >> 4 == 15) return 3;
    option[3] = static_cast<uint8_t>(option[3] + 0x10);
    return 0;
  }
  uint8_t* time = option + at + need - 4;
  if (flag == kWithAddress) router.address.copy_to(option + at);
  if (flag == kPrespecified &&
      std::find(router.all.begin(), router.all.end(), IpAddress::from_bytes(option + at)) == router.all.end())
    return 0;
  const Net32 now(option_time());
  std::memcpy(time, &now, 4);
  option[2] = static_cast<uint8_t>(option[2] + need);
  return 0;
}

/// Processes all options in a copy of a header. Returns where something is wrong, or 0; `changed` says if anything is
/// new.
int process_options(uint8_t* header, int header_length, const RouterAddresses& router, bool& changed) {
  changed = false;
  for (int at = 20; at < header_length;) {
    const uint8_t type = header[at];
    if (type == ip_option::kEnd) break;
    if (type == ip_option::kNop) {
      ++at;
      continue;
    }
    // The pointer of an ICMP error names a byte of the header.
    if (at + 1 == header_length) return at;
    const int length = header[at + 1];
    if (length < 2 || at + length > header_length) return at + 1;
    if (type == ip_option::kRecordRoute || type == ip_option::kTimestamp) {
      uint8_t* option = header + at;
      const int wrong = type == ip_option::kRecordRoute ? record_route(option, router) : record_time(option, router);
      if (wrong) return at + wrong;
      changed = true;
    }
    at += length;
  }
  return 0;
}

}  // namespace

int record_in_options(Ip4Header& ip, const RouterAddresses& router) {
  // A copy, because a packet with a bad option goes back to its sender as it came.
  uint8_t header[60];
  const auto length = static_cast<size_t>(ip.header_length());
  std::memcpy(header, &ip, length);
  bool changed;
  const int wrong = process_options(header, ip.header_length(), router, changed);
  if (wrong == 0 && changed) {
    std::memcpy(ip.bytes(), header, length);
    set_ip_checksum(ip);
  }
  return wrong;
}

}  // namespace headrace
