/// \file
/// Rules on real packets: FlowClassifier decides as a linear search of its rules does, also while they change.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "../tables/acl_naive.hh"
#include "capture_frames.hh"
#include "offload_fixture.hh"
#include "packets.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"
#include "tables/acl/rule_file.hh"
#include "tables/key/key_fields.hh"

namespace headrace::testing {
namespace {

constexpr int kOutputs = 4;

/// A frame as rules see it.
struct RuleFrame {
  std::string bytes;
  uint8_t paint = 0;
  PacketKey key;
};

PacketKey key_of_frame(const std::string& frame, uint8_t paint) {
  PacketBytes bytes;
  bytes.data = reinterpret_cast<const uint8_t*>(frame.data());
  bytes.length = static_cast<uint32_t>(frame.size());
  PacketKeyContext context;
  context.in_port = paint;
  return parse_frame(bytes, static_cast<int32_t>(frame.size()), context);
}

const std::vector<RuleFrame>& rule_frames() {
  static const std::vector<RuleFrame> frames = [] {
    std::vector<RuleFrame> all;
    for (std::string& bytes : captured_frames(~size_t{0})) {
      if (bytes.size() < 14 || bytes.size() > 1900) continue;
      const auto paint = static_cast<uint8_t>(all.size() % 3);
      const PacketKey key = key_of_frame(bytes, paint);
      all.push_back({std::move(bytes), paint, key});
    }
    return all;
  }();
  return frames;
}

/// Adds what a field of a frame is to a match, under a mask, and what it requires. False if the frame does not have it.
bool add_field_of(const PacketKey& key, const KeyField& field, const KeyValue& mask, KeyMatch& match) {
  for (const KeyPrerequisite& p : field.prerequisites) {
    if (p.field == nullptr) continue;
    const KeyField& other = *find_key_field(p.field);
    const uint64_t is = get_key_field(key.w, other).low;
    if (p.value == 0x1000 ? (is & 0x1000) == 0 : p.value != 0 && is != p.value && (p.other == 0 || is != p.other))
      return false;
    if (!add_field_of(key, other, key_field_ones(other), match)) return false;
  }
  const KeyValue value = get_key_field(key.w, field), there = get_key_field(match.mask, field);
  set_key_field(match.mask, field, {there.high | mask.high, there.low | mask.low});
  const KeyValue now = get_key_field(match.mask, field);
  set_key_field(match.value, field, {value.high & now.high, value.low & now.low});
  return true;
}

/// Some fields of some frame, most with a mask, and sometimes with other bits than it has.
FlowRule random_flow(std::mt19937& random, uint32_t priority) {
  const std::vector<RuleFrame>& frames = rule_frames();
  FlowRule rule;
  const auto fields = key_fields();
  while (rule.match == KeyMatch()) {
    const PacketKey& key = frames[random() % frames.size()].key;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
      const KeyField& field = fields[random() % fields.size()];
      KeyMatch with = rule.match;
      KeyValue mask = key_field_ones(field);
      const bool prefix = random() % 2;
      const auto shift = static_cast<unsigned>(random() % field.bits);
      if (random() % 3 != 0) {
        const KeyValue ones = mask;
        if (prefix && shift < 64) mask = {ones.high, ones.low >> shift << shift};
        if (!prefix)
          mask = {ones.high & (uint64_t{random()} << 32 | random()), ones.low & (uint64_t{random()} << 32 | random())};
      }
      if (mask == KeyValue() || !add_field_of(key, field, mask, with)) continue;
      rule.match = with;
    }
    const bool ports = (rule.match.mask[key_word::kTypes] & 0xff00) == 0xff00 && rule.match.mask[key_word::kPorts] == 0;
    const uint32_t protocol = rule.match.value[key_word::kTypes] >> 8 & 0xff;
    if (ports && (protocol == 6 || protocol == 17) && random() % 2) {
      const uint32_t port = key.w[key_word::kPorts] & 0xffff;
      rule.match.low = port - static_cast<uint32_t>(random() % (port + 1));
      rule.match.high = 0xffff0000 | (port + static_cast<uint32_t>(random() % (65536 - port)));
    }
  }
  rule.priority = priority;
  rule.output = random() % 8 == 0 ? FlowRule::kDrop : static_cast<int>(random() % kOutputs);
  return rule;
}

/// What a router with rules should have done, by a linear search.
struct NaiveRules {
  struct Count {
    uint64_t packets = 0, bytes = 0;
  };
  NaiveAcl list;
  std::map<uint32_t, FlowRule> rules;  // by priority, which is its number in the list
  std::map<uint32_t, Count> counts;

  void add(const FlowRule& rule) {
    list.rules[rule.priority] = acl_rule(rule, 0);
    rules[rule.priority] = rule;
    counts[rule.priority] = {};
  }
  void remove(uint32_t priority) {
    list.rules.erase(priority);
    rules.erase(priority);
    counts.erase(priority);
  }
  /// The output; -1: dropped.
  int decide(const PacketKey& key, uint32_t length) {
    const uint32_t found = list.find(key.w, key_word::kCount);
    if (found == AclMatch::kNone) return -1;
    counts[found].packets += 1;
    counts[found].bytes += length;
    return rules[found].output;
  }
  std::string text() const {
    std::string text;
    for (auto it = counts.rbegin(); it != counts.rend(); ++it)
      text += fmt::format("{}\t{}\t{}\n", it->second.packets, it->second.bytes, unparse_flow_rule(rules.at(it->first)));
    return text;
  }
};

class OffloadRulesOnCaptures : public OffloadTest {
 protected:
  static std::string outputs() {
    std::string text = "cap :: Capture;";
    for (int i = 0; i < kOutputs; ++i) text += fmt::format("f[{}] -> [{}] cap;", i, i);
    return text;
  }
  /// Sends frames [begin, end) and compares what became of each. `expected` has an output of each.
  static void send(TestRouter& r, const std::vector<RuleFrame>& frames, size_t begin, size_t end,
                   const std::vector<int>& expected) {
    auto& capture = dynamic_cast<Capture&>(*r.router().find("cap"));
    const size_t before = capture.seen().size();
    for (size_t i = begin; i < end;) {
      std::vector<Packet*> packets;
      for (; i < end && packets.size() < 64; ++i) {
        packets.push_back(marked(frames[i].bytes, 0, static_cast<uint32_t>(i)));
        packets.back()->set_anno_u8(anno_offset::kPaint, frames[i].paint);
      }
      inject(r, "first", packets);
    }
    r.router().drain();
    std::vector<int> got(end - begin, -1);
    for (size_t i = before; i < capture.seen().size(); ++i) {
      const Capture::Seen& seen = capture.seen()[i];
      got[seen.packet->anno_u32(kNumberAnno) - begin] = seen.port;
    }
    for (size_t i = begin; i < end; ++i)
      ASSERT_EQ(got[i - begin], expected[i - begin]) << "frame " << i << ": " << to_hex(frames[i].bytes.substr(0, 96));
  }
};
HEADRACE_OFFLOAD_CARRIERS(OffloadRulesOnCaptures);

TEST_P(OffloadRulesOnCaptures, AllFieldsWhileRulesChange) {
  const std::vector<RuleFrame>& frames = rule_frames();
  ASSERT_GT(frames.size(), 50u);
  std::mt19937 random(11);
  NaiveRules naive;
  const auto r = make("Idle -> first :: MarkMACHeader -> f :: FlowClassifier(FIELDS all);" + outputs());
  ASSERT_TRUE(r->ok()) << r->errors();
  constexpr size_t kRounds = 8, kRules = 250;
  std::set<std::string> known;  // matches, so that no rule hides another one
  uint32_t next = 1;
  uint64_t hits = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    std::string changes;
    for (size_t i = 0; round > 0 && i < kRules / 4; ++i) {
      auto at = naive.rules.begin();
      std::advance(at, static_cast<long>(random() % naive.rules.size()));
      FlowRule rule = at->second;
      if (random() % 2) {
        rule.output = static_cast<int>(random() % kOutputs);
        naive.rules[rule.priority] = rule;
        changes += "modify " + unparse_flow_rule(rule) + "\n";
      } else {
        naive.remove(rule.priority);
        rule.output = FlowRule::kUnsaid;
        changes += "remove " + unparse_flow_rule(rule) + "\n";
      }
    }
    while (naive.rules.size() < kRules) {
      const FlowRule rule = random_flow(random, next);
      if (!known.insert(unparse_match(rule.match)).second) continue;
      ++next;
      naive.add(rule);
      changes += "add " + unparse_flow_rule(rule) + "\n";
    }
    ASSERT_TRUE(r->write("f.ctrl", changes)) << r->errors();
    const size_t begin = frames.size() * round / kRounds, end = frames.size() * (round + 1) / kRounds;
    std::vector<int> expected;
    for (size_t i = begin; i < end; ++i) {
      expected.push_back(naive.decide(frames[i].key, static_cast<uint32_t>(frames[i].bytes.size())));
      if (expected.back() == FlowRule::kDrop) expected.back() = -1;
      hits += expected.back() >= 0;
    }
    send(*r, frames, begin, end, expected);
    if (HasFatalFailure()) return;
    ASSERT_EQ(r->read("f.counts"), naive.text());
  }
  EXPECT_GT(hits, frames.size() / 2);
  if (!on_cpu()) {
    EXPECT_EQ(event(*r, offload::kJobPackets), frames.size());
    EXPECT_LT(event(*r, offload::kEscaped), frames.size() / 4);
  }
  if (!std::filesystem::exists(kSourceDir + "/../shared/data/pcap"))
    GTEST_SKIP() << "only the tree's captures: ../shared/data/pcap is not there";
}

/// IPv4 packets of the captures with addresses and ports that rules of a set are about, and what a linear search says.
struct SetFrames {
  explicit SetFrames(const std::string& path) {
    std::vector<FlowRule> rules;
    std::vector<std::string> problems;
    EXPECT_EQ(read_flow_rules(path, rules, problems), "");
    std::mt19937 random(4);
    const auto put = [](std::string& bytes, size_t at, uint32_t word) {
      for (int i = 0; i < 4; ++i) bytes[at + static_cast<size_t>(i)] = static_cast<char>(word >> (24 - 8 * i));
    };
    for (const RuleFrame& real : rule_frames()) {
      if (frames.size() == kMost) break;
      const auto byte = [&](size_t at) { return static_cast<uint8_t>(real.bytes[at]); };
      if (real.bytes.size() < 34 || byte(12) != 8 || byte(13) != 0 || byte(14) >> 4 != 4) continue;
      std::string bytes = real.bytes.substr(14);
      const size_t header = (byte(14) & 15u) * 4;
      for (int tries = 0; tries < 40; ++tries) {
        const KeyMatch& match = rules[random() % rules.size()].match;
        const uint32_t types = 0x08000000 | uint32_t{byte(23)} << 8 | byte(15);
        if (((types ^ match.value[key_word::kTypes]) & match.mask[key_word::kTypes]) != 0) continue;
        const auto word = [&](uint32_t w) {
          return match.value[w] | (static_cast<uint32_t>(random()) & ~match.mask[w]);
        };
        const auto port = [&](int shift) {
          const uint32_t low = match.low >> shift & 0xffff, high = match.high >> shift & 0xffff;
          return low + static_cast<uint32_t>(random() % (high - low + 1));
        };
        put(bytes, 12, word(key_word::kIp4Src));
        put(bytes, 16, word(key_word::kIp4Dst));
        if (header >= 20 && bytes.size() >= header + 4) put(bytes, header, port(16) << 16 | port(0));
        break;
      }
      PacketBytes view;
      view.data = reinterpret_cast<const uint8_t*>(bytes.data());
      view.length = static_cast<uint32_t>(bytes.size());
      const PacketKey key = parse_ip(view, 0, static_cast<int32_t>(bytes.size()));
      size_t first = 0;
      while (first < rules.size() && !NaiveAcl::matches(acl_rule(rules[first], 0), key.w, 4)) ++first;
      frames.push_back({std::move(bytes), 0, key});
      expected.push_back(first == rules.size() ? -1 : static_cast<int>(first % kOutputs));
    }
  }

  static constexpr size_t kMost = 4000;
  std::vector<RuleFrame> frames;
  std::vector<int> expected;
};

TEST_P(OffloadRulesOnCaptures, ClassBench) {
  const std::string archive =
      kSourceDir + "/../shared/data/classbench/classbench-acl1-fw1-ipc1_1k_10k_neurocuts.tar.xz";
  // By path, the frames for each set.
  static std::map<std::string, SetFrames> sets;
  static std::deque<TemporaryFile> files;
  if (sets.empty()) {
    for (const char* set : {"acl1", "fw1", "ipc1"}) {
      const std::string path = kSourceDir + "/tests/data/classbench/" + set + "_sample.rules";
      sets.emplace(path, path);
    }
    if (std::filesystem::exists(archive)) {
      for (const char* set : {"acl1_10k", "fw1_10k", "ipc1_10k"}) {
        files.emplace_back("");
        const std::string path = files.back().path();
        ASSERT_EQ(std::system(fmt::format("tar -xOf '{}' {} > '{}'", archive, set, path).c_str()), 0);
        sets.emplace(path, path);
      }
    }
  }
  for (const auto& [path, set] : sets) {
    SCOPED_TRACE(path);
    ASSERT_GT(set.frames.size(), 20u);
    const auto r = make("Idle -> first :: MarkIPHeader -> f :: FlowClassifier(" + path + ");" + outputs());
    ASSERT_TRUE(r->ok()) << r->errors();
    send(*r, set.frames, 0, set.frames.size(), set.expected);
    if (HasFatalFailure()) return;
    EXPECT_GT(set.frames.size() - static_cast<size_t>(std::count(set.expected.begin(), set.expected.end(), -1)),
              set.frames.size() / 2);
  }
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << "only the samples: " << archive << " is not there";
}

}  // namespace
}  // namespace headrace::testing
