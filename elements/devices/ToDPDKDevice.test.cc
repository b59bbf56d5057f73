#include "elements/devices/ToDPDKDevice.hh"

#include <atomic>
#include <thread>

#include "headrace/packet_pool.hh"
#include "src/io/dpdk/eal.hh"
#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

// Ethernet, IPv4 10.0.0.9 to 20.0.0.1 with a wrong header checksum, UDP with a wrong checksum, 4 bytes of payload.
constexpr const char* kWrong =
    "020000000001 020000000101 0800 45000020 00000000 40111234 0a000009 14000001 03e807d0 000c4321 61626364";
constexpr const char* kRightIp =
    "020000000001 020000000101 0800 45000020 00000000 40115cc4 0a000009 14000001 03e807d0 000c4321 61626364";

TEST(ToDPDKDevice, WhatIsSentToARingComesBack) {
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(
        "TrafficSource(imix, LIMIT 5000, BURST 50) -> t :: ToDPDKDevice(net_ring10);"
        "f :: FromDPDKDevice(net_ring10) -> c :: Counter(COUNT_CALL 5000 stop) -> s :: TrafficSink(CHECK true, TTL "
        "64);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(r.read("t.count"), "5000");
    EXPECT_EQ(r.read("s.count"), "5000");
    EXPECT_EQ(r.read("s.bad"), "0") << r.read("s.bad_details");
    EXPECT_EQ(r.read("s.byte_count"), r.read("t.bytes"));
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(ToDPDKDevice, NothingIsCopied) {
  TestRouter r(
      "i :: Idle -> t :: ToDPDKDevice(net_ring11); FromDPDKDevice(net_ring11) -> Counter(COUNT_CALL 1 stop) -> c :: "
      "Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("................................", 32);
  r.push("t", p);
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c").seen()[0].packet, p);
}

TEST(ToDPDKDevice, PacketsOfABurstMayBeginAnywhere) {
  TestRouter r(
      "i :: Idle -> t :: ToDPDKDevice(net_ring33, MTU 9000); FromDPDKDevice(net_ring33) -> Counter(COUNT_CALL 40 stop) "
      "-> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  std::vector<std::string> sent;
  for (uint32_t i = 0; i < 40; ++i) {
    // Those from 32 on, which are looked at together, have one beginning, and a large one is among the others.
    sent.push_back(from_hex(i % 3 == 0   ? "ffffffffffff"
                            : i % 3 == 1 ? "01005e000001"
                                         : "020000000077") +
                   std::string(i == 5 ? 6000 : 20 + i, static_cast<char>(i)));
    const std::string& bytes = sent.back();
    r.push("t", Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()), i < 32 ? 64 + i % 2 * 100 : 100));
  }
  r.run();
  const Capture& c = capture(r, "c");
  ASSERT_EQ(c.seen().size(), sent.size());
  constexpr PacketType kTypes[] = {PacketType::kBroadcast, PacketType::kMulticast, PacketType::kOtherHost};
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(c.bytes(i), sent[i]) << i;
    const Packet& p = *c.seen()[i].packet;
    EXPECT_EQ(p.packet_type(), kTypes[i % 3]) << i;
    EXPECT_EQ(p.mac_header_offset(), 0) << i;
    EXPECT_FALSE(p.has_network_header());
    EXPECT_EQ(p.headroom(), sent[i].size() > 3000 ? 128u : i < 32 ? 64 + i % 2 * 100 : 100) << i;
  }
}

TEST(ToDPDKDevice, LargePacketsTakeSeveralBuffers) {
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(
        "i :: Idle -> t :: ToDPDKDevice(net_ring12, MTU 9000);"
        "FromDPDKDevice(net_ring12) -> Counter(COUNT_CALL 3 stop) -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    std::string large, largest(9014, 'x');
    for (int i = 0; i < 8000; ++i) large += static_cast<char>(i % 251);
    r.push("t", large);
    r.push("t", std::string(9100, 'y'));  // longer than the MTU
    r.push("t", "short but long enough");
    r.push("t", largest);
    r.run();
    const Capture& c = capture(r, "c");
    ASSERT_EQ(c.seen().size(), 3u);
    EXPECT_EQ(c.bytes(0), large);
    EXPECT_EQ(c.bytes(1), "short but long enough");
    EXPECT_EQ(c.bytes(2), largest);
    EXPECT_EQ(r.read("t.dropped"), "1");
    EXPECT_EQ(r.read("t.drop_reasons"), "1\ttoo long or too short\n");
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(ToDPDKDevice, WhatFindsNoRoomWaitsThenIsDropped) {
  const uint32_t before = PacketPool::instance().in_use();
  {
    // The ring holds 1023 packets; nobody takes them out.
    TestRouter r(
        "InfiniteSource(LIMIT 2000, BURST 100, STOP true, LENGTH 60) -> t :: ToDPDKDevice(net_ring13, IQUEUE 512, "
        "BLOCKING false);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(r.read("t.hw_count"), "1023");
    const uint64_t sent = std::stoull(r.read("t.count")), dropped = std::stoull(r.read("t.dropped"));
    EXPECT_EQ(sent + dropped, 2000u);
    EXPECT_GE(sent, 1023u + 512u);
    EXPECT_LE(sent, 1023u + 512u + 64u);
    EXPECT_EQ(r.read("t.drop_reasons"), std::to_string(dropped) + "\tno room\n");
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(ToDPDKDevice, BlockingWaitsForRoomButNotForEver) {
  TestRouter r(
      "InfiniteSource(LIMIT 3000, BURST 100, STOP true, LENGTH 60) -> t :: ToDPDKDevice(net_ring14, IQUEUE 64);");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto begin = std::chrono::steady_clock::now();
  r.run();
  const auto took = std::chrono::steady_clock::now() - begin;
  // Once it has seen that the port takes nothing it does not wait again.
  EXPECT_GE(took, std::chrono::milliseconds(10));
  EXPECT_LT(took, std::chrono::seconds(5));
  EXPECT_GT(std::stoull(r.read("t.dropped")), 1000u);
}

TEST(ToDPDKDevice, WaitingPacketsAreSentInOrder) {
  const TemporaryFile out;
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(
        "s :: TrafficSource(LIMIT 20000, BURST 200) -> t :: ToDPDKDevice(net_ring15, IQUEUE 32768, BLOCKING false);"
        "f :: FromDPDKDevice(net_ring15, BURST 32) -> c :: Counter(COUNT_CALL 20000 stop)"
        " -> k :: TrafficSink(LATENCY true);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(r.read("k.count"), "20000");
    EXPECT_EQ(r.read("k.reordered"), "0");
    EXPECT_EQ(r.read("t.dropped"), "0");
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(ToDPDKDevice, PullsAsMuchAsThePortTakes) {
  TestRouter r(
      "InfiniteSource(LIMIT 3000, LENGTH 60, STOP true) -> q :: Queue(5000) -> t :: ToDPDKDevice(net_ring16, IQUEUE "
      "64);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("t.dropped"), "0");
  const int sent = std::stoi(r.read("t.count"));
  EXPECT_GE(sent, 1023);
  EXPECT_EQ(std::stoi(r.read("q.length")), 3000 - sent);
}

TEST(ToDPDKDevice, PacketsWaitForABurst) {
  TestRouter r("i :: Idle -> t :: ToDPDKDevice(net_ring17, BURST 4, TIMEOUT 20); Script(wait 30ms, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 6; ++i) r.push("t", "................................");
  EXPECT_EQ(r.read("t.hw_count"), "4");
  EXPECT_EQ(r.router().find("t")->held_packets(), 2u);
  r.run();
  EXPECT_EQ(r.read("t.hw_count"), "6");
  EXPECT_EQ(r.router().find("t")->held_packets(), 0u);
}

TEST(ToDPDKDevice, ChecksumsAreSetWherePortsCannot) {
  TestRouter r(
      "i :: Idle -> t :: ToDPDKDevice(net_ring18, IPCO true); i2 :: Idle -> t;"
      "FromDPDKDevice(net_ring18) -> Counter(COUNT_CALL 2 stop) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", from_hex(kWrong));
  r.push("t", from_hex("020000000001 020000000101 0806 0000000000000000"));
  r.run();
  EXPECT_EQ(captured(r, "c"), plain_hex({kRightIp, "020000000001 020000000101 0806 0000000000000000"}));
}

TEST(ToDPDKDevice, TransportChecksumsToo) {
  TestRouter r(
      "i :: Idle -> t :: ToDPDKDevice(net_ring19, TCO true);"
      "FromDPDKDevice(net_ring19) -> Counter(COUNT_CALL 5 stop) -> n :: Null -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", from_hex(kWrong));
  // The same behind a VLAN tag, as a fragment, without a UDP checksum, and cut short: only the first gets one.
  r.push("t", from_hex("020000000001 020000000101 8100 0007 0800 45000020 00000000 40111234 0a000009 14000001 03e807d0 "
                       "000c4321 61626364"));
  r.push("t", from_hex("020000000001 020000000101 0800 45000020 00002000 40111234 0a000009 14000001 03e807d0 000c4321 "
                       "61626364"));
  r.push("t", from_hex("020000000001 020000000101 0800 45000020 00000000 40111234 0a000009 14000001 03e807d0 000c0000 "
                       "61626364"));
  r.push("t", from_hex("020000000001 020000000101 0800 45000020 00000000 40111234 0a000009 14000001 03e807d0"));
  r.run();
  EXPECT_EQ(
      captured(r, "c"),
      plain_hex(
          {"020000000001 020000000101 0800 45000020 00000000 40115cc4 0a000009 14000001 03e807d0 000c114e 61626364",
           "020000000001 020000000101 8100 0007 0800 45000020 00000000 40115cc4 0a000009 14000001 03e807d0 000c114e "
           "61626364",
           "020000000001 020000000101 0800 45000020 00002000 40113cc4 0a000009 14000001 03e807d0 000c4321 61626364",
           "020000000001 020000000101 0800 45000020 00000000 40115cc4 0a000009 14000001 03e807d0 000c0000 61626364",
           "020000000001 020000000101 0800 45000020 00000000 40111234 0a000009 14000001 03e807d0"}));
}

TEST(ToDPDKDevice, ChecksumsBehindTagsAndExtensionHeaders) {
  const std::string ether = "020000000001 020000000101 ";
  const std::string addresses = " 20010db8000000000000000000000001 20010db8000000000000000000000002 ";
  const std::string other = " 20010db8000000000000000000000009 ";
  const std::string ports = " 03e807d0 ", udp = ports + "000c", data = " 61626364";
  const auto tagged = [&](const std::string& ip_checksum, const std::string& checksum) {
    return ether + "9100 0007 8100 0008 0800 45000020 00000000 4011" + ip_checksum + " 0a000009 14000001" + udp +
           checksum + data;
  };
  const auto hop_by_hop = [&](const std::string& checksum) {
    return ether + "86dd 60000000 0014 0040" + addresses + "11000104 00000000" + udp + checksum + data;
  };
  const auto routed = [&](const std::string& left, const std::string& checksum) {
    return ether + "86dd 60000000 0024 2b40" + addresses + "110204" + left + "00000000" + other + udp + checksum + data;
  };
  const auto two_headers = [&](const std::string& checksum) {
    return ether + "86dd 60000000 0027 3c40" + addresses + "00000104 00000000 06000104 00000000" + ports +
           "00000000 00000000 50022000" + checksum + "0000 616263";
  };
  const auto fragment = [&](const std::string& checksum) {
    return ether + "86dd 60000000 0014 2c40" + addresses + "11000001 00000001" + udp + checksum + data;
  };
  // A packet whose routing header lists another destination, and a fragment, leave as they came.
  const std::vector<std::string> sent = {tagged("1234", "4321"), hop_by_hop("4321"),  routed("00", "4321"),
                                         routed("01", "4321"),   two_headers("4321"), fragment("4321")};
  const std::vector<std::string> right = {tagged("5cc4", "114e"), hop_by_hop("d3e2"),  routed("00", "d3e2"),
                                          routed("01", "4321"),   two_headers("6450"), fragment("4321")};
  TestRouter r(
      "i :: Idle -> t :: ToDPDKDevice(net_ring20, TCO true);"
      "FromDPDKDevice(net_ring20) -> Counter(COUNT_CALL 6 stop) -> n :: Null -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const std::string& frame : sent) r.push("t", from_hex(frame));
  r.run();
  const std::vector<std::string> came = captured(r, "c");
  ASSERT_EQ(came.size(), right.size());
  for (size_t i = 0; i < right.size(); ++i) EXPECT_EQ(came[i], plain_hex(right[i])) << i;
}

/// One queue, four senders, one receiver. With an owner, the first sender is that, and the others are guests.
void share_a_queue(const char* device, bool owned) {
  using Sender = io::dpdk::Port::Sender;
  constexpr int kSenders = 4;
  constexpr int kEach = 20000;
  Errors errors;
  ASSERT_TRUE(io::dpdk::start_eal(errors)) << errors.str();
  const uint32_t before = PacketPool::instance().in_use();
  {
    const std::shared_ptr<io::dpdk::Port> port = io::dpdk::Port::open(device, errors);
    ASSERT_NE(port, nullptr) << errors.str();
    ASSERT_TRUE(port->start({}, nullptr, errors)) << errors.str();
    std::vector<std::thread> senders;
    std::atomic<bool> arrived{false};
    for (int s = 0; s < kSenders; ++s)
      senders.emplace_back([&, s] {
        const Sender self = !owned ? Sender::kAny : s == 0 ? Sender::kOwner : Sender::kGuest;
        detail::t_thread_id = 1 + s;  // each its own cache of buffers
        io::dpdk::attach_thread();
        for (uint32_t i = 0; i < kEach;) {
          const uint32_t words[8] = {0, 0, 0, static_cast<uint32_t>(s), i};
          Packet* p = Packet::make(words, sizeof words);
          if (!p) continue;
          while (port->transmit(0, &p, 1, self).left > 0) std::this_thread::yield();
          ++i;
        }
        while (self == Sender::kOwner && !arrived.load()) port->flush(0, self);
      });
    uint32_t next[kSenders] = {}, wrong = 0, got = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (got < kSenders * kEach && std::chrono::steady_clock::now() < end) {
      Packet* packets[32];
      if (!owned) port->flush(0);
      const auto r = port->receive(0, packets, 32, nullptr);
      for (int i = 0; i < r.packets; ++i) {
        uint32_t words[8];
        std::memcpy(words, packets[i]->data(), sizeof words);
        wrong += words[3] >= kSenders || next[words[3]]++ != words[4];
        packets[i]->kill();
      }
      got += static_cast<uint32_t>(r.packets);
    }
    arrived = true;
    for (std::thread& t : senders) t.join();
    EXPECT_EQ(got, static_cast<uint32_t>(kSenders * kEach));
    EXPECT_EQ(wrong, 0u);
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(ToDPDKDevice, ThreadsShareAQueueWithoutLoss) { share_a_queue("net_ring9", false); }

TEST(ToDPDKDevice, GuestsLeaveTheirPacketsToTheOwnerOfAQueue) { share_a_queue("net_ring22", true); }

TEST(ToDPDKDevice, MistakesAreNamed) {
  const auto errors = [](const std::string& text) {
    TestRouter r(text);
    EXPECT_FALSE(r.ok()) << text;
    return r.errors();
  };
  const auto expect = [](const std::string& all, const std::string& part) {
    EXPECT_NE(all.find(part), std::string::npos) << all;
  };
  expect(errors("Idle -> ToDPDKDevice;"), "PORT: required argument missing");
  expect(errors("Idle -> ToDPDKDevice(63);"), "no DPDK port 63; ports: ");
  expect(errors("Idle -> ToDPDKDevice(net_null0, IQUEUE -1);"), "IQUEUE: ");
  expect(errors("Idle -> ToDPDKDevice(net_null0, TIMEOUT -2);"), "TIMEOUT: out of range, bound -1");
  expect(errors("Idle -> ToDPDKDevice(net_null0, COLOR 2);"), "COLOR");
}

}  // namespace
}  // namespace headrace::testing
