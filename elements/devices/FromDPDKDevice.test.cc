#include "elements/devices/FromDPDKDevice.hh"

#include "elements/devices/ToDPDKDevice.hh"
#include "headrace/packet_pool.hh"
#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

using DpdkPort = io::dpdk::Port;
using io::dpdk::PortSettings;

/// A pcap file of these frames.
std::string capture_of(const std::vector<std::string>& frames) {
  const auto word = [](uint32_t n) { return std::string(reinterpret_cast<const char*>(&n), sizeof n); };
  std::string file = word(0xa1b2c3d4) + word(0x00040002) + word(0) + word(0) + word(65535) + word(1);
  for (const std::string& f : frames) {
    const auto length = static_cast<uint32_t>(f.size());
    file += word(1) + word(0) + word(length) + word(length) + f;
  }
  return file;
}

std::vector<std::string> frames_of(const std::string& file) {
  std::vector<std::string> frames;
  for (size_t at = 24; at + 16 <= file.size();) {
    uint32_t length;
    std::memcpy(&length, file.data() + at + 8, sizeof length);
    frames.push_back(file.substr(at + 16, length));
    at += 16 + length;
  }
  return frames;
}

/// Frames of all lengths that an MTU of 1500 allows, each different.
std::vector<std::string> many_frames(size_t n) {
  std::vector<std::string> frames;
  for (size_t i = 0; i < n; ++i) {
    std::string f = from_hex("020000000002 020000000001 88b5");
    for (size_t k = 0; f.size() < 60 + i * 37 % 1455; ++k) f += static_cast<char>(i * 7 + k);
    frames.push_back(f);
  }
  return frames;
}

TEST(FromDPDKDevice, AcceptsVerboseAsANumber) {
  TestRouter r("FromDPDKDevice(net_null0, VERBOSE 99) -> ToDPDKDevice(net_null0, VERBOSE 1);");
  EXPECT_TRUE(r.ok()) << r.errors();
  TestRouter bad("FromDPDKDevice(net_null0, VERBOSE much) -> ToDPDKDevice(net_null0, VERBOSE x);");
  EXPECT_NE(bad.errors().find("VERBOSE: expected an integer"), std::string::npos) << bad.errors();
}

TEST(FromDPDKDevice, AcceptsModeAndNuma) {
  TestRouter r("FromDPDKDevice(net_null0, MODE RSS, NUMA false) -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  TestRouter bad("FromDPDKDevice(net_null0, MODE vmdq, NUMA near) -> Discard;");
  EXPECT_NE(bad.errors().find("MODE: unknown value, expected one of: rss"), std::string::npos) << bad.errors();
  EXPECT_NE(bad.errors().find("NUMA: "), std::string::npos) << bad.errors();
}

TEST(FromDPDKDevice, AMillionPacketsLeaveThePoolWhole) {
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(
        "f :: FromDPDKDevice(net_null0,size=80, BURST 64) -> c :: Counter(COUNT_CALL 1000000 stop)"
        " -> t :: ToDPDKDevice(net_null0);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_GE(std::stoull(r.read("f.count")), 1000000u);
    EXPECT_EQ(r.read("t.count"), r.read("f.count"));
    EXPECT_EQ(r.read("t.dropped"), "0");
    EXPECT_EQ(r.read("f.bytes"), std::to_string(std::stoull(r.read("f.count")) * 80));
    EXPECT_EQ(r.read("f.hw_count"), r.read("f.count"));
    EXPECT_EQ(r.read("f.driver"), "net_null");
    EXPECT_EQ(PacketPool::instance().in_use(), before);
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(FromDPDKDevice, PacketsAreKilledAnywhere) {
  // Half are dropped by the router, half by the driver; some pass through packets made by the router.
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(
        "FromDPDKDevice(net_null0) -> s :: RoundRobinSwitch; s[0] -> Discard; s[1] -> tee :: Tee;"
        "tee[0] -> c :: Counter(COUNT_CALL 100000 stop) -> t :: ToDPDKDevice(net_null0); tee[1] -> Discard;"
        "InfiniteSource(LIMIT 50000, LENGTH 100) -> ToDPDKDevice(net_null0);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(FromDPDKDevice, FramesOfACaptureCrossByteByByte) {
  const std::vector<std::string> frames = many_frames(300);
  const TemporaryFile in(capture_of(frames), ".pcap"), out;
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r("f :: FromDPDKDevice(\"net_pcap0,rx_pcap=" + in.path() + ",tx_pcap=" + out.path() +
                 "\", TIMESTAMP true) -> c :: Counter(COUNT_CALL 300 stop) -> ToDPDKDevice(net_pcap0);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
  }
  EXPECT_EQ(frames_of(out.content()), frames);
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

/// What takes more than one buffer is put together, and comes in its place among the others.
TEST(FromDPDKDevice, FramesOfSeveralBuffersComeInTheirPlace) {
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(
        "i :: Idle -> t :: ToDPDKDevice(net_ring30, MTU 9000);"
        "FromDPDKDevice(net_ring30, BURST 128) -> Counter(COUNT_CALL 100 stop) -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    std::vector<std::string> frames = many_frames(100);
    for (const size_t i : {5u, 40u, 41u, 99u}) frames[i] += std::string(6000, static_cast<char>(i));
    for (const std::string& f : frames) r.push("t", f);
    r.run();
    const Capture& c = capture(r, "c");
    ASSERT_EQ(c.seen().size(), frames.size());
    for (size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(c.bytes(i), frames[i]) << i;
      EXPECT_EQ(c.seen()[i].packet->mac_header_offset(), 0) << i;
      EXPECT_EQ(c.seen()[i].packet->packet_type(), PacketType::kOtherHost) << i;
    }
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(FromDPDKDevice, PacketsCarryHeaderAndType) {
  const TemporaryFile in(
      capture_of({from_hex("020000000002 020000000001 88b5 0000"), from_hex("ffffffffffff 020000000001 88b5 0001"),
                  from_hex("01005e000001 020000000001 88b5 0002"), from_hex("020000000077 020000000001 88b5 0003")}),
      ".pcap");
  TestRouter r("f :: FromDPDKDevice(net_pcap0,rx_pcap=" + in.path() +
               ") -> n :: Counter(COUNT_CALL 4 stop) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 4u);
  // The driver's address begins with 02:70:63:61:70.
  EXPECT_EQ(seen[0].packet->packet_type(), PacketType::kOtherHost);
  EXPECT_EQ(seen[1].packet->packet_type(), PacketType::kBroadcast);
  EXPECT_EQ(seen[2].packet->packet_type(), PacketType::kMulticast);
  EXPECT_EQ(seen[3].packet->packet_type(), PacketType::kOtherHost);
  for (const auto& s : seen) {
    EXPECT_EQ(s.packet->mac_header_offset(), 0);
    EXPECT_FALSE(s.packet->has_network_header());
    EXPECT_EQ(s.packet->length(), 16u);
    EXPECT_GE(s.packet->headroom(), Packet::kDefaultHeadroom);
  }
}

TEST(FromDPDKDevice, NothingIsReceivedWhileInactive) {
  TestRouter r(
      "f :: FromDPDKDevice(net_null0, ACTIVE false) -> c :: Counter(COUNT_CALL 10 stop) -> Discard;"
      "InfiniteSource(LIMIT 1000, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("f.active"), "false");
  r.run();
  EXPECT_EQ(r.read("f.count"), "0");
  ASSERT_TRUE(r.write("f.active", "true"));
  EXPECT_EQ(r.read("f.active"), "true");
  r.run();
  EXPECT_NE(r.read("f.count"), "0");
}

TEST(FromDPDKDevice, WorkersReadQueuesOfTheirOwn) {
  TestRouter r("f :: FromDPDKDevice(net_null0, BURST 8) -> c :: Counter(COUNT_CALL 10000 stop) -> Discard;", 3);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("f.queues"), "0 0\n1 1\n2 2\n");
  r.run();
  const auto& f = dynamic_cast<const FromDPDKDevice&>(*r.router().find("f"));
  for (int w = 0; w < 3; ++w) EXPECT_GT(f.totals(DevicePort::Direction::kIn, w).packets, 0u) << w;
}

TEST(FromDPDKDevice, QueuesAreGivenOutInTurn) {
  TestRouter r(
      "a :: FromDPDKDevice(net_null0) -> Discard; b :: FromDPDKDevice(net_null0, 0, 2, THREADOFFSET 1) -> Discard;"
      "c :: FromDPDKDevice(net_null0) -> Discard;",
      2);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("b.queues"), "0 1\n1 0\n");
  EXPECT_EQ(r.read("a.queues"), "2 0\n");
  EXPECT_EQ(r.read("c.queues"), "3 0\n");
}

TEST(FromDPDKDevice, CountsStartAgain) {
  TestRouter r("f :: FromDPDKDevice(net_null0) -> c :: Counter(COUNT_CALL 1000 stop) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NE(r.read("f.count"), "0");
  ASSERT_TRUE(r.write("f.reset_counts"));
  EXPECT_EQ(r.read("f.count"), "0");
  EXPECT_EQ(r.read("f.bytes"), "0");
  EXPECT_EQ(dynamic_cast<const FromDPDKDevice&>(*r.router().find("f")).missed(), 0u);
}

TEST(FromDPDKDevice, HandlersTellAboutThePort) {
  TestRouter r("f :: FromDPDKDevice(net_null7) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("f.port"), "net_null7");
  EXPECT_EQ(r.read("f.device"), "net_null7");
  EXPECT_EQ(r.read("f.carrier"), "1");
  EXPECT_EQ(r.read("f.link"), "up");
  EXPECT_EQ(r.read("f.mtu"), "1500");
  EXPECT_GT(std::stoi(r.read("f.nb_rx_queues")), 1);
  EXPECT_NE(r.read("f.xstats").find("rx_good_packets: 0\n"), std::string::npos);
  EXPECT_EQ(r.read("f.xstats rx_good_packets"), "0");
  EXPECT_EQ(r.read("f.mac").size(), 17u);
  EXPECT_EQ(r.read("f.imissed"), "0");
  EXPECT_NE(r.router().find("f")->note().find("net_null7, driver net_null, 1 receive queue, "), std::string::npos);
}

TEST(FromDPDKDevice, MistakesAreNamed) {
  const auto errors = [](const std::string& text, int threads = 1) {
    TestRouter r(text, threads);
    EXPECT_FALSE(r.ok()) << text;
    return r.errors();
  };
  const auto expect = [](const std::string& all, const std::string& part) {
    EXPECT_NE(all.find(part), std::string::npos) << all;
  };
  expect(errors("FromDPDKDevice -> Discard;"), "PORT: required argument missing");
  expect(errors("FromDPDKDevice(63) -> Discard;"), "no DPDK port 63; ports: ");
  expect(errors("FromDPDKDevice(net_nothing0) -> Discard;"), "no DPDK port 'net_nothing0': ");
  expect(errors("FromDPDKDevice(0000:ff:1f.7) -> Discard;"), "no DPDK port '0000:ff:1f.7': ");
  expect(errors("FromDPDKDevice(net_null0, N_QUEUES 0) -> Discard;"), "N_QUEUES: at least 1 queue, or -1");
  expect(errors("FromDPDKDevice(net_null0, BURST 257) -> Discard;"), "BURST: out of range, bound 256");
  expect(errors("FromDPDKDevice(net_ring0, N_QUEUES 99) -> Discard;"),
         "99 receive queues are asked for, the port has at most");
  expect(errors("FromDPDKDevice(net_null0, 0) -> Discard; FromDPDKDevice(net_null0, 0) -> Discard;"),
         "net_null0: receive queue 0 is read twice");
  expect(errors("FromDPDKDevice(net_null0, CHECKSUM true) -> Discard;"), "the port cannot verify checksums (CHECKSUM)");
  expect(errors("FromDPDKDevice(net_null0, MTU 1400) -> Discard; Idle -> ToDPDKDevice(net_null0, MTU 1500);"),
         "net_null0: MTU is 1500 here and 1400 elsewhere");
  expect(errors("FromDPDKDevice(net_null0,size=64) -> Discard; Idle -> ToDPDKDevice(net_null0,size=80);"),
         "net_null0 is given with different arguments: 'net_null0,size=64' and 'net_null0,size=80'");
  expect(errors("FromDPDKDevice(net_null0, MINQUEUES 3, MAXQUEUES 2) -> Discard;"), "MINQUEUES is more than MAXQUEUES");
}

TEST(FromDPDKDevice, APortThatMayBeMissingIsWarnedOf) {
  TestRouter r(
      "f :: FromDPDKDevice(63, ALLOW_NONEXISTENT true) -> Discard;"
      "InfiniteSource(LIMIT 3, STOP true) -> t :: ToDPDKDevice(63, ALLOW_NONEXISTENT true);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find("warning: no DPDK port 63"), std::string::npos) << r.errors();
  r.run();
  EXPECT_EQ(r.read("t.dropped"), "3");
  EXPECT_EQ(r.read("f.hw_count"), "0");
  EXPECT_EQ(r.read("f.mac"), "");
}

TEST(FromDPDKDevice, ARunningPortIsShared) {
  TestRouter r("f :: FromDPDKDevice(net_null0,size=99) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Errors errors;
  const std::shared_ptr<DpdkPort> port = DpdkPort::open("net_null0", errors);
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(DpdkPort::open("net_null0,size=99", errors), port);
  EXPECT_TRUE(port->running());
  PortSettings same = port->settings();
  EXPECT_TRUE(port->start(same, nullptr, errors)) << errors.str();
  EXPECT_EQ(errors.str(), "");

  EXPECT_EQ(DpdkPort::open("net_null0,size=98", errors), nullptr);
  EXPECT_EQ(errors.str(), "net_null0 runs with other arguments: net_null0,size=99\n");
  PortSettings other = same;
  other.receive_queues = 2;
  Errors differences;
  EXPECT_FALSE(port->start(other, nullptr, differences));
  EXPECT_EQ(differences.str(),
            "net_null0 runs with 1 receive queue(s), this configuration asks for 2: stop the router to change that\n");
}

}  // namespace
}  // namespace headrace::testing
