#include <fstream>
#include <sstream>

#include "support/element_test.hh"

namespace headrace::testing {
namespace {

Packet* of_aggregate(uint32_t aggregate, uint32_t length = 10, uint32_t extra_packets = 0) {
  Packet* p = Packet::make(length);
  p->set_anno_u32(anno_offset::kAggregate, aggregate);
  p->set_anno_u32(anno_offset::kExtraPackets, extra_packets);
  return p;
}

/// What `handler` writes into a file.
std::string written(TestRouter& r, const std::string& handler) {
  const std::string file = ::testing::TempDir() + "aggregate_counter_" + handler;
  EXPECT_TRUE(r.write("a." + handler, file)) << r.errors();
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  std::remove(file.c_str());
  return text.str();
}

const char kTwoOutputs[] = " -> c :: Capture; a[1] -> d :: Capture; Idle -> [1]a;";

TEST(AggregateCounter, CountsPacketsOfEachAggregate) {
  TestRouter r("Idle -> a :: AggregateCounter(BANNER \"!mine\") -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const uint32_t aggregate : {7u, 0x01020304u, 0u, 7u, 0xffffffffu}) r.push("a", of_aggregate(aggregate));
  r.push("a", of_aggregate(7, 10, 4));
  EXPECT_EQ(captured(r, "c").size(), 6u);
  EXPECT_EQ(r.read("a.nagg"), "4");
  EXPECT_EQ(r.read("a.count"), "10");
  const std::string head = "!IPAggregate 1.0\n!mine\n!num_nonzero 4\n";
  EXPECT_EQ(written(r, "write_text_file"), head + "0 1\n7 7\n16909060 1\n4294967295 1\n");
  EXPECT_EQ(written(r, "write_ip_file"), head + "!ip\n0.0.0.0 1\n0.0.0.7 7\n1.2.3.4 1\n255.255.255.255 1\n");
  EXPECT_EQ(written(r, "write_pdf_file"), head + "0 0.1\n7 0.7\n16909060 0.1\n4294967295 0.1\n");
  EXPECT_EQ(to_hex(written(r, "write_file")).substr(2 * head.size()),
            to_hex("!packed_le\n") + "0000000001000000" + "0700000007000000" + "0403020101000000" + "ffffffff01000000");
  ASSERT_TRUE(r.write("a.counts_pdf"));
  EXPECT_EQ(written(r, "write_text_file"), "!IPAggregate 1.0\n!mine\n!num_nonzero 2\n1 3\n7 1\n");
  ASSERT_TRUE(r.write("a.clear"));
  EXPECT_EQ(r.read("a.nagg"), "0");
  EXPECT_FALSE(r.write("a.write_file", "/nonexistent/file"));
}

TEST(AggregateCounter, CountsBytes) {
  TestRouter r(
      "Idle -> a :: AggregateCounter(BYTES true) -> b :: AggregateCounter(BYTES true, EXTRA_LENGTH false, IP_BYTES true)"
      " -> m :: AggregateCounter(MULTIPACKET false) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Packet* p = of_aggregate(1, 100, 3);
  p->set_anno_u32(anno_offset::kExtraLength, 50);
  p->set_network_header(14, 20);
  r.push("a", p);
  EXPECT_EQ(r.read("a.count"), "150");
  EXPECT_EQ(r.read("b.count"), "86");
  EXPECT_EQ(r.read("m.count"), "1");
}

TEST(AggregateCounter, FrozenCountsOnlyWhatItKnows) {
  TestRouter r(std::string("Idle -> a :: AggregateCounter(AGGREGATE_FREEZE 2)") + kTwoOutputs);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.aggregate_call"), "2 a.freeze true");
  for (const uint32_t aggregate : {1, 2}) r.push("a", of_aggregate(aggregate));
  EXPECT_EQ(r.read("a.freeze"), "false");
  for (const uint32_t aggregate : {3, 1}) r.push("a", of_aggregate(aggregate));
  EXPECT_EQ(r.read("a.freeze"), "true");
  EXPECT_EQ(captured(r, "c").size(), 3u);
  EXPECT_EQ(captured(r, "d").size(), 1u);
  ASSERT_TRUE(r.write("a.freeze", "false"));
  r.push("a", of_aggregate(4));
  EXPECT_EQ(r.read("a.nagg"), "3");
  // The second input is always frozen.
  Batch batch(of_aggregate(5));
  r.router().find("a")->push(1, batch);
  EXPECT_EQ(captured(r, "d").size(), 2u);
}

TEST(AggregateCounter, CallsAndStops) {
  TestRouter r("Idle -> a :: AggregateCounter(COUNT_CALL 3 p.color 7) -> p :: Paint(1) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 4; ++i) r.push("a", of_aggregate(1));
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u8(anno_offset::kPaint), 1);
  EXPECT_EQ(capture(r, "c").seen()[2].packet->anno_u8(anno_offset::kPaint), 7);
  ASSERT_TRUE(r.write("a.count_call", "6 p.color 9"));
  for (int i = 0; i < 2; ++i) r.push("a", of_aggregate(1));
  EXPECT_EQ(capture(r, "c").seen().back().packet->anno_u8(anno_offset::kPaint), 9);
  EXPECT_FALSE(r.write("a.count_call", "many"));

  TestRouter stops("InfiniteSource -> a :: AggregateCounter(COUNT_STOP 100) -> Discard;");
  ASSERT_TRUE(stops.ok()) << stops.errors();
  stops.run();
  EXPECT_EQ(stops.read("a.count"), "100");
  EXPECT_EQ(stops.read("a.active"), "false");
}

TEST(AggregateCounter, HasRoomForItsCapacity) {
  TestRouter r(std::string("Idle -> a :: AggregateCounter(CAPACITY 3)") + kTwoOutputs);
  ASSERT_TRUE(r.ok()) << r.errors();
  for (uint32_t aggregate = 0; aggregate < 5; ++aggregate) r.push("a", of_aggregate(aggregate));
  EXPECT_EQ(r.read("a.nagg"), "3");
  EXPECT_EQ(captured(r, "d").size(), 2u);
}

TEST(AggregateCounter, Errors) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"AGGREGATE_STOP 1, AGGREGATE_FREEZE 2", "AGGREGATE_STOP, AGGREGATE_FREEZE and AGGREGATE_CALL are mutually"},
      {"COUNT_STOP 1, COUNT_CALL 2 stop", "COUNT_STOP, COUNT_FREEZE and COUNT_CALL are mutually exclusive"},
      {"AGGREGATE_CALL stop", "AGGREGATE_CALL: expected 'N HANDLER [VALUE]'"},
      {"COUNT_CALL 5", "COUNT_CALL: expected 'N HANDLER [VALUE]'"},
      {"COUNT_CALL 5 nothing.at_all", "nothing"},
      {"CAPACITY 0", "CAPACITY: out of range, bound 1"},
      {"BYTES 7", "BYTES"},
      {"5", "too many arguments"}};
  for (const auto& [arguments, message] : kErrors) {
    TestRouter r("Idle -> AggregateCounter(" + std::string(arguments) + ") -> Discard;");
    EXPECT_FALSE(r.ok()) << arguments;
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
