/// \file
/// The engines of pattern matching as a device has them: compiled by NVRTC, and with copies of the tables.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/driver.hh"
#include "device_compile.hh"
#include "headrace/mirror.hh"
#include "pattern_naive.hh"

namespace headrace {
namespace {

/// Copies what changed since nothing had been copied.
class CopyingMirror final : public Mirror {
 public:
  size_t copied = 0;

 private:
  uint64_t place(const void* objects, size_t size, ChangedPages* changes) override {
    if (size == 0) return 0;
    copies_.push_back(std::make_unique<std::byte[]>(size + 16));
    void* at = copies_.back().get();
    size_t space = size + 16;
    auto* const to = static_cast<std::byte*>(std::align(16, size, at, space));
    changes->advance();
    changes->each_since(0, [&](size_t begin, size_t end) {
      end = std::min(end, size);
      std::memcpy(to + begin, static_cast<const std::byte*>(objects) + begin, end - begin);
      copied += end - begin;
    });
    return reinterpret_cast<uint64_t>(to);
  }
  uint64_t put(const void*, size_t) override { return 0; }

  std::vector<std::unique_ptr<std::byte[]>> copies_;
};

TEST(PatternMirror, CopiesOfAllTables) {
  Errors errors;
  const std::string text = "xx abcabd, GET /, Q, NEEDLE and no needles";
  for (const PatternEngine engine : {PatternEngine::kDfa, PatternEngine::kCompressed, PatternEngine::kPrefilter}) {
    PatternSet set;
    for (const char* bytes : {"abc", "abd", "GET /", "Q", "d,", "NEEDLE and no"})
      ASSERT_TRUE(set.add({bytes, *bytes == 'a'}, errors));
    CopyingMirror mirror;
    PatternView view;
    std::vector<PatternMatch> all;
    {
      PatternMatcher matcher;
      PatternMatcherOptions options;
      options.engine = engine;
      ASSERT_TRUE(matcher.build(std::move(set), options, errors)) << errors.str();
      view = matcher.mirror(mirror);
      EXPECT_EQ(view.engine, engine);
      EXPECT_EQ(mirror.copied, matcher.device_bytes());
      all = NaivePatterns(matcher.patterns()).scan(text);
    }
    // The owner is gone.
    bool whole = false;
    EXPECT_EQ(AllEngines::scan<HostTeam<32>>(view, payload_of(text), whole), all);
    EXPECT_EQ(all.size(), 6u);
  }
}

/// A kernel that searches with a view, in the way of a payload shader.
std::string kernel(const char* view, const char* answer) {
  return fmt::format(R"(#include "tables/pattern/pattern_view.hh"
using namespace headrace;
extern "C" __global__ void search(const {} view, const unsigned char* payloads, unsigned size, unsigned long long* out) {{
  extern __shared__ unsigned char shared[];
  const unsigned warp = threadIdx.x / 32, row = blockIdx.x * (blockDim.x / 32) + warp;
  unsigned char* const mine = shared + warp * size;
  for (unsigned i = threadIdx.x % 32; i < size; i += 32) mine[i] = payloads[row * size + i];
  __syncwarp();
  const PayloadBytes bytes{{mine, size}};
  out[row] = {};
}}
)",
                     view, answer);
}

TEST(PatternCompile, EachViewForADevice) {
  std::string why_not;
  const cuda::Nvrtc* nvrtc = cuda::Nvrtc::get(&why_not);
  if (nvrtc == nullptr) GTEST_SKIP() << why_not;
  const char* const sm_90 = "--gpu-architecture=sm_90";
  const char* const candidates = "candidates(view, WarpTeam(), bytes).packed";
  EXPECT_EQ(device_complaint(*nvrtc, kernel("FullDfaView", candidates), sm_90), "");
  EXPECT_EQ(device_complaint(*nvrtc, kernel("CompressedDfaView", candidates), sm_90), "");
  EXPECT_EQ(device_complaint(*nvrtc, kernel("PrefilterView", candidates), sm_90), "");
  EXPECT_EQ(device_complaint(*nvrtc, kernel("PatternView", "first_match(view, WarpTeam(), bytes).key"), sm_90), "");
  EXPECT_EQ(
      device_complaint(*nvrtc, kernel("PatternView", "any_match(view, WarpTeam(), bytes)"), "--gpu-architecture=sm_80"),
      "");
}

}  // namespace
}  // namespace headrace
