#include <gtest/gtest.h>

#include "backend/cuda/compile.hh"
#include "backend/cuda/driver.hh"

namespace headrace::cuda {
namespace {

/// The search compiles for devices; what is needed is NVRTC (tools/nvrtc).
TEST(RegexCompile, AWarpSearches) {
  std::string why_not;
  if (Nvrtc::get(&why_not) == nullptr) GTEST_SKIP() << why_not;
  const std::string source = R"(#include "tables/regex/regex_view.hh"
extern "C" __global__ void search(headrace::RegexView view, const unsigned char* text, unsigned length,
                                  headrace::RegexFound* found) {
  const headrace::WarpTeam team;
  *found = headrace::find_first(view, team, headrace::PayloadBytes{text, length});
}
)";
  for (const int capability : {80, 90, 100}) {
    Errors errors;
    Image image;
    EXPECT_TRUE(compile_program(source, capability, false, image, errors).ok()) << errors.str();
    EXPECT_FALSE(image.bytes.empty()) << "sm_" << capability;
  }
}

}  // namespace
}  // namespace headrace::cuda
