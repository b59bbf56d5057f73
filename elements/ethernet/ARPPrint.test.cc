#include <cstdio>
#include <fstream>
#include <sstream>

#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kRequest = "ffffffffffff000102030405 0806 0001080006040001 000102030405121a071e 000000000000121a0701";

/// What is printed about a packet whose network header lies behind its Ethernet header.
std::string printed(const std::string& arguments, const std::string& bytes) {
  TestRouter r("Idle -> m :: MarkMACHeader(0, 14) -> p :: ARPPrint(" + arguments + ") -> c :: Capture;");
  EXPECT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_timestamp(Timestamp::from_ms(1500));
  r.push("m", p);
  EXPECT_EQ(capture(r, "c").seen().size(), 1u);
  return ::testing::internal::GetCapturedStderr();
}

/// The request with another operation.
std::string operation(int number) {
  std::string bytes = from_hex(kRequest);
  bytes[21] = static_cast<char>(number);
  return bytes;
}

TEST(ARPPrint, Operations) {
  const std::string none = "TIMESTAMP false";
  EXPECT_EQ(printed(none, operation(1)), "arp who-has 18.26.7.1 tell 18.26.7.30\n");
  EXPECT_EQ(printed(none, operation(2)), "arp reply 18.26.7.30 is-at 00-01-02-03-04-05\n");
  EXPECT_EQ(printed(none, operation(3)), "rarp who-is 00-00-00-00-00-00 tell 00-01-02-03-04-05\n");
  EXPECT_EQ(printed(none, operation(4)), "rarp reply 00-00-00-00-00-00 at 18.26.7.1\n");
  EXPECT_EQ(printed(none, operation(8)), "invarp who-is 00-00-00-00-00-00 tell 00-01-02-03-04-05\n");
  EXPECT_EQ(printed(none, operation(9)), "invarp reply 00-00-00-00-00-00 at 18.26.7.1\n");
  EXPECT_EQ(printed(none, operation(7)), "arp-#7\n");
}

TEST(ARPPrint, LabelTimestampAndEther) {
  EXPECT_EQ(printed("in, ETHER true", from_hex(kRequest)),
            "in: 1.500000: 00-01-02-03-04-05 > FF-FF-FF-FF-FF-FF: arp who-has 18.26.7.1 tell 18.26.7.30\n");
  EXPECT_EQ(printed("ACTIVE false", from_hex(kRequest)), "");
}

TEST(ARPPrint, ShortAndStrangePackets) {
  EXPECT_EQ(printed("TIMESTAMP false", from_hex(kRequest).substr(0, 14 + 7)), "truncated-arp (7)\n");
  EXPECT_EQ(printed("TIMESTAMP false", from_hex(kRequest).substr(0, 14 + 27)), "truncated-arp (27)\n");
  std::string strange = from_hex(kRequest);
  strange[17] = 1;
  EXPECT_EQ(printed("TIMESTAMP false", strange), "arp-#1 for proto #2049 (4) hardware #1 (6)\n");
}

TEST(ARPPrint, IntoAFile) {
  const std::string name = ::testing::TempDir() + "headrace_arp_print.txt";
  {
    TestRouter r("Idle -> m :: MarkMACHeader(0, 14) -> p :: ARPPrint(TIMESTAMP false, OUTFILE " + name + ") -> Idle;");
    ASSERT_TRUE(r.ok()) << r.errors();
    EXPECT_TRUE(r.write("p.active", "false"));
    r.push("m", operation(2));
    EXPECT_TRUE(r.write("p.active", "true"));
    r.push("m", operation(1));
  }
  std::ifstream file(name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "arp who-has 18.26.7.1 tell 18.26.7.30\n");
  std::remove(name.c_str());
}

}  // namespace
}  // namespace headrace::testing
