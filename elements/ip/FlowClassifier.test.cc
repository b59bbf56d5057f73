#include "elements/ip/FlowClassifier.hh"

#include <fmt/format.h>

#include <atomic>
#include <random>
#include <thread>

#include "elements/ip/flow_rules.hh"
#include "headrace/rcu.hh"
#include "headrace/shader_host.hh"
#include "support/element_test.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"
#include "tables/acl/acl_batch.hh"
#include "tables/acl/rule_file.hh"

namespace headrace::testing {
namespace {

/// A UDP packet, or a TCP one.
std::string flow_packet(const char* src, const char* dst, int sport, int dport, int protocol = 17) {
  return from_hex(
      fmt::format("4500001c 00000000 40{:02x}0000 {} {} {:04x}{:04x} 00080000", protocol, src, dst, sport, dport));
}

std::string graph_of(const std::string& arguments, int outputs, const char* mark = "MarkIPHeader") {
  std::string text = fmt::format("Idle -> m :: {} -> f :: FlowClassifier({});", mark, arguments);
  for (int i = 0; i < outputs; ++i) text += fmt::format("f[{}] -> c{} :: Capture;", i, i);
  return text;
}

TEST(FlowClassifier, ChoosesTheOutputByTheBestRule) {
  const TemporaryFile file(
      "priority=10,udp,nw_src=10.0.0.0/8 actions=output:1\n"
      "priority=20,udp,nw_src=10.1.0.0/16,tp_dst=53 actions=output:2\n"
      "priority=5,tcp actions=drop\n"
      "priority=0 actions=output:0\n");
  TestRouter r(graph_of(file.path(), 3));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", flow_packet("0a000001", "0b000001", 7, 53));     // 10.0.0.1
  r.push("m", flow_packet("0a010001", "0b000001", 7, 53));     // 10.1.0.1, port 53
  r.push("m", flow_packet("0a010001", "0b000001", 7, 54));     // 10.1.0.1, port 54
  r.push("m", flow_packet("0c010001", "0b000001", 7, 54));     // nothing special
  r.push("m", flow_packet("0a010001", "0b000001", 7, 53, 6));  // TCP from 10/8
  EXPECT_EQ(capture(r, "c0").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c1").seen().size(), 2u);
  EXPECT_EQ(capture(r, "c2").seen().size(), 1u);
  EXPECT_EQ(r.read("f.drop_reasons"), "1\tdropped by a rule\n");
  EXPECT_EQ(r.read("f.counts"),
            "1\t28\tpriority=20,udp,nw_src=10.1.0.0/16,tp_dst=53 actions=output:2\n"
            "2\t56\tpriority=10,udp,nw_src=10.0.0.0/8 actions=output:1\n"
            "1\t28\tpriority=5,tcp actions=drop\n"
            "1\t28\tpriority=0 actions=output:0\n");
  EXPECT_EQ(r.read("f.lookup udp,nw_src=10.1.2.3,tp_dst=53"),
            "priority=20,udp,nw_src=10.1.0.0/16,tp_dst=53 actions=output:2");
}

TEST(FlowClassifier, DropsAndCountsWhatNoRuleMatches) {
  TestRouter r(graph_of("", 1));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", flow_packet("0a000001", "0b000001", 7, 53));
  EXPECT_EQ(r.read("f.drop_reasons"), "1\tno rule matches\n");
  EXPECT_EQ(r.read("f.lookup ip"), "none");
}

TEST(FlowClassifier, MatchesFragmentsAndTruncatedPacketsWithoutPorts) {
  const TemporaryFile file("priority=9,udp,tp_dst=53 actions=1\npriority=8,udp actions=2\npriority=0 actions=0\n");
  TestRouter r(graph_of(file.path(), 3));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("4500001c 00000010 40110000 0a000001 0b000001 00070035 00080000"));  // a later fragment
  r.push("m", from_hex("4500001c 00002000 40110000 0a000001 0b000001 00070035 00080000"));  // the first one
  r.push("m", from_hex("45000016 00000000 40110000 0a000001 0b000001 0007"));               // cut behind a port
  EXPECT_EQ(capture(r, "c1").seen().size(), 1u);
  EXPECT_EQ(capture(r, "c2").seen().size(), 2u);
}

TEST(FlowClassifier, MatchesIPv6ByPortsWithNarrowFields) {
  const TemporaryFile file("udp6,tp_dst=53 actions=1\npriority=0 actions=0\n");
  TestRouter r(graph_of(file.path(), 2, "MarkIP6Header"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("60000000 0008 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002"
                       "00070035 00080000"));
  EXPECT_EQ(capture(r, "c1").seen().size(), 1u);
  EXPECT_NE(r.read("f.counts").find("1\t48\tpriority=32768,udp6,tp_dst=53"), std::string::npos) << r.read("f.counts");
}

TEST(FlowClassifier, MatchesWholeFrames) {
  const TemporaryFile file(
      "priority=9,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=1\n"
      "priority=8,dl_vlan=10,tcp6,ipv6_dst=2001:db8::/32,tp_dst=80 actions=2\n"
      "priority=7,in_port=3,arp,arp_op=1 actions=3\n"
      "priority=0 actions=0\n");
  TestRouter r(graph_of(file.path(), 4, "MarkMACHeader") + "Idle -> p :: Paint(3) -> m;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", from_hex("ffffffffffff 0a0b0c0d0e0f 0806 00010800060400010a0b0c0d0e0fc0000201000000000000c0000202"));
  r.push("p", from_hex("020304050607 0a0b0c0d0e0f 0806 00010800060400010a0b0c0d0e0fc0000201000000000000c0000202"));
  r.push("p", from_hex("020304050607 0a0b0c0d0e0f 8100000a 86dd 60000000 0014 06 40 20010db8000000000000000000000001"
                       "20010db8000000000000000000000002 0007 0050 00000000000000005000000000000000"));
  r.push("p", from_hex("020304050607 0a0b0c0d0e0f 8100000b 86dd 60000000 0014 06 40 20010db8000000000000000000000001"
                       "20010db8000000000000000000000002 0007 0050 00000000000000005000000000000000"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(capture(r, fmt::format("c{}", i)).seen().size(), 1u) << i;
}

TEST(FlowClassifier, ChangesRulesAllOrNone) {
  TestRouter r(graph_of("", 3));
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("f.add", "priority=1,udp actions=1\npriority=2,udp,tp_dst=53 actions=2")) << r.errors();
  EXPECT_EQ(r.read("f.count"), "2");
  EXPECT_FALSE(r.write("f.ctrl", "add priority=3 actions=0\nremove priority=1,udp\nremove priority=4,udp"));
  EXPECT_NE(r.errors().find("no rule 'priority=4,udp'"), std::string::npos) << r.errors();
  EXPECT_EQ(r.read("f.count"), "2");
  r.push("m", flow_packet("0a000001", "0b000001", 7, 53));
  EXPECT_EQ(capture(r, "c2").seen().size(), 1u);
  ASSERT_TRUE(r.write("f.ctrl", "modify priority=1,udp actions=0\nremove priority=2,udp,tp_dst=53")) << r.errors();
  r.push("m", flow_packet("0a000001", "0b000001", 7, 53));
  EXPECT_EQ(capture(r, "c0").seen().size(), 1u);
  // What failed has left nothing behind.
  ASSERT_TRUE(r.write("f.add", "priority=3 actions=0")) << r.errors();
  EXPECT_FALSE(r.write("f.add", "priority=3 actions=1"));
  EXPECT_NE(r.errors().find("'priority=3 actions=output:1' is there already"), std::string::npos) << r.errors();
  EXPECT_EQ(r.read("f.counts"), "0\t0\tpriority=3 actions=output:0\n1\t28\tpriority=1,udp actions=output:0\n");
}

TEST(FlowClassifier, CountsOnForARuleThatIsModified) {
  TestRouter r(graph_of("", 2));
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("f.add", "udp actions=0\npriority=40000,tcp actions=0")) << r.errors();
  for (int i = 0; i < 10; ++i) {
    r.push("m", flow_packet("0a000001", "0b000001", 7, 53));
    // Twice in one call, too.
    ASSERT_TRUE(r.write("f.modify", fmt::format("udp actions={}\nudp actions={}", i % 2, 1 - i % 2))) << r.errors();
    EXPECT_FALSE(r.write("f.ctrl", "modify udp actions=drop\nremove icmp"));
    EXPECT_EQ(r.read("f.counts"), fmt::format("0\t0\tpriority=40000,tcp actions=output:0\n"
                                              "{}\t{}\tpriority=32768,udp actions=output:{}\n",
                                              i + 1, 28 * (i + 1), 1 - i % 2));
    EXPECT_EQ(r.read("f.removed_counts"), "0\t0");
  }
  EXPECT_EQ(capture(r, "c0").seen().size(), 5u);
  EXPECT_EQ(capture(r, "c1").seen().size(), 5u);
  ASSERT_TRUE(r.write("f.remove", "udp")) << r.errors();
  EXPECT_EQ(r.read("f.removed_counts"), "10\t280");
}

/// Packets of a batch leave by the outputs of one call.
TEST(FlowClassifier, ModifiesAllRulesOfACallAtOnce) {
  constexpr int kRules = 200, kCalls = 100;
  TestRouter r(graph_of("", 2));
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto rules = [](int output) {
    std::string text;
    for (int i = 0; i < kRules; ++i) text += fmt::format("udp,tp_dst={} actions={}\n", i, output);
    return text;
  };
  ASSERT_TRUE(r.write("f.add", rules(0))) << r.errors();
  auto* const f = dynamic_cast<ShaderElement<FlowClassifier>*>(r.router().find("f"));
  ASSERT_NE(f, nullptr);
  std::vector<uint32_t> keys;
  for (uint32_t i = 0; i < kRules; ++i) keys.insert(keys.end(), {0x0a000001, 0x0b000001, i, 0x08001100});
  std::atomic<bool> stop{false}, mixed{false};
  std::atomic<int> batches{0};
  std::thread reader([&] {
    rcu::Reader online;
    FlowClassifier shader = f->shader();
    AclMatch matches[kRules];
    while (!stop) {
      shader.refresh(f->owner());
      acl_find_batch(shader.table, keys.data(), matches, kRules);
      for (const AclMatch& match : matches) mixed = mixed || match.data != matches[0].data;
      ++batches;
      online.quiescent();
    }
    online.offline();
  });
  for (int i = 1; i <= kCalls && !mixed; ++i) {
    EXPECT_TRUE(r.write("f.modify", rules(i % 2))) << r.errors();
    for (const int before = batches; batches == before;) std::this_thread::yield();
  }
  stop = true;
  reader.join();
  EXPECT_FALSE(mixed);
}

TEST(FlowClassifier, DoesNotCountForTheNextRuleOfANumber) {
  TestRouter r(graph_of("", 1));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(r.write("f.add", fmt::format("priority={},udp actions=0", i))) << r.errors();
    r.push("m", flow_packet("0a000001", "0b000001", 7, 53));
    EXPECT_EQ(r.read("f.counts"), fmt::format("1\t28\tpriority={},udp actions=output:0\n", i));
    ASSERT_TRUE(r.write("f.remove", fmt::format("priority={},udp", i))) << r.errors();
  }
}

TEST(FlowClassifier, NamesEachMistake) {
  const TemporaryFile file("udp actions=5\nnonsense\nudp actions=0\nudp actions=1\nipv6,ipv6_src=::1 actions=0\n");
  {
    TestRouter r(graph_of(file.path() + ", FIELDS ip", 2));
    ASSERT_TRUE(r.ok()) << r.errors();
    for (const char* text : {":1: output 5: this element has 2 outputs", ":2: expected a ClassBench rule or MATCH",
                             ":4: the same match and priority as a rule before it", ":5: needs FIELDS all"})
      EXPECT_NE(r.errors().find("warning: FILE: " + file.path() + text), std::string::npos) << text << r.errors();
    EXPECT_EQ(r.read("f.count"), "1");
  }
  TestRouter strict(graph_of(file.path() + ", STRICT true", 2));
  EXPECT_FALSE(strict.ok());
  EXPECT_NE(strict.errors().find("FILE: " + file.path() + ":2: expected a"), std::string::npos) << strict.errors();
  TestRouter fields(graph_of("FIELDS some", 1));
  EXPECT_FALSE(fields.ok());
  EXPECT_NE(fields.errors().find("FIELDS: expected ip, openflow10 or all, got 'some'"), std::string::npos);
}

/// Every carrier runs this: headers within the rules of real sets, compared with the first rule of the list.
TEST(FlowClassifier, DecidesOnClassBenchAsTheFirstMatchingRule) {
  std::mt19937 random(6);
  for (const char* set : {"acl1", "fw1", "ipc1"}) {
    const std::string path = kSourceDir + "/tests/data/classbench/" + set + "_sample.rules";
    std::vector<FlowRule> rules;
    std::vector<std::string> problems;
    ASSERT_EQ(read_flow_rules(path, rules, problems), "");
    constexpr uint32_t kOutputs = 5;
    TestRouter r(graph_of(path, kOutputs));
    ASSERT_TRUE(r.ok()) << r.errors();
    size_t expected[kOutputs] = {}, dropped = 0;
    for (int i = 0; i < 300; ++i) {
      const KeyMatch& match = rules[random() % rules.size()].match;
      const auto word = [&](uint32_t w) { return match.value[w] | (static_cast<uint32_t>(random()) & ~match.mask[w]); };
      const auto port = [&](int shift) {
        const uint32_t low = match.low >> shift & 0xffff, high = match.high >> shift & 0xffff;
        return low + static_cast<uint32_t>(random() % (high - low + 1));
      };
      const uint32_t src = word(0), dst = word(1), protocol = word(3) >> 8 & 0xff;
      const bool has_ports = protocol == 6 || protocol == 17 || protocol == 132;
      const uint32_t sport = has_ports ? port(16) : 0, dport = has_ports ? port(0) : 0;
      r.push("m", from_hex(fmt::format("4500001c 00000000 40{:02x}0000 {:08x} {:08x} {:04x}{:04x} 00080000", protocol,
                                       src, dst, sport, dport)));
      const uint32_t key[4] = {src, dst, has_ports ? sport << 16 | dport : 0, 0x08000000 | protocol << 8};
      size_t first = 0;
      const auto matches = [&](const KeyMatch& m) {
        for (uint32_t w = 0; w < 4; ++w)
          if (((key[w] ^ m.value[w]) & m.mask[w]) != 0) return false;
        return key[2] >> 16 >= m.low >> 16 && key[2] >> 16 <= m.high >> 16 && (key[2] & 0xffff) >= (m.low & 0xffff) &&
               (key[2] & 0xffff) <= (m.high & 0xffff);
      };
      while (first < rules.size() && !matches(rules[first].match)) ++first;
      if (first == rules.size()) {
        ++dropped;
      } else {
        ++expected[first % kOutputs];
      }
    }
    for (uint32_t i = 0; i < kOutputs; ++i)
      EXPECT_EQ(capture(r, fmt::format("c{}", i)).seen().size(), expected[i]) << set << ' ' << i;
    EXPECT_EQ(r.read("f.drop_reasons"), dropped == 0 ? "" : fmt::format("{}\tno rule matches\n", dropped));
  }
}

}  // namespace
}  // namespace headrace::testing
