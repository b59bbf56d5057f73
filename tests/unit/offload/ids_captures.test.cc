/// \file
/// Random rules on real packets: IDSMatcher alerts where a plain evaluation of each rule on each packet says so.

#include <fmt/format.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "capture_frames.hh"
#include "elements/ids/ids_rules.hh"
#include "offload_fixture.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

constexpr size_t kMostOfACapture = 60;

rules::PacketFacts facts_of(const std::string& frame) {
  return rules::PacketFacts(
      {reinterpret_cast<const uint8_t*>(frame.data()), static_cast<uint32_t>(frame.size()), PacketBytes::kNone});
}

/// Rules for packets that are there: contents from their payloads; their protocols and ports, and others.
std::string random_rules(const std::vector<std::string>& frames, int n, uint32_t seed) {
  std::mt19937 random(seed);
  const auto port = [&](uint16_t own) -> std::string {
    switch (random() % 7) {
      case 0:
        return fmt::format("{}", own);
      case 1:
        return fmt::format("!{}", own);
      case 2:
        return fmt::format("[80,443,{}]", own);
      case 3:
        return fmt::format("[1:1024,!{}]", own);
      case 4:
        return "1024:";
      default:
        return "any";
    }
  };
  std::string text;
  for (int sid = 1; sid <= n;) {
    const std::string& frame = frames[random() % frames.size()];
    const rules::PacketFacts facts = facts_of(frame);
    const size_t length = 1 + random() % 8;
    if (!facts.is_ip() || facts.payload().size() < length) continue;
    const size_t at = random() % (facts.payload().size() - length + 1);
    std::string content;
    for (const char c : facts.payload().substr(at, length)) content += fmt::format("{:02x} ", static_cast<uint8_t>(c));
    const char* const own = facts.protocol() == 6    ? "tcp"
                            : facts.protocol() == 17 ? "udp"
                            : facts.is_icmp()        ? "icmp"
                                                     : "ip";
    const char* const others[] = {"ip", "tcp", "udp", "icmp", "sctp"};
    text += fmt::format("alert {} any {} {} any {} (content:\"|{}|\"; {}sid:{};)\n",
                        random() % 4 != 0 ? own : others[random() % 5], port(facts.src_port()),
                        random() % 5 == 0 ? "<>" : "->", port(facts.dst_port()), content,
                        random() % 3 == 0 ? fmt::format("offset:{}; ", random() % (at + 1)) : "", sid);
    ++sid;
  }
  return text;
}

/// By sid, how many frames a rule matches, each tried by itself.
std::map<uint32_t, uint64_t> evaluate(const std::string& text, const std::vector<std::string>& frames) {
  rules::RuleReader reader({});
  reader.read_text(text, "random.rules");
  const rules::RuleSet set = reader.finish();
  EXPECT_TRUE(set.refused.empty());
  std::map<uint32_t, uint64_t> counts;
  for (const std::string& frame : frames) {
    const rules::PacketFacts facts = facts_of(frame);
    for (const rules::Rule& rule : set.rules) {
      rules::WorkLimit limit;
      if (facts.meets(rule) && confirm_steps(rule, facts.payload(), limit) == rules::Confirmed::kMatch)
        ++counts[rule.sid];
    }
  }
  return counts;
}

class OffloadIds : public OffloadTest {};
HEADRACE_OFFLOAD_CARRIERS(OffloadIds);

TEST_P(OffloadIds, AlertsOnCapturesAreThoseOfEachRuleByItself) {
  static const std::vector<std::string> frames = captured_frames(kMostOfACapture);
  ASSERT_GT(frames.size(), 50u);
  const std::string text = random_rules(frames, 300, 17);
  const TemporaryFile rules(text), alerts;
  std::string expected;
  uint64_t all = 0;
  for (const auto& [sid, count] : evaluate(text, frames)) {
    expected += fmt::format("{} {} \n", sid, count);
    all += count;
  }
  EXPECT_GT(all, 100u);
  const auto r =
      make(fmt::format("Idle -> m :: IDSMatcher(RULES {}, ALERTS {}) -> clean :: Capture; m[1] -> [1] clean;",
                       rules.path(), alerts.path()));
  ASSERT_TRUE(r->ok()) << r->errors();
  for (size_t i = 0; i < frames.size();) {
    std::vector<Packet*> packets;
    for (; i < frames.size() && packets.size() < 64; ++i)
      packets.push_back(Packet::make(frames[i].data(), static_cast<uint32_t>(frames[i].size())));
    inject(*r, "m", packets);
  }
  r->router().drain();
  EXPECT_EQ(r->read("m.alerts"), expected);
  EXPECT_EQ(r->read("m.cut"), "0");
  EXPECT_LT(std::stoul(r->read("m.rescans")), frames.size() / 2);
}

}  // namespace
}  // namespace headrace::testing
