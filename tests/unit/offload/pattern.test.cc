// Elements that search payloads find on every carrier what a plain search finds.

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "io/memory/payloads.hh"
#include "offload_fixture.hh"
#include "packets.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

class OffloadPatterns : public OffloadTest {
 protected:
  static constexpr uint32_t kHeaders = 14 + 20 + 8;

  /// Frames of UDP whose payloads are cut from text, from noise and from what makes automata work hard.
  static std::vector<std::string> frames(int n) {
    const std::string text = make_text_payload(size_t{1} << 20, 5), noise = make_random_payload(size_t{1} << 20, 6);
    std::mt19937 random(7);
    std::vector<std::string> all;
    for (int i = 0; i < n; ++i) {
      const uint32_t length = random() % 4 == 0 ? random() % 40 : random() % 1400;
      std::string frame = udp_frame(0x0a000001, 0x0a000002, 64, kHeaders + length);
      std::string payload(length, i % 2 != 0 ? 'a' : 'b');
      if (i % 3 == 0) payload = text.substr(random() % (text.size() - length), length);
      if (i % 3 == 1) payload = noise.substr(random() % (noise.size() - length), length);
      if (length > 4 && i % 3 == 2) payload[random() % length] = static_cast<char>('a' + random() % 3);
      frame.replace(kHeaders, length, payload);
      all.push_back(frame);
    }
    return all;
  }
  /// The match that ends first, of those the lowest number; -1 for none.
  static int search(const std::vector<std::string>& patterns, std::string_view payload) {
    size_t first = std::string::npos;
    int number = -1;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const size_t at = payload.find(patterns[i]);
      if (at == std::string_view::npos || at + patterns[i].size() >= first) continue;
      first = at + patterns[i].size();
      number = static_cast<int>(i);
    }
    return number;
  }
  void check(const std::string& element, const std::vector<std::string>& patterns) {
    SCOPED_TRACE(element);
    const auto r = make("Idle -> m :: " + element + " -> cap :: Capture; m[1] -> [1] cap;");
    ASSERT_TRUE(r->ok()) << r->errors();
    const std::vector<std::string> all = frames(600);
    std::vector<Packet*> packets;
    for (size_t i = 0; i < all.size(); ++i) packets.push_back(marked(all[i], static_cast<uint32_t>(i), 0));
    inject(*r, "m", packets);
    r->router().drain();
    const auto& seen = capture(*r, "cap").seen();
    ASSERT_EQ(seen.size(), all.size());
    size_t found = 0;
    for (const auto& s : seen) {
      const uint32_t flow = s.packet->anno_u32(kFlowAnno);
      const int should = search(patterns, std::string_view(all[flow]).substr(kHeaders));
      ASSERT_EQ(s.port, should >= 0) << "packet " << flow;
      if (should >= 0) {
        EXPECT_EQ(s.packet->anno_u32(anno_offset::kPattern), static_cast<uint32_t>(should)) << "packet " << flow;
        ++found;
      }
    }
    EXPECT_GT(found, all.size() / 10);
    EXPECT_LT(found, all.size() * 9 / 10);
    EXPECT_EQ(r->read("m.matches"), std::to_string(found));
  }
};
HEADRACE_OFFLOAD_CARRIERS(OffloadPatterns);

TEST_P(OffloadPatterns, FindWhatIsThere) {
  const std::vector<std::string> patterns{"Cookie: ", "aaab",  "baaa", "\"price\"", "aab",
                                          "</body>",  "xyzzy", "zz",   "abaa",      "</bo"};
  std::string list;
  for (const std::string& p : patterns) {
    list += list.empty() ? "" : ", ";
    list += p == "\"price\"" ? "'\\\"price\\\"'" : p == "Cookie: " ? "Cookie:\\x20" : p;
  }
  for (const char* engine : {"auto", "prefilter", "dfa", "compressed"})
    check("StringMatcher(" + list + ", ENGINE " + engine + ")", patterns);
  check("AhoCorasick(" + list + ")", patterns);
}

}  // namespace
}  // namespace headrace::testing
