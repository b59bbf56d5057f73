#include "elements/ip6/IP6NDSolicitor.hh"

#include <fmt/format.h>

#include <thread>

#include "headrace/checksum.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// Made with Scapy: the solicitation of 3ffe:1ce1:2::9 to all and to its owner, and advertisements of it: with the
// option, without it, and with an MTU option before it.
const std::string kSolicitAll =
    "3333ff000009 00e02905e56f 86dd 6000000000203aff 3ffe1ce1000200000000000000000001 ff0200000000000000000001ff000009"
    "8700b07400000000 3ffe1ce1000200000000000000000009 0101 00e02905e56f";
const std::string kSolicitOne =
    "020000000009 00e02905e56f 86dd 6000000000203aff 3ffe1ce1000200000000000000000001 3ffe1ce1000200000000000000000009"
    "8700519800000000 3ffe1ce1000200000000000000000009 0101 00e02905e56f";
const std::string kAdvertisement =
    "00e02905e56f 020000000009 86dd 6000000000203aff 3ffe1ce1000200000000000000000009 3ffe1ce1000200000000000000000001"
    "8800fce360000000 3ffe1ce1000200000000000000000009 0201 020000000009";
const std::string kWithoutOption =
    "00e02905e56f 020000000009 86dd 6000000000183aff 3ffe1ce1000200000000000000000009 3ffe1ce1000200000000000000000001"
    "880000f660000000 3ffe1ce1000200000000000000000009";
const std::string kWithMtuOption =
    "00e02905e56f 020000000009 86dd 6000000000283aff 3ffe1ce1000200000000000000000009 3ffe1ce1000200000000000000000001"
    "8800f1fe60000000 3ffe1ce1000200000000000000000009 0501 0000000005dc 0201 020000000009";
const std::string kFrameHeader = "020000000009 00e02905e56f 86dd";

constexpr size_t kHopLimitAt = 21, kDestinationAt = 38, kTypeAt = 54, kFlagsAt = 58, kTargetAt = 62, kEtherAt = 80;
constexpr char kRouter = '\x80', kSolicited = 0x40, kOverride = 0x20;

std::string solicitor(const std::string& more = "") {
  return "Idle -> n :: IP6NDSolicitor(3ffe:1ce1:2::1, 00:e0:29:05:e5:6f" + more +
         ") -> c :: Capture; Idle -> [1]n; n[1] -> q :: Capture;";
}

const std::string kNeighbor = "3ffe:1ce1:2::9";

/// Sends one byte to a host.
void send6(TestRouter& r, char what, const std::string& to = kNeighbor, const std::string& element = "n") {
  Ip6Address ip;
  ASSERT_TRUE(parse(to, ip)) << to;
  Packet* p = Packet::make(&what, 1);
  ip.copy_to(p->anno() + anno_offset::kDstIp6);
  r.push(element, p);
}

void later_ms(int64_t ms) { clock::jump_steady(clock::steady() + Timestamp::from_ms(ms)); }

/// Repairs the checksum of a changed message.
std::string with_checksum(std::string frame) {
  frame[kTypeAt + 2] = frame[kTypeAt + 3] = 0;
  const size_t length = frame.size() - kTypeAt;
  const uint16_t sum = ChecksumSum()
                           .add(frame.data() + 22, 32)
                           .add16(static_cast<uint16_t>(length))
                           .add16(58)
                           .add(frame.data() + kTypeAt, length)
                           .checksum();
  frame[kTypeAt + 2] = static_cast<char>(sum >> 8);
  frame[kTypeAt + 3] = static_cast<char>(sum);
  return frame;
}

/// The advertisement with these flags, of an Ethernet address that ends with `host`.
std::string claim(char flags, char host = 9) {
  std::string frame = from_hex(kAdvertisement);
  frame[kFlagsAt] = flags;
  frame[kEtherAt + 5] = host;
  return with_checksum(frame);
}

TEST(IP6NDSolicitor, PacketsWaitForTheAdvertisement) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  send6(r, 'b');
  EXPECT_EQ(captured(r, "q"), plain_hex({kSolicitAll}));
  EXPECT_EQ(capture(r, "q").seen()[0].packet->network_header_offset(), 14);
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("n.length"), "2");
  EXPECT_EQ(r.router().find("n")->held_packets(), 2u);
  r.push("n", from_hex(kAdvertisement), 1);
  EXPECT_EQ(captured(r, "c"), plain_hex({kFrameHeader + "61", kFrameHeader + "62"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
  send6(r, 'c');
  send6(r, 'd');
  EXPECT_EQ(captured(r, "c").back(), plain_hex(kFrameHeader + "64"));
  EXPECT_EQ(captured(r, "c").size(), 4u);
  EXPECT_EQ(captured(r, "q").size(), 1u);
  EXPECT_EQ(r.read("n.length") + r.read("n.count") + r.read("n.queries") + r.read("n.responses"), "0111");
  EXPECT_EQ(r.read("n.table").substr(0, 36), "3ffe:1ce1:2::9 1 02-00-00-00-00-09 0");
  EXPECT_EQ(r.read("n.stats"), "0 packets killed\n1 ND Solicitation Message sent\n");
}

TEST(IP6NDSolicitor, TheSolicitationOfClicksExample) {
  TestRouter r("Idle -> n :: IP6NDSolicitor(3ffe:1ce1:2::1, 00:e0:29:05:e5:6f) -> c :: Capture; Idle -> [1]n;");
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a', "3ffe:1ce1:2::1");
  // What conf/ip6ndsolicitor.click says that it prints.
  EXPECT_EQ(captured(r, "c"),
            plain_hex({"3333ff00 000100e0 2905e56f 86dd6000 00000020 3aff3ffe 1ce10002 00000000 00000000 0001ff02"
                       "00000000 00000000 0001ff00 00018700 b0840000 00003ffe 1ce10002 00000000 00000000 00010101"
                       "00e02905 e56f"}));
}

TEST(IP6NDSolicitor, SolicitationsCarryAnnotations) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("a", 1);
  Ip6Address ip;
  ASSERT_TRUE(parse(kNeighbor, ip));
  ip.copy_to(p->anno() + anno_offset::kDstIp6);
  p->set_anno_u16(anno_offset::kVlanTci, 5);
  p->set_timestamp(Timestamp::from_sec(77));
  r.push("n", p);
  const Packet& request = *capture(r, "q").seen()[0].packet;
  EXPECT_EQ(request.anno_u16(anno_offset::kVlanTci), 5);
  EXPECT_EQ(request.timestamp(), Timestamp::from_sec(77));
}

TEST(IP6NDSolicitor, MulticastAndNoDestination) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a', "ff02::1");
  send6(r, 'b', "ff05::1234:5678");
  send6(r, 'c', "::");
  EXPECT_EQ(captured(r, "c"), plain_hex({"333300000001 00e02905e56f 86dd 61", "333312345678 00e02905e56f 86dd 62"}));
  EXPECT_EQ(captured(r, "q").size(), 0u);
  EXPECT_EQ(r.read("n.drops"), "1");
  EXPECT_EQ(r.read("n.drop_reasons"), "1\tdestination ::\n");
}

TEST(IP6NDSolicitor, BadAdvertisementsAreDropped) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  const std::string good = from_hex(kAdvertisement);
  int bad = 0;
  const auto refuse = [&](const std::string& frame) {
    r.push("n", frame, 1);
    ++bad;
  };
  for (const size_t at : {12, 14, 20, 54, 55, 56, 85}) {  // types, code, checksum, option
    std::string frame = good;
    frame[at] = static_cast<char>(frame[at] ^ 0x80);
    refuse(frame);
  }
  for (size_t n = 0; n < good.size(); ++n) refuse(good.substr(0, n));
  // From here on only one thing is wrong, and the checksum is right.
  std::string frame = good;
  frame[kHopLimitAt] = '\xfe';
  refuse(frame);
  frame = good;
  frame[kTypeAt + 1] = 1;
  refuse(with_checksum(frame));
  frame = good;
  frame[kTargetAt] = '\xff';
  refuse(with_checksum(frame));
  for (const char units : {0, 2, 31}) {
    frame = good;
    frame[kEtherAt - 1] = units;
    refuse(with_checksum(frame));
  }
  frame = good;
  frame[kDestinationAt] = '\xff';  // to a group, but solicited
  refuse(with_checksum(frame));
  EXPECT_EQ(r.read("n.responses"), "0");
  EXPECT_EQ(r.read("n.length"), "1");
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("n.drop_reasons"), std::to_string(bad) + "\tno valid neighbor advertisement\n");
  // Padding behind the message does no harm.
  r.push("n", good + "padding", 1);
  EXPECT_EQ(captured(r, "c").size(), 1u);
}

TEST(IP6NDSolicitor, FalseAddressesAreNotBelieved) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  std::string frame = from_hex(kAdvertisement);
  frame[kTargetAt + 15] = 1;  // this host's own address
  r.push("n", with_checksum(frame), 1);
  frame.replace(kTargetAt, 16, 16, '\0');
  r.push("n", with_checksum(frame), 1);
  frame = from_hex(kAdvertisement);
  frame[kEtherAt] = 3;
  r.push("n", with_checksum(frame), 1);
  EXPECT_EQ(r.read("n.drop_reasons"), "3\tneighbor advertisement with a false address\n");
  EXPECT_EQ(r.read("n.length"), "1");
}

TEST(IP6NDSolicitor, TheOptionMayStandBehindOthers) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  r.push("n", from_hex(kWithoutOption), 1);
  EXPECT_EQ(captured(r, "c").size(), 0u) << "an address is needed";
  r.push("n", from_hex(kWithMtuOption), 1);
  EXPECT_EQ(captured(r, "c"), plain_hex({kFrameHeader + "61"}));
  EXPECT_EQ(r.read("n.drop_reasons"), "");
}

TEST(IP6NDSolicitor, WhatNobodyAskedForIsNotKept) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("n", from_hex(kAdvertisement), 1);
  EXPECT_EQ(r.read("n.responses") + r.read("n.count") + r.read("n.drop_reasons"), "10");
  send6(r, 'a');
  EXPECT_EQ(captured(r, "q").size(), 1u);
}

/// The last byte of the Ethernet address that a packet goes to now; what was asked before it goes to `asked`.
std::string next_hop(TestRouter& r, size_t* asked = nullptr) {
  const size_t before = captured(r, "q").size();
  send6(r, 'x');
  if (asked) *asked = captured(r, "q").size() - before;
  return captured(r, "c").back().substr(10, 2);
}

TEST(IP6NDSolicitor, OverrideAndSolicitedFlags) {
  // RFC 4861, 7.2.5 and appendix C.
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  size_t asked = 0;
  send6(r, 'a');
  r.push("n", claim(kSolicited, 9), 1);
  EXPECT_EQ(next_hop(r, &asked), "09");
  EXPECT_EQ(asked, 0u);
  // Another address without Override: the old one stays and is asked for, to its owner.
  r.push("n", claim(0, 7), 1);
  EXPECT_EQ(next_hop(r, &asked), "09");
  EXPECT_EQ(asked, 1u);
  EXPECT_EQ(captured(r, "q").back(), plain_hex(kSolicitOne));
  r.push("n", claim(kSolicited, 9), 1);
  EXPECT_EQ(next_hop(r, &asked), "09");
  EXPECT_EQ(asked, 0u) << "the owner has answered";
  // With Override it counts; unsolicited it is asked for.
  r.push("n", claim(kOverride, 7), 1);
  EXPECT_EQ(next_hop(r, &asked), "07");
  EXPECT_EQ(asked, 1u);
  r.push("n", claim(static_cast<char>(kRouter | kSolicited | kOverride), 8), 1);
  EXPECT_EQ(next_hop(r, &asked), "08");
  EXPECT_EQ(asked, 0u);
  // An answer without the option confirms what is known.
  later_ms(50000);
  r.push("n", from_hex(kWithoutOption), 1);
  later_ms(50000);
  EXPECT_EQ(next_hop(r, &asked), "08");
  EXPECT_EQ(asked, 0u);
  // One that says again what is known, but does not answer, does not.
  r.push("n", claim(0, 8), 1);
  later_ms(10001);
  EXPECT_EQ(next_hop(r, &asked), "08");
  EXPECT_EQ(asked, 1u);
}

TEST(IP6NDSolicitor, AnUnsolicitedAdvertisementReleasesPacketsToo) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  r.push("n", claim(0, 9), 1);
  EXPECT_EQ(captured(r, "c"), plain_hex({kFrameHeader + "61"}));
  size_t asked = 0;
  EXPECT_EQ(next_hop(r, &asked), "09");
  EXPECT_EQ(asked, 1u);
}

TEST(IP6NDSolicitor, PollsThenForgets) {
  TestRouter r(solicitor(", POLL_TIMEOUT 1s, TIMEOUT 8.5s"));
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  r.push("n", from_hex(kAdvertisement), 1);
  std::string polls;
  for (int i = 0; i < 80; ++i) {
    later_ms(100);
    size_t asked = 0;
    next_hop(r, &asked);
    if (asked) polls += captured(r, "q").back().substr(0, 4) == "3333" ? 'A' : '1';
  }
  EXPECT_EQ(polls, "111AAAAA") << "one per second";
  EXPECT_EQ(captured(r, "c").size(), 81u) << "packets go on meanwhile";
  later_ms(600);
  send6(r, 'b');
  EXPECT_EQ(captured(r, "c").size(), 81u);
  EXPECT_EQ(r.read("n.length"), "1");
  EXPECT_EQ(r.read("n.table").substr(0, 16), "3ffe:1ce1:2::9 0");
}

TEST(IP6NDSolicitor, HostsThatDoNotAnswer) {
  for (const bool output : {false, true}) {
    TestRouter r(solicitor(", WAIT 2.2s") + (output ? "n[2] -> u :: Capture;" : "") + "Script(wait 4.1s, stop);");
    ASSERT_TRUE(r.ok()) << r.errors();
    send6(r, 'a');
    send6(r, 'b');
    r.run();
    // Asked for three times, a second apart.
    EXPECT_EQ(captured(r, "q"), plain_hex({kSolicitAll, kSolicitAll, kSolicitAll}));
    EXPECT_EQ(captured(r, "c").size(), 0u);
    EXPECT_EQ(r.read("n.length") + r.read("n.count"), "01");
    if (output) {
      EXPECT_EQ(captured(r, "u"), (std::vector<std::string>{"61", "62"})) << "as they came, without a header";
      EXPECT_EQ(r.read("n.drop_reasons"), "");
    } else {
      EXPECT_EQ(r.read("n.drop_reasons"), "2\tno neighbor advertisement in time\n");
      EXPECT_EQ(r.read("n.drops"), "2");
    }
    later_ms(2000);
    send6(r, 'c');
    r.push("n", from_hex(kAdvertisement), 1);
    EXPECT_EQ(captured(r, "c"), plain_hex({kFrameHeader + "63"}));
  }
}

TEST(IP6NDSolicitor, LimitsOfTheTable) {
  TestRouter r(solicitor(", CAPACITY 10, ENTRY_CAPACITY 4"));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 1000; ++i) send6(r, 'a', fmt::format("2001:db8::{:x}", i % 64));
  EXPECT_EQ(r.read("n.count"), "4");
  EXPECT_LE(std::stoi(r.read("n.length")), 10);
  EXPECT_EQ(std::stoi(r.read("n.length")) + std::stoi(r.read("n.drops")), 1000);
  EXPECT_NE(r.read("n.drop_reasons").find("\ttoo many packets wait, or too long\n"), std::string::npos);
  EXPECT_EQ(capture(r, "c").seen().size(), 0u);
}

TEST(IP6NDSolicitor, ManyNeighbors) {
  // More than there are places for headers, so that they are found in the table and among each other.
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  constexpr int kHosts = 900;
  const auto ip = [](int i) { return fmt::format("2001:db8:{:x}::{:x}", i % 7, i); };
  for (int i = 0; i < kHosts; ++i)
    ASSERT_TRUE(r.write("n.insert", fmt::format("{} 02:00:00:00:{:02x}:{:02x}", ip(i), i >> 8, i & 255)));
  std::vector<std::string> expected;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kHosts; ++i) {
      send6(r, 'x', ip(i));
      expected.push_back(fmt::format("02000000{:04x}00e02905e56f86dd78", i));
    }
  }
  EXPECT_EQ(captured(r, "c"), expected);
  EXPECT_EQ(r.read("n.count"), "900");
  for (int i = 0; i < kHosts; i += 2) ASSERT_TRUE(r.write("n.delete", ip(i)));
  for (int i = 0; i < kHosts; ++i) send6(r, 'x', ip(i));
  EXPECT_EQ(captured(r, "c").size(), expected.size() + kHosts / 2);
  EXPECT_EQ(captured(r, "q").size(), kHosts / 2u);
  ASSERT_TRUE(r.write("n.clear"));
  EXPECT_EQ(r.read("n.count") + r.read("n.length") + r.read("n.queries") + r.read("n.table"), "000");
}

TEST(IP6NDSolicitor, AnotherTakesOver) {
  TestRouter r(solicitor() +
               "Idle -> b :: IP6NDSolicitor(3ffe:1ce1:2::1, 00:e0:29:05:e5:6f) -> d :: Capture; Idle -> [1]b;"
               "Idle -> o :: IP6NDSolicitor(3ffe:1ce1:2::2, 00:e0:29:05:e5:6f) -> d; Idle -> [1]o;");
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  Errors errors;
  r.router().find("o")->take_state(*r.router().find("n"), errors);
  EXPECT_EQ(r.read("o.count") + r.read("n.count"), "01") << "another address: what is known may not hold";
  r.router().find("b")->take_state(*r.router().find("n"), errors);
  EXPECT_EQ(r.read("b.length") + r.read("n.length"), "10");
  r.push("b", from_hex(kAdvertisement), 1);
  EXPECT_EQ(captured(r, "d"), plain_hex({kFrameHeader + "61"}));
}

TEST(IP6NDSolicitor, NoRoomForTheHeader) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("n.insert", kNeighbor + " 2:0:0:0:0:9"));
  Packet* p = Packet::make(2000, 0);
  ASSERT_NE(p, nullptr);
  if (p->tailroom()) p->put(p->tailroom());
  Ip6Address ip;
  ASSERT_TRUE(parse(kNeighbor, ip));
  ip.copy_to(p->anno() + anno_offset::kDstIp6);
  r.push("n", p);
  EXPECT_EQ(r.read("n.drop_reasons"), "1\tno room for the Ethernet header\n");
}

TEST(IP6NDSolicitor, ArgumentsWhileItRunsAndErrors) {
  TestRouter r(solicitor());
  ASSERT_TRUE(r.ok()) << r.errors();
  send6(r, 'a');
  r.push("n", from_hex(kAdvertisement), 1);
  ASSERT_TRUE(r.write("n.config", "3ffe:1ce1:2::1, 1:1:1:1:1:2")) << r.errors();
  EXPECT_EQ(r.read("n.count"), "0");
  send6(r, 'b');
  EXPECT_EQ(captured(r, "q").back().substr(12, 12), "010101010102");
  EXPECT_FALSE(r.write("n.insert", kNeighbor));
  const std::pair<const char*, const char*> kWrong[] = {
      {"3ffe::1", "ETH: required argument missing"},
      {"1.2.3.4, 1:1:1:1:1:1", "IP"},
      {"ff02::1, 1:1:1:1:1:1", "IP: ff02::1 is no address of a host"},
      {"::, 1:1:1:1:1:1", "IP: :: is no address of a host"},
      {"3ffe::1, 1:1:1:1:1:1, CAPACITY_SLIM_FACTOR 0", "CAPACITY_SLIM_FACTOR cannot be zero"},
      {"3ffe::1, 1:1:1:1:1:1, WAIT soon", "WAIT"}};
  for (const auto& [arguments, message] : kWrong) {
    const std::string text = "Idle -> n :: IP6NDSolicitor(" + std::string(arguments) + ") -> Discard; Idle -> [1]n;";
    EXPECT_NE(TestRouter(text).errors().find(message), std::string::npos) << arguments;
  }
}

TEST(NeighborTable, ReadersSeeWholeIp6Addresses) {
  // As for IPv4 in ARPQuerier.test.cc: keys are two words here.
  NeighborTable<Ip6Address> table;
  table.set_limits({.entries = 700, .timeout = Interval::from_sec(0)});
  constexpr int kHosts = 3000;
  const auto address = [](int i) {
    const auto low = static_cast<uint8_t>(i), high = static_cast<uint8_t>(i >> 8);
    return Ip6Address({0x20, 1, 0xd, 0xb8, 0, 0, high, low, 0, 0, 0, 0, 0, 0, low, high});
  };
  const auto ether = [](int i, int version) {
    const auto low = static_cast<uint8_t>(i), high = static_cast<uint8_t>(i >> 8), v = static_cast<uint8_t>(version);
    return EtherAddress({2, v, low, high, low, v});
  };
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> found{0}, wrong{0};
  const auto look_up = [&](uint32_t seed) {
    while (!stop.load(std::memory_order_relaxed)) {
      seed = seed * 1664525 + 1013904223;
      const int i = static_cast<int>(seed >> 16) % kHosts;
      const auto answer = table.lookup(address(i), 1, 0);
      if (!answer.known) continue;
      ++found;
      wrong += answer.ether != ether(i, answer.ether.data()[1]);
    }
  };
  std::vector<std::thread> readers;
  for (uint32_t i = 0; i < 2; ++i) readers.emplace_back(look_up, i);
  uint32_t seed = 99;
  for (int n = 0; n < 60000; ++n) {
    seed = seed * 1664525 + 1013904223;
    const int i = static_cast<int>(seed >> 16) % kHosts;
    table.insert(address(i), n % 5 == 0 ? EtherAddress::broadcast() : ether(i, n), 1);
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 0u);
  EXPECT_LE(table.count(), 701u);
}

}  // namespace
}  // namespace headrace::testing
