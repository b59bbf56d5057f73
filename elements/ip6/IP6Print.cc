#include "elements/ip6/IP6Print.hh"

#include <algorithm>

#include "headrace/addresses.hh"
#include "headrace/chatter.hh"
#include "headrace/packet.hh"

namespace headrace {

namespace {

constexpr int kIp6HeaderLength = 40;
constexpr uint32_t kBytesPerLine = 24, kBytesPerGroup = 4;

std::string ip6_address(const uint8_t* bytes) {
  std::array<uint8_t, 16> copy;
  std::copy_n(bytes, copy.size(), copy.begin());
  return Ip6Address(copy).unparse();
}

}  // namespace

Status IP6Print::configure(Args& args) {
  return args.read_p("LABEL", label_).read("CONTENTS", contents_).read("NBYTES", bytes_).complete();
}

Packet* IP6Print::act(Packet* p, Emitter&) {
  if (!p->has_network_header() || p->network_length() < kIp6HeaderLength) return p;
  const uint8_t* ip = p->network_header();
  std::string line = label_.empty() ? "" : label_ + ": ";
  line += fmt::format("{} -> {} plen {}, next {}, hlim {}", ip6_address(ip + 8), ip6_address(ip + 24),
                      ip[4] << 8 | ip[5], ip[6], ip[7]);
  if (contents_)
    for (uint32_t i = 0; i < std::min(bytes_, p->length()); ++i)
      line += fmt::format("{}{:02x}",
                          i % kBytesPerLine == 0    ? "\n  "
                          : i % kBytesPerGroup == 0 ? " "
                                                    : "",
                          p->data()[i]);
  chatter_line(std::move(line));
  return p;
}

}  // namespace headrace
