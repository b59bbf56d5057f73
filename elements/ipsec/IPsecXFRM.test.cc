#include "elements/ipsec/IPsecXFRM.hh"

#include "elements/ipsec/xfrm_follower.hh"
#include "support/element_test.hh"
#include "support/ipsec_test.hh"
#include "support/xfrm_messages.hh"

namespace headrace {
namespace {

using namespace testing;

/// A database, and messages for it.
class XfrmFollowing : public ::testing::Test {
 protected:
  XfrmFollowing() { EXPECT_TRUE(router_.ok()) << router_.errors(); }

  io::XfrmMessage read(const std::string& hex) {
    const std::string bytes = from_hex(hex);
    std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    std::optional<io::XfrmMessage> message = io::read_xfrm_message(rest);
    EXPECT_TRUE(message && rest.empty());
    return message ? *message : io::XfrmMessage();
  }
  void take(const std::string& hex) {
    io::XfrmMessage message = read(hex);
    follower_.take(message);
    follower_.settle();
  }
  std::string associations() { return router_.read("db.associations"); }
  std::string policies() { return router_.read("db.policies"); }

  /// The message with `to` in place of the first `from`, both hexadecimal.
  static std::string changed(std::string hex, const std::string& from, const std::string& to) {
    const size_t at = hex.find(from);
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(from.size(), to.size());
    return hex.replace(at, from.size(), to);
  }
  /// An algorithm's name as it lies in its field.
  static std::string name_field(std::string name) {
    name.resize(24);
    return plain_hex(to_hex(name));
  }

  TestRouter router_{"db :: IPsecDatabase(CAPACITY 8);"};
  std::string said_;
  XfrmFollower follower_{dynamic_cast<IPsecDatabase&>(*router_.router().find("db")),
                         {Ip6Address::v4_mapped(IpAddress::from_bytes("\300\0\2\1")),
                          Ip6Address::from_bytes("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1")},
                         [this](const std::string& line) { said_ += line + "\n"; }};
};

const std::string kOutLine =
    "sa out 3238002689 aead_algo aes-128-gcm reqid 7 mode ipv4-tunnel src 192.0.2.1 dst 192.0.2.2\n";

TEST_F(XfrmFollowing, AStateIsRead) {
  const io::XfrmMessage out = read(kAddOut);
  ASSERT_EQ(out.change, io::XfrmChange::kState);
  EXPECT_EQ(out.state.problem, "");
  EXPECT_EQ(out.state.id.spi, 0xc1000001u);
  EXPECT_EQ(out.state.binding.reqid, 7u);
  std::string key;
  for (const uint8_t byte : out.state.config.key.bytes()) key += static_cast<char>(byte);
  EXPECT_EQ(to_hex(key), to_hex(from_hex("000102030405060708090a0b0c0d0e0f10111213")));

  const io::XfrmMessage in = read(kAddIn);
  EXPECT_EQ(in.state.problem, "");
  EXPECT_EQ(in.state.config.cipher, Cipher::kAES128CBC);
  EXPECT_EQ(in.state.config.integrity, Integrity::kHMACSHA256);
  EXPECT_EQ(in.state.config.integrity_key.size(), 32u);
  EXPECT_TRUE(in.state.config.extended_sequence);
  EXPECT_EQ(in.state.config.replay_window, 128u);
  ASSERT_TRUE(in.state.config.udp_encapsulation.has_value());
  EXPECT_EQ(in.state.config.udp_encapsulation->destination_port, 40000);
  EXPECT_EQ(in.state.limits, (io::XfrmLimits{1000000, 2000000, 0, 0}));
  ASSERT_TRUE(in.state.esn_words.has_value());
  EXPECT_EQ(*in.state.esn_words, 4u);
}

TEST_F(XfrmFollowing, StatesComeChangeAndGo) {
  take(kAddOut);
  EXPECT_EQ(associations(), kOutLine);
  take(kAddOut);
  take(kUpdateOut);
  EXPECT_EQ(associations(), kOutLine.substr(0, kOutLine.size() - 1) + " most-packets 5000\n");
  take(kAddIn);
  const std::string in =
      "sa in 3254779905 cipher_algo aes-128-cbc auth_algo sha256-hmac reqid 1 mode ipv4-tunnel src 192.0.2.2 dst 192.0.2.1 "
      "esn 1 replay-window 128 udp-encap encap-port 4500:40000 most-bytes 2000000\n";
  // The way back has a binding of its own, because its addresses are others; the kernel's reqid is taken.
  EXPECT_NE(associations().find(changed(in, "reqid 1 ", "reqid 2 ").substr(0, 60)), std::string::npos)
      << associations();
  take(kDeleteIn);
  take(kAddTransport6);
  EXPECT_NE(associations().find("sa out 3238002690 cipher_algo aes-128-ctr auth_algo sha1-hmac reqid 8 mode transport"),
            std::string::npos)
      << associations();
  take(kFlushStates);
  EXPECT_EQ(associations(), "");
  EXPECT_EQ(said_, "");
}

TEST_F(XfrmFollowing, OutboundTheNewestStateProtects) {
  take(kPolicyOut);
  take(kAddOut);
  const IPsecDatabase& db = database(router_);
  const auto protects_by = [&]() -> uint32_t {
    PolicySelector packet;
    packet.source = Ip6Address::v4_mapped(IpAddress::from_bytes("\12\1\0\2"));
    packet.destination = Ip6Address::v4_mapped(IpAddress::from_bytes("\12\2\0\2"));
    const PolicyAnswer answer = db.policies().lookup(IPsecDirection::kOut, packet);
    if (answer.action != PolicyAction::kProtect) return 0;
    const Association* const a = db.associations().outbound(answer.spi, answer.reqid);
    return a == nullptr ? 1 : a->config.spi;
  };
  EXPECT_EQ(protects_by(), 0xc1000001u);
  // Its successor, with another key.
  const std::string next = changed(changed(kAddOut, "c1000001", "c10000aa"), "00010203", "ff010203");
  take(next);
  EXPECT_EQ(protects_by(), 0xc10000aau);
  take(kUpdateOut);
  EXPECT_EQ(protects_by(), 0xc1000001u) << "replaced, and so the newest";
  // A policy that names one waits for its daemon's word before it takes a successor.
  take(kPolicyOutSpi);
  take(changed(changed(kAddOut, "c1000001", "c10000bb"), "00010203", "fe010203"));
  EXPECT_EQ(protects_by(), 0xc1000001u);
  take(changed(kPolicyOutSpi, "c1000001", "c10000bb"));
  EXPECT_EQ(protects_by(), 0xc10000bbu);
  take(kFlushStates);
  EXPECT_EQ(protects_by(), 1u) << "no association";
  take(kFlushPolicies);
  EXPECT_EQ(protects_by(), 0u);
}

TEST_F(XfrmFollowing, PoliciesComeChangeAndGo) {
  take(kPolicyOutSpi);
  take(kPolicyForward);
  take(kPolicyTransport6);
  take(kPolicyBlock);
  const std::string transport =
      "sp ipv6 out esp protect reqid 8 pri 0 src 2001:db8::1/128 dst 2001:db8::2/128 sport 0:65535 dport 0:65535\n";
  const std::string block =
      "sp ipv4 in esp discard pri 0 src 10.9.0.0/16 dst 10.1.0.0/16 sport 0:65535 dport 0:65535\n";
  EXPECT_EQ(
      policies(),
      transport + block +
          "sp ipv4 out esp protect reqid 7 spi 3238002689 pri -375423 src 10.1.0.0/16 dst 10.2.0.0/16 sport 0:65535 "
          "dport 0:65535\n"
          "sp ipv4 in esp protect reqid 2147483648 pri -375423 src 10.2.0.0/16 dst 10.1.0.0/16 proto 6:255 "
          "sport 443:443 dport 0:65535\n");
  take(kPolicyOut);
  EXPECT_NE(policies().find("out esp protect reqid 7 pri -100 src 10.1.0.0/16"), std::string::npos) << policies();
  EXPECT_EQ(policies().find("pri -375423 src 10.1.0.0/16"), std::string::npos) << policies();
  take(kDeleteBlock);
  EXPECT_EQ(policies().find("discard"), std::string::npos);
  take(kFlushPolicies);
  EXPECT_EQ(policies(), "");
  EXPECT_EQ(said_, "");
}

TEST_F(XfrmFollowing, TheEndOfItsTimeEndsAState) {
  take(kAddShort);
  EXPECT_NE(associations(), "");
  take(kExpireShort);
  EXPECT_EQ(associations(), "");
}

TEST_F(XfrmFollowing, WhatADumpDoesNotHaveIsGone) {
  take(kAddOut);
  take(kAddTransport6);
  take(kPolicyOut);
  take(kPolicyBlock);
  follower_.begin_dump();
  io::XfrmMessage state = read(kAddOut), policy = read(kPolicyBlock);
  follower_.take(state);
  follower_.take(policy);
  follower_.end_dump();
  EXPECT_EQ(associations(), kOutLine);
  const std::string left = policies();
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), 1);
  EXPECT_NE(left.find("discard"), std::string::npos);
}

TEST_F(XfrmFollowing, WhatCannotBeTakenOverIsSaidOnce) {
  const std::string gcm = name_field("rfc4106(gcm(aes))");
  const std::string other = changed(kAddOut, gcm, name_field("rfc7539esp(chacha20,poly1305)"));
  take(other);
  const std::string first = "state 0xc1000001 from 192.0.2.1 to 192.0.2.2";
  EXPECT_EQ(said_.find(first + " is refused: rfc7539esp(chacha20,pol"), 0u) << said_;
  take(changed(other, "c1000001", "c1000003"));
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1) << said_;
  EXPECT_EQ(associations(), "");
  EXPECT_NE(follower_.counts().find("\n2 states refused\n"), std::string::npos) << follower_.counts();
  EXPECT_NE(follower_.refused().find("state 0xc1000003 "), std::string::npos);
  // One that comes again with an algorithm that is known is taken over.
  take(kAddOut);
  EXPECT_EQ(associations(), kOutLine);
  // Neither end is the gateway's.
  take(changed(changed(kAddOut, "c0000201", "c0000209"), "c1000001", "c1000004"));
  EXPECT_NE(said_.find("neither end is an address"), std::string::npos) << said_;
  // A policy that cannot be kept lets nothing pass.
  take(changed(kPolicyOut,
               "c0000202" + std::string(24, '0') +
                   "00000000"
                   "32",
               "c0000202" + std::string(24, '0') +
                   "00000000"
                   "33"));
  EXPECT_NE(policies().find("sp ipv4 out esp discard pri -100 src 10.1.0.0/16"), std::string::npos) << policies();
  EXPECT_NE(said_.find("its template's protocol 51 is not ESP"), std::string::npos) << said_;
  EXPECT_NE(follower_.counts().find("\n1 policies refused\n"), std::string::npos) << follower_.counts();
}

TEST_F(XfrmFollowing, CapacityIsABound) {
  for (int i = 0; i < 9; ++i) take(changed(kAddOut, "c1000001", fmt::format("c10000{:02x}", 0xb0 + i)));
  const std::string all = associations();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 8);
  EXPECT_NE(said_.find("more associations than CAPACITY 8"), std::string::npos) << said_;
}

TEST_F(XfrmFollowing, KeysAreNeverShown) {
  take(kAddOut);
  take(kAddIn);
  const std::string shown = associations() + policies() + follower_.counts() + follower_.refused() + said_;
  for (const char* piece : {"000102", "0001", "00:01:02"}) EXPECT_EQ(shown.find(piece), std::string::npos) << shown;
}

TEST_F(XfrmFollowing, CutOffMessagesAreNothing) {
  for (const char* const hex : {kAddOut, kAddIn, kPolicyOut, kDeleteIn, kExpireShort, kDeleteBlock}) {
    const std::string whole = from_hex(hex);
    for (size_t length = 0; length < whole.size(); ++length) {
      std::string bytes = whole.substr(0, length);
      if (length >= 4) {
        const auto size = static_cast<uint32_t>(length);
        std::memcpy(bytes.data(), &size, sizeof size);
      }
      // A copy without room behind it, so that sanitizers see what is read too far.
      const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
      std::span<const uint8_t> rest(exact);
      std::optional<io::XfrmMessage> message = io::read_xfrm_message(rest);
      if (!message) continue;
      follower_.take(*message);
      follower_.settle();
    }
  }
}

TEST_F(XfrmFollowing, WithoutAddressesThereIsAnError) {
  TestRouter none("db :: IPsecDatabase; IPsecXFRM(db);");
  EXPECT_NE(none.errors().find("expected an ADDRESS of the gateway outside"), std::string::npos) << none.errors();
  TestRouter wrong("db :: IPsecDatabase; IPsecXFRM(db, 192.0.2.1, x);");
  EXPECT_NE(wrong.errors().find("'x': expected an IPv4 or IPv6 address"), std::string::npos) << wrong.errors();
}

}  // namespace
}  // namespace headrace
