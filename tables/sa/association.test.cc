#include "tables/sa/association.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"

namespace headrace {
namespace {

constexpr IPsecDirection kInbound = IPsecDirection::kIn, kOutbound = IPsecDirection::kOut;

Ip6Address mapped(const char* text) {
  IpAddress address;
  EXPECT_TRUE(parse(text, address)) << text;
  return Ip6Address::v4_mapped(address);
}
SecretBytes key_of(size_t size, uint8_t first = 1) {
  SecretBytes key;
  for (size_t i = 0; i < size; ++i) EXPECT_TRUE(key.append(static_cast<uint8_t>(first + i)));
  return key;
}
AssociationConfig tunnel(IPsecDirection direction, uint32_t spi, const char* destination = "172.16.2.5") {
  AssociationConfig config;
  config.direction = direction;
  config.spi = spi;
  config.mode = IPsecMode::kTunnel4;
  config.source = mapped("172.16.1.5");
  config.destination = mapped(destination);
  config.cipher = Cipher::kAES128GCM;
  config.key = key_of(20, static_cast<uint8_t>(spi));
  return config;
}
AssociationConfig transport(IPsecDirection direction, uint32_t spi) {
  AssociationConfig config = tunnel(direction, spi);
  config.mode = IPsecMode::kTransport;
  config.source = config.destination = {};
  return config;
}
std::string problems_of(const AssociationConfig& config) {
  std::string text;
  for (const AssociationProblem& problem : check_association(config))
    text += (problem.fatal ? "" : "warning: ") + problem.word + ": " + problem.text + "\n";
  return text;
}

class Associations : public ::testing::Test {
 protected:
  uint32_t add(const AssociationConfig& config) {
    EXPECT_EQ(problems_of(config), "");
    std::string reason;
    const uint32_t index = table_.add(config, reason);
    EXPECT_EQ(reason, "");
    return index;
  }
  std::string refusal(const AssociationConfig& config) {
    std::string reason;
    EXPECT_EQ(table_.add(config, reason), AssociationTable::kNone);
    return reason;
  }

  NonceSource nonces_;
  AssociationStates states_{nonces_};
  AssociationTable table_{{}, states_};
};

TEST_F(Associations, ByReqidTheNewestIsFound) {
  const auto with_reqid = [](IPsecDirection direction, uint32_t spi, uint32_t reqid) {
    AssociationConfig config = tunnel(direction, spi);
    config.reqid = reqid;
    config.key = key_of(20, static_cast<uint8_t>(spi + reqid));
    return config;
  };
  // Peers choose outbound SPIs: two may have the same, and one of them the number of a reqid or of another's SPI.
  const uint32_t first = add(with_reqid(kOutbound, 3000, 7)), other = add(with_reqid(kOutbound, 3000, 8));
  const uint32_t plain = add(tunnel(kOutbound, 3000)), seven = add(with_reqid(kOutbound, 3004, 3000));
  const auto spi_and_index = [&](uint32_t spi, uint32_t reqid) {
    const Association* const a = table_.view().outbound(spi, reqid);
    return a == nullptr ? AssociationTable::kNone : a->index;
  };
  EXPECT_EQ(spi_and_index(0, 7), first);
  EXPECT_EQ(spi_and_index(0, 8), other);
  EXPECT_EQ(spi_and_index(3000, 0), plain);
  EXPECT_EQ(spi_and_index(0, 3000), seven);
  EXPECT_EQ(spi_and_index(3004, 0), AssociationTable::kNone);
  EXPECT_EQ(table_.find(kOutbound, 3000), plain);

  const uint32_t second = add(with_reqid(kOutbound, 3001, 7));
  EXPECT_EQ(spi_and_index(0, 7), second);
  EXPECT_EQ(spi_and_index(3000, 7), first) << "only that with the SPI";
  EXPECT_EQ(spi_and_index(3009, 7), AssociationTable::kNone);
  EXPECT_TRUE(table_.remove(second));
  EXPECT_EQ(spi_and_index(0, 7), first);
  // The newest, whatever index it has.
  const uint32_t third = add(with_reqid(kOutbound, 3002, 7)), fourth = add(with_reqid(kOutbound, 3003, 7));
  EXPECT_TRUE(table_.remove(third));
  EXPECT_TRUE(table_.remove(first));
  EXPECT_EQ(spi_and_index(0, 7), fourth);
  const uint32_t in = add(with_reqid(kInbound, 3000, 7));
  EXPECT_EQ(table_.view().inbound(3000, mapped("172.16.2.5"))->index, in);
  EXPECT_NE(refusal(with_reqid(kInbound, 3000, 9)), "");
}

TEST_F(Associations, FoundByWhatPacketsAndPoliciesSay) {
  const uint32_t a = add(tunnel(kInbound, 1000, "1.1.1.1"));
  const uint32_t b = add(tunnel(kInbound, 1000, "1.1.1.2"));
  const uint32_t c = add(transport(kInbound, 1000));
  const uint32_t d = add(tunnel(kOutbound, 1000, "1.1.1.3"));
  const AssociationView view = table_.view();
  EXPECT_EQ(view.inbound(1000, mapped("1.1.1.1"))->index, a);
  EXPECT_EQ(view.inbound(1000, mapped("1.1.1.2"))->index, b);
  EXPECT_EQ(view.inbound(1000, mapped("1.1.1.3"))->index, c);
  EXPECT_EQ(view.outbound(1000)->index, d);
  EXPECT_EQ(view.outbound(1001), nullptr);
  EXPECT_EQ(view.outbound(0), nullptr);
  EXPECT_EQ(view.inbound(0, {}), nullptr);
  EXPECT_EQ(view.at(b)->config.destination, mapped("1.1.1.2"));
  EXPECT_EQ(view.at(1000), nullptr);
  EXPECT_EQ(view.at(~0u), nullptr);
  EXPECT_EQ(table_.find(kInbound, 1000, mapped("1.1.1.2")), b);
  EXPECT_EQ(table_.find(kInbound, 1000), c);
  EXPECT_EQ(table_.find(kOutbound, 1000), d);
  EXPECT_EQ(table_.find(kOutbound, 7), AssociationTable::kNone);
  EXPECT_EQ(table_.size(), 4u);

  EXPECT_TRUE(table_.remove(c));
  EXPECT_FALSE(table_.remove(c));
  EXPECT_FALSE(table_.remove(12345));
  EXPECT_EQ(table_.view().inbound(1000, mapped("1.1.1.3")), nullptr);
  EXPECT_EQ(table_.view().at(c), nullptr);
  EXPECT_EQ(table_.size(), 3u);
}

TEST_F(Associations, OneSPIOnce) {
  add(tunnel(kInbound, 1000, "1.1.1.1"));
  add(transport(kInbound, 1001));
  add(tunnel(kOutbound, 1000));
  EXPECT_EQ(refusal(tunnel(kInbound, 1000, "1.1.1.1")),
            "there is an association in with SPI 1000 and destination 1.1.1.1 already");
  EXPECT_EQ(refusal(transport(kInbound, 1001)), "there is an association in with SPI 1001 already");
  EXPECT_EQ(refusal(tunnel(kOutbound, 1000, "9.9.9.9")), "there is an association out with SPI 1000 already");
  EXPECT_EQ(table_.size(), 3u);
}

TEST_F(Associations, CountsAndLists) {
  add(tunnel(kOutbound, 1000));
  add(tunnel(kInbound, 1001));
  Association* const out = table_.view().outbound(1000);
  out->count(AssociationEvent::kPackets);
  out->count(AssociationEvent::kBytes, 1500);
  out->count(AssociationEvent::kPackets);
  EXPECT_EQ(out->sum(AssociationEvent::kPackets), 2u);
  EXPECT_EQ(out->sum(AssociationEvent::kBytes), 1500u);
  EXPECT_EQ(out->sum(AssociationEvent::kExpired), 0u);
  EXPECT_STREQ(to_string(AssociationEvent::kPackets), "packets");
  EXPECT_STREQ(to_string(AssociationEvent::kBadICV), "bad ICV");
  EXPECT_STREQ(to_string(AssociationEvent::kExpired), "expired");
  std::string text;
  table_.for_each([&](const Association& a) { text += a.config.unparse() + "\n"; });
  EXPECT_EQ(text,
            "sa out 1000 aead_algo aes-128-gcm mode ipv4-tunnel src 172.16.1.5 dst 172.16.2.5\n"
            "sa in 1001 aead_algo aes-128-gcm mode ipv4-tunnel src 172.16.1.5 dst 172.16.2.5 replay-window 64\n");
}

TEST_F(Associations, NumbersSurviveTheTable) {
  std::string reason;
  AssociationConfig out = tunnel(kOutbound, 1000);
  const AssociationConfig in = tunnel(kInbound, 1001);
  uint64_t iv = 0;
  {
    AssociationTable before({}, states_);
    AssociationState& state = *before.view().at(before.add(out, reason))->state;
    for (uint64_t i = 1; i <= 10; ++i) EXPECT_EQ(state.next_sequence(), i);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // without a file IVs stay behind the clock
    iv = state.next_iv().value();
    EXPECT_TRUE(before.view().at(before.add(in, reason))->state->window().update(7));
    // A hot swap: both tables are there for a while.
    AssociationTable after({}, states_);
    AssociationState& same = *after.view().at(after.add(out, reason))->state;
    EXPECT_EQ(&same, &state);
    EXPECT_EQ(same.next_sequence(), 11u);
  }
  AssociationTable later({}, states_);
  AssociationState& state = *later.view().at(later.add(out, reason))->state;
  EXPECT_EQ(state.last_sent(), 11u);
  EXPECT_EQ(state.next_iv(), iv + 1);
  const AssociationState& window = *later.view().at(later.add(in, reason))->state;
  EXPECT_EQ(window.window().check(7).verdict, ReplayWindow::Verdict::kReplayed);

  // Another key is another association.
  AssociationTable other({}, states_);
  out.key = key_of(20, 99);
  EXPECT_EQ(other.view().at(other.add(out, reason))->state->last_sent(), 0u);
  EXPECT_EQ(states_.size(), 3u);
}

TEST_F(Associations, ConfigurationOfAWindowMayChange) {
  AssociationConfig config = tunnel(kInbound, 1000);
  const auto first = states_.get(config);
  config.replay_window = 1024;
  EXPECT_EQ(states_.get(config), first);
  EXPECT_EQ(first->window().size(), 1024u);
}

TEST_F(Associations, ManyStatesAreForgotten) {
  AssociationStates few(nonces_, 10);
  AssociationConfig config = tunnel(kOutbound, 1);
  const auto kept = few.get(config);
  EXPECT_EQ(kept->next_sequence(), 1u);
  for (uint32_t spi = 1000; spi < 1100; ++spi) {
    config.spi = spi;
    (void)few.get(config);
    EXPECT_LE(few.size(), 10u);
  }
  config.spi = 1;
  EXPECT_EQ(few.get(config), kept);
}

TEST_F(Associations, SequenceEnds) {
  AssociationConfig config = tunnel(kOutbound, 1000);
  config.first_sequence = 0xfffffffe;
  AssociationState& plain = *table_.view().at(add(config))->state;
  EXPECT_EQ(plain.next_sequence(), 0xfffffffe);
  EXPECT_EQ(plain.next_sequence(), 0xffffffff);
  EXPECT_FALSE(plain.next_sequence());
  EXPECT_FALSE(plain.next_sequence());

  config.extended_sequence = true;
  config.spi = 1001;
  AssociationState& extended = *table_.view().at(add(config))->state;
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(extended.next_sequence(), 0xfffffffe + i);
  config.first_sequence = ~uint64_t{0};
  config.spi = 1002;
  AssociationState& last = *table_.view().at(add(config))->state;
  EXPECT_EQ(last.next_sequence(), ~uint64_t{0});
  EXPECT_FALSE(last.next_sequence());
}

TEST_F(Associations, Lifetime) {
  AssociationConfig config = tunnel(kOutbound, 1000);
  AssociationState state(config, nonces_.counter(config.cipher_fingerprint()));
  state.count(10, 1000);
  EXPECT_FALSE(state.expired(config));
  config.most_packets = 11;
  EXPECT_FALSE(state.expired(config));
  state.count(1, 100);
  EXPECT_TRUE(state.expired(config));
  config.most_packets = 0;
  config.most_bytes = 1101;
  EXPECT_FALSE(state.expired(config));
  state.count(1, 1);
  EXPECT_TRUE(state.expired(config));
  EXPECT_EQ(state.packets(), 12u);
  EXPECT_EQ(state.bytes(), 1101u);
}

TEST_F(Associations, KeysShareIVsWhateverTheCipherIs) {
  AssociationConfig gcm = tunnel(kOutbound, 1000);
  AssociationConfig ctr = gcm;
  ctr.cipher = Cipher::kAES128CTR;
  ctr.integrity = Integrity::kHMACSHA1;
  ctr.integrity_key = key_of(20);
  EXPECT_EQ(gcm.cipher_fingerprint(), ctr.cipher_fingerprint());
  EXPECT_NE(gcm.fingerprint(), ctr.fingerprint());
  ctr.integrity_key = key_of(20, 9);
  EXPECT_EQ(gcm.cipher_fingerprint(), ctr.cipher_fingerprint());
  gcm.key = key_of(20, 77);
  EXPECT_NE(gcm.cipher_fingerprint(), ctr.cipher_fingerprint());
}

/// Counts itself.
struct CountedExtra : AssociationExtra {
  CountedExtra(std::atomic<int>& count, std::atomic<int>& withdrawn) : count_(count), withdrawn_(withdrawn) {
    ++count_;
  }
  ~CountedExtra() override { --count_; }
  void withdraw() override { ++withdrawn_; }
  std::atomic<int>& count_;
  std::atomic<int>& withdrawn_;
};

TEST_F(Associations, ExtraGoesWhenNoReaderIsLeft) {
  std::atomic<int> extras = 0, withdrawn = 0;
  std::string reason;
  {
    AssociationTable table([&](const Association&) { return std::make_unique<CountedExtra>(extras, withdrawn); },
                           states_);
    const uint32_t first = table.add(tunnel(kOutbound, 1000), reason);
    EXPECT_EQ(extras, 1);
    {
      rcu::Reader reader;
      const AssociationView view = table.view();
      const Association* const entry = view.outbound(1000);
      EXPECT_TRUE(table.remove(first));
      EXPECT_FALSE(table.remove(first));
      EXPECT_EQ(table.view().outbound(1000), nullptr);
      EXPECT_EQ(table.size(), 0u);
      rcu::reclaim();
      EXPECT_EQ(extras, 1);
      EXPECT_EQ(view.at(first), entry);
      // The index is not free yet, but the SPI is.
      const uint32_t second = table.add(tunnel(kOutbound, 1000), reason);
      EXPECT_NE(second, first);
      EXPECT_NE(table.view().at(second)->serial, entry->serial);
      EXPECT_FALSE(table.remove(first));
      EXPECT_EQ(extras, 2);
      EXPECT_EQ(withdrawn, 0);
      reader.quiescent();
      rcu::reclaim();
      // A packet that waited somewhere may have been taken up before this, but none is from now on.
      EXPECT_EQ(table.view().at(first), nullptr);
      EXPECT_EQ(withdrawn, 1);
      EXPECT_EQ(extras, 2);
      EXPECT_NE(table.add(tunnel(kOutbound, 1001), reason), first);
      EXPECT_EQ(extras, 3);
      reader.quiescent();
      rcu::reclaim();
      EXPECT_EQ(extras, 2);
      EXPECT_EQ(table.add(tunnel(kOutbound, 1002), reason), first);
      EXPECT_EQ(extras, 3);
    }
  }
  EXPECT_EQ(extras, 0);
}

TEST_F(Associations, RandomChangesAgreeWithAMap) {
  std::mt19937_64 random(3);
  std::map<uint32_t, AssociationConfig> naive;
  const auto same_key = [](const AssociationConfig& a, const AssociationConfig& b) {
    return a.direction == b.direction && a.spi == b.spi && (a.direction == kOutbound || a.destination == b.destination);
  };
  const char* const destinations[] = {"1.1.1.1", "1.1.1.2", "1.1.1.3"};
  for (int round = 0; round < 6000; ++round) {
    const size_t wanted = round < 3000 ? 1000 : 30;
    if (naive.size() > wanted || (!naive.empty() && random() % 3 == 0)) {
      auto victim = naive.lower_bound(static_cast<uint32_t>(random() % 1500));
      if (victim == naive.end()) victim = naive.begin();
      ASSERT_TRUE(table_.remove(victim->first));
      naive.erase(victim);
    } else {
      AssociationConfig config = tunnel(random() % 2 ? kInbound : kOutbound, static_cast<uint32_t>(1 + random() % 2000),
                                        destinations[random() % 3]);
      if (random() % 8 == 0) config = transport(config.direction, config.spi);
      bool taken = false;
      for (const auto& [index, other] : naive) taken = taken || same_key(config, other);
      std::string reason;
      const uint32_t index = table_.add(config, reason);
      ASSERT_EQ(index == AssociationTable::kNone, taken) << reason;
      if (taken) continue;
      ASSERT_TRUE(naive.emplace(index, config).second);
    }
    ASSERT_EQ(table_.size(), naive.size());
    if (round % 500 != 0) continue;
    for (const auto& [index, config] : naive) {
      const AssociationView view = table_.view();
      ASSERT_EQ(view.at(index)->config.spi, config.spi);
      const Association* const found =
          config.direction == kInbound ? view.inbound(config.spi, config.destination) : view.outbound(config.spi);
      ASSERT_EQ(found, view.at(index));
    }
  }
}

TEST_F(Associations, ReadersGoOnWhileItChanges) {
  // SPI 5000 is always there; others come and go, and the arrays grow.
  add(tunnel(kInbound, 5000));
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&, i] {
      rcu::Reader reader;
      const Ip6Address destination = mapped("172.16.2.5");
      std::mt19937 random(static_cast<unsigned>(i));
      while (!stop) {
        for (int n = 0; n < 50; ++n) {
          const AssociationView view = table_.view();
          ASSERT_EQ(view.inbound(5000, destination)->config.spi, 5000u);
          const uint32_t spi = 1 + random() % 300;
          if (const Association* const entry = view.inbound(spi, destination)) {
            ASSERT_EQ(entry->config.spi, spi);
            ASSERT_EQ(view.at(entry->index), entry);
          }
        }
        reader.quiescent();
      }
    });
  }
  std::mt19937 random(7);
  std::string reason;
  for (int i = 0; i < 4000; ++i) {
    const uint32_t spi = 1 + random() % 300;
    const uint32_t index = table_.find(kInbound, spi, mapped("172.16.2.5"));
    if (index == AssociationTable::kNone) {
      ASSERT_NE(table_.add(tunnel(kInbound, spi), reason), index);
    } else {
      ASSERT_TRUE(table_.remove(index));
    }
    if (i % 10 == 0) rcu::reclaim();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  rcu::synchronize();
  EXPECT_EQ(rcu::pending(), 0u);
}

TEST(AssociationConfig, LengthsOfKeys) {
  AssociationConfig config = tunnel(kOutbound, 1000);
  config.key = key_of(16);
  EXPECT_EQ(problems_of(config),
            "aead_key: aes-128-gcm needs 20 bytes (16 of the key, then 4 of the salt), found 16\n");
  config.cipher = Cipher::kAES256GCM;
  EXPECT_EQ(problems_of(config),
            "aead_key: aes-256-gcm needs 36 bytes (32 of the key, then 4 of the salt), found 16\n");
  config.key = key_of(36);
  EXPECT_EQ(problems_of(config), "");
  EXPECT_EQ(config.cipher_key().size(), 32u);
  EXPECT_EQ(config.salt().size(), 4u);
  EXPECT_EQ(config.salt()[0], 33);
  config.cipher = Cipher::kAES128CTR;
  config.integrity = Integrity::kHMACSHA256;
  config.integrity_key = key_of(20);
  EXPECT_EQ(problems_of(config),
            "cipher_key: aes-128-ctr needs 20 bytes (16 of the key, then 4 of the salt), found 36\n"
            "auth_key: sha256-hmac needs 32 bytes, found 20\n");
  config.cipher = Cipher::kAES128CBC;
  config.key = key_of(16);
  config.integrity = Integrity::kHMACSHA1;
  EXPECT_EQ(problems_of(config), "");
  EXPECT_TRUE(config.salt().empty());
  config.cipher = Cipher::kAES256CBC;
  EXPECT_EQ(problems_of(config), "cipher_key: aes-256-cbc needs 32 bytes, found 16\n");
  config.cipher = Cipher::k3DESCBC;
  EXPECT_EQ(problems_of(config), "cipher_key: 3des-cbc needs 24 bytes, found 16\n");
  config.cipher = Cipher::kNull;
  EXPECT_EQ(problems_of(config), "cipher_key: null needs 0 bytes, found 16\n");
}

TEST(AssociationConfig, Mistakes) {
  AssociationConfig config = tunnel(kOutbound, 0);
  EXPECT_EQ(problems_of(config), "0: SPI 0 never goes over the wire (RFC 4303, section 2.1)\n");
  config.spi = 5;
  EXPECT_EQ(
      problems_of(config),
      "warning: 5: SPIs up to 255 are reserved (RFC 4303, section 2.1); peers that negotiate keys never use them\n");
  config.spi = 256;
  config.replay_window = 63;
  config.first_sequence = 0x100000000;
  config.outer_dscp = 64;
  config.udp_encapsulation = {0, 4500};
  EXPECT_EQ(problems_of(config),
            "esn: the first number is 1 to 4294967295, found 4294967296\n"
            "replay-window: expected 64 to 4096 packets, found 63\n"
            "encap-port: port 0 cannot be used\n"
            "dscp: expected 0 to 63, found 64\n");
  config = tunnel(kOutbound, 256);
  config.integrity = Integrity::kHMACSHA1;
  config.integrity_key = key_of(20);
  EXPECT_EQ(problems_of(config), "auth_algo: aes-128-gcm authenticates by itself\n");
  config.cipher = Cipher::kAES128CTR;
  EXPECT_EQ(problems_of(config), "");
  config.integrity = Integrity::kNone;
  config.integrity_key = {};
  config.extended_sequence = true;
  EXPECT_EQ(problems_of(config),
            "auth_algo: aes-128-ctr must not be used without authentication (RFC 3686, section 7)\n"
            "esn: needs authentication, which covers the half that is not sent\n");
  config = tunnel(kOutbound, 256);
  config.cipher = Cipher::kNull;
  config.key = {};
  EXPECT_EQ(
      problems_of(config),
      "warning: auth_algo: nothing authenticates the packets, and replays are not seen: anybody can forge them\n");
}

TEST(AssociationConfig, Addresses) {
  AssociationConfig config = tunnel(kOutbound, 256, "0.0.0.0");
  EXPECT_EQ(problems_of(config), "dst: an ipv4-tunnel needs an IPv4 address, found ::ffff:0.0.0.0\n");
  config.mode = IPsecMode::kTunnel6;
  config.destination = {};
  EXPECT_EQ(problems_of(config),
            "src: an ipv6-tunnel needs an IPv6 address, found ::ffff:172.16.1.5\n"
            "dst: an ipv6-tunnel needs an IPv6 address, found ::\n");
  config.mode = IPsecMode::kTransport;
  EXPECT_EQ(problems_of(config), "src: an association in transport mode has no addresses of its own\n");
}

TEST(AssociationConfig, UnparsesEverythingButKeys) {
  AssociationConfig config = tunnel(kInbound, 256);
  config.cipher = Cipher::kAES256CTR;
  config.key = key_of(36);
  config.integrity = Integrity::kHMACSHA256;
  config.integrity_key = key_of(32);
  config.extended_sequence = true;
  config.replay_window = 1000;
  config.udp_encapsulation = {4500, 4501};
  config.outer_dscp = 46;
  config.outer_df = OuterDF::kSet;
  config.most_packets = 10;
  config.most_bytes = 20;
  EXPECT_EQ(
      config.unparse(),
      "sa in 256 cipher_algo aes-256-ctr auth_algo sha256-hmac mode ipv4-tunnel src 172.16.1.5 dst 172.16.2.5 esn "
      "1 replay-window 1000 udp-encap encap-port 4500:4501 dscp 46 df set most-packets 10 most-bytes 20");
}

TEST(SecretBytes, WipeThemselves) {
  alignas(SecretBytes) std::byte memory[sizeof(SecretBytes)];
  SecretBytes* const key = new (memory) SecretBytes(key_of(16, 0xa0).bytes());
  EXPECT_EQ(key->size(), 16u);
  EXPECT_EQ(key->bytes()[15], 0xaf);
  key->~SecretBytes();
  for (const std::byte byte : memory) EXPECT_LT(byte, std::byte{0xa0});
  SecretBytes full = key_of(SecretBytes::kMost);
  EXPECT_FALSE(full.append(1));
}

TEST(KeyFingerprint, SipHashIsThatOfItsAuthors) {
  std::array<uint8_t, 16> key;
  std::vector<uint8_t> bytes;
  for (uint8_t i = 0; i < 16; ++i) key[i] = i;
  EXPECT_EQ(sip_hash(key, bytes), 0x726fdb47dd0e0e31u);
  for (uint8_t i = 0; i < 15; ++i) bytes.push_back(i);
  EXPECT_EQ(sip_hash(key, bytes), 0xa129ca6149be45e5u);  // appendix A of the paper
}

TEST(KeyFingerprint, TellsKeysApart) {
  EXPECT_EQ(fingerprint_of(key_of(16).bytes()), fingerprint_of(key_of(16).bytes()));
  EXPECT_NE(fingerprint_of(key_of(16).bytes()), fingerprint_of(key_of(17).bytes()));
  EXPECT_NE(fingerprint_of(key_of(16).bytes()), fingerprint_of(key_of(16, 2).bytes()));
}

}  // namespace
}  // namespace headrace
