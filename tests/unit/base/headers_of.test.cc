// Where headers lie, and what flow a packet belongs to: whoever asks gets the same answer.

#include "headrace/headers_of.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "headrace/flow_hash.hh"
#include "headrace/packet.hh"
#include "headrace/payload.hh"
#include "io/linux/partial_checksum.hh"
#include "io/pcap/link_type.hh"
#include "support/test_router.hh"
#include "tables/rules/packet_facts.hh"

namespace headrace {
namespace {

using testing::from_hex;

std::string ether(const std::string& types) { return from_hex("020000000001 020000000002" + types); }

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2, or from `source`.
std::string ip4(int protocol, const std::string& rest, const std::string& fragment = "4000",
                const std::string& options = "", const std::string& source = "0a000001") {
  const std::string more = from_hex(options);
  std::string bytes = from_hex(fmt::format("{:x}00 {:04x} 1234 {} 40 {:02x} 0000 {} 0a000002", 0x45 + more.size() / 4,
                                           20 + more.size() + rest.size(), fragment, protocol, source)) +
                      more + rest;
  uint32_t sum = 0;
  for (size_t i = 0; i < 20 + more.size(); i += 2)
    sum += static_cast<uint32_t>(static_cast<uint8_t>(bytes[i]) << 8 | static_cast<uint8_t>(bytes[i + 1]));
  sum = ~((sum & 0xffff) + (sum >> 16));
  bytes[10] = static_cast<char>(sum >> 8);
  bytes[11] = static_cast<char>(sum);
  return bytes;
}

std::string ip6(int next, const std::string& rest) {
  return from_hex(fmt::format("60000000 {:04x} {:02x} 40", rest.size(), next)) + std::string(15, '\x20') + '\1' +
         std::string(15, '\x20') + '\2' + rest;
}

// From port 1000 to 53, four bytes of payload.
const std::string kUdp = from_hex("03e8 0035 000c 0000") + "data";
const std::string kTcp = from_hex("03e8 0035 00000007 00000008 5012 0200 0000 0000") + "data";
const std::string kEsp = from_hex("03e8 0035 00000001") + "data";

PacketBytes bytes_in(const std::string& bytes, int32_t network = PacketBytes::kNone) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<uint32_t>(bytes.size()), network};
}

uint32_t bucket(const std::string& bytes, int network = -1, int header = 20) {
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  if (network >= 0) p->set_network_header(network, header);
  const uint32_t b = flow_bucket(*p);
  p->kill();
  return b;
}

enum Flow { kNone, kPorts4, kAddresses4, kPorts6, kAddresses6 };

struct Case {
  const char* what;
  std::string link, packet;
  int protocol;  // -1: not IP
  Flow flow;
  const char* payload;
};

const std::string kHopByHop = from_hex("11 00 050200000100");  // UDP follows
const std::string kRouting = from_hex("2b 00 050200000100") + from_hex("11 02 0400 00000000") + std::string(16, '\3');

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"UDP", ether("0800"), ip4(17, kUdp), 17, kPorts4, "data"},
      {"TCP", ether("0800"), ip4(6, kTcp), 6, kPorts4, "data"},
      {"SCTP", ether("0800"), ip4(132, kUdp + "more"), 132, kPorts4, "more"},
      {"ESP", ether("0800"), ip4(50, kEsp), 50, kPorts4, nullptr},
      {"ICMP", ether("0800"), ip4(1, kUdp), 1, kAddresses4, "data"},
      {"padding", ether("0800"), ip4(17, kUdp) + "padding", 17, kPorts4, "data"},
      {"behind UDP's length", ether("0800"), ip4(17, kUdp + "behind"), 17, kPorts4, "data"},
      {"UDP without payload", ether("0800"), ip4(17, from_hex("03e8 0035 0008 0000") + "behind"), 17, kPorts4, ""},
      {"UDP length of 0", ether("0800"), ip4(17, from_hex("03e8 0035 0000 0000") + "data"), 17, kPorts4, "data"},
      {"UDP length too short", ether("0800"), ip4(17, from_hex("03e8 0035 0007 0000") + "data"), 17, kPorts4, "data"},
      {"UDP length too long", ether("0800"), ip4(17, from_hex("03e8 0035 ffff 0000") + "data"), 17, kPorts4, "data"},
      {"behind UDP's length in IPv6", ether("86dd"), ip6(17, kUdp + "behind"), 17, kPorts6, "data"},
      {"a tag", ether("8100 0007 0800"), ip4(17, kUdp), 17, kPorts4, "data"},
      {"two tags", ether("88a8 0007 8100 0008 0800"), ip4(17, kUdp), 17, kPorts4, "data"},
      {"QinQ as it was", ether("9100 0007 8100 0008 0800"), ip4(17, kUdp), 17, kPorts4, "data"},
      {"four tags", ether("9100 0007 9100 0008 88a8 0009 8100 000a 0800"), ip4(17, kUdp), 17, kPorts4, "data"},
      {"IP options", ether("0800"), ip4(17, kUdp, "4000", "01010101 01010101"), 17, kPorts4, "data"},
      {"first fragment", ether("0800"), ip4(17, kUdp, "2000"), 17, kAddresses4, "data"},
      {"later fragment", ether("0800"), ip4(17, kUdp, "0003"), 17, kAddresses4, nullptr},
      {"raw", "", ip4(17, kUdp), 17, kPorts4, "data"},
      {"raw with padding", "", ip4(17, kUdp) + "padding", 17, kPorts4, "data"},
      {"raw fragment", "", ip4(17, kUdp, "2000"), 17, kAddresses4, "data"},
      {"IPv6", ether("86dd"), ip6(17, kUdp), 17, kPorts6, "data"},
      {"IPv6 behind tags", ether("9100 0007 8100 0008 86dd"), ip6(6, kTcp), 6, kPorts6, "data"},
      {"raw IPv6", "", ip6(17, kUdp), 17, kPorts6, "data"},
      {"IPv6 ESP", ether("86dd"), ip6(50, kEsp), 50, kPorts6, nullptr},
      {"hop by hop", ether("86dd"), ip6(0, kHopByHop + kUdp), 17, kPorts6, "data"},
      {"two extensions", ether("86dd"), ip6(0, kRouting + kUdp), 17, kPorts6, "data"},
      {"authentication", ether("86dd"), ip6(51, from_hex("11 02 0000 00000001 00000001 00000000") + kUdp), 17, kPorts6,
       "data"},
      {"IPv6 first fragment", ether("86dd"), ip6(44, from_hex("11 00 0001 00000063") + kUdp), 17, kAddresses6, "data"},
      {"IPv6 later fragment", ether("86dd"), ip6(44, from_hex("11 00 0009 00000063") + kUdp), 17, kAddresses6, nullptr},
      {"IPv6 atomic fragment", ether("86dd"), ip6(44, from_hex("11 00 0000 00000063") + kUdp), 17, kPorts6, "data"},
      {"extensions cut short", ether("86dd"), ip6(0, "123"), 0, kAddresses6, nullptr},
      {"ARP", ether("0806"), std::string(28, '\1'), -1, kNone, nullptr},
      {"an endless tag", ether("8100"), from_hex("0007"), -1, kNone, nullptr},
      {"half an IPv4 header", ether("0800"), ip4(17, kUdp).substr(0, 19), -1, kNone, nullptr},
      {"half an IPv6 header", ether("86dd"), ip6(17, kUdp).substr(0, 39), -1, kNone, nullptr},
      {"a broken IPv4 header", ether("0800"), "\x44" + ip4(17, kUdp).substr(1), -1, kNone, nullptr},
      {"options cut short", ether("0800"), ip4(17, "", "4000", "01010101 01010101").substr(0, 24), -1, kNone, nullptr},
      {"neither version", ether("0800"), "\x55" + ip4(17, kUdp).substr(1), -1, kNone, nullptr},
      {"short", "", "x", -1, kNone, nullptr},
      {"empty", "", "", -1, kNone, nullptr},
  };
  return all;
}

TEST(HeadersOf, EveryUserGetsTheSameAnswer) {
  const auto both = [](const std::string& ip) {
    return std::pair(bucket(ip, 0, 20),
                     toeplitz_ip(reinterpret_cast<const uint8_t*>(ip.data()), static_cast<uint32_t>(ip.size())));
  };
  const std::pair<uint32_t, uint32_t> flows[] = {
      {0, 0}, both(ip4(17, kUdp)), both(ip4(1, kUdp)), both(ip6(17, kUdp)), both(ip6(58, kUdp))};
  ASSERT_EQ((std::set<std::pair<uint32_t, uint32_t>>(std::begin(flows), std::end(flows)).size()), 5u);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.what);
    const std::string frame = c.link + c.packet;
    const auto network = static_cast<int32_t>(c.link.size());
    const auto* data = reinterpret_cast<const uint8_t*>(frame.data());
    const auto length = static_cast<uint32_t>(frame.size());
    // The walk, where the network header is marked and where it is not.
    for (const int32_t mark : {PacketBytes::kNone, network}) {
      if (mark == network && c.what == std::string("ARP")) continue;
      const PacketBytes packet = bytes_in(frame, mark);
      const TransportPlace place = find_transport(packet);
      ASSERT_EQ(place.protocol, c.protocol < 0 ? TransportPlace::kNotIp : static_cast<uint32_t>(c.protocol));
      // Rules.
      const rules::PacketFacts facts(packet);
      EXPECT_EQ(facts.is_ip(), c.protocol >= 0);
      if (c.protocol >= 0) {
        EXPECT_EQ(place.network, network);
        EXPECT_EQ(facts.protocol(), c.protocol);
        EXPECT_EQ(facts.version(), c.flow >= kPorts6 ? 6 : 4);
        EXPECT_EQ(facts.has_ports(), place.has_ports());
      }
      // Searches.
      if (c.payload) {
        const PayloadBytes payload = l4_payload(packet);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(payload.data), payload.length), c.payload);
        EXPECT_EQ(facts.payload(), c.payload);
      }
      // Flows.
      const FlowKey key = flow_key(packet, place);
      EXPECT_EQ(key.ports != nullptr, c.flow == kPorts4 || c.flow == kPorts6);
      EXPECT_EQ(key.address_bytes, c.flow == kNone ? 0u : c.flow >= kPorts6 ? 32u : 8u);
      EXPECT_EQ(bucket(frame, mark == network ? network : -1), flows[c.flow].first);
    }
    EXPECT_EQ(c.link.empty() ? toeplitz_ip(data, length) : toeplitz_frame(data, length), flows[c.flow].second);
    // Captures.
    if (c.link.size() >= 14 && c.protocol >= 0) {
      Packet* p = Packet::make(data, length);
      EXPECT_TRUE(io::mark_ip_header(*p, io::parse_link_type("ETHER")));
      EXPECT_EQ(p->network_header_offset(), network);
      p->kill();
    }
    // A checksum that the receiver has to finish: the sum of the pseudo header is there.
    if (c.link.size() >= 14 && (c.protocol == 17 || c.protocol == 6) && (c.flow == kPorts4 || c.flow == kPorts6)) {
      const TransportPlace place = find_transport(bytes_in(frame));
      std::string partial = frame;
      const auto segment = static_cast<uint32_t>(place.end - place.at);
      uint32_t sum = static_cast<uint32_t>(c.protocol) + segment;
      const FlowKey key = flow_key(bytes_in(frame), place);
      for (uint32_t i = 0; i < key.address_bytes; i += 2)
        sum += static_cast<uint32_t>(key.addresses[i] << 8 | key.addresses[i + 1]);
      while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
      const size_t field = static_cast<size_t>(place.at) + (c.protocol == 6 ? 16 : 6);
      partial[field] = static_cast<char>(sum >> 8);
      partial[field + 1] = static_cast<char>(sum);
      EXPECT_TRUE(io::finish_partial_checksum(reinterpret_cast<uint8_t*>(partial.data()), length));
    }
  }
}

/// Nothing is read beyond a packet's end, wherever it ends.
TEST(HeadersOf, PacketsThatEndAnywhere) {
  for (const Case& c : cases()) {
    const std::string frame = c.link + c.packet;
    for (size_t n = 0; n <= frame.size(); ++n) {
      const std::vector<uint8_t> exact(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(n));
      const PacketBytes packet{exact.data(), static_cast<uint32_t>(n)};
      const TransportPlace place = find_transport(packet);
      const FlowKey key = flow_key(packet, place);
      const PayloadBytes payload = l4_payload(packet);
      const uint8_t* const end = exact.data() + n;
      const TransportPlace in_frame = find_transport_in_frame(packet);
      const FlowKey of_frame = flow_key(packet, in_frame);
      if (!of_frame.addresses) {
        EXPECT_EQ(toeplitz_frame(exact.data(), packet.length), 0u) << c.what << " " << n;
      } else {
        // Only the flow counts, whatever else a frame holds.
        std::string plain(of_frame.address_bytes == 8 ? ip4(17, kUdp) : ip6(17, kUdp));
        const size_t address = of_frame.address_bytes == 8 ? 12 : 8;
        std::memcpy(plain.data() + address, of_frame.addresses, of_frame.address_bytes);
        if (of_frame.ports)
          std::memcpy(plain.data() + address + of_frame.address_bytes, of_frame.ports, 4);
        else
          plain[address == 12 ? 9 : 6] = 99;  // a protocol without ports
        EXPECT_EQ(toeplitz_frame(exact.data(), packet.length),
                  toeplitz_ip(reinterpret_cast<const uint8_t*>(plain.data()), static_cast<uint32_t>(plain.size())))
            << c.what << " " << n;
      }
      EXPECT_TRUE(!key.addresses || key.addresses + key.address_bytes <= end) << c.what << " " << n;
      EXPECT_TRUE(!key.ports || key.ports + 4 <= end) << c.what << " " << n;
      EXPECT_TRUE(payload.length == 0 || payload.data + payload.length <= end) << c.what << " " << n;
    }
  }
}

/// The third and fourth byte of the source address lie where Ethernet has its type.
TEST(HeadersOf, APacketWithoutAFrameIsNotTakenForOne) {
  for (const char* source : {"08000102", "0a000001", "08004501", "81000807", "86dd6001", "88a84500"}) {
    std::set<uint32_t> buckets;
    for (int i = 0; i < 1000; ++i) {
      std::string body(static_cast<size_t>(30 + i), static_cast<char>(i * 7));
      body.replace(0, 8, kUdp, 0, 8);
      for (size_t k = 8; k < body.size(); ++k) body[k] = static_cast<char>(k * static_cast<size_t>(i) * 31 >> 3);
      buckets.insert(bucket(ip4(17, body, "4000", "", source)));
    }
    EXPECT_EQ(buckets.size(), 1u) << source;
    EXPECT_EQ(*buckets.begin(), bucket(ip4(17, kUdp, "4000", "", source), 0)) << source;
  }
}

/// Addresses of cards that begin as IP does.
TEST(HeadersOf, AFrameIsNotTakenForAPacketWithoutOne) {
  for (const char* to : {"48000040 0001", "4c000100 0001", "60000000 0010", "680000000001"}) {
    std::set<uint32_t> buckets;
    for (int i = 0; i < 1000; ++i) {
      const std::string body = kUdp + std::string(static_cast<size_t>(i), static_cast<char>(i));
      buckets.insert(bucket(from_hex(std::string(to) + "020000000002 0800") + ip4(17, body)));
      buckets.insert(bucket(from_hex(std::string(to) + "020000000002 0806") + std::string(28, '\1')));
    }
    EXPECT_EQ(buckets, (std::set<uint32_t>{0, bucket(ip4(17, kUdp), 0)})) << to;
  }
}

}  // namespace
}  // namespace headrace
