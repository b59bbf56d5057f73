/// \file
/// The engines of pattern matching on the contents of real rules, over text, random bytes and real packets.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "pattern_naive.hh"
#include "support/rule_contents.hh"
#include "support/source_dir.hh"

namespace headrace {
namespace {

using testing::capture_bytes;
using testing::http_text;
using testing::rule_contents;

std::string shared_data(const std::string& name) { return kSourceDir + "/../shared/data/" + name; }

/// Compares the CPU and all engines with each other on pieces of `bytes`, and with the naive search on some.
void compare_pieces(const AllEngines& engines, const std::string& bytes, const char* what) {
  size_t matches = 0;
  int piece = 0;
  for (size_t at = 0; at < bytes.size(); at += 1460, ++piece) {
    const std::string_view text = std::string_view(bytes).substr(at, 1460);
    if (piece % 16 == 0) {
      ASSERT_EQ(engines.compare(text), "") << what << " at " << at;
    }
    std::vector<PatternMatch> all;
    ASSERT_TRUE(engines.matcher().scan(payload_of(text), [&](uint32_t pattern, uint32_t end) {
      all.push_back({end, pattern});
    }));
    std::sort(all.begin(), all.end());
    bool whole = false;
    ASSERT_TRUE(AllEngines::scan<HostTeam<32>>(engines.dfa().view(), payload_of(text), whole) == all) << what << at;
    ASSERT_TRUE(AllEngines::scan<HostTeam<32>>(engines.compressed().view(), payload_of(text), whole) == all)
        << what << at;
    ASSERT_TRUE(AllEngines::scan<HostTeam<32>>(engines.prefilter().view(), payload_of(text), whole) == all)
        << what << at;
    matches += all.size();
  }
  std::printf("%s: %zu bytes, %zu matches\n", what, bytes.size(), matches);
}

void compare_set(PatternSet set) {
  const AllEngines engines(std::move(set));
  ASSERT_EQ(engines.faults(), "");
  std::printf("%s%s\n%s\n%s\n", engines.matcher().text().c_str(), engines.dfa().description().c_str(),
              engines.compressed().description().c_str(), engines.prefilter().description().c_str());
  EXPECT_LT(4 * engines.compressed().memory(), engines.dfa().memory());
  std::mt19937 random(3);
  std::string noise(100'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  compare_pieces(engines, noise, "random bytes");
  compare_pieces(engines, http_text(150'000, 1), "text");
  for (const char* name : {"zeek-btest-traces-subset.tar.xz", "trex-sfr-emix-templates.tar.xz",
                           "snabb-ipfix-sanitized4k.pcap.xz", "tcpreplay-test.pcap.xz"}) {
    const std::string path = shared_data(std::string("pcap/") + name);
    if (std::filesystem::exists(path)) compare_pieces(engines, capture_bytes(path, 150'000), name);
  }
}

TEST(PatternReal, SnortCommunityContents) {
  const std::string path = shared_data("rules/snort-community-2022-02.tar.xz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  PatternSet set = rule_contents(path, 1);
  EXPECT_GT(set.size(), 4000u);
  compare_set(std::move(set));
}

TEST(PatternReal, EmergingThreatsContents) {
  const std::string path = shared_data("rules/et-open-2019-04.tar.xz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  PatternSet set = rule_contents(path, 4);
  EXPECT_GT(set.size(), 25000u);
  compare_set(std::move(set));
}

}  // namespace
}  // namespace headrace
