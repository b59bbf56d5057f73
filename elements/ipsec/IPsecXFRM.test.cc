#include "elements/ipsec/IPsecXFRM.hh"

#include "elements/ipsec/xfrm_follower.hh"
#include "headrace/rcu.hh"
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
  IPsecDatabase& database_ = dynamic_cast<IPsecDatabase&>(*router_.router().find("db"));
  std::string said_;
  XfrmFollower follower_{database_,
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

TEST_F(XfrmFollowing, NumbersGoOnBehindThoseOfTheKernel) {
  // Each has keys of its own: numbers are kept for the whole process.
  const auto numbers = [&](uint32_t spi) -> std::pair<uint64_t, uint64_t> {
    std::pair<uint64_t, uint64_t> found{};
    database_.for_each([&](const Association& a) {
      if (a.config.spi != spi) return;
      found = {a.config.first_sequence, a.config.direction == IPsecDirection::kIn ? a.state->window().last() : 0};
    });
    return found;
  };
  const auto take_at = [&](const std::string& hex, uint64_t sequence) {
    io::XfrmMessage message = read(hex);
    message.state.sequence = sequence;
    follower_.take(message);
    follower_.settle();
  };
  constexpr uint64_t kSkipped = uint64_t{1} << 25;
  take_at(changed(changed(kAddOut, "c1000001", "c1000051"), "00010203", "51010203"), 0);
  EXPECT_EQ(numbers(0xc1000051).first, 1u);
  take_at(changed(changed(kAddOut, "c1000001", "c1000052"), "00010203", "52010203"), 1000);
  EXPECT_EQ(numbers(0xc1000052).first, 1001 + kSkipped);
  // Where fewer are left than may have been used, only the last is.
  uint32_t spi = 0xc1000060;
  for (const bool extended : {false, true})
    for (const uint64_t back : {kSkipped, kSkipped - 1, uint64_t{15}, uint64_t{0}}) {
      io::XfrmMessage message =
          read(changed(changed(kAddOut, "c1000001", fmt::format("{:08x}", ++spi)), "00010203", "53010203"));
      message.state.config.extended_sequence = extended;
      const uint64_t last = message.state.config.last_sequence();
      message.state.sequence = last - back;
      follower_.take(message);
      follower_.settle();
      EXPECT_EQ(numbers(spi).first, last) << extended << " " << back;
      take(kFlushStates);
    }
  // What comes in has no number twice: the window goes on where the kernel's was.
  take_at(changed(changed(kAddIn, "c2000001", "c2000051"), "00010203", "54010203"), uint64_t{5} << 32 | 77);
  EXPECT_EQ(numbers(0xc2000051), std::make_pair((uint64_t{5} << 32) + 78, (uint64_t{5} << 32) + 77));
  // To its end.
  io::XfrmMessage late = read(changed(changed(kAddIn, "c2000001", "c2000052"), "00010203", "55010203"));
  late.state.config.extended_sequence = false;
  late.state.sequence = 0xfffffff0;
  follower_.take(late);
  follower_.settle();
  EXPECT_EQ(numbers(0xc2000052).second, 0xfffffff0u);
}

TEST_F(XfrmFollowing, AStateThatChangesIsReplaced) {
  const auto serial = [&] {
    uint64_t found = 0;
    database_.for_each([&](const Association& a) { found = a.serial; });
    return found;
  };
  take(kAddOut);
  const uint64_t first = serial();
  take(kAddOut);
  EXPECT_EQ(serial(), first);
  take(changed(kAddOut, "00010203", "ff010203"));  // the key
  const uint64_t second = serial();
  EXPECT_GT(second, first);
  take(changed(changed(kAddOut, "00010203", "ff010203"), "000700000002", "000900000002"));  // the reqid
  EXPECT_GT(serial(), second);
  EXPECT_NE(associations().find(" reqid 9 "), std::string::npos) << associations();
  // The kernel's reqid of before is free again.
  take(changed(kAddOut, "c1000001", "c1000041"));
  EXPECT_NE(associations().find(" reqid 7 "), std::string::npos) << associations();
}

TEST_F(XfrmFollowing, AnAssociationInThePlaceOfARemovedOneStays) {
  take(kAddOut);
  take(changed(kAddIn, "c2000001", "c2000042"));
  ASSERT_TRUE(router_.write("db.remove", "in 3254779970 192.0.2.1")) << router_.errors();
  ASSERT_TRUE(router_.write("db.add", tunnel_line("in", 4242, ctr_sha1(90)))) << router_.errors();
  take(changed(kDeleteIn, "c2000001", "c2000042"));
  EXPECT_NE(associations().find("sa in 4242 "), std::string::npos) << associations();
}

/// A daemon names the successor in a policy, then deletes the state.
TEST_F(XfrmFollowing, APolicyNamesItsSuccessorBeforeTheStateGoes) {
  take(kAddIn);
  take(kPolicyOutSpi);
  io::XfrmMessage policy = read(changed(kPolicyOutSpi, "c1000001", "c10000cc")), gone = read(kDeleteIn);
  follower_.take(policy);
  follower_.take(gone);
  EXPECT_NE(policies().find("spi 3238002892 "), std::string::npos) << policies();
}

/// Within a series, what comes and goes was never there, and what is replaced is there throughout.
TEST_F(XfrmFollowing, PoliciesChangeInOneStep) {
  take(kPolicyOut);
  const std::string before = policies();
  io::XfrmMessage block = read(kPolicyBlock), gone = read(kDeleteBlock), again = read(kPolicyOut);
  follower_.take(block);
  follower_.take(gone);
  follower_.take(again);
  EXPECT_EQ(policies(), before);
  follower_.settle();
  EXPECT_EQ(policies(), before);
}

TEST_F(XfrmFollowing, ADumpThatConfirmsChangesNothing) {
  take(kAddOut);
  take(kPolicyOut);
  const std::string states = associations(), rules = policies();
  follower_.begin_dump();
  for (const char* hex : {kAddOut, kPolicyOut}) {
    io::XfrmMessage message = read(hex);
    follower_.take(message);
  }
  follower_.end_dump();
  EXPECT_EQ(associations(), states);
  EXPECT_EQ(policies(), rules);
}

TEST_F(XfrmFollowing, WhatIsRefusedIsCountedOnce) {
  const std::string other =
      changed(kAddOut, name_field("rfc4106(gcm(aes))"), name_field("rfc7539esp(chacha20,poly1305)"));
  const std::string policy = changed(kPolicyOut,
                                     "c0000202" + std::string(24, '0') +
                                         "00000000"
                                         "32",
                                     "c0000202" + std::string(24, '0') +
                                         "00000000"
                                         "33");
  for (int i = 0; i < 3; ++i) take(other), take(policy);
  EXPECT_NE(follower_.counts().find("\n1 states refused\n1 policies refused\n"), std::string::npos)
      << follower_.counts();
}

TEST_F(XfrmFollowing, AStateThatIsRefusedLeavesItsReqid) {
  for (int i = 0; i < 8; ++i)
    take(changed(changed(kAddOut, "c1000001", fmt::format("c10000{:02x}", 0xd0 + i)), "000700000002", "000500000002"));
  take(changed(kAddOut, "c1000001", "c10000e0"));
  EXPECT_NE(said_.find("CAPACITY 8"), std::string::npos) << said_;
  take(kFlushStates);
  // From another end, so with a binding of its own.
  take(changed(changed(kAddOut, "c1000001", "c10000e1"), "c0000202", "c0000203"));
  EXPECT_NE(associations().find(" reqid 7 "), std::string::npos) << associations();
}

/// Two ways with one reqid of the kernel are two here: a policy must not send by the other's association.
TEST_F(XfrmFollowing, ReqidsTellBindingsApart) {
  const std::string other = changed(changed(kAddOut, "c1000001", "c1000031"), "c0000202", "c0000203");
  take(kAddOut);
  take(other);
  EXPECT_NE(associations().find(" reqid 2147483648 "), std::string::npos) << associations();
  // A binding lives as long as a policy or a state uses it.
  take(kPolicyOut);
  take(kFlushStates);
  take(other);
  EXPECT_NE(associations().find(" reqid 2147483648 "), std::string::npos) << associations();
  take(kAddOut);
  EXPECT_NE(associations().find(" reqid 7 "), std::string::npos) << associations();
  take(kFlushPolicies);
  take(kFlushStates);
  take(other);
  EXPECT_NE(associations().find(" reqid 7 "), std::string::npos) << associations();
}

TEST_F(XfrmFollowing, AStateWithoutKeysYetIsNone) {
  io::XfrmMessage message = read(kAddOut);
  message.state.larval = true;
  follower_.take(message);
  follower_.settle();
  EXPECT_EQ(associations(), "");
}

TEST_F(XfrmFollowing, KeysAreErasedWithTheirState) {
  const rcu::Reader reader;  // as a worker is
  take(kAddOut);
  const IPsecDatabase::View view = database_.view();
  ASSERT_TRUE(view.keys[0].exists());
  take(kFlushStates);
  EXPECT_FALSE(view.keys[0].exists());
}

/// What the kernel is told of packets: totals, the last number, and when a limit is reached.
TEST_F(XfrmFollowing, TheKernelLearnsWhatIsUsed) {
  std::vector<std::string> sent;
  const auto report = [&] {
    sent.clear();
    follower_.report([&](std::span<const uint8_t> bytes) {
      sent.push_back(plain_hex(to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
    });
  };
  // A message's type is its fifth byte: 1e says how much, 18 that a limit is reached, with 1 behind the state if it is the
  // hard one.
  const auto types = [&] {
    std::string all;
    for (const std::string& message : sent)
      all += message.substr(8, 2) + (message.substr(8, 2) == "18" ? message.substr(2 * (16 + 224), 2) : "") + " ";
    return all;
  };
  const auto little = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += fmt::format("{:02x}", value >> 8 * i & 255);
    return text;
  };
  io::XfrmMessage message = read(changed(changed(kAddOut, "c1000001", "c1000021"), "00010203", "21010203"));
  message.state.limits = {.soft_bytes = 0, .hard_bytes = 0, .soft_packets = 4, .hard_packets = 0};
  io::XfrmMessage later = message;
  later.state.limits.hard_packets = 8;
  follower_.take(message);
  follower_.settle();
  io::XfrmMessage used_before = read(changed(changed(kAddOut, "c1000001", "c1000022"), "00010203", "22010203"));
  used_before.state.sequence = 1000;
  follower_.take(used_before);
  follower_.settle();
  report();
  EXPECT_EQ(types(), "") << "nothing has been sent";
  AssociationState* state = nullptr;
  database_.for_each([&](const Association& a) {
    if (a.config.spi == 0xc1000021) state = a.state.get();
  });
  ASSERT_NE(state, nullptr);
  const auto use = [&](int packets) {
    for (int i = 0; i < packets; ++i) {
      ASSERT_TRUE(state->next_sequence().has_value());
      state->count(1, 100);
    }
  };
  use(3);
  report();
  ASSERT_EQ(types(), "1e ");
  EXPECT_NE(sent[0].find(little(300, 8) + little(3, 8)), std::string::npos) << sent[0];
  EXPECT_NE(sent[0].find("10000a00" + little(3, 4)), std::string::npos) << "the last number: " << sent[0];
  report();
  EXPECT_EQ(types(), "") << "told already";
  use(2);
  report();
  EXPECT_EQ(types(), "1e 1800 ");
  use(1);
  report();
  EXPECT_EQ(types(), "1e ") << "a limit is told once";
  // Other limits for the same state.
  follower_.take(later);
  follower_.settle();
  use(3);
  report();
  EXPECT_EQ(types(), "1e 1801 ");
  use(1);
  report();
  EXPECT_EQ(types(), "1e ");
  EXPECT_NE(follower_.counts().find("\n1 states ended by packets or bytes\n"), std::string::npos) << follower_.counts();
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
