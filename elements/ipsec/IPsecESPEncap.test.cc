#include "elements/ipsec/IPsecESPEncap.hh"

#include <cmath>

#include "support/ipsec_test.hh"

namespace headrace {
namespace {

using namespace testing;

/// Through both ends; the policies are those of `file`.
std::string there_and_back(const TemporaryFile& file) {
  return "db :: IPsecDatabase(CONFIG " + file.path() + R"();
Idle -> in :: MarkIPHeader -> IPsecPolicy(db, out) -> encap :: IPsecESPEncap(db) -> aes :: IPsecAES(db, true)
  -> auth :: IPsecAuthHMACSHA1(db, false) -> sent :: CaptureCopies
  -> IPsecESPLookup(db) -> IPsecAuthHMACSHA1(db, true) -> IPsecAES(db, false) -> IPsecESPUnencap(db) -> came :: Capture;
)";
}

/// Keeps what the packets are that go through.
class CaptureCopies final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};
  Packet* act(Packet* p, Emitter&) override {
    copies.emplace_back(reinterpret_cast<const char*>(p->data()), p->length());
    return p;
  }
  std::vector<RegionInfo> annotations() const override { return declared(Read{anno::any}); }
  std::vector<std::string> copies;
};
HEADRACE_ELEMENT(CaptureCopies)

const std::vector<std::string>& sent(TestRouter& r) {
  return dynamic_cast<const CaptureCopies&>(*r.router().find("sent")).copies;
}
/// The number behind the SPI, behind an IPv4 header.
std::string sequence_of(const std::string& packet) { return to_hex(packet.substr(24, 4)); }

/// The state that an association of a file will have, whatever its first number is there.
std::shared_ptr<AssociationState> state_from(const std::string& line, uint64_t first) {
  SecgwConfig read;
  Errors errors;
  EXPECT_TRUE(read_secgw_text(line, "test", read, errors)) << errors.str();
  AssociationConfig config = read.associations.at(0).config;
  config.first_sequence = first;
  return AssociationStates::process().get(config);
}

TEST(IPsecESPEncapElement, StopsBehindTheLastNumber) {
  const std::string out = tunnel_line("out", 31000, ctr_sha1(1));
  const TemporaryFile file(out + tunnel_line("in", 31000, ctr_sha1(1)) + protect_all("out", 31000) +
                           protect_all("in", 31000));
  const auto state = state_from(out, 0xfffffffe);
  TestRouter r(there_and_back(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 5; ++i) r.push("in", clear_packet());
  ASSERT_EQ(sent(r).size(), 2u);
  EXPECT_EQ(sequence_of(sent(r)[0]), "fffffffe");
  EXPECT_EQ(sequence_of(sent(r)[1]), "ffffffff");
  EXPECT_EQ(captured(r, "came").size(), 2u);
  EXPECT_EQ(r.read("db.counts"),
            "out 31000 192.0.2.2: 2 packets, 72 bytes, 3 sequence overflow\n"
            "in 31000 192.0.2.2: 2 packets, 72 bytes\n");
  // Nor does it begin again when it is removed and added again.
  ASSERT_TRUE(r.write("db.remove", "out 31000"));
  ASSERT_TRUE(r.write("db.add", out));
  r.push("in", clear_packet());
  EXPECT_EQ(sent(r).size(), 2u);
}

TEST(IPsecESPEncapElement, ExtendedNumbersGoOnBehind32Bits) {
  const std::string esn = "esn 4294967295";
  const TemporaryFile file(tunnel_line("out", 31001, ctr_sha1(2), esn) + tunnel_line("in", 31001, ctr_sha1(2), esn) +
                           protect_all("out", 31001) + protect_all("in", 31001));
  TestRouter r(there_and_back(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 3; ++i) r.push("in", clear_packet());
  ASSERT_EQ(sent(r).size(), 3u);
  EXPECT_EQ(sequence_of(sent(r)[0]), "ffffffff");
  EXPECT_EQ(sequence_of(sent(r)[1]), "00000000");
  EXPECT_EQ(captured(r, "came").size(), 3u) << r.read("db.counts");
}

TEST(IPsecESPEncapElement, ExtendedNumbersEnd) {
  const TemporaryFile file(tunnel_line("out", 31002, ctr_sha1(3), "esn 18446744073709551615") +
                           protect_all("out", 31002));
  TestRouter r(there_and_back(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 3; ++i) r.push("in", clear_packet());
  EXPECT_EQ(sent(r).size(), 1u);
  EXPECT_EQ(r.read("db.counts"), "out 31002 192.0.2.2: 1 packets, 36 bytes, 2 sequence overflow\n");
}

TEST(IPsecESPEncapElement, ExpiresAfterPackets) {
  const TemporaryFile file(tunnel_line("out", 31003, ctr_sha1(4), "most-packets 2") + protect_all("out", 31003));
  TestRouter r(there_and_back(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 5; ++i) r.push("in", clear_packet());
  EXPECT_EQ(sent(r).size(), 2u);
  EXPECT_EQ(r.read("db.counts"), "out 31003 192.0.2.2: 2 packets, 72 bytes, 3 expired\n");
}

TEST(IPsecESPEncapElement, ExpiresAfterBytes) {
  const TemporaryFile file(tunnel_line("out", 31004, ctr_sha1(5), "most-bytes 73") + protect_all("out", 31004));
  TestRouter r(there_and_back(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 5; ++i) r.push("in", clear_packet());
  EXPECT_EQ(sent(r).size(), 3u);
  EXPECT_EQ(r.read("db.counts"), "out 31004 192.0.2.2: 3 packets, 108 bytes, 2 expired\n");
}

TEST(IPsecESPEncapElement, ExpiresInbound) {
  const TemporaryFile file(tunnel_line("out", 31005, ctr_sha1(6)) +
                           tunnel_line("in", 31005, ctr_sha1(6), "most-packets 1") + protect_all("out", 31005) +
                           protect_all("in", 31005));
  TestRouter r(there_and_back(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 3; ++i) r.push("in", clear_packet());
  EXPECT_EQ(captured(r, "came"), std::vector<std::string>{to_hex(clear_packet())});
  EXPECT_EQ(r.read("db.counts"),
            "out 31005 192.0.2.2: 3 packets, 108 bytes\n"
            "in 31005 192.0.2.2: 1 packets, 36 bytes, 2 expired\n");
}

/// IVs of CBC mode look like noise: none is like the one before, as those of counter modes are.
TEST(IPsecESPEncapElement, IVsOfCBCModeCannotBePredicted) {
  struct {
    uint32_t spi;
    const char* name;
    int key, iv;
  } const kinds[] = {{31010, "aes-128-cbc", 16, 16}, {31011, "aes-256-cbc", 32, 16}, {31012, "3des-cbc", 24, 8}};
  for (const auto& kind : kinds) {
    const std::string algorithms = fmt::format("cipher_algo {} cipher_key {} auth_algo sha1-hmac auth_key {}",
                                               kind.name, key_text(kind.key, 7), key_text(20, 8));
    const TemporaryFile file(tunnel_line("out", kind.spi, algorithms) + tunnel_line("in", kind.spi, algorithms) +
                             protect_all("out", kind.spi) + protect_all("in", kind.spi));
    TestRouter r(there_and_back(file));
    ASSERT_TRUE(r.ok()) << r.errors();
    for (int i = 0; i < 64; ++i) r.push("in", clear_packet());
    ASSERT_EQ(captured(r, "came").size(), 64u) << r.read("db.counts");
    int differ = 0;
    for (size_t i = 1; i < 64; ++i)
      for (size_t at = 28; at < 28u + static_cast<size_t>(kind.iv); ++at)
        differ += __builtin_popcount(static_cast<uint8_t>(sent(r)[i][at] ^ sent(r)[i - 1][at]));
    // Half of the bits, on average; this far from it once in 10^9 runs.
    const int bits = 63 * kind.iv * 8;
    EXPECT_NEAR(differ, bits / 2, 6.2 * std::sqrt(bits) / 2) << kind.name;
  }
}

}  // namespace
}  // namespace headrace
