#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backend/cuda/compile.hh"
#include "backend/cuda/driver.hh"
#include "headrace/device/embedded.hh"
#include "headrace/element.hh"
#include "support/side_by_side.hh"

namespace headrace::cuda {
namespace {

/// Device programs compile on machines without a device; what is needed is NVRTC (tools/nvrtc).
class CudaCompile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (Nvrtc::get(&why_not) == nullptr) GTEST_SKIP() << why_not;
  }

  /// A program in which one slot runs through one shader.
  static std::string program_of(std::string_view header, std::string_view shader) {
    return fmt::format(R"(#include "headrace/device/jobs.hh"
#include "{}"
namespace {{
struct Layout {{
  HEADRACE_SHADER static constexpr headrace::RowLayout row() {{ return {{128, 0x0fff, -14, 64}}; }}
}};
}}
template <headrace::PlanClass kClass>
inline __device__ void headrace_run_plan(int, headrace::Slot& slot, const unsigned char* parameters) {{
  const Layout layout;
  slot.header.at = headrace::shade_slot(*reinterpret_cast<const headrace::{}*>(parameters), slot, layout, 0);
}}
template <headrace::PlanClass kClass>
inline __device__ constexpr unsigned headrace_block_bytes() {{ return headrace::{}::kBlockBytes; }}
template <headrace::PlanClass kClass>
inline __device__ void headrace_prepare_block() {{
  headrace::prepare_block<headrace::{}>();
}}
#include "headrace/device/kernels.hh"
)",
                       header, shader, shader, shader);
  }
  static std::string log_of(const std::string& source, int capability) {
    Errors errors;
    Image image;
    if (compile_program(source, capability, false, image, errors).ok() && !image.bytes.empty()) return {};
    return errors.str() + "(no image)";
  }
};

TEST_F(CudaCompile, EveryShaderForEveryKindOfDevice) {
  // A kernel for each: one that held them all would take the compiler minutes.
  std::string includes, kernels;
  int shaders = 0;
  for (const ElementInfo* info : all_element_infos()) {
    if (!info->shader || std::strcmp(info->name, info->documented_as) != 0) continue;
    const EmbeddedText header = find_embedded_element(info->name);
    if (header.path.empty()) continue;  // defined by a test
    ++shaders;
    includes += fmt::format("#include \"{}\"\n", header.path);
    kernels += fmt::format("template __global__ void shade<headrace::{}>(headrace::Slot*, const unsigned char*);\n",
                           info->name);
  }
  EXPECT_GT(shaders, 30);
  const std::string source = includes + R"(
struct Layout {
  HEADRACE_SHADER static constexpr headrace::RowLayout row() { return {128, 0x0fff, -14, 64, 8}; }
};
template <typename S>
__global__ void shade(headrace::Slot* slots, const unsigned char* parameters) {
  const Layout layout;
  headrace::Slot slot = slots[threadIdx.x];
  const S* const shader = reinterpret_cast<const S*>(parameters);
  if constexpr (headrace::scans_payload<S>()) {
    slot.header.at = headrace::scan_slot(shader, slot, true, layout, 0);
  } else if constexpr (headrace::rewrites_packet<S>()) {
    slot.header.at = headrace::rewrite_slot(shader, slot, true, layout, 0);
  } else {
    slot.header.at = headrace::shade_slot(*shader, slot, layout, 0);
  }
  slots[threadIdx.x] = slot;
}
)" + kernels;
  std::string log80, log90, log100;
  testing::side_by_side({[&] { log80 = log_of(source, 80); }, [&] { log90 = log_of(source, 90); },
                         [&] { log100 = log_of(source, 100); }});
  EXPECT_EQ(log80, "");
  EXPECT_EQ(log90, "");
  EXPECT_EQ(log100, "");
}

TEST_F(CudaCompile, WarningsOfTheKernelsAreErrors) {
  std::string why_not;
  const Nvrtc* nvrtc = Nvrtc::get(&why_not);
  const std::string source = program_of("elements/standard/Null.hh", "Null");
  std::vector<const char*> texts, paths;
  for (const EmbeddedText& header : embedded_headers()) {
    texts.push_back(header.text.data());
    paths.push_back(header.path.data());
  }
  nvrtcProgram program = nullptr;
  ASSERT_EQ(nvrtc->nvrtcCreateProgram(&program, source.c_str(), "null.cu", static_cast<int>(texts.size()), texts.data(),
                                      paths.data()),
            0);
  const char* const options[] = {"--gpu-architecture=sm_90", "--std=c++20", "--device-as-default-execution-space"};
  const int result = nvrtc->nvrtcCompileProgram(program, 3, options);
  size_t size = 0;
  nvrtc->nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  nvrtc->nvrtcGetProgramLog(program, log.data());
  nvrtc->nvrtcDestroyProgram(&program);
  EXPECT_EQ(result, 0);
  EXPECT_STREQ(log.c_str(), "");
}

TEST_F(CudaCompile, AnUndeclaredFieldDoesNotCompile) {
  const std::string source = R"(#include <headrace/shader.hh>
namespace headrace {
struct Sly : Shader<Sly> {
  static constexpr auto kRegions = regions(Read{ip4::ttl});
  HEADRACE_SHADER Next shade(auto& p) const { return p.get(ip4::tos) & 1; }
};
}
)" + program_of("headrace/shader.hh", "Sly");
  EXPECT_NE(log_of(source, 90).find("does not declare that it reads this field"), std::string::npos)
      << log_of(source, 90);
}

TEST_F(CudaCompile, ErrorsHaveTheCompilersLog) {
  const std::string log = log_of("#include \"headrace/shader.hh\"\nnonsense;\n", 80);
  EXPECT_NE(log.find("program.cu(2)"), std::string::npos) << log;
  EXPECT_NE(log.find("nonsense"), std::string::npos) << log;
}

TEST_F(CudaCompile, TheCacheAnswersTheSecondTimeAndSparesNobodyAnError) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("headrace-cache-{}", ::getpid());
  const char* const old = std::getenv("XDG_CACHE_HOME");
  const std::string kept = old != nullptr ? old : "";
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  Errors errors;
  Image first, second, other, again;
  const std::string source = "extern \"C\" __global__ void one(int* p) { *p = 1; }\n";
  EXPECT_TRUE(compile_program(source, 90, true, first, errors).ok());
  EXPECT_TRUE(compile_program(source, 90, true, second, errors).ok());
  EXPECT_TRUE(compile_program(source, 80, true, other, errors).ok());
  EXPECT_FALSE(first.cached);
  EXPECT_TRUE(second.cached);
  EXPECT_FALSE(other.cached);
  EXPECT_EQ(first.bytes, second.bytes);
  // A cache that cannot be written: a file stands where the folder should be.
  std::filesystem::remove_all(folder);
  { std::ofstream(folder) << "in the way"; }
  EXPECT_TRUE(compile_program(source, 90, true, again, errors).ok());
  EXPECT_FALSE(again.cached);
  EXPECT_EQ(again.bytes.size(), first.bytes.size());
  std::filesystem::remove_all(folder);
  if (old != nullptr)
    setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(errors.str(), "");
}

TEST(CudaDriver, SaysWhatIsMissing) {
  std::string why_not;
  if (Driver::get(&why_not) != nullptr) GTEST_SKIP() << "a CUDA driver is there";
  EXPECT_NE(why_not.find("CUDA driver"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace headrace::cuda
