#include "elements/ip/IPGWOptions.hh"

#include <algorithm>
#include <vector>

#include "headrace/checksum.hh"

namespace headrace {

/// The router's addresses.
struct IPGWOptionsOwner {
  IpAddress address;
  std::vector<IpAddress> all;
};

namespace {

/// Milliseconds since midnight UT.
uint32_t option_time() {
  constexpr int64_t kDay = int64_t{86400} * 1000;
  return static_cast<uint32_t>(clock::now().ns / 1000000 % kDay);
}

/// Fills in a Record Route option; the offset of the byte that is wrong, or 0.
int record_route(uint8_t* option, const IPGWOptionsOwner& owner) {
  const int length = option[1];
  if (length < 3) return 1;
  const int at = option[2] - 1;
  if (at >= 3 && at + 4 <= length) {
    owner.address.copy_to(option + at);
    option[2] = static_cast<uint8_t>(option[2] + 4);
    return 0;
  }
  return at == length ? 0 : 2;  // full, or room for part of an address only
}

/// Fills in a Timestamp option; the offset of the byte that is wrong, or 0.
int record_time(uint8_t* option, const IPGWOptionsOwner& owner) {
  const int length = option[1];
  if (length < 4) return 1;
  const int at = option[2] - 1;
  if (at < 4) return 2;
  enum { kTimeOnly = 0, kWithAddress = 1, kPrespecified = 3 };
  const int flag = option[3] & 0xf;
  if (flag != kTimeOnly && flag != kWithAddress && flag != kPrespecified) return 3;
  const int need = flag == kTimeOnly ? 4 : 8;
  if (at + need > length) {
    // Full: that is counted, in four bits. An entry made by somebody else that is cut off is wrong.
    if (option[3] >> 4 == 15 || (flag == kPrespecified && at < length)) return 3;
    option[3] = static_cast<uint8_t>(option[3] + 0x10);
    return 0;
  }
  uint8_t* time = option + at + need - 4;
  if (flag == kWithAddress) owner.address.copy_to(option + at);
  if (flag == kPrespecified &&
      std::find(owner.all.begin(), owner.all.end(), IpAddress::from_bytes(option + at)) == owner.all.end())
    return 0;
  const Net32 now(option_time());
  std::memcpy(time, &now, 4);
  option[2] = static_cast<uint8_t>(option[2] + need);
  return 0;
}

/// Processes all options in a copy of a header. Returns where something is wrong, or 0; `changed` says if anything is
/// new.
int process_options(uint8_t* header, int header_length, const IPGWOptionsOwner& owner, bool& changed) {
  changed = false;
  for (int at = 20; at < header_length;) {
    const uint8_t type = header[at];
    if (type == ip_option::kEnd) break;
    if (type == ip_option::kNop) {
      ++at;
      continue;
    }
    const int length = at + 1 < header_length ? header[at + 1] : 0;
    if (length < 2 || at + length > header_length) return at + 1;
    if (type == ip_option::kRecordRoute || type == ip_option::kTimestamp) {
      uint8_t* option = header + at;
      const int wrong = type == ip_option::kRecordRoute ? record_route(option, owner) : record_time(option, owner);
      if (wrong) return at + wrong;
      changed = true;
    }
    at += length;
  }
  return 0;
}

}  // namespace

Status IPGWOptions::configure(Args& args, IPGWOptionsOwner& owner) {
  if (!args.read_mp("MYADDR", owner.address).read_p("OTHERADDRS", owner.all).complete()) return Status::failed();
  owner.all.push_back(owner.address);
  return {};
}

void IPGWOptions::add_handlers(Handlers& handlers, IPGWOptionsOwner&, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kBadOption)); });
}

Next IPGWOptions::escape(Packet*& p, Emitter& emit, IPGWOptionsOwner& owner) const {
  auto& element = static_cast<ShaderElementBase&>(emit.element());
  Ip4Header* ip = ip4_header(*p);
  if (!ip) {
    element.count_event(kBadHeader);
    return kDrop;
  }
  // A copy, because a packet with a bad option goes back to its sender as it came.
  uint8_t header[60];
  const auto length = static_cast<size_t>(ip->header_length());
  std::memcpy(header, ip, length);
  bool changed;
  const int wrong = process_options(header, ip->header_length(), owner, changed);
  if (wrong == 0) {
    if (changed) {
      std::memcpy(ip->bytes(), header, length);
      set_ip_checksum(*ip);
    }
    return 0;
  }
  element.count_event(kBadOption);
  p->set_anno_u8(anno_offset::kIcmpParamProb, static_cast<uint8_t>(wrong));
  return 1;
}

HEADRACE_ELEMENT(IPGWOptions)

}  // namespace headrace
