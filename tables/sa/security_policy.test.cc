#include "tables/sa/security_policy.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "headrace/rcu.hh"

namespace headrace {
namespace {

constexpr IPsecDirection kIn = IPsecDirection::kIn, kOut = IPsecDirection::kOut;

Ip6Prefix v4(const char* text) {
  IpPrefix prefix;
  EXPECT_TRUE(parse(text, prefix)) << text;
  return policy_prefix(prefix);
}
Ip6Prefix v6(const char* text) {
  Ip6Prefix prefix;
  EXPECT_TRUE(parse(text, prefix)) << text;
  return prefix;
}
Policy protect(const char* source, const char* destination, uint32_t spi, int priority = 0) {
  Policy policy;
  policy.action = PolicyAction::kProtect;
  policy.spi = spi;
  policy.priority = priority;
  policy.source = v4(source);
  policy.destination = v4(destination);
  return policy;
}
PolicySelector packet4(const char* source, const char* destination, uint8_t protocol = 17) {
  IpAddress addresses[2];
  EXPECT_TRUE(parse(source, addresses[0]) && parse(destination, addresses[1]));
  return PolicySelector::of_v4(addresses, protocol);
}

/// The list of the standard, asked one by one.
PolicyAnswer naive_lookup(const std::vector<Policy>& policies, IPsecDirection direction, const PolicySelector& packet) {
  const Policy* best = nullptr;
  for (const Policy& policy : policies) {
    if (policy.direction != direction || policy.v6 != packet.v6) continue;
    if (!policy.source.contains(packet.source) || !policy.destination.contains(packet.destination)) continue;
    if (policy.protocol && *policy.protocol != packet.protocol) continue;
    if (!policy.source_ports.all() && !(packet.has_ports && policy.source_ports.contains(packet.source_port))) continue;
    if (!policy.destination_ports.all() &&
        !(packet.has_ports && policy.destination_ports.contains(packet.destination_port)))
      continue;
    if (best == nullptr || policy.priority > best->priority) best = &policy;
  }
  if (best == nullptr) return {};
  return {best->action, true, best->spi};
}

TEST(PolicyTable, NothingIsDiscarded) {
  const PolicyTable table;
  EXPECT_EQ(table.lookup(kOut, packet4("1.2.3.4", "5.6.7.8")), PolicyAnswer());
  EXPECT_EQ(PolicyAnswer().action, PolicyAction::kDiscard);
}

TEST(PolicyTable, LargerPriorityThenOrder) {
  PolicyTable table;
  table.add(protect("0.0.0.0/0", "10.0.0.0/8", 1, 5));
  table.add(protect("0.0.0.0/0", "10.1.0.0/16", 2, 5));
  table.add(protect("0.0.0.0/0", "10.1.1.0/24", 3, 6));
  const auto spi = [&](const char* to) { return table.lookup(kOut, packet4("1.1.1.1", to)).spi; };
  EXPECT_EQ(spi("10.1.2.3"), 1u);
  EXPECT_EQ(spi("10.1.1.3"), 3u);
  EXPECT_EQ(spi("11.1.1.3"), 0u);
  EXPECT_FALSE(table.lookup(kIn, packet4("1.1.1.1", "10.1.2.3")).found);
  EXPECT_EQ(table.tuples(kOut, false), 3u);
  EXPECT_EQ(table.policies()[0].spi, 3u);
  EXPECT_TRUE(table.remove(protect("0.0.0.0/0", "10.0.0.0/8", 1, 5)));
  EXPECT_FALSE(table.remove(protect("0.0.0.0/0", "10.0.0.0/8", 1, 5)));
  EXPECT_EQ(spi("10.1.2.3"), 2u);
  EXPECT_EQ(table.size(), 2u);
  table.clear();
  EXPECT_EQ(spi("10.1.2.3"), 0u);
}

TEST(PolicyTable, AReqidTakesThePlaceOfTheSPI) {
  PolicyTable table;
  Policy policy = protect("10.1.0.0/16", "10.2.0.0/16", 0, -5);
  EXPECT_EQ(PolicyTable::check(policy), "SPI 0 is reserved");
  policy.reqid = 7;
  EXPECT_EQ(PolicyTable::check(policy), "");
  EXPECT_EQ(policy.unparse().find("sp ipv4 out esp protect reqid 7 pri -5 "), 0u);
  // One goes and another comes: no lookup finds neither.
  table.add(policy);
  const PolicySelector packet = packet4("10.1.0.1", "10.2.0.1");
  EXPECT_EQ(table.lookup(kOut, packet), (PolicyAnswer{PolicyAction::kProtect, true, 0, 7}));
  Policy next = policy;
  next.reqid = 8;
  table.change({&policy, 1}, {&next, 1});
  EXPECT_EQ(table.lookup(kOut, packet), (PolicyAnswer{PolicyAction::kProtect, true, 0, 8}));
  EXPECT_EQ(table.size(), 1u);
  table.change({&next, 1}, {});
  EXPECT_EQ(table.size(), 0u);
}

TEST(PolicyTable, PortsOfPacketsThatHaveNone) {
  PolicyTable table;
  Policy policy = protect("0.0.0.0/0", "10.0.0.0/8", 1);
  policy.destination_ports = {100, 200};
  policy.protocol = 17;
  table.add(policy);
  PolicySelector packet = packet4("1.1.1.1", "10.1.2.3");
  EXPECT_FALSE(table.lookup(kOut, packet).found);
  packet.set_ports(0, 100);
  EXPECT_TRUE(table.lookup(kOut, packet).found);
  packet.set_ports(0, 201);
  EXPECT_FALSE(table.lookup(kOut, packet).found);
  packet.set_ports(0, 200);
  EXPECT_TRUE(table.lookup(kOut, packet).found);
  packet.protocol = 6;
  EXPECT_FALSE(table.lookup(kOut, packet).found);
  policy.destination_ports = {};
  policy.protocol.reset();
  table.add(policy);
  EXPECT_TRUE(table.lookup(kOut, packet4("1.1.1.1", "10.1.2.3", 1)).found);
}

TEST(PolicyTable, ChecksAndUnparses) {
  Policy policy = protect("1.0.0.0/8", "10.0.0.0/8", 77, 3);
  EXPECT_EQ(PolicyTable::check(policy), "");
  EXPECT_EQ(policy.unparse(),
            "sp ipv4 out esp protect 77 pri 3 src 1.0.0.0/8 dst 10.0.0.0/8 sport 0:65535 dport 0:65535");
  policy.spi = 0;
  EXPECT_EQ(PolicyTable::check(policy), "SPI 0 is reserved");
  policy.action = PolicyAction::kBypass;
  policy.protocol = 6;
  policy.source_ports = {10, 9};
  EXPECT_EQ(PolicyTable::check(policy), "ports 10:9 end before they begin");
  policy.source_ports = {9, 10};
  EXPECT_EQ(policy.unparse(),
            "sp ipv4 out esp bypass pri 3 src 1.0.0.0/8 dst 10.0.0.0/8 proto 6:255 sport 9:10 dport 0:65535");
  policy.source = v6("2001:db8::/32");
  EXPECT_EQ(PolicyTable::check(policy), "2001:db8::/32 is no prefix of IPv4");
  policy.v6 = true;
  policy.direction = kIn;
  policy.action = PolicyAction::kDiscard;
  policy.destination = v6("::/0");
  EXPECT_EQ(PolicyTable::check(policy), "");
  EXPECT_EQ(policy.unparse(),
            "sp ipv6 in esp discard pri 3 src 2001:db8::/32 dst ::/0 proto 6:255 sport 9:10 dport 0:65535");
}

TEST(PolicyTable, FamiliesAreApart) {
  PolicyTable table;
  Policy all6;
  all6.v6 = true;
  all6.action = PolicyAction::kBypass;
  table.add(all6);
  EXPECT_FALSE(table.lookup(kOut, packet4("1.1.1.1", "2.2.2.2")).found);
  const uint8_t addresses[32] = {0x20, 1};
  EXPECT_TRUE(table.lookup(kOut, PolicySelector::of_v6(addresses, 6)).found);
}

/// Policies and packets that often meet.
struct RandomPolicies {
  explicit RandomPolicies(uint64_t seed) : random(seed) {}

  Ip6Address address(bool is_v6) {
    std::array<uint8_t, 16> bytes{};
    if (is_v6) bytes = {0x20, 1, 0xd, 0xb8, 0, 0, static_cast<uint8_t>(random() % 4)};
    for (int i = 12; i < 16; ++i) bytes[i] = static_cast<uint8_t>(random() % (i < 15 ? 3 : 256));
    return is_v6 ? Ip6Address(bytes) : Ip6Address::v4_mapped(IpAddress::from_bytes(bytes.data() + 12));
  }
  Ip6Prefix prefix(bool is_v6) {
    constexpr int k4[] = {0, 8, 16, 24, 24, 28, 32}, k6[] = {0, 48, 56, 104, 112, 120, 128};
    const size_t i = random() % 7;
    return {address(is_v6), is_v6 ? k6[i] : 96 + k4[i]};
  }
  PortRange ports() {
    if (random() % 2 == 0) return {};
    const uint16_t first = static_cast<uint16_t>(random() % 8);
    return {first, static_cast<uint16_t>(first + random() % 4)};
  }
  Policy policy() {
    Policy policy;
    policy.direction = random() % 2 ? kIn : kOut;
    policy.action = static_cast<PolicyAction>(random() % 3);
    policy.v6 = random() % 2;
    policy.spi = static_cast<uint32_t>(1 + random() % 100000);  // tells policies apart whatever their action is
    policy.priority = static_cast<int>(random() % 5) - 2;
    policy.source = random() % 2 ? prefix(policy.v6) : Ip6Prefix{address(policy.v6), policy.v6 ? 0 : 96};
    policy.destination = prefix(policy.v6);
    if (random() % 3 == 0) policy.protocol = static_cast<uint8_t>(random() % 2 ? 6 : 17);
    policy.source_ports = random() % 4 ? PortRange() : ports();
    policy.destination_ports = ports();
    EXPECT_EQ(PolicyTable::check(policy), "");
    return policy;
  }
  PolicySelector packet() {
    PolicySelector packet;
    packet.v6 = random() % 2;
    constexpr uint8_t kProtocols[] = {1, 6, 17, 0};
    packet.protocol = kProtocols[random() % 4];
    packet.source = address(packet.v6);
    packet.destination = address(packet.v6);
    if (random() % 4 != 0) packet.set_ports(static_cast<uint16_t>(random() % 12), static_cast<uint16_t>(random() % 12));
    return packet;
  }

  std::mt19937_64 random;
};

TEST(PolicyTable, FindsWhatAListFinds) {
  for (const size_t count : {1u, 3u, 20u, 100u, 1000u}) {
    RandomPolicies random(count);
    std::vector<Policy> policies;
    while (policies.size() < count) policies.push_back(random.policy());
    PolicyTable table;
    table.build(policies);
    uint64_t found = 0;
    const int packets = count > 100 ? 3000 : 10000;
    for (int i = 0; i < packets; ++i) {
      const PolicySelector packet = random.packet();
      const IPsecDirection direction = random.random() % 2 ? kIn : kOut;
      const PolicyAnswer expected = naive_lookup(policies, direction, packet);
      ASSERT_EQ(table.lookup(direction, packet), expected);
      found += expected.found;
    }
    // A few policies may hold none of these packets.
    if (count >= 20) {
      EXPECT_GT(found, 500u) << count;
    }
  }
}

TEST(PolicyTable, ChangesAreWhatAListDoes) {
  RandomPolicies random(4);
  std::vector<Policy> policies;
  PolicyTable table;
  for (int round = 0; round < 600; ++round) {
    if (policies.size() > 60 || (!policies.empty() && random.random() % 3 == 0)) {
      const size_t i = random.random() % policies.size();
      // Of equal ones the first goes.
      const Policy policy = policies[i];
      policies.erase(std::find(policies.begin(), policies.end(), policy));
      ASSERT_TRUE(table.remove(policy));
    } else {
      policies.push_back(policies.empty() || random.random() % 8 ? random.policy() : policies.front());
      table.add(policies.back());
    }
    ASSERT_EQ(table.size(), policies.size());
    for (int i = 0; i < 20; ++i) {
      const PolicySelector packet = random.packet();
      ASSERT_EQ(table.lookup(kOut, packet), naive_lookup(policies, kOut, packet));
    }
  }
}

TEST(PolicyTable, ReadersGoOnWhileItChanges) {
  PolicyTable table;
  // One of two policies is always there; the first choice comes and goes.
  table.add(protect("0.0.0.0/0", "10.0.0.0/8", 1));
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      rcu::Reader reader;
      const PolicySelector packet = packet4("1.1.1.1", "10.1.2.3");
      while (!stop) {
        for (int n = 0; n < 50; ++n) {
          const PolicyAnswer answer = table.lookup(kOut, packet);
          ASSERT_TRUE(answer.found);
          ASSERT_TRUE(answer.spi == 1 || answer.spi == 2);
        }
        reader.quiescent();
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    table.add(protect("0.0.0.0/0", "10.1.0.0/16", 2, 1));
    rcu::reclaim();
    ASSERT_TRUE(table.remove(protect("0.0.0.0/0", "10.1.0.0/16", 2, 1)));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  rcu::synchronize();
  EXPECT_EQ(rcu::pending(), 0u);
}

TEST(PolicyTable, TenThousandPoliciesAreTwoProbes) {
  std::vector<Policy> policies;
  for (uint32_t i = 0; i < 10000; ++i) {
    Policy policy = protect("0.0.0.0/0", "0.0.0.0/0", 256 + i);
    policy.destination = policy_prefix(IpPrefix::of(IpAddress::from_host_order(0x0a000000 | i << 8), 24));
    policies.push_back(policy);
  }
  policies.push_back(protect("0.0.0.0/0", "0.0.0.0/0", 3));
  PolicyTable table;
  table.build(policies);
  EXPECT_EQ(table.tuples(kOut, false), 2u);
  for (uint32_t i = 0; i < 10000; ++i) {
    PolicySelector packet = packet4("1.1.1.1", "1.1.1.1");
    packet.destination = Ip6Address::v4_mapped(IpAddress::from_host_order(0x0a000007 | i << 8));
    ASSERT_EQ(table.lookup(kOut, packet).spi, 256 + i);
  }
  EXPECT_EQ(table.lookup(kOut, packet4("1.1.1.1", "1.1.1.1")).spi, 3u);
}

}  // namespace
}  // namespace headrace
