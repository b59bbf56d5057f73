#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(IPInputCombo, ActsAsTheElementsThatItStandsFor) {
  const std::string parts = "Paint(7) -> Strip(14) -> CheckIPHeader(INTERFACES 3.0.0.1/24) -> GetIPAddress(16)";
  TestRouter r("Idle -> i :: IPInputCombo(7, INTERFACES 3.0.0.1/24) -> c :: Capture; Idle -> p :: Null -> " + parts +
               " -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string ether = "020202020202 010101010101 0800";
  for (const std::string packet : {
           "45000014 00000000 401177d7 01000001 02000002",            // good
           "45000014 00000000 401177d7 01000001 02000002 0000 0000",  // padded
           "46000018 00000000 400174e1 01000001 02000002 01010101",   // with options
           "45000014 00000000 401177d6 01000001 02000002",            // bad checksum
           "45000018 00000000 401177d3 01000001 02000002",            // shorter than it says
           "65000014 00000000 401157d7 01000001 02000002",            // version 6
           "45000014 00000000 401174d9 030000ff 02000002",            // from a broadcast address
       })
    for (const char* to : {"i", "p"}) r.push(to, from_hex(ether + packet));
  for (const char* to : {"i", "p"}) r.push(to, from_hex("0202"));
  EXPECT_EQ(captured(r, "c"), captured(r, "d"));
  ASSERT_EQ(capture(r, "c").seen().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Packet& combo = *capture(r, "c").seen()[i].packet;
    const Packet& separate = *capture(r, "d").seen()[i].packet;
    EXPECT_EQ(std::memcmp(combo.anno(), separate.anno(), Packet::kAnnoSize), 0);
    EXPECT_EQ(combo.network_header_offset(), separate.network_header_offset());
    EXPECT_EQ(combo.transport_header_offset(), separate.transport_header_offset());
  }
  EXPECT_EQ(r.read("i.drops"), "5");
  EXPECT_EQ(r.read("i.drop_reasons"),
            "1\ttiny packet\n1\tbad IP version\n1\tbad IP length\n1\tbad IP checksum\n1\tbad source address\n");
}

TEST(IPInputCombo, OldFormOfBadSources) {
  TestRouter r("Idle -> i :: IPInputCombo(7, 1.0.0.1 1.0.0.2) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("i", from_hex("020202020202 010101010101 0800 45000014 00000000 401177d7 01000001 02000002"));
  EXPECT_TRUE(capture(r, "c").seen().empty());
}

TEST(IPInputCombo, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("", "COLOR: required argument missing"), std::pair("300", "COLOR: out of range"),
        std::pair("1, x", "BADSRC: "), std::pair("1, INTERFACES x", "INTERFACES: "),
        std::pair("1, GOODDST x", "GOODDST: "), std::pair("1, OFFSET 4", "OFFSET, VERBOSE and DETAILS"),
        std::pair("1, 14", "OFFSET, VERBOSE and DETAILS")}) {
    TestRouter r("Idle -> IPInputCombo(" + std::string(arguments) + ") -> Discard;");
    EXPECT_FALSE(r.ok()) << arguments;
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
