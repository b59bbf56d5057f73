#include <sys/resource.h>

#include <csignal>

#include "headrace/device_port.hh"
#include "headrace/device_state.hh"
#include "support/element_test.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

std::string data(const std::string& name) { return kSourceDir + "/tests/data/capture/" + name; }

// The files have three frames; see make.py beside them.
constexpr const char* kFirst =
    "020000000002020000000001 0800 45000021 00010000 401177c9 01000001 02000002 000a0014 000db8e1 68656c6c6f";

void expect_the_three_packets(const std::string& file, bool nanoseconds) {
  SCOPED_TRACE(file);
  TestRouter r("f :: FromDump(" + data(file) + ", STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(to_hex(capture(r, "c").bytes(0)), plain_hex(kFirst));
  EXPECT_EQ(seen[0].packet->timestamp(), Timestamp::from_ns(nanoseconds ? 1000001234 : 1000001000));
  EXPECT_EQ(seen[0].packet->anno_u32(anno_offset::kExtraLength), 0u);
  EXPECT_EQ(seen[0].packet->mac_header_offset(), 0);
  EXPECT_EQ(seen[1].packet->timestamp(), Timestamp::from_ms(2500));
  EXPECT_EQ(seen[1].packet->length(), 60u);
  EXPECT_EQ(seen[1].packet->anno_u32(anno_offset::kExtraLength), 182u);
  EXPECT_EQ(seen[2].packet->length(), 42u);
  EXPECT_EQ(r.read("f.count"), "3");
  EXPECT_EQ(r.read("f.encap"), "ETHER");
}

TEST(FromDump, ReadsEveryFormat) {
  expect_the_three_packets("little_micro.pcap", false);
  expect_the_three_packets("big_micro.pcap", false);
  expect_the_three_packets("little_nano.pcap", true);
  expect_the_three_packets("big_nano.pcap", true);
  expect_the_three_packets("little.pcapng", false);
  expect_the_three_packets("little_micro.pcap.gz", false);
  expect_the_three_packets("little_micro.pcap.xz", false);
}

TEST(FromDump, PacketsBeforeATruncationAreDelivered) {
  ::testing::internal::CaptureStderr();
  TestRouter r("FromDump(" + data("truncated.pcap") + ", STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const std::string complaint = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_NE(complaint.find("truncated.pcap: truncated dump file"), std::string::npos) << complaint;
}

TEST(FromDump, SaysWhatIsWrongWithAFile) {
  TemporaryFile nonsense("this is no capture file, is it?");
  EXPECT_NE(TestRouter("FromDump(" + nonsense.path() + ") -> Discard;").errors().find("not a capture file"),
            std::string::npos);
  TemporaryFile empty;
  EXPECT_NE(TestRouter("FromDump(" + empty.path() + ") -> Discard;").errors().find("empty file"), std::string::npos);
  EXPECT_NE(TestRouter("FromDump(/no/such/file) -> Discard;").errors().find("No such file or directory"),
            std::string::npos);
}

TEST(FromDump, ForceIpSetsHeadersAndSortsOutTheRest) {
  TestRouter r("f :: FromDump(" + data("little_micro.pcap") +
               ", STOP true, FORCE_IP true) -> c :: Capture; f[1] -> o :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(capture(r, "o").seen().size(), 1u);
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(p.network_header_offset(), 14);
  EXPECT_EQ(p.transport_header_offset(), 34);
  EXPECT_EQ(to_hex(std::string_view(reinterpret_cast<const char*>(p.anno()), 4)), "02000002");
}

TEST(FromDump, WithoutSecondOutputWhatIsNotIpIsDropped) {
  TestRouter r("f :: FromDump(" + data("little_micro.pcap") + ", STOP true, FORCE_IP true) -> Discard;");
  r.run();
  EXPECT_EQ(r.read("f.drop_reasons"), "1\tnot IP\n");
}

TEST(FromDump, TimesBoundWhatIsSent) {
  const auto times = [](const std::string& keywords) {
    TestRouter r("f :: FromDump(" + data("little_micro.pcap") + ", " + keywords +
                 ") -> c :: Capture; TimedSource(1, LIMIT 0, STOP true) -> Discard;");
    EXPECT_TRUE(r.ok()) << r.errors();
    if (!r.ok()) return std::string();
    r.run();
    std::string s;
    for (const auto& seen : capture(r, "c").seen()) s += seen.packet->timestamp().unparse().substr(0, 3) + " ";
    return s;
  };
  EXPECT_EQ(times("START 2"), "2.5 3.0 ");
  EXPECT_EQ(times("START_AFTER 1.9"), "3.0 ");
  EXPECT_EQ(times("END 3"), "1.0 2.5 ");
  EXPECT_EQ(times("END_AFTER 1"), "1.0 ");
  EXPECT_EQ(times("START 2, INTERVAL 0.9"), "2.5 ");
}

TEST(FromDump, EndTimeStopsTheRouterToo) {
  TestRouter r("f :: FromDump(" + data("little_micro.pcap") + ", END 2, STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  EXPECT_EQ(r.read("f.active"), "false");
}

TEST(FromDump, TimingKeepsDistances) {
  TestRouter r("FromDump(" + data("little_micro.pcap") +
               ", TIMING true) -> d :: Discard; TimedSource(1.6, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "2");
}

TEST(FromDump, PulledItGivesAll) {
  TestRouter r("FromDump(" + data("little_micro.pcap") + ", STOP true) -> d :: Discard(BURST 10);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.count"), "3");
}

TEST(FromDump, PositionsCanBeGoneBackTo) {
  // The first record begins behind the file header of 24 bytes, the second 16 + 47 bytes later.
  TestRouter r("f :: FromDump(" + data("little_micro.pcap") + ", STOP true, FILEPOS 87) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->length(), 60u);
}

TEST(FromDump, ArgumentsExcludeEachOther) {
  const std::string file = data("little_micro.pcap");
  const auto errors = [&](const std::string& keywords) {
    return TestRouter("FromDump(" + file + ", " + keywords + ") -> Discard;").errors();
  };
  EXPECT_NE(errors("START 1, START_AFTER 1").find("START and START_AFTER are mutually exclusive"), std::string::npos);
  EXPECT_NE(errors("END 1, INTERVAL 1").find("END, END_AFTER, and INTERVAL are mutually exclusive"), std::string::npos);
  EXPECT_NE(errors("STOP true, END_CALL stop").find("END_CALL and STOP are mutually exclusive"), std::string::npos);
}

// --- ToDump

Packet* some_packet() {
  const std::string bytes = from_hex("000102030405060708090a0b0800aabb");
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_timestamp(Timestamp::from_ns(5000000007));
  return p;
}

std::string written(const std::string& arguments, const std::string& suffix = ".pcap") {
  TemporaryFile file("", suffix);
  {
    TestRouter r("Idle -> t :: ToDump(" + file.path() + arguments + ");");
    EXPECT_TRUE(r.ok()) << r.errors();
    if (!r.ok()) return {};
    r.push("t", some_packet());
  }
  return to_hex(file.content());
}

// By hand from draft-ietf-opsawg-pcap.
TEST(ToDump, WritesPcap) {
  EXPECT_EQ(written(""), plain_hex("4d3cb2a1 0200 0400 00000000 00000000 d0070000 01000000"
                                   "05000000 07000000 10000000 10000000 000102030405060708090a0b0800aabb"));
  EXPECT_EQ(written(", NANO false, SNAPLEN 4, ENCAP IP"),
            plain_hex("d4c3b2a1 0200 0400 00000000 00000000 04000000 65000000"
                      "05000000 00000000 04000000 10000000 00010203"));
}

// By hand from draft-ietf-opsawg-pcapng.
TEST(ToDump, WritesPcapng) {
  EXPECT_EQ(written(", SNAPLEN 14", ".pcapng"),
            plain_hex("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"
                      "01000000 20000000 0100 0000 0e000000 0900 0100 09000000 0000 0000 20000000"
                      "06000000 30000000 00000000 01000000 07f2052a 0e000000 10000000"
                      "000102030405060708090a0b0800 0000 30000000"));
}

TEST(ToDump, ExtraLengthCounts) {
  TemporaryFile file;
  {
    TestRouter r("Idle -> t :: ToDump(" + file.path() + ");");
    Packet* p = some_packet();
    p->set_anno_u32(anno_offset::kExtraLength, 84);
    r.push("t", p);
    EXPECT_EQ(r.read("t.count"), "1");
  }
  EXPECT_EQ(to_hex(file.content()).substr(24 * 2 + 24, 8), "64000000");
}

TEST(ToDump, WhatItWritesIsReadAgain) {
  for (const char* suffix : {".pcap", ".pcapng", ".pcap.gz"}) {
    SCOPED_TRACE(suffix);
    TemporaryFile file("", suffix);
    {
      TestRouter r("FromDump(" + data("little_nano.pcap") + ", STOP true) -> ToDump(" + file.path() + ");");
      ASSERT_TRUE(r.ok()) << r.errors();
      r.run();
    }
    TestRouter r("FromDump(" + file.path() + ", STOP true) -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    const auto& seen = capture(r, "c").seen();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(to_hex(capture(r, "c").bytes(0)), plain_hex(kFirst));
    EXPECT_EQ(seen[0].packet->timestamp(), Timestamp::from_ns(1000001234));
    EXPECT_EQ(seen[1].packet->anno_u32(anno_offset::kExtraLength), 182u);
  }
}

TEST(ToDump, TakesTheLinkTypeFromElements) {
  TemporaryFile file;
  {
    TestRouter r("t :: ToDump(" + file.path() +
                 ", USE_ENCAP_FROM f); f :: FromIPSummaryDump(DATA \"!data src\\n1.0.0.1\\n\") -> t;");
    EXPECT_TRUE(r.ok()) << r.errors();
  }
  EXPECT_EQ(to_hex(file.content()).substr(40, 8), "65000000");
  EXPECT_NE(TestRouter("Idle -> d :: Discard; Idle -> ToDump(/dev/null, USE_ENCAP_FROM d);")
                .errors()
                .find("no 'encap' read handler"),
            std::string::npos);
}

DevicePort& port(TestRouter& r, const char* name) { return *dynamic_cast<DevicePort*>(r.router().find(name)); }

uint64_t packets(TestRouter& r, const char* name, DevicePort::Direction direction) {
  uint64_t n = 0;
  for (const PortRecord& record : r.router().ports())
    if (record.name == name && record.direction == direction)
      for (const PortTotals& t : record.of_thread) n += t.packets;
  return n;
}

constexpr auto kIn = DevicePort::Direction::kIn, kOut = DevicePort::Direction::kOut;

// A file that may have 1000 bytes stands for a full disk.
TEST(ToDump, WhatDoesNotFitIsDroppedAndTheFileIsGood) {
  for (const char* suffix : {".pcap", ".pcapng", ".pcap.gz"}) {
    SCOPED_TRACE(suffix);
    TemporaryFile file("", suffix);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = 1000;
    ::testing::internal::CaptureStderr();
    uint64_t written, dropped = 0;
    {
      TestRouter r("s :: InfiniteSource(LIMIT 500, BURST 7, STOP true) -> t :: ToDump(" + file.path() +
                   (file.path().ends_with("gz") ? ", UNBUFFERED true);" : ");"));
      ASSERT_TRUE(r.ok()) << r.errors();
      setrlimit(RLIMIT_FSIZE, &limit);
      r.run();
      port(r, "t").write_out();
      setrlimit(RLIMIT_FSIZE, &before);
      written = packets(r, "t", kOut);
      for (const Router::Drop& d : r.router().drops()) {
        EXPECT_EQ(d.element + " " + d.reason, "t not written: File too large");
        dropped += d.packets;
      }
      EXPECT_EQ(packets(r, "s", kIn), 500u);
      EXPECT_EQ(r.read("t.count"), std::to_string(written));
      EXPECT_EQ(r.read("t.not_written"), std::to_string(dropped));
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "t :: ToDump: " + file.path() + ": File too large\n");
    std::signal(SIGXFSZ, handler);
    EXPECT_GT(written, 0u);
    EXPECT_EQ(written + dropped, 500u);
    TestRouter r("f :: FromDump(" + file.path() + ", STOP true) -> d :: Discard;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(r.read("d.count"), std::to_string(written));
  }
}

TEST(ToDump, OneThatPassesPacketsOnIsNoPort) {
  TemporaryFile file;
  TestRouter r("FromDump(" + data("little_micro.pcap") + ", STOP true) -> t :: ToDump(" + file.path() +
               ") -> d :: Discard;");
  r.run();
  EXPECT_EQ(r.read("t.count"), "3");
  EXPECT_FALSE(port(r, "t").moves(kOut));
}

TEST(FromDump, IsAPortThatCountsWhatItDropsToo) {
  TestRouter r("f :: FromDump(" + data("little_micro.pcap") + ", STOP true, FORCE_IP true) -> d :: Discard;");
  r.run();
  EXPECT_EQ(packets(r, "f", kIn), 3u);
  EXPECT_EQ(r.read("f.drop_reasons"), "1\tnot IP\n");
  EXPECT_EQ(r.read("d.count"), "2");
}

TEST(FromDump, WaitsWhileTheQueueIsFull) {
  TemporaryFile file;
  {
    TestRouter r("InfiniteSource(LIMIT 500, STOP true) -> ToDump(" + file.path() + ");");
    r.run();
  }
  TestRouter r("FromDump(" + file.path() + ", STOP true) -> q :: Queue(5) -> Unqueue -> d :: Discard;");
  r.run();
  EXPECT_EQ(r.read("q.drops"), "0");
  EXPECT_EQ(r.read("q.highwater_length"), "5");
  // With TIMING a packet is sent when it is due.
  TestRouter timed("FromDump(" + file.path() +
                   ", TIMING true) -> q :: Queue(5) -> Idle;"
                   "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ::testing::internal::CaptureStderr();
  timed.run();
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(timed.read("q.drops"), "495");
}

TEST(FromDump, TellsWhereItIs) {
  for (const char* name : {"little_micro.pcap", "little_micro.pcap.gz"}) {
    SCOPED_TRACE(name);
    TestRouter r("f :: FromDump(" + data(name) +
                 ", ACTIVE false) -> Unqueue(1, LIMIT 2) -> c :: Capture;"
                 "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
    ASSERT_TRUE(r.ok()) << r.errors();
    EXPECT_EQ(r.read("f.filepos"), "24");
    EXPECT_TRUE(r.write("f.active", "true"));
    r.run();
    ASSERT_EQ(capture(r, "c").seen().size(), 2u);
    // The second record begins behind the file's header and 16 + 47 bytes, and has 16 + 60.
    EXPECT_EQ(r.read("f.packet_filepos"), "87");
    EXPECT_EQ(r.read("f.filepos"), "163");
    EXPECT_TRUE(r.write("f.filepos", "24"));
    EXPECT_EQ(r.read("f.filepos"), "24");
  }
}

TEST(Sources, ArePorts) {
  TestRouter r(
      "i :: InfiniteSource(LIMIT 5) -> Discard; r :: RatedSource(RATE 1000, LIMIT 4) -> Discard;"
      "t :: TimedSource(0.01, LIMIT 3) -> Discard; p :: InfiniteSource(LIMIT 2) -> Unqueue -> Discard;"
      "g :: ICMPPingSource(1.1.1.1, 2.2.2.2, INTERVAL 0.01, LIMIT 6) -> Discard;"
      "s :: FromIPSummaryDump(DATA \"!data src\\n1.0.0.1\\n1.0.0.2\\n\") -> Discard;"
      "TimedSource(1, LIMIT 0, STOP true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(packets(r, "i", kIn), 5u);
  EXPECT_EQ(packets(r, "r", kIn), 4u);
  EXPECT_EQ(packets(r, "t", kIn), 3u);
  EXPECT_EQ(packets(r, "p", kIn), 2u);
  EXPECT_EQ(packets(r, "g", kIn), 6u);
  EXPECT_EQ(packets(r, "s", kIn), 2u);
}

TEST(ToDump, SaysWhatIsWrong) {
  EXPECT_NE(TestRouter("Idle -> ToDump(/no/such/folder/x);").errors().find("No such file or directory"),
            std::string::npos);
  EXPECT_NE(TestRouter("Idle -> ToDump(/dev/null, ENCAP FOO);").errors().find("bad encapsulation type"),
            std::string::npos);
  ::testing::internal::CaptureStderr();
  {
    TestRouter r("Idle -> t :: ToDump(/dev/full, UNBUFFERED true);");
    if (r.ok()) r.push("t", some_packet());
    EXPECT_TRUE(!r.ok() || r.read("t.count") == "0");
  }
  ::testing::internal::GetCapturedStderr();
}

// --- Devices

TEST(FromDevice, ReadsACaptureFileWithoutRoot) {
  TestRouter r("f :: FromDevice(pcap:" + data("little_micro.pcap") + ", STOP true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].packet->packet_type(), PacketType::kHost);
  EXPECT_EQ(seen[2].packet->packet_type(), PacketType::kBroadcast);
  EXPECT_EQ(r.read("f.count"), "3");
  EXPECT_EQ(r.read("f.encap"), "ETHER");
  const auto* port = dynamic_cast<DevicePort*>(r.router().find("f"));
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(port->totals(DevicePort::Direction::kIn, 0).packets, 3u);
  EXPECT_EQ(port->totals(DevicePort::Direction::kIn, 0).bytes, 47u + 60u + 42u);
  const auto* device = dynamic_cast<HasDevice*>(r.router().find("f"));
  ASSERT_TRUE(device != nullptr && device->device_state());
  EXPECT_EQ(device->device_state()->name, "little_micro.pcap");
  EXPECT_TRUE(device->device_state()->carrier);
  EXPECT_EQ(device->device_counters().rx_packets, 3u);
}

TEST(FromDevice, ForceIp) {
  TestRouter r("f :: FromDevice(pcap:" + data("little_micro.pcap") +
               ", STOP true, FORCE_IP true) -> c :: Capture; f[1] -> o :: Capture;");
  r.run();
  EXPECT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(capture(r, "o").seen().size(), 1u);
}

TEST(FromDevice, SaysThatThereIsNoSuchInterface) {
  TestRouter r("FromDevice(headrace-none) -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("headrace-none: "), std::string::npos) << r.errors();
  TestRouter may_miss("FromDevice(headrace-none, ALLOW_NONEXISTENT true) -> Discard;");
  EXPECT_TRUE(may_miss.ok()) << may_miss.errors();
  EXPECT_NE(may_miss.errors().find("warning: headrace-none: "), std::string::npos) << may_miss.errors();
}

TEST(FromDevice, ChecksArguments) {
  EXPECT_NE(TestRouter("FromDevice(lo, METHOD FOO) -> Discard;").errors().find("bad METHOD"), std::string::npos);
  EXPECT_NE(TestRouter("FromDevice(lo, SNAPLEN 3) -> Discard;").errors().find("SNAPLEN"), std::string::npos);
}

TEST(ToDevice, WritesACaptureFileWithoutRoot) {
  TemporaryFile file("", ".pcap");
  {
    TestRouter r("FromDevice(pcap:" + data("little_micro.pcap") + ") -> Queue -> t :: ToDevice(pcap:" + file.path() +
                 ") -> d :: Discard; TimedSource(1, LIMIT 0, STOP true) -> Discard;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    EXPECT_EQ(r.read("t.count"), "3");
    EXPECT_EQ(r.read("d.count"), "3");
    // Written out although the router could go on.
    EXPECT_EQ(file.content().size(), 221u);
  }
}

TEST(ToHost, DropsAndSaysSo) {
  ::testing::internal::CaptureStderr();
  TestRouter r("Idle -> h :: ToHost;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("h", std::string_view("x"));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no device leads to the host"), std::string::npos);
  EXPECT_EQ(r.read("h.drops"), "1");
}

}  // namespace
}  // namespace headrace::testing
