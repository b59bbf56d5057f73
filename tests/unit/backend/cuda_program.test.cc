#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/compile.hh"
#include "backend/cuda/driver.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "offload/chain_plans.hh"
#include "offload/plan.hh"
#include "offload/program.hh"
#include "runtime/router_graph.hh"
#include "runtime/runtime.hh"
#include "runtime/shipped_compounds.hh"
#include "support/side_by_side.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"

namespace headrace::cuda {
namespace {

using headrace::testing::TemporaryFile;

/// The program of all chains of a configuration, with the kernels.
std::string program_of(const std::filesystem::path& file, const std::map<std::string, std::string>& variables,
                       int& plans, Errors& errors) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  lang::Options options;
  options.variables = variables;
  options.library_path = {""};
  add_shipped_compounds(options);
  lang::Configuration configuration;
  if (!lang::parse(text, file.string(), options, configuration, errors)) return {};
  Runtime runtime(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false});
  RouterOptions router_options;
  router_options.only_configure = true;  // the machine has not the interfaces that some name
  const std::unique_ptr<Router> router = Router::create(configuration, runtime, errors, router_options);
  if (!router) return {};
  const std::vector<offload::Plan> made =
      offload::plan_chains(Router::Graph::nodes(*router), router->graph().edges, router->graph().resolved).plans;
  plans = static_cast<int>(made.size());
  return offload::program_source(made) + "#include \"headrace/device/kernels.hh\"\n";
}

TEST(CudaProgram, IsMadeForTheValuesThatConfigurationsFix) {
  const TemporaryFile file(
      "Idle -> s :: Switch -> FlowClassifier(FIELDS ip) -> Discard;"
      "s[1] -> FlowClassifier(FIELDS all) -> Discard; s[2] -> FlowClassifier(FIELDS all) -> Discard;",
      ".click");
  Errors errors;
  int plans = 0;
  const std::string source = program_of(file.path(), {}, plans, errors);
  ASSERT_EQ(errors.str(), "");
  const auto times = [&](std::string_view text) {
    int n = 0;
    for (size_t at = 0; (at = source.find(text, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  // Elements that differ in such a value are not one piece of code; the other two may be.
  EXPECT_EQ(times("shade_slot(with_fixed<4u>("), 1) << source;
  EXPECT_GE(times("shade_slot(with_fixed<32u>("), 1) << source;
  EXPECT_EQ(times("shade_slot(*reinterpret_cast<const FlowClassifier*>"), 0) << source;
}

TEST(CudaProgram, OfEveryConfigurationInConfCompiles) {
  const std::filesystem::path folder = std::filesystem::path(kSourceDir) / "conf";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no source tree beside this binary";
  std::string why_not;
  if (Nvrtc::get(&why_not) == nullptr) GTEST_SKIP() << why_not;
  // A capture without packets, for configurations that read one.
  const std::string header("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0", 24);
  const TemporaryFile in(header, ".pcap"), out0("", ".pcap"), out1("", ".pcap");
  int files = 0;
  std::vector<std::function<void()>> work;
  std::vector<std::unique_ptr<std::string>> complaints;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".click") continue;
    Errors errors;
    int plans = 0;
    const std::string source = program_of(entry.path(),
                                          {{"IN", in.path()},
                                           {"OUT0", out0.path()},
                                           {"OUT1", out1.path()},
                                           {"LAN_ETH", "02:00:00:00:00:01"},
                                           {"WAN_ETH", "02:00:00:00:00:02"}},
                                          plans, errors);
    if (errors.str().find("this headrace was built") != std::string::npos) continue;  // without DPDK
    ASSERT_EQ(errors.str(), "") << entry.path();
    if (plans == 0) continue;  // a bridge, for example, has no shaders
    ++files;
    // Every kind of device for two of them. Of the others only PTX, as for devices that NVRTC does not know, in half of the
    // time.
    constexpr int kYetUnknown = 990;
    const std::string name = entry.path().stem();
    const bool all = name == "ipv4-router" || name == "dpi-router";
    for (const int capability : all ? std::vector<int>{80, 90, 100} : std::vector<int>{kYetUnknown}) {
      complaints.push_back(std::make_unique<std::string>());
      work.push_back([source, capability, name, complaint = complaints.back().get()] {
        Errors log;
        Image image;
        if (!compile_program(source, capability, false, image, log).ok() || image.bytes.size() <= 1000)
          *complaint = fmt::format("{} for sm_{}:\n{}", name, capability, log.str());
      });
    }
  }
  EXPECT_GE(files, 5);
  testing::side_by_side(work);
  for (const auto& complaint : complaints) EXPECT_EQ(*complaint, "");
}

/// Not among CudaProgram's tests, which run in a binary that lacks the shaders of tests.
TEST(CudaRewriting, ProgramCompiles) {
  std::string why_not;
  if (Nvrtc::get(&why_not) == nullptr) GTEST_SKIP() << why_not;
  const TemporaryFile conf(
      "Idle -> Strip(14) -> OffloadEcho(1, 2, 3) -> a :: OffloadEcho(4) -> s :: OffloadScan(5) -> Discard;"
      " a[1] -> Discard; s[1] -> Discard;",
      ".click");
  Errors errors;
  int plans = 0;
  const std::string source = program_of(conf.path(), {}, plans, errors);
  ASSERT_EQ(errors.str(), "");
  ASSERT_EQ(plans, 1);
  Image image;
  EXPECT_TRUE(compile_program(source, 90, false, image, errors).ok()) << errors.str();
}

}  // namespace
}  // namespace headrace::cuda
