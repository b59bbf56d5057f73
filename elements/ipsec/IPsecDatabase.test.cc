#include "elements/ipsec/IPsecDatabase.hh"

#include <algorithm>
#include <sstream>

#include "support/ipsec_test.hh"

namespace headrace {
namespace {

using namespace testing;

std::string database_with(const TemporaryFile& file, const std::string& options = {}) {
  return "db :: IPsecDatabase(CONFIG " + file.path() + options + ");";
}

/// The lines of errors that begin with the name of the file, without it.
std::string without_path(const std::string& errors, const TemporaryFile& file) {
  std::istringstream lines(errors);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(file.path());
    if (at != std::string::npos) out += line.substr(at + file.path().size() + 1) + "\n";
  }
  return out;
}

bool all_zero(const ESPKeys& keys) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&keys);
  return std::all_of(bytes, bytes + sizeof keys, [](uint8_t byte) { return byte == 0; });
}

const char* const kAlgorithmsOfAll[] = {
    "cipher_algo null",      "cipher_algo aes-128-ctr", "cipher_algo aes-256-ctr", "aead_algo aes-128-gcm",
    "aead_algo aes-256-gcm", "cipher_algo aes-128-cbc", "cipher_algo aes-256-cbc", "cipher_algo 3des-cbc",
};
constexpr int kKeysOfAll[] = {0, 20, 36, 20, 36, 16, 32, 24};

std::string algorithm_line(size_t i, int number) {
  const std::string name = kAlgorithmsOfAll[i];
  const bool aead = name.starts_with("aead");
  std::string text = name;
  if (kKeysOfAll[i] != 0) text += (aead ? " aead_key " : " cipher_key ") + key_text(kKeysOfAll[i], number);
  if (!aead) text += " auth_algo sha256-hmac auth_key " + key_text(32, number + 1);
  return text;
}

TEST(IPsecDatabaseElement, KeysGoWithTheirAssociation) {
  std::string text;
  for (uint32_t i = 0; i < std::size(kAlgorithmsOfAll); ++i)
    text += tunnel_line(i % 2 ? "out" : "in", 30000 + i, algorithm_line(i, static_cast<int>(i)));
  const TemporaryFile file(text);
  TestRouter r(database_with(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  const IPsecDatabase& db = database(r);
  const IPsecDatabase::View view = db.view();
  for (uint32_t i = 0; i < std::size(kAlgorithmsOfAll); ++i) {
    ASSERT_TRUE(view.keys[i].exists()) << i;
    ASSERT_NE(view.tags[i], IPsecDatabase::kNoTag) << i;
  }
  for (uint32_t i = 0; i < std::size(kAlgorithmsOfAll); ++i) {
    const uint32_t tag = view.tags[i];
    const std::string name = fmt::format("{} {}", i % 2 ? "out" : "in", 30000 + i) + (i % 2 ? "" : " 192.0.2.2");
    ASSERT_TRUE(r.write("db.remove", name)) << r.errors();
    EXPECT_TRUE(all_zero(view.keys[i])) << kAlgorithmsOfAll[i];
    EXPECT_EQ(view.tags[i], IPsecDatabase::kNoTag);
    EXPECT_EQ(db.find(db.associations(), tag), nullptr);
    EXPECT_FALSE(r.write("db.remove", name));
    for (uint32_t other = i + 1; other < std::size(kAlgorithmsOfAll); ++other)
      EXPECT_TRUE(view.keys[other].exists()) << i << " took " << other;
  }
  EXPECT_EQ(r.read("db.associations"), "");
}

/// Another association in the place of one that was removed has another tag.
TEST(IPsecDatabaseElement, TagsTellAssociationsApart) {
  const TemporaryFile file(tunnel_line("out", 30100, ctr_sha1(20)));
  TestRouter r(database_with(file, ", CAPACITY 1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const IPsecDatabase& db = database(r);
  const uint32_t before = db.view().tags[0];
  ASSERT_TRUE(r.write("db.remove", "out 30100"));
  ASSERT_TRUE(r.write("db.add", tunnel_line("out", 30100, ctr_sha1(21)))) << r.errors();
  const uint32_t after = db.view().tags[0];
  EXPECT_NE(before, after);
  EXPECT_EQ(IPsecDatabase::Tag::index(before), IPsecDatabase::Tag::index(after));
  EXPECT_EQ(db.find(db.associations(), before), nullptr);
  ASSERT_NE(db.find(db.associations(), after), nullptr);
}

TEST(IPsecDatabaseElement, NothingShowsKeys) {
  std::string text;
  for (uint32_t i = 0; i < std::size(kAlgorithmsOfAll); ++i)
    text += tunnel_line("out", 30200 + i, algorithm_line(i, static_cast<int>(i))) + protect_all("out", 30200 + i);
  const TemporaryFile file(text);
  TestRouter r(database_with(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  // All bytes of keys are a0 to ff, and two that follow each other differ by 7.
  const auto shows_key = [](const std::string& shown) {
    for (int byte = 0xa0; byte <= 0xff; ++byte) {
      const int next = 0xa0 + (byte - 0xa0 + 7) % 96;
      for (const char* between : {":", "", " "})
        if (shown.find(fmt::format("{:02x}{}{:02x}", byte, between, next)) != std::string::npos) return true;
    }
    return false;
  };
  ASSERT_TRUE(shows_key(text));
  std::istringstream handlers(r.read("db.handlers"));
  int read = 0;
  for (std::string line; std::getline(handlers, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos || line.find('r', tab) == std::string::npos) continue;
    EXPECT_FALSE(shows_key(r.read("db." + line.substr(0, tab)))) << line;
    ++read;
  }
  EXPECT_GT(read, 5);
  EXPECT_EQ(r.read("db.associations").substr(0, 83),
            "sa out 30200 cipher_algo null auth_algo sha256-hmac mode ipv4-tunnel src 192.0.2.1 ");
  EXPECT_FALSE(shows_key(database(r).note()));

  // Nor do the complaints about what is written.
  const std::string key = key_text(19, 50);
  EXPECT_FALSE(r.write("db.add", "sa out 30300 cipher_algo aes-128-ctr cipher_key " + key +
                                     " auth_algo sha1-hmac auth_key " + key_text(20, 50) + " mode transport"));
  EXPECT_FALSE(r.write("db.add", text));
  EXPECT_FALSE(r.write("db.add", "sa out 30301 " + key));
  EXPECT_FALSE(r.write("db.add", key));
  EXPECT_FALSE(r.write("db.remove", "out 30200 " + key));
  EXPECT_FALSE(r.write("db.remove", "in 30200 " + key));
  EXPECT_FALSE(r.write("db.remove", tunnel_line("out", 30200, ctr_sha1(50))));
  EXPECT_FALSE(r.write("db.remove_policy", tunnel_line("out", 30302, ctr_sha1(50))));
  EXPECT_FALSE(r.write("db.remove_policy", key));
  EXPECT_FALSE(shows_key(r.errors())) << r.errors();
  EXPECT_NE(r.errors(), "");
}

/// Files of ipsec-secgw may have such associations; nothing of them goes in or out.
TEST(IPsecDatabaseElement, WithoutAuthenticationAssociationsAreLeftOut) {
  const std::string line = tunnel_line("out", 30350, "cipher_algo null auth_algo null");
  const TemporaryFile file(
      line + tunnel_line("in", 30350, "cipher_algo aes-128-cbc cipher_key " + key_text(16) + " auth_algo null") +
      protect_all("out", 30350) + protect_all("in", 30350));
  TestRouter r(database_with(file) +
               "Idle -> in :: MarkIPHeader -> policy :: IPsecPolicy(db, out) -> IPsecESPEncap(db) -> c :: Capture;"
               "Idle -> esp :: MarkIPHeader -> lookup :: IPsecESPLookup(db) -> [1] c");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find(file.path() + ":1: warning: '30350': the association is left out"), std::string::npos)
      << r.errors();
  EXPECT_NE(r.errors().find(file.path() + ":2: warning: '30350': the association is left out"), std::string::npos);
  EXPECT_EQ(r.read("db.associations"), "");
  r.push("in", clear_packet());
  EXPECT_EQ(r.read("policy.drop_reasons"), "1\tno association\n");
  r.push("esp", from_hex("4500 0040 0000 0000 40 32 0000 c0000201 c0000202 0000768e 00000001") + std::string(36, 'x'));
  EXPECT_EQ(r.read("lookup.drop_reasons"), "1\tunknown SPI\n");
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_FALSE(r.write("db.add", line));
  EXPECT_EQ(r.read("db.associations"), "");
}

TEST(IPsecDatabaseElement, PoliciesComeAndGo) {
  const TemporaryFile file(tunnel_line("out", 30400, ctr_sha1(30)) + protect_all("out", 30400));
  TestRouter r(database_with(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("db.add", "sp ipv4 out esp bypass pri 9 src 10.0.0.0/8"));
  const std::string policies = r.read("db.policies");
  EXPECT_EQ(std::count(policies.begin(), policies.end(), '\n'), 2) << policies;
  std::istringstream lines(policies);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(r.write("db.remove_policy", line)) << r.errors();
  EXPECT_EQ(r.read("db.policies"), "");
  EXPECT_FALSE(r.write("db.remove_policy", "sp ipv4 out esp bypass pri 9 src 10.0.0.0/8"));
}

TEST(IPsecDatabaseElement, MistakesAreSaidWithFileAndLine) {
  const auto complaint = [](const std::string& text, const std::string& options = {}) {
    const TemporaryFile file(text, ".cfg");
    TestRouter r(database_with(file, options));
    EXPECT_FALSE(r.ok());
    return without_path(r.errors(), file);
  };
  EXPECT_EQ(complaint("\n\nsa out 30500 cipher_algo aes-128-cbc cipher_key " + key_text(15) +
                      " auth_algo sha1-hmac \\\n auth_key " + key_text(21) + " mode transport\n"),
            "3: 'cipher_key': aes-128-cbc needs 16 bytes, found 15\n"
            "4: 'auth_key': sha1-hmac needs 20 bytes, found 21\n");
  EXPECT_EQ(complaint("sa out 30500 cipher_algo 3des-cbc cipher_key " + key_text(16) +
                      " auth_algo sha1-hmac auth_key " + key_text(20) + " mode transport\n"),
            "1: 'cipher_key': 3des-cbc needs 24 bytes, found 16\n");
  EXPECT_EQ(complaint(tunnel_line("out", 30501, ctr_sha1(31)) + tunnel_line("out", 30502, ctr_sha1(32)) +
                          tunnel_line("in", 30503, ctr_sha1(33)) + tunnel_line("in", 30504, ctr_sha1(34)),
                      ", CAPACITY 2"),
            "3: more associations than CAPACITY 2\n");
  EXPECT_EQ(complaint(tunnel_line("in", 30505, ctr_sha1(35)) + tunnel_line("in", 30505, ctr_sha1(36))),
            "2: '30505': line 1 has an association 'in' with this SPI and destination already\n");

  TestRouter missing("db :: IPsecDatabase(CONFIG /nonexistent/ipsec.cfg);");
  EXPECT_FALSE(missing.ok());
  EXPECT_NE(missing.errors().find("/nonexistent/ipsec.cfg"), std::string::npos) << missing.errors();
  EXPECT_NE(missing.errors().find("No such file"), std::string::npos) << missing.errors();

  // Two files that do not go together.
  const TemporaryFile one(tunnel_line("out", 30506, ctr_sha1(37))),
      two("#\n" + tunnel_line("out", 30506, ctr_sha1(38)));
  TestRouter both("db :: IPsecDatabase(CONFIG " + one.path() + ", CONFIG " + two.path() + ");");
  EXPECT_FALSE(both.ok());
  EXPECT_NE(both.errors().find(two.path() + ":2: "), std::string::npos) << both.errors();
}

}  // namespace
}  // namespace headrace
