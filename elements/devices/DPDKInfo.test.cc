#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(DPDKInfo, AcceptsFastClicksParameters) {
  TestRouter r(
      "DPDKInfo(65535, NB_SOCKET_MBUF 1, NB_SOCKET_MBUF 2, MBUF_SIZE 4096, MBUF_CACHE_SIZE 512, RX_PTHRESH 8,"
      " RX_HTHRESH 8, RX_WTHRESH 4, TX_PTHRESH 36, TX_HTHRESH 0, TX_WTHRESH 0, MEMPOOL_PREFIX p, DEF_RING_NDESC 1024,"
      " DEF_BURST_SIZE 32, RING_FLAGS 0, RING_SIZE 64, RING_POOL_CACHE_SIZE 32, RING_PRIV_DATA_SIZE 0);");
  EXPECT_TRUE(r.ok()) << r.errors();
}

TEST(DPDKInfo, ArgumentsAreChecked) {
  EXPECT_NE(TestRouter("DPDKInfo; DPDKInfo(1);").errors().find("there can be only one instance of DPDKInfo"),
            std::string::npos);
  EXPECT_FALSE(TestRouter("DPDKInfo(many);").ok());
  EXPECT_FALSE(TestRouter("DPDKInfo(MBUF_SIZE x);").ok());
  EXPECT_FALSE(TestRouter("DPDKInfo(COLOR 1);").ok());
}

TEST(EnsureDPDKBuffer, PassesPackets) {
  TestRouter r("Idle -> e :: EnsureDPDKBuffer(true, 64) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", "abc");
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
  TestRouter pulled("InfiniteSource(LIMIT 3, STOP true) -> Queue -> EnsureDPDKBuffer(FAIL true) -> d :: Discard;");
  ASSERT_TRUE(pulled.ok()) << pulled.errors();
}

TEST(EnsureDPDKBuffer, ArgumentsAreChecked) {
  EXPECT_NE(
      TestRouter("Idle -> EnsureDPDKBuffer(true, FAIL true) -> Discard;").errors().find("both FORCE_COPY and FAIL"),
      std::string::npos);
  EXPECT_FALSE(TestRouter("Idle -> EnsureDPDKBuffer(x) -> Discard;").ok());
}

}  // namespace
}  // namespace headrace::testing
