#include "elements/ipsec/IPsecAES.hh"

#include "support/ipsec_test.hh"

namespace headrace {
namespace {

using namespace testing;

/// The elements one by one, with a Capture behind each: a test carries packets from one to the next.
std::string one_by_one(const TemporaryFile& file) {
  return "db :: IPsecDatabase(CONFIG " + file.path() + R"();
Idle -> in :: MarkIPHeader -> IPsecPolicy(db, out) -> marked :: Capture;
Idle -> encap :: IPsecESPEncap(db) -> wrapped :: Capture;
Idle -> aes :: IPsecAES(db, true) -> encrypted :: Capture;
Idle -> auth :: IPsecAuthHMACSHA1(db, false) -> sent :: Capture;
Idle -> lookup :: IPsecESPLookup(db) -> found :: Capture;
Idle -> verify :: IPsecAuthHMACSHA1(db, true) -> verified :: Capture;
Idle -> decrypt :: IPsecAES(db, false) -> decrypted :: Capture;
Idle -> unencap :: IPsecESPUnencap(db) -> came :: Capture;
)";
}
constexpr const char* kSteps[][2] = {{"encap", "wrapped"}, {"aes", "encrypted"},   {"auth", "sent"},
                                     {"lookup", "found"},  {"verify", "verified"}, {"decrypt", "decrypted"},
                                     {"unencap", "came"}};
constexpr size_t kLookup = 3;

/// Packets that are under way when their association goes, or another one takes its place, come to no further element,
/// and are counted where they are.
class IPsecUnderWay : public ::testing::TestWithParam<bool> {};

TEST_P(IPsecUnderWay, DroppedWhenTheAssociationGoes) {
  const char* const ciphers[] = {"cipher_algo aes-128-ctr cipher_key ", "cipher_algo 3des-cbc cipher_key ",
                                 "aead_algo aes-128-gcm aead_key "};
  uint32_t spi = GetParam() ? 32000 : 32100;
  for (const char* cipher : ciphers) {
    const bool aead = cipher[1] == 'e';
    const auto algorithms = [&](int number) {
      return cipher + key_text(std::string_view(cipher).find("3des") != std::string_view::npos ? 24 : 20, number) +
             (aead ? "" : " auth_algo sha1-hmac auth_key " + key_text(20, number + 1));
    };
    for (size_t step = 0; step < std::size(kSteps); ++step, ++spi) {
      const TemporaryFile file(tunnel_line("out", spi, algorithms(1)) + tunnel_line("in", spi, algorithms(1)) +
                               protect_all("out", spi) + protect_all("in", spi));
      TestRouter r(one_by_one(file));
      ASSERT_TRUE(r.ok()) << r.errors();
      r.push("in", clear_packet());
      std::string before = "marked";
      const auto go = [&](size_t i) {
        const auto& seen = capture(r, before).seen();
        ASSERT_EQ(seen.size(), 1u) << before;
        r.push(kSteps[i][0], seen[0].packet->clone());
        before = kSteps[i][1];
      };
      for (size_t i = 0; i < step; ++i) go(i);
      const bool in = step >= kLookup;
      ASSERT_TRUE(r.write("db.remove", fmt::format("{} {}{}", in ? "in" : "out", spi, in ? " 192.0.2.2" : "")));
      if (GetParam()) {
        ASSERT_TRUE(r.write("db.add", tunnel_line(in ? "in" : "out", spi, algorithms(5))));
      }
      if (step == kLookup) {
        // The packet itself says what it belongs to: to nothing, or to what cannot verify it.
        go(step);
        if (GetParam()) {
          EXPECT_EQ(captured(r, "found").size(), 1u);
        } else {
          EXPECT_EQ(r.read("lookup.drop_reasons"), "1\tunknown SPI\n");
        }
        continue;
      }
      go(step);
      EXPECT_TRUE(captured(r, kSteps[step][1]).empty()) << cipher << ", " << kSteps[step][0];
      EXPECT_EQ(r.read(std::string(kSteps[step][0]) + ".drop_reasons"), "1\tassociation gone\n") << cipher;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAnother, IPsecUnderWay, ::testing::Bool());

TEST(IPsecAESElement, NothingLeavesInClear) {
  const TemporaryFile file(tunnel_line("out", 32200, ctr_sha1(9)) + protect_all("out", 32200));
  TestRouter r(one_by_one(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("in", clear_packet());
  r.push("encap", capture(r, "marked").seen()[0].packet->clone());
  // What IPsecESPEncap has made is in clear up to here.
  ASSERT_NE(capture(r, "wrapped").bytes(0).find("in clear"), std::string::npos);
  r.push("aes", capture(r, "wrapped").seen()[0].packet->clone());
  ASSERT_EQ(capture(r, "encrypted").seen().size(), 1u);
  EXPECT_EQ(capture(r, "encrypted").bytes(0).find("in clear"), std::string::npos);
}

TEST(IPsecAESElement, Mistakes) {
  TestRouter r(
      "db :: IPsecDatabase; x :: Idle; Idle -> IPsecAES(db) -> Discard; Idle -> IPsecAES(x, true) -> Discard;"
      "Idle -> IPsecAuthHMACSHA1(db, perhaps) -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("ENCRYPT"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("DATABASE"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("VERIFY"), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace
