#include "elements/ethernet/ARPQuerier.hh"

#include <thread>

#include "runtime/runtime.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kQuery = "ffffffffffff0000c04f71ef 0806 0001080006040001 0000c04f71ef121a0701 000000000000121a071e";
const std::string kAnswer = "0000c04f71ef000102030405 0806 0001080006040002 000102030405121a071e 0000c04f71ef121a0701";
const std::string kHeader = "0001020304050000c04f71ef 0800";

std::string graph(const std::string& more = "") {
  return "Idle -> a :: ARPQuerier(18.26.7.1/24, 00:00:c0:4f:71:ef" + more +
         ") -> c :: Capture; Idle -> [1]a; a[1] -> q :: Capture;";
}

/// Sends one byte to a host.
void send(TestRouter& r, IpAddress to, char what, const std::string& element = "a") {
  Packet* p = Packet::make(&what, 1);
  to.copy_to(p->anno() + anno_offset::kDstIp);
  r.push(element, p);
}

const IpAddress kHost = IpAddress::from_octets(18, 26, 7, 30);

IpAddress host(int i) { return IpAddress::from_octets(18, 26, 7, static_cast<uint8_t>(i)); }

/// A reply of host `i`, whose Ethernet address ends with `i`.
std::string reply_of(int i) {
  std::string reply = from_hex(kAnswer);
  reply[31] = reply[27] = static_cast<char>(i);
  return reply;
}

void wait_ms(int64_t ms) { clock::jump_steady(clock::steady() + Timestamp::from_ms(ms)); }

TEST(ARPQuerier, PacketsWaitForTheReply) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, kHost, 'a');
  send(r, kHost, 'b');
  EXPECT_EQ(captured(r, "q"), plain_hex({kQuery}));
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("a.length"), "2");
  r.push("a", from_hex(kAnswer), 1);
  EXPECT_EQ(captured(r, "c"), plain_hex({kHeader + "61", kHeader + "62"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->mac_header_offset(), 0);
  send(r, kHost, 'c');
  EXPECT_EQ(captured(r, "c").back(), plain_hex(kHeader + "63"));
  EXPECT_EQ(captured(r, "q").size(), 1u);
  EXPECT_EQ(r.read("a.length") + r.read("a.count") + r.read("a.queries") + r.read("a.responses"), "0111");
  EXPECT_EQ(r.read("a.table").substr(0, 32), "18.26.7.30 1 00-01-02-03-04-05 0");
  EXPECT_EQ(r.read("a.stats"), "0 packets killed\n1 ARP queries sent\n");
}

TEST(ARPQuerier, OneOutputForBoth) {
  TestRouter r("Idle -> a :: ARPQuerier(18.26.7.1, 00:00:c0:4f:71:ef) -> c :: Capture; Idle -> [1]a;");
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, kHost, 'a');
  EXPECT_EQ(captured(r, "c"), plain_hex({kQuery}));
}

TEST(ARPQuerier, RequestsCarryAnnotations) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = Packet::make("a", 1);
  kHost.copy_to(p->anno() + anno_offset::kDstIp);
  p->set_anno_u16(anno_offset::kVlanTci, 5);
  p->set_timestamp(Timestamp::from_sec(77));
  r.push("a", p);
  const Packet& query = *capture(r, "q").seen()[0].packet;
  EXPECT_EQ(query.anno_u16(anno_offset::kVlanTci), 5);
  EXPECT_EQ(query.timestamp(), Timestamp::from_sec(77));
  EXPECT_EQ(query.network_header_offset(), 14);
}

TEST(ARPQuerier, BroadcastMulticastAndZero) {
  TestRouter r(graph() + "Idle -> b :: ARPQuerier(1.0.0.1, 1:1:1:1:1:1, BROADCAST 18.26.7.30) -> [1]c; Idle -> [1]b;");
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, IpAddress::from_octets(255, 255, 255, 255), 'a');
  send(r, IpAddress::from_octets(18, 26, 7, 255), 'b');
  send(r, IpAddress::from_octets(239, 129, 2, 3), 'c');
  send(r, kHost, 'd', "b");
  EXPECT_EQ(captured(r, "c"), plain_hex({"ffffffffffff0000c04f71ef080061", "ffffffffffff0000c04f71ef080062",
                                         "01005e0102030000c04f71ef080063", "ffffffffffff010101010101080064"}));
  ::testing::internal::CaptureStderr();
  send(r, IpAddress(), 'd');
  send(r, IpAddress(), 'd');
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "a :: ARPQuerier: would query for 0.0.0.0; missing dest IP addr annotation?\n");
  EXPECT_EQ(r.read("a.drops"), "2");
  EXPECT_EQ(r.read("a.drop_reasons"), "2\tdestination 0.0.0.0\n");
  EXPECT_EQ(r.read("a.broadcast") + " " + r.read("b.broadcast"), "18.26.7.255 18.26.7.30");
}

TEST(ARPQuerier, OnlyGoodRepliesCount) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, kHost, 'a');
  for (const size_t at : {12, 15, 17, 18, 19, 21, 22}) {  // the last one makes the sender a group
    std::string bad = from_hex(kAnswer);
    bad[at] = static_cast<char>(bad[at] + 1);
    r.push("a", bad, 1);
  }
  r.push("a", from_hex(kAnswer).substr(0, 41), 1);
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("a.responses"), "7");
  EXPECT_EQ(r.read("a.length"), "1");
}

TEST(ARPQuerier, FalseAddressesAreNotBelieved) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  std::vector<std::string> claims = {"121a0701", "121a07ff", "ffffffff", "e0000005", "00000000"};
  for (const std::string& claim : claims) {
    std::string reply = from_hex(kAnswer);
    reply.replace(28, 4, from_hex(claim));
    r.push("a", reply, 1);
  }
  std::string group = from_hex(kAnswer);
  group[22] = 1;
  r.push("a", group, 1);
  EXPECT_EQ(r.read("a.count"), "0");
  EXPECT_EQ(r.read("a.drop_reasons"), "6\tARP reply with a false address\n");
  send(r, IpAddress::from_octets(18, 26, 7, 255), 'b');
  EXPECT_EQ(captured(r, "c"), plain_hex({"ffffffffffff0000c04f71ef080062"}));
}

TEST(ARPQuerier, HostsThatDoNotAnswerAreUnreachable) {
  TestRouter r(graph(", WAIT 2.2s") + "a[2] -> u :: Capture; Script(wait 4.1s, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, kHost, 'a');
  send(r, kHost, 'b');
  EXPECT_EQ(r.router().find("a")->held_packets(), 2u);
  r.run();
  // Asked for three times, a second apart.
  EXPECT_EQ(captured(r, "q"), plain_hex({kQuery, kQuery, kQuery}));
  EXPECT_EQ(captured(r, "u"), (std::vector<std::string>{"61", "62"})) << "as they came, without a header";
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("a.length") + r.read("a.count"), "01");
  send(r, kHost, 'c');
  EXPECT_EQ(captured(r, "q").size(), 4u);
  r.push("a", from_hex(kAnswer), 1);
  EXPECT_EQ(captured(r, "c"), plain_hex({kHeader + "63"}));
  EXPECT_EQ(r.read("a.drop_reasons"), "");
}

TEST(ARPQuerier, AnotherTakesOver) {
  const std::string next = "Idle -> b :: ARPQuerier(18.26.7.1/24, 00:00:c0:4f:71:ef) -> d :: Capture; Idle -> [1]b;";
  const std::string other = "Idle -> o :: ARPQuerier(18.26.7.2/24, 00:00:c0:4f:71:ef) -> d; Idle -> [1]o;";
  TestRouter r(graph() + next + other);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", reply_of(31), 1);
  send(r, kHost, 'a');
  Errors errors;
  const auto find = [&](const char* name) { return r.router().find(name); };
  find("o")->take_state(*find("a"), errors);
  EXPECT_EQ(r.read("o.count") + r.read("a.count"), "02") << "another address: what is known may not hold";
  find("b")->take_state(*find("a"), errors);
  EXPECT_EQ(r.read("b.count") + r.read("a.count"), "20");
  EXPECT_EQ(find("b")->held_packets() * 10 + find("a")->held_packets(), 10u);
  send(r, host(31), 'x', "b");
  r.push("b", from_hex(kAnswer), 1);
  EXPECT_EQ(captured(r, "d").size(), 2u);
}

TEST(ARPQuerier, ManyNeighborsAndNewAddressesForThem) {
  // More than there are places for headers; each one's is right whoever was there before, also after a change.
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto address = [](int i, int version) {
    return EtherAddress(
        {2, static_cast<uint8_t>(version), 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)});
  };
  constexpr int kHosts = 600;
  const auto ip = [](int i) {
    return IpAddress::from_octets(18, 26, static_cast<uint8_t>(8 + i / 256), static_cast<uint8_t>(i));
  };
  for (int i = 0; i < kHosts; ++i) ASSERT_TRUE(r.write("a.insert", ip(i).unparse() + " " + address(i, 0).unparse()));
  std::vector<std::string> expected;
  const auto send_to = [&](int i, int version) {
    send(r, ip(i), 'x');
    const EtherAddress to = address(i, version);
    expected.push_back(to_hex({reinterpret_cast<const char*>(to.data()), 6}) + plain_hex("0000c04f71ef 0800 78"));
  };
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kHosts; ++i) send_to(i, 0);
  for (int i = 0; i < kHosts; i += 7) {
    ASSERT_TRUE(r.write("a.insert", ip(i).unparse() + " " + address(i, 1).unparse()));
    send_to(i, 1);
    send_to(i + 1 < kHosts ? i + 1 : 1, 0);
  }
  EXPECT_EQ(captured(r, "c"), expected);
  ASSERT_TRUE(r.write("a.delete", ip(7).unparse()));
  send(r, ip(7), 'x');
  EXPECT_EQ(captured(r, "c").size(), expected.size());
  EXPECT_EQ(captured(r, "q").size(), 1u);
}

TEST(ARPQuerier, ASharedTableThatIsMadeStricterIsObeyedAtOnce) {
  TestRouter r("t :: ARPTable(TIMEOUT 100s);" + graph(", TABLE t, POLL_TIMEOUT 0"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", from_hex(kAnswer), 1);
  wait_ms(5000);
  send(r, kHost, 'a');
  EXPECT_EQ(captured(r, "c").size(), 1u);
  ASSERT_TRUE(r.write("t.config", "TIMEOUT 2s"));
  send(r, kHost, 'b');
  EXPECT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(captured(r, "q").size(), 1u);
}

TEST(ArpTable, AnAnswerHoldsForItsGeneration) {
  ArpTable table;
  table.set_limits({.entries = 40, .timeout = Interval::from_ms(2)});
  constexpr int kHosts = 64;
  constexpr int64_t kPoll = 1'000'000;
  struct Kept {
    uint32_t generation = 0;
    ArpTable::Answer answer;
  } kept[kHosts];
  uint32_t seed = 5;
  int64_t now = 1;
  int used = 0;
  for (int n = 0; n < 200'000; ++n) {
    seed = seed * 1664525 + 1013904223;
    const int i = static_cast<int>(seed >> 16) % kHosts;
    const IpAddress ip = IpAddress::from_host_order(0x0a000000u + static_cast<uint32_t>(i));
    now += seed >> 8 & 0x3fff;
    if ((seed >> 24) % 16 == 0) {
      table.insert(ip, EtherAddress({2, 0, 0, 0, static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n)}), now);
    } else if ((seed >> 24) % 16 == 1 && n % 32 == 0) {
      table.expire(now);
    } else {
      Kept& k = kept[i];
      const uint32_t generation = table.generation();
      const bool holds = k.generation == generation && now < k.answer.good_until;
      const ArpTable::Answer answer = table.lookup(ip, now, kPoll);
      if (holds) {
        ++used;
        ASSERT_TRUE(answer.known && !answer.poll && answer.ether == k.answer.ether) << n;
      }
      k = {answer.known ? generation : 0, answer};
    }
  }
  EXPECT_GT(used, 1000);
}

TEST(ArpTable, ReadersSeeWholeAddresses) {
  // Writers come and go while others look up without a lock: who is known has the address that belongs to it.
  ArpTable table;
  table.set_limits({.entries = 700, .timeout = Interval::from_sec(0)});
  constexpr int kHosts = 3000;
  const auto address = [](int i) { return IpAddress::from_host_order(0x0a000000u + static_cast<uint32_t>(i)); };
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
      const ArpTable::Answer answer = table.lookup(address(i), 1, 0);
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
  // And what is known in the end is what the list says.
  const std::string list = table.unparse(1);
  int known = 0;
  for (int i = 0; i < kHosts; ++i) {
    const bool is_known = table.lookup(address(i), 1, 0).known;
    known += is_known;
    EXPECT_EQ(is_known, list.find(address(i).unparse() + " 1 ") != std::string::npos) << i;
  }
  EXPECT_GT(known, 300);
}

TEST(ARPQuerier, AsksTenTimesASecondThenSlower) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int ms = 0; ms < 1000; ++ms) {
    send(r, kHost, 'a');
    wait_ms(1);
  }
  EXPECT_EQ(r.read("a.queries"), "10");
  for (int ms = 0; ms < 4500; ++ms) {
    send(r, kHost, 'a');
    wait_ms(1);
  }
  EXPECT_EQ(r.read("a.queries"), "12");
}

TEST(ARPQuerier, PollsBeforeAnEntryExpires) {
  for (const bool broadcast : {false, true}) {
    TestRouter r(
        graph(std::string(", TIMEOUT 0.1s, POLL_TIMEOUT 0.08s, BROADCAST_POLL ") + (broadcast ? "true" : "false")));
    ASSERT_TRUE(r.ok()) << r.errors();
    r.push("a", from_hex(kAnswer), 1);
    wait_ms(50);
    send(r, kHost, 'a');
    EXPECT_EQ(captured(r, "q").size(), 0u);
    wait_ms(31);
    send(r, kHost, 'b');
    ASSERT_EQ(captured(r, "q").size(), 1u);
    EXPECT_EQ(captured(r, "q")[0].substr(0, 12), broadcast ? "ffffffffffff" : "000102030405");
    EXPECT_EQ(captured(r, "q")[0].substr(64, 20), "000000000000121a071e");
    send(r, kHost, 'c');
    EXPECT_EQ(captured(r, "q").size(), 1u);
    EXPECT_EQ(captured(r, "c").size(), 3u);
    wait_ms(20);  // 101 ms after the reply
    send(r, kHost, 'd');
    EXPECT_EQ(captured(r, "c").size(), 3u);
    EXPECT_EQ(r.read("a.length"), "1");
    EXPECT_EQ(r.read("a.table").substr(0, 12), "18.26.7.30 0");
  }
}

TEST(ARPQuerier, PollsThatNobodyAnswersGoToAll) {
  TestRouter r(graph(", POLL_TIMEOUT 1s"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto polls = [&](int n) {
    std::string to;
    for (int i = 0; i < n; ++i) {
      const size_t before = captured(r, "q").size();
      send(r, kHost, 'x');
      if (captured(r, "q").size() > before) to += captured(r, "q").back().substr(0, 12) == "ffffffffffff" ? 'A' : '1';
      wait_ms(101);
    }
    return to;
  };
  r.push("a", from_hex(kAnswer), 1);
  wait_ms(1001);
  EXPECT_EQ(polls(6), "111AAA");
  r.push("a", from_hex(kAnswer), 1);
  wait_ms(1001);
  EXPECT_EQ(polls(2), "11");
  EXPECT_EQ(captured(r, "c").size(), 8u) << "packets go on meanwhile";
}

TEST(ARPQuerier, RepliesChangeWhatIsRemembered) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", from_hex(kAnswer), 1);
  send(r, kHost, 'a');
  std::string other = from_hex(kAnswer);
  other[27] = 9;
  r.push("a", other, 1);
  send(r, kHost, 'b');
  EXPECT_EQ(captured(r, "c"), plain_hex({kHeader + "61", "0001020304090000c04f71ef 0800 62"}));
}

TEST(ARPQuerier, InsertDeleteAndClear) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("a.insert", "18.26.7.30 0:1:2:3:4:5"));
  send(r, kHost, 'a');
  EXPECT_EQ(captured(r, "c"), plain_hex({kHeader + "61"}));
  ASSERT_TRUE(r.write("a.delete", "18.26.7.30"));
  EXPECT_EQ(r.read("a.table").substr(0, 30), "18.26.7.30 0 FF-FF-FF-FF-FF-FF");
  send(r, kHost, 'b');
  EXPECT_EQ(captured(r, "q").size(), 1u);
  EXPECT_EQ(captured(r, "c").size(), 1u);
  ASSERT_TRUE(r.write("a.clear"));
  EXPECT_EQ(r.read("a.count") + r.read("a.length") + r.read("a.queries") + r.read("a.table"), "000");
  EXPECT_EQ(r.read("a.stats"), "1 packets killed\n0 ARP queries sent\n");
  EXPECT_EQ(r.read("a.drop_reasons"), "1\tno ARP reply in time\n");
  EXPECT_FALSE(r.write("a.insert", "18.26.7.30"));
}

TEST(ARPQuerier, ChangingAddressesWhileItRuns) {
  TestRouter r(graph());
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", from_hex(kAnswer), 1);
  send(r, kHost, 'a');
  ASSERT_TRUE(r.write("a.ipaddr", "18.26.7.2"));
  send(r, host(31), 'b');
  EXPECT_EQ(captured(r, "q")[0].substr(56, 8), "121a0702");
  EXPECT_EQ(r.read("a.ipaddr"), "18.26.7.2");
  ASSERT_TRUE(r.write("a.config", "18.26.7.1, 1:1:1:1:1:1")) << r.errors();
  EXPECT_EQ(r.read("a.count"), "0");
  r.push("a", from_hex(kAnswer), 1);
  send(r, kHost, 'c');
  EXPECT_EQ(captured(r, "c").back(), plain_hex("000102030405 010101010101 0800 63"));
}

TEST(ARPQuerier, CapacityDropsWhatWaitsLongest) {
  TestRouter r(graph(", CAPACITY 10"));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 100; ++i) {
    send(r, host(i % 20 + 1), static_cast<char>(i));
    wait_ms(1);
  }
  // Room for the eleventh is made by dropping six, and then for each sixth.
  EXPECT_EQ(r.read("a.stats").substr(0, 17), "90 packets killed");
  EXPECT_EQ(r.read("a.length"), "10");
  EXPECT_EQ(r.read("a.count"), "20");
}

TEST(ARPQuerier, OldestEntriesLosePacketsFirst) {
  TestRouter r(graph(", CAPACITY 4"));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 1; i <= 5; ++i) {
    send(r, host(i), static_cast<char>('0' + i));
    wait_ms(1);
  }
  for (int i = 5; i >= 1; --i) r.push("a", reply_of(i), 1);
  std::string sent;
  for (const auto& s : capture(r, "c").seen()) sent += static_cast<char>(s.packet->data()[14]);
  EXPECT_EQ(sent, "54");
}

TEST(ARPQuerier, EntryLimits) {
  TestRouter r(graph(", ENTRY_CAPACITY 2, ENTRY_PACKET_CAPACITY 3"));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 1; i <= 3; ++i) {
    send(r, host(i), 'x');
    wait_ms(1);
  }
  EXPECT_EQ(r.read("a.count") + r.read("a.length"), "22");
  const std::string table = r.read("a.table");
  EXPECT_EQ(table.substr(0, 11), "18.26.7.2 0");
  EXPECT_NE(table.find("\n18.26.7.3 0"), std::string::npos);
  for (int i = 0; i < 9; ++i) send(r, host(3), 'x');
  EXPECT_EQ(r.read("a.length"), "4");
  EXPECT_EQ(r.read("a.stats").substr(0, 16), "8 packets killed");
}

TEST(ARPQuerier, UnansweredEntriesStayWhileTheyAreWanted) {
  TestRouter r(graph(", TIMEOUT 0.1s, CAPACITY 1, ENTRY_CAPACITY 1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  int last = 0;
  for (const auto& [at, to] : {std::pair{0, 1}, {10, 2}, {15, 3}, {120, 1}, {221, 1}}) {
    wait_ms(at - last);
    last = at;
    send(r, host(to), 'x');
  }
  EXPECT_EQ(r.read("a.count") + r.read("a.length"), "11");
  EXPECT_EQ(captured(r, "q").size(), 5u);
}

TEST(ARPTable, IsSharedByQueriers) {
  TestRouter r(
      "t :: ARPTable(TIMEOUT 0.1s);"
      "Idle -> a :: ARPQuerier(18.26.7.1, 00:00:c0:4f:71:ef, TABLE t) -> c :: Capture; Idle -> [1]a;"
      "Idle -> b :: ARPQuerier(18.26.7.2, 1:1:1:1:1:1, TABLE t) -> c; Idle -> [1]b;");
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, kHost, 'w');
  r.push("b", from_hex(kAnswer), 1);
  send(r, kHost, 'x', "a");
  send(r, kHost, 'y', "b");
  EXPECT_EQ(captured(r, "c"), plain_hex({kQuery, "000102030405 010101010101 0800 77", kHeader + "78",
                                         "000102030405 010101010101 0800 79"}));
  EXPECT_EQ(r.read("t.count") + r.read("t.length") + r.read("t.drops"), "100");
  EXPECT_TRUE(r.write("t.insert", "18.26.7.31 1:2:3:4:5:6"));
  EXPECT_NE(r.read("a.table").find("18.26.7.31 1 01-02-03-04-05-06"), std::string::npos);
  EXPECT_TRUE(r.write("t.clear"));
  EXPECT_EQ(r.read("t.table"), "");
  EXPECT_FALSE(TestRouter("t :: ARPTable(CAPACITY_SLIM_FACTOR 0);").ok());
}

TEST(ARPQuerier, OneNameForBothAddresses) {
  TestRouter r(
      "AddressInfo(me 18.26.7.1/24 00:00:c0:4f:71:ef);"
      "Idle -> a :: ARPQuerier(me) -> c :: Capture; Idle -> [1]a;");
  ASSERT_TRUE(r.ok()) << r.errors();
  send(r, kHost, 'a');
  EXPECT_EQ(captured(r, "c"), plain_hex({kQuery}));
  EXPECT_FALSE(TestRouter("Idle -> a :: ARPQuerier(1.0.0.1) -> Idle; Idle -> [1]a;").ok());
  EXPECT_FALSE(TestRouter("Idle -> a :: ARPQuerier -> Idle; Idle -> [1]a;").ok());
}

TEST(ArpTable, ManyThreads) {
  // Every packet given to the table comes back once, or is counted as dropped.
  ArpTable table;
  table.set_limits(
      {.packets = 500, .entries = 300, .packets_per_entry = 7, .slim_factor = 3, .timeout = Interval::from_ms(5)});
  constexpr int kThreads = 4, kRounds = 20000;
  std::atomic<uint64_t> given{0}, back{0};
  std::atomic<int> turn{0};
  const auto work = [&](int thread) {
    detail::t_thread_id = thread;  // a packet cache of its own
    auto seed = static_cast<uint32_t>(thread);
    for (int i = 0; i < kRounds; ++i) {
      seed = seed * 1664525 + 1013904223;
      const IpAddress ip = IpAddress::from_host_order(0x0a000000 + (seed >> 16) % 600);
      const int64_t now = turn.fetch_add(1) * int64_t{1000};
      switch (seed >> 8 & 7) {
        case 0: {
          std::vector<Packet*> waiting;
          table.insert(ip, EtherAddress({2, 0, 0, 0, 0, static_cast<uint8_t>(seed)}), now, &waiting);
          back += waiting.size();
          for (Packet* p : waiting) p->kill();
          break;
        }
        case 1:
          table.lookup(ip, now, 1000000);
          break;
        case 2:
          if (i % 64 == 0) table.expire(now);
          break;
        default: {
          Packet* p = Packet::make(1);
          ++given;
          const ArpTable::Append done = table.append(ip, p, now);
          if (done == ArpTable::Append::kKnown || done == ArpTable::Append::kRefused) {
            back += done == ArpTable::Append::kKnown;
            p->kill();
          }
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(given, back + table.drops() + table.waiting());
  table.clear();
  EXPECT_EQ(given, back + table.drops());
  EXPECT_EQ(table.count() + table.waiting(), 0u);
}

}  // namespace
}  // namespace headrace::testing
