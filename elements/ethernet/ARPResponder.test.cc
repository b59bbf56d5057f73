#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kRequest = "ffffffffffff000102030405 0806 0001080006040001 000102030405121a071e 000000000000121a0701";

std::string responder(const std::string& arguments) {
  return "Idle -> a :: ARPResponder(" + arguments + ") -> c :: Capture; a[1] -> d :: Capture;";
}

TEST(ARPResponder, AnswersForItsAddresses) {
  TestRouter r(responder("18.26.4.24 18.26.7.0/24 00:00:C0:4F:71:EF, 1.0.0.0/255.0.0.0 1:1:1:1:1:1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string bytes = from_hex(kRequest);
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_anno_u16(anno_offset::kVlanTci, 77);
  r.push("a", p);
  EXPECT_EQ(captured(r, "c"),
            plain_hex({"0001020304050000c04f71ef 0806 0001080006040002 0000c04f71ef121a0701 000102030405121a071e"}));
  EXPECT_EQ(capture(r, "c").seen()[0].packet->anno_u16(anno_offset::kVlanTci), 77);
  EXPECT_EQ(capture(r, "c").seen()[0].packet->network_header_offset(), 14);
  EXPECT_EQ(r.read("a.table"),
            "18.26.4.24/32 00-00-C0-4F-71-EF\n18.26.7.0/24 00-00-C0-4F-71-EF\n1.0.0.0/8 01-01-01-01-01-01\n");
  EXPECT_EQ(r.read("a.lookup 1.2.3.4"), "01-01-01-01-01-01");
  EXPECT_EQ(r.read("a.lookup 2.2.3.4"), "");
}

TEST(ARPResponder, LeavesTheRestAlone) {
  TestRouter r(responder("18.26.7.0/24 00:00:C0:4F:71:EF"));
  ASSERT_TRUE(r.ok()) << r.errors();
  std::vector<std::string> others;
  for (const size_t at : {12, 15, 17, 18, 19, 21, 38}) {  // type, hardware, protocol, lengths, operation, address
    others.push_back(from_hex(kRequest));
    others.back()[at] = static_cast<char>(others.back()[at] + 1);
  }
  others.push_back(from_hex(kRequest).substr(0, 41));
  for (const std::string& other : others) r.push("a", other);
  EXPECT_EQ(captured(r, "c").size(), 0u);
  ASSERT_EQ(captured(r, "d").size(), others.size());
  for (size_t i = 0; i < others.size(); ++i) EXPECT_EQ(capture(r, "d").bytes(i), others[i]);
}

TEST(ARPResponder, SmallerNetworksComeFirst) {
  TestRouter r(
      responder("0/0 1:1:1:1:1:1, 10.0.0.0/8 2:2:2:2:2:2, 10.0.0.0/24 3:3:3:3:3:3, 10.0.0.7 4:4:4:4:4:4, 20.0.0.0/8 "
                "5:5:5:5:5:5"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.lookup 10.0.0.7"), "04-04-04-04-04-04");
  EXPECT_EQ(r.read("a.lookup 10.0.0.8"), "03-03-03-03-03-03");
  EXPECT_EQ(r.read("a.lookup 10.1.0.7"), "02-02-02-02-02-02");
  EXPECT_EQ(r.read("a.lookup 20.0.0.1"), "05-05-05-05-05-05");
  EXPECT_EQ(r.read("a.lookup 30.0.0.1"), "01-01-01-01-01-01");
}

TEST(ARPResponder, LiveReconfiguration) {
  TestRouter r("AddressInfo(a 1.0.0.2/24 00:01:02:03:04:05, b 00:01:02:03:04:06);" + responder(""));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("a.table"), "");
  EXPECT_TRUE(r.write("a.config", "a"));
  EXPECT_EQ(r.read("a.table"), "1.0.0.2/32 00-01-02-03-04-05\n");
  EXPECT_TRUE(r.write("a.config", "a:ipnet b:eth"));
  EXPECT_EQ(r.read("a.table"), "1.0.0.0/24 00-01-02-03-04-06\n");
  for (const char* both : {"a:ipnet b:eth, a", "a, a:ipnet b:eth"}) {
    EXPECT_TRUE(r.write("a.config", both));
    EXPECT_EQ(r.read("a.table"), "1.0.0.2/32 00-01-02-03-04-05\n1.0.0.0/24 00-01-02-03-04-06\n");
  }
  EXPECT_EQ(r.errors(), "");
  EXPECT_TRUE(r.write("a.config", "a, a, a:ipnet b:eth"));
  EXPECT_NE(r.errors().find("warning: multiple entries for 1.0.0.2/32"), std::string::npos);
  EXPECT_TRUE(r.write("a.remove", "1.0.0.2"));
  EXPECT_EQ(r.read("a.table"), "1.0.0.0/24 00-01-02-03-04-06\n");
  EXPECT_TRUE(r.write("a.add", "a:ipnet a:eth"));
  EXPECT_EQ(r.read("a.table"), "1.0.0.0/24 00-01-02-03-04-05\n");
}

TEST(ARPResponder, MistakesNameTheirArgument) {
  const auto errors = [](const std::string& arguments) { return TestRouter(responder(arguments)).errors(); };
  EXPECT_NE(errors("1.0.0.1 1:1:1:1:1:1, nonsense").find("argument 1: expected IP/MASK ETH"), std::string::npos);
  EXPECT_NE(errors("1.0.0.1").find("argument 0: missing ETH"), std::string::npos);
  EXPECT_NE(errors("1:1:1:1:1:1").find("argument 0: missing IP/MASK"), std::string::npos);
  EXPECT_NE(errors("1.0.0.1 1:1:1:1:1:1 1:1:1:1:1:2").find("argument 0: more than one ETH"), std::string::npos);
  TestRouter r(responder("1.0.0.1 1:1:1:1:1:1"));
  EXPECT_FALSE(r.write("a.remove", "1.0.0.2"));
  EXPECT_NE(r.errors().find("1.0.0.2/32 not found"), std::string::npos);
  EXPECT_FALSE(r.write("a.add", "1.0.0.2"));
  EXPECT_EQ(r.read("a.table"), "1.0.0.1/32 01-01-01-01-01-01\n");
}

}  // namespace
}  // namespace headrace::testing
