#include "tables/sa/secgw_file.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/source_dir.hh"
#include "support/temporary_file.hh"
#include "tables/files/text_lines.hh"

namespace headrace {
namespace {

constexpr const char* kKey16 = "00:1:2:3:4:5:6:7:8:9:a:B:c:D:e:fF";

class SecgwFile : public ::testing::Test {
 protected:
  bool read(const std::string& text) {
    const testing::TemporaryFile file(text, ".cfg");
    const bool good = read_secgw(file.path(), config_, errors_);
    for (std::string line : errors_.lines()) {
      EXPECT_EQ(line.substr(0, file.path().size() + 1), file.path() + ":") << line;
      line.erase(0, file.path().size() + 1);
      messages_ += line + "\n";
    }
    EXPECT_EQ(good, errors_.error_count() == 0);
    return good;
  }
  /// What is said about a text.
  std::string said(const std::string& text) {
    SecgwConfig config;
    Errors errors;
    const bool good = read_secgw_text(text, "f", config, errors);
    EXPECT_EQ(good, errors.error_count() == 0);
    return errors.str();
  }
  /// What is said about an association with these options.
  std::string said_of_tunnel(const std::string& options) {
    return said("sa out 1000 aead_algo aes-128-gcm aead_key " + std::string(kKey16) +
                ":1:2:3:4 mode ipv4-tunnel src 1.1.1.1 dst 1.1.1.2 " + options);
  }

  SecgwConfig config_;
  Errors errors_;
  std::string messages_;
};

TEST_F(SecgwFile, ReadsAllOfIt) {
  EXPECT_TRUE(read(
      "# a comment\n"
      "sp ipv4 out esp protect 1000 pri 3 src 10.0.0.0/8 dst 10.1.0.0/255.255.0.0 proto 17:255 sport 1:2 dport 3:4\n"
      "sp ipv6 in esp bypass # to the end of the line\n"
      "\n"
      "sp ipv4 in esp discard dst 1.2.3.4/32 proto 0:0\r\n"
      "sa out 1000 cipher_algo aes-128-ctr cipher_key 0:1:2:3:4:5:6:7:8:9:a:\\\n"
      "b:c:d:e:f:10:20:30:FF mode ipv6-tunnel \\\n"
      "# a comment between joined lines\n"
      "  src 2001:db8::1 dst 2001:db8::2 auth_algo sha1-hmac \\ \n"
      "auth_key 1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20 esn 7 udp-encap encap-port 4501:4502\\\n"
      " replay-window 128 dscp 46 df set most-packets 5 most-bytes 6\n"
      "sa in 0xabcdef01 aead_algo aes-256-gcm aead_key " +
      std::string(kKey16) + ":" + kKey16 +
      ":1:2:3:4 mode transport telemetry type no-offload port_id 3 dscp copy df clear\n"
      "rt ipv4 dst 10.0.0.0/8 port 3\n"
      "rt ipv6 dst 2001:db8::/32\n"
      "neigh port 2 de:ad:be:ef:01:02"))
      << messages_;
  EXPECT_EQ(messages_, "");

  ASSERT_EQ(config_.policies.size(), 3u);
  EXPECT_EQ(config_.policies[0].policy.unparse(),
            "sp ipv4 out esp protect 1000 pri 3 src 10.0.0.0/8 dst 10.1.0.0/16 proto 17:255 sport 1:2 dport 3:4");
  EXPECT_EQ(config_.policies[1].policy.unparse(),
            "sp ipv6 in esp bypass pri 0 src ::/0 dst ::/0 sport 0:65535 dport 0:65535");
  EXPECT_EQ(config_.policies[2].policy.unparse(),
            "sp ipv4 in esp discard pri 0 src 0.0.0.0/0 dst 1.2.3.4/32 sport 0:65535 dport 0:65535");
  EXPECT_EQ(config_.policies[0].line, 2);
  EXPECT_EQ(config_.policies[2].line, 5);

  ASSERT_EQ(config_.associations.size(), 2u);
  const AssociationConfig& out = config_.associations[0].config;
  EXPECT_EQ(config_.associations[0].line, 6);
  EXPECT_EQ(out.unparse(),
            "sa out 1000 cipher_algo aes-128-ctr auth_algo sha1-hmac mode ipv6-tunnel src 2001:db8::1 dst 2001:db8::2 "
            "esn 7 udp-encap encap-port 4501:4502 dscp 46 df set most-packets 5 most-bytes 6");
  EXPECT_EQ(out.replay_window, 128u);
  ASSERT_EQ(out.cipher_key().size(), 16u);
  for (uint8_t i = 0; i < 16; ++i) EXPECT_EQ(out.cipher_key()[i], i);
  ASSERT_EQ(out.salt().size(), 4u);
  EXPECT_EQ(out.salt()[0], 0x10);
  EXPECT_EQ(out.salt()[3], 0xff);
  ASSERT_EQ(out.integrity_key.size(), 20u);
  EXPECT_EQ(out.integrity_key.bytes()[19], 0x20);
  const AssociationConfig& in = config_.associations[1].config;
  EXPECT_EQ(in.unparse(), "sa in 2882400001 aead_algo aes-256-gcm mode transport replay-window 64 df clear");
  EXPECT_EQ(in.key.size(), 36u);
  EXPECT_EQ(in.key.bytes()[31], 0xff);

  ASSERT_EQ(config_.routes.size(), 2u);
  EXPECT_FALSE(config_.routes[0].v6);
  EXPECT_EQ(config_.routes[0].prefix.length, 104);
  EXPECT_EQ(config_.routes[0].port, 3u);
  EXPECT_TRUE(config_.routes[1].v6);
  EXPECT_EQ(config_.routes[1].prefix.unparse(), "2001:db8::/32");
  ASSERT_EQ(config_.neighbors.size(), 1u);
  EXPECT_EQ(config_.neighbors[0].port, 2u);
  EXPECT_EQ(config_.neighbors[0].address.unparse_colon(), "DE:AD:BE:EF:01:02");
}

TEST_F(SecgwFile, MistakesOfAFileAreSaidAtOnce) {
  EXPECT_FALSE(
      read("sp ipv4 out esp protect 1000 dst 10.0.0.0 sport 5:4\n"
           "sp ipv5 out\n"
           "ps\n"
           "sp ipv4 up\n"
           "sa out 1000 cipher_algo aes-192-cbc cipher_key 1:2 auth_algo sha1-hmac auth_key 1:2 \\\n"
           "  mode ipv4-tunnel \\\n"
           "  src 1.1.1.1 dst ::1\n"
           "sp ipv4 out esp protect 1000\n"
           "sp ipv4 in esp protect 1000\n"
           "sa in 2000 cipher_algo null auth_algo null mode transport\n"
           "sa in 2000 cipher_algo null auth_algo null mode transport\n"
           "rt ipv4 port 4\n"
           "rt\n"
           "neigh port x 1:2:3:4:5\n"
           "neigh port 1 01:00:5e:00:00:01\n"
           "neigh port 1 00:00:00:00:00:00\n"));
  EXPECT_EQ(messages_,
            "1: '10.0.0.0': expected an IPv4 address and the length of its prefix, as 10.0.0.0/8\n"
            "1: '5:4': expected ports FIRST:LAST, each 0 to 65535\n"
            "2: 'ipv5': expected ipv4 or ipv6\n"
            "3: 'ps': expected sp, sa, rt, neigh or flow\n"
            "4: 'up': expected in or out\n"
            "5: 'aes-192-cbc': not supported; expected null, aes-128-cbc, aes-256-cbc, 3des-cbc, aes-128-ctr or "
            "aes-256-ctr\n"
            "5: 'auth_key': sha1-hmac needs 20 bytes, found 2\n"
            "7: '::1': expected an IPv4 address\n"
            "10: warning: 'auth_algo': nothing authenticates the packets, and replays are not seen: anybody can forge "
            "them\n"
            "11: warning: 'auth_algo': nothing authenticates the packets, and replays are not seen: anybody can forge "
            "them\n"
            "12: 'rt': the route lacks dst\n"
            "13: 'rt': expected ipv4 or ipv6 after it\n"
            "14: 'x': expected the number of a port\n"
            "14: '1:2:3:4:5': expected an Ethernet address\n"
            "15: '01:00:5e:00:00:01': expected the Ethernet address of a neighbor, not of a group or of nobody\n"
            "16: '00:00:00:00:00:00': expected the Ethernet address of a neighbor, not of a group or of nobody\n"
            "11: '2000': line 10 has an association 'in' with this SPI already\n"
            "9: '1000': there is no association 'in' with this SPI\n");
}

TEST_F(SecgwFile, MistakesOfPolicies) {
  EXPECT_EQ(said("sp ipv4 out protect 5"), "f:1: 'sp': the policy lacks 'esp'\n");
  EXPECT_EQ(said("sp ipv4 out esp"), "f:1: 'sp': the policy lacks one of protect, bypass and discard\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass discard"),
            "f:1: 'sp': the policy has more than one of protect, bypass and discard\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass bypass"), "f:1: 'bypass': given twice\n");
  EXPECT_EQ(said("sp ipv4 out esp protect"), "f:1: 'protect': expected an SPI, 1 to 4294967295 after it\n");
  EXPECT_EQ(said("sp ipv4 out esp protect 0"), "f:1: '0': expected an SPI, 1 to 4294967295\n");
  EXPECT_EQ(said("sp ipv4 out esp protect 4294967296"), "f:1: '4294967296': expected an SPI, 1 to 4294967295\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass pri -1"), "f:1: '-1': expected a priority, 0 to 2147483647\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass proto 6:7"),
            "f:1: '6:7': expected a protocol as NUMBER:255, or 0:0 for all\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass proto 6"), "f:1: '6': expected a protocol as NUMBER:255, or 0:0 for all\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass proto 6:6"), "");
  EXPECT_EQ(said("sp ipv4 out esp bypass dport 80"), "f:1: '80': expected ports FIRST:LAST, each 0 to 65535\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass dport 0:65536"),
            "f:1: '0:65536': expected ports FIRST:LAST, each 0 to 65535\n");
  EXPECT_EQ(said("sp ipv6 out esp bypass dst 10.0.0.0/8"),
            "f:1: '10.0.0.0/8': expected an IPv6 address and the length of its prefix, as 2001:db8::/32\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass dst 10.0.0.0/255.0.0.1"),
            "f:1: '10.0.0.0/255.0.0.1': expected an IPv4 address and the length of its prefix, as 10.0.0.0/8\n");
  EXPECT_EQ(said("sp ipv4 out esp bypass to"),
            "f:1: 'to': expected esp, protect, bypass, discard, pri, src, dst, proto, sport or dport\n");
}

TEST_F(SecgwFile, MistakesOfAssociations) {
  EXPECT_EQ(said("sa out"),
            "f:1: 'out': expected an SPI, 1 to 4294967295 after it\n"
            "f:1: 'sa': the association lacks cipher_algo or aead_algo\n"
            "f:1: 'sa': the association lacks auth_algo or aead_algo\n"
            "f:1: 'sa': the association lacks mode\n");
  EXPECT_EQ(said_of_tunnel(""), "");
  EXPECT_EQ(said_of_tunnel("auth_algo null"), "f:1: 'auth_algo': aead_algo stands in its place\n");
  EXPECT_EQ(said_of_tunnel("replay-window 63"), "f:1: 'replay-window': expected 64 to 4096 packets, found 63\n");
  EXPECT_EQ(said_of_tunnel("\\\nreplay-window x"), "f:2: 'x': expected a number of packets, 64 to 4096\n");
  EXPECT_EQ(said_of_tunnel("esn 0"), "f:1: 'esn': the first number is 1 to 18446744073709551615, found 0\n");
  EXPECT_EQ(said_of_tunnel("esn"),
            "f:1: 'esn': expected the first sequence number, 1 to 18446744073709551615 after it\n");
  EXPECT_EQ(said_of_tunnel("encap-port 1:2"), "f:1: 'encap-port': the association lacks udp-encap\n");
  EXPECT_EQ(said_of_tunnel("encap-port 1 udp-encap"), "f:1: '1': expected ports SOURCE:DESTINATION, each 1 to 65535\n");
  EXPECT_EQ(said_of_tunnel("encap-port 1:0 udp-encap"), "f:1: 'encap-port': port 0 cannot be used\n");
  EXPECT_EQ(said_of_tunnel("dscp 64 df no most-packets x most-bytes -1"),
            "f:1: '64': expected copy, or a DSCP from 0 to 63\n"
            "f:1: 'no': expected copy, set or clear\n"
            "f:1: 'x': expected a number of packets\n"
            "f:1: '-1': expected a number of bytes\n");
  EXPECT_EQ(said_of_tunnel("mode transport"),
            "f:1: 'mode': given twice\n"
            "f:1: 'src': an association in transport mode has no addresses of its own\n"
            "f:1: 'dst': an association in transport mode has no addresses of its own\n");
  EXPECT_EQ(said_of_tunnel("what"),
            "f:1: 'what': expected mode, cipher_algo, auth_algo, aead_algo, src, dst, esn, udp-encap, encap-port, "
            "replay-window, dscp, df, most-packets, most-bytes, or another option of ipsec-secgw\n");
  EXPECT_EQ(said("sa in 1000 cipher_algo null auth_algo sha1-hmac mode ipv6-tunnel src ::1"),
            "f:1: 'sha1-hmac': expected auth_key after it, and 20 bytes\n"
            "f:1: 'sa': the tunnel lacks dst\n");
  EXPECT_EQ(said("sa in 1000 cipher_algo aes-128-gcm auth_algo md5 mode transport"),
            "f:1: 'aes-128-gcm': expected null, aes-128-cbc, aes-256-cbc, 3des-cbc, aes-128-ctr or aes-256-ctr\n"
            "f:1: 'md5': expected null, sha1-hmac or sha256-hmac\n");
  EXPECT_EQ(said("sa in 1000 cipher_algo null auth_algo null mode transport").substr(0, 60),
            "f:1: warning: 'auth_algo': nothing authenticates the packets");
}

TEST_F(SecgwFile, KeysAreNeverShown) {
  const std::string key = kKey16;
  const auto quiet = [&](const std::string& text) {
    const std::string message = said(text);
    EXPECT_EQ(message.find("3:4:5"), std::string::npos) << message;
    EXPECT_EQ(message.find("0102030405"), std::string::npos) << message;
    EXPECT_NE(message, "");
    return message;
  };
  const std::string begin =
      "sa in 1000 mode transport auth_algo sha1-hmac auth_key " + key + ":1:2:3:4 cipher_algo aes-128-ctr ";
  EXPECT_EQ(quiet(begin + "cipher_key " + key),
            "f:1: 'cipher_key': aes-128-ctr needs 20 bytes (16 of the key, then 4 of the salt), found 16\n");
  EXPECT_EQ(quiet(begin + "cipher_key " + key + ":1:2:3:4:5"),
            "f:1: 'cipher_key': aes-128-ctr needs 20 bytes (16 of the key, then 4 of the salt), found 21\n");
  EXPECT_EQ(quiet(begin + "cipher_key " + key + ":1:2:3:g"),
            "f:1: 'cipher_key': byte 20 is not hexadecimal from 0 to ff\n");
  EXPECT_EQ(quiet(begin + "cipher_key " + key + ":1:2:3:"),
            "f:1: 'cipher_key': byte 20 is not hexadecimal from 0 to ff\n");
  EXPECT_EQ(quiet(begin + "cipher_key 0102030405060708090a0b0c0d0e0f1011121314"),
            "f:1: 'cipher_key': byte 1 is not hexadecimal from 0 to ff\n");
  EXPECT_EQ(quiet(begin + "cipher_key " + key + ": 1:2:3:4:5").substr(0, 81),
            "f:1: 'cipher_key': byte 17 is not hexadecimal from 0 to ff\nf:1: '(hexadecimal)': ");
  EXPECT_EQ(quiet(begin + key).substr(0, 70), "f:1: 'aes-128-ctr': expected cipher_key after it, and 20 bytes (16 of ");
  quiet(begin + "0102030405060708");
  quiet("sa in 1000 cipher_algo null cipher_key 1:2:3:4:5 auth_algo null auth_key 1:2:3:4:5 mode transport");
  quiet(begin + "cipher_key " + std::string(1000, '1') + ":3:4:5");
}

TEST_F(SecgwFile, OptionsOfNetworkCardsAreIgnored) {
  EXPECT_EQ(said_of_tunnel("flow-direction 0 \\\n2 type inline-crypto-offload port_id 1 fallback lookaside-none mss 9 "
                           "reassembly_en telemetry"),
            "f:1: warning: 'flow-direction' is ignored: it chooses a queue of a network card\n"
            "f:2: warning: 'inline-crypto-offload' is ignored: Headrace encrypts by itself\n"
            "f:2: warning: 'fallback' is ignored: there is no offload to fall back from\n"
            "f:2: warning: 'mss' is ignored: there is no segmentation offload\n"
            "f:2: warning: 'reassembly_en' is ignored: network cards do not reassemble\n");
  EXPECT_EQ(said("flow ipv4 dst 1.1.1.1/32 port 0 queue 0 count\nrt ipv4 src 1.0.0.0/8 dst 2.0.0.0/8"),
            "f:1: warning: 'flow' is ignored: it chooses queues of network cards\n"
            "f:2: warning: 'src' is ignored: routes go by destination\n");
  EXPECT_EQ(said_of_tunnel("type fast port_id x fallback no flow-direction 1"),
            "f:1: 'fast': expected no-offload, lookaside-protocol-offload, inline-protocol-offload or "
            "inline-crypto-offload\n"
            "f:1: 'x': expected the number of a port\n"
            "f:1: 'no': expected lookaside-none\n"
            "f:1: '1': expected a queue after it\n"
            "f:1: warning: 'flow-direction' is ignored: it chooses a queue of a network card\n");
}

TEST_F(SecgwFile, LinesThatAreTooLongOrEndTooEarly) {
  EXPECT_EQ(said(std::string(5000, 'x')), "f:1: longer than 4096 bytes in a line, or 16384 in joined lines\n");
  std::string joined = "\n";
  for (int i = 0; i < 10; ++i) joined += std::string(2000, 'x') + "\\\n";
  EXPECT_EQ(said(joined + "\nrt ipv4 dst 1.0.0.0/8\n"),
            "f:2: longer than 4096 bytes in a line, or 16384 in joined lines\n");
  EXPECT_EQ(said("rt ipv4 \\\ndst 1.0.0.0/8 \\"), "f:2: '\\': the file ends where a line should follow\n");
  EXPECT_EQ(said("rt ipv4 d\\st 1.0.0.0/8"), "f:1: 'd\\st': expected dst or port\n");
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(said("\n#\n\\\n\n \t\n"), "");
}

TEST_F(SecgwFile, ManyMistakesAreCounted) {
  std::string text;
  for (int i = 0; i < 80; ++i) text += "x\nflow\n";
  const std::string messages = said(text);
  EXPECT_EQ(std::count(messages.begin(), messages.end(), '\n'), 102);
  EXPECT_NE(messages.find("f: 30 more errors\n"), std::string::npos);
  EXPECT_NE(messages.find("f: warning: 30 more warnings\n"), std::string::npos);
}

TEST_F(SecgwFile, ChecksWhatOnlyAWholeFileTells) {
  EXPECT_FALSE(
      read("sa in 5 cipher_algo null auth_algo null mode ipv4-tunnel src 1.1.1.1 dst 2.2.2.2\n"
           "sa in 5 cipher_algo null auth_algo null mode ipv4-tunnel src 1.1.1.1 dst 2.2.2.3\n"
           "sa in 5 cipher_algo null auth_algo null mode ipv4-tunnel src 1.1.1.9 dst 2.2.2.2\n"
           "sa out 5 cipher_algo null auth_algo null mode ipv4-tunnel src 1.1.1.1 dst 2.2.2.2\n"
           "sa out 5 cipher_algo null auth_algo null mode ipv4-tunnel src 1.1.1.1 dst 2.2.2.3\n"
           "sp ipv4 in esp protect 5\n"
           "sp ipv4 in esp protect 6\n"));
  std::string errors;
  for (const std::string& line : errors_.lines())
    if (line.find("warning: 'auth") == std::string::npos) errors += line.substr(line.find(".cfg:") + 5) + "\n";
  EXPECT_EQ(errors,
            "3: '5': line 1 has an association 'in' with this SPI and destination already\n"
            "5: '5': line 4 has an association 'out' with this SPI already\n"
            "7: '6': there is no association 'in' with this SPI\n"
            " warning: 5 associations have SPIs up to 255, which are reserved (RFC 4303, section 2.1)\n");
}

TEST_F(SecgwFile, FileThatIsNotThere) {
  EXPECT_FALSE(read_secgw("/nonexistent", config_, errors_));
  EXPECT_EQ(errors_.str(), "/nonexistent: No such file or directory\n");
}

/// DPDK's examples: two gateways, in one file.
TEST_F(SecgwFile, ExamplesOfDPDK) {
  const std::string path = kSourceDir + "/../shared/data/esp/dpdk-ipsec-secgw-ep0-ep1.cfg.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  // Each SPI of one is the other's of the other direction, so both together are a file as well.
  ASSERT_TRUE(read_secgw(path, config_, errors_)) << errors_.str();
  std::vector<std::string> texts;
  ASSERT_EQ(read_text_lines(path,
                            [&](std::string_view line) {
                              const bool begins = line.starts_with("#   IPSEC-SECGW");
                              if (begins || texts.empty()) texts.emplace_back();
                              texts.back() += std::string(line) + "\n";
                            }),
            "");
  ASSERT_EQ(texts.size(), 3u);  // the first is a rule
  SecgwConfig both[2];
  for (int i = 0; i < 2; ++i) {
    Errors errors;
    const testing::TemporaryFile file(texts[i + 1], ".cfg");
    ASSERT_TRUE(read_secgw(file.path(), both[i], errors)) << errors.str();
    // NULL without authentication, flow-direction, and one about all reserved SPIs.
    EXPECT_EQ(errors.warning_count(), i == 0 ? 9 : 5) << errors.str();
  }
  EXPECT_EQ(both[0].policies.size(), 36u);
  EXPECT_EQ(both[1].policies.size(), 34u);
  EXPECT_EQ(both[0].associations.size(), 18u);
  EXPECT_EQ(both[1].associations.size(), 16u);
  EXPECT_EQ(both[0].routes.size(), 26u);
  EXPECT_EQ(both[1].routes.size(), 26u);
  EXPECT_EQ(config_.associations.size(), 34u);
  EXPECT_EQ(config_.policies.size(), 70u);
  // What one sends the other accepts.
  for (const auto& out : both[1].associations) {
    if (out.config.direction != IPsecDirection::kOut) continue;
    const auto in = std::find_if(both[0].associations.begin(), both[0].associations.end(), [&](const auto& other) {
      return other.config.direction == IPsecDirection::kIn && other.config.spi == out.config.spi;
    });
    ASSERT_NE(in, both[0].associations.end());
    EXPECT_EQ(in->config.fingerprint(), out.config.fingerprint());
    EXPECT_EQ(in->config.destination, out.config.destination);
  }
  EXPECT_EQ(both[0].associations[1].config.cipher, Cipher::kAES128CBC);
  EXPECT_EQ(both[0].associations[1].config.key.bytes()[15], 0xa0);
}

TEST_F(SecgwFile, PoliciesReadWhatTheyWrite) {
  ASSERT_TRUE(
      read("sp ipv4 out esp bypass pri 9 src 10.0.0.0/8 dst 0.0.0.0/0 proto 6:255 sport 0:1 dport 7:65535\n"
           "sp ipv6 in esp discard dst ::ffff:0:0/96\n"));
  std::string text;
  for (const auto& line : config_.policies) text += line.policy.unparse() + "\n";
  SecgwConfig again;
  ASSERT_TRUE(read_secgw_text(text, "f", again, errors_)) << errors_.str();
  ASSERT_EQ(again.policies.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(again.policies[i].policy, config_.policies[i].policy);
}

}  // namespace
}  // namespace headrace
