#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(StoreIPAddress, AtAnOffset) {
  TestRouter r(
      "Idle -> s :: SetIPAddress(1.2.3.4) -> a :: StoreIPAddress(2) -> c :: Capture; a[1] -> bad :: Capture;"
      "Idle -> z :: StoreIPAddress(0) -> c; Idle -> n :: StoreIPAddress(0.0.0.0, 1) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string bytes = from_hex("ffffffffffff");
  r.push("s", bytes);
  r.push("s", bytes.substr(1));
  r.push("z", bytes);  // the annotation is 0.0.0.0
  r.push("n", bytes);
  EXPECT_EQ(captured(r, "c"), plain_hex({"ffff01020304", "ffffffffffff", "ff00000000ff"}));
  EXPECT_EQ(captured(r, "bad"), plain_hex({"ffffffffff"}));
}

TEST(StoreIPAddress, InTheHeaderWithChecksums) {
  TestRouter r(
      "Idle -> m :: MarkIPHeader -> a :: StoreIPAddress(1.0.0.4, src) -> c :: Capture;"
      "Idle -> n :: MarkIPHeader -> SetIPAddress(9.8.7.6) -> StoreIPAddress(dst) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000b2966 6f6464"));
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000b0000 6f6464"));  // unchecked
  r.push("m", from_hex("4500001f 00090001 401177c2 01000001 02000002 00050006000b2966 6f6464"));  // no UDP header
  r.push("n", from_hex("45000031 00090000 400677bc 01000001 02000002"
                       "00050006 00000007 00000000 60022000 7b4a0000 020405b4 6461746121"));
  EXPECT_EQ(captured(r, "c"), plain_hex({"4500001f 00090000 401177c0 01000004 02000002 00050006000b2963 6f6464",
                                         "4500001f 00090000 401177c0 01000004 02000002 00050006000b0000 6f6464",
                                         "4500001f 00090001 401177bf 01000004 02000002 00050006000b2966 6f6464",
                                         "45000031 00090000 400669b0 01000001 09080706"
                                         "00050006 00000007 00000000 60022000 6d3e0000 020405b4 6461746121"}));
}

TEST(StoreIPAddress, WithoutHeaderOrRoom) {
  TestRouter r("Idle -> a :: StoreIPAddress(1.0.0.4, src) -> c :: Capture; Idle -> m :: MarkIPHeader -> a;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("a", from_hex("4500001f 00090000 401177c3 01000001 02000002 00050006000b2966 6f6464"));
  r.push("m", from_hex("4500001f 00090000 401177c3 01000001"));
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("a.drop_reasons"), "2\tno room for the address\n");
  TestRouter bad("Idle -> StoreIPAddress(nonsense) -> Idle;");
  EXPECT_NE(bad.errors().find("type mismatch: OFFSET requires integer"), std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
