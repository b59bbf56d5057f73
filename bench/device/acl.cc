// `headrace acl`: lookups in tables of rules, on a device in its own memory, and on one CPU.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_backend.hh"
#include "bench/device/acl_kernels.hh"
#include "bench/device/acl_keys.hh"
#include "bench/device/device_bench.hh"
#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_table.hh"

namespace headrace::device_bench {

namespace {

using acl_bench::Key;

constexpr size_t kAclKeys = size_t{1} << 22;
constexpr size_t kComparedKeys = size_t{1} << 20;  // with the CPU
constexpr size_t kAclBatch = 256;
constexpr unsigned kAclThreads = 256;

std::vector<uint32_t> widened(const std::vector<Key>& keys, size_t count, uint32_t words) {
  std::vector<uint32_t> wide(count * words);
  for (size_t i = 0; i < count; ++i) std::copy(keys[i].begin(), keys[i].end(), wide.begin() + i * words);
  return wide;
}

/// The CPU's numbers of entries for the first keys; `seconds` one lookup takes.
std::vector<uint32_t> look_up_on_cpu(AclView view, const std::vector<Key>& keys, double& seconds) {
  const std::vector<uint32_t> wide = widened(keys, kComparedKeys, view.words());
  std::vector<uint32_t> numbers(kComparedKeys);
  AclMatch matches[kAclBatch];
  const auto all = [&] {
    for (size_t i = 0; i < kComparedKeys; i += kAclBatch) {
      acl_find_batch(view, &wide[i * view.words()], matches, kAclBatch);
      for (size_t j = 0; j < kAclBatch; ++j) numbers[i + j] = matches[j].number;
    }
  };
  all();
  const Clock::time_point begin = Clock::now();
  all();
  seconds = seconds_since(begin) / static_cast<double>(kComparedKeys);
  return numbers;
}

class AclBench : DeviceBench {
 public:
  AclBench(std::shared_ptr<cuda::Device> device, Report& report) : DeviceBench(std::move(device), report) {}

  Status open(Errors& errors) {
    if (!DeviceBench::open(kAclKernels, errors)) return Status::failed();
    if (!keys_.allocate(device_, kAclKeys * sizeof(Key)) || !numbers_.allocate(device_, kAclKeys * sizeof(uint32_t)) ||
        !answers_.allocate(device_, kComparedKeys * sizeof(uint32_t)))
      return errors.error("the device has failed");
    return {};
  }

  /// Billions of lookups a second, or 0: they are not those of the CPU.
  double measure(const AclTable& table, const std::vector<Key>& keys, const std::vector<uint32_t>& expected) {
    Uploads uploads(memory_);
    const AclView view = table.mirror(uploads);
    if (!uploads.ok() || !memory_.upload(keys_.address(), keys.data(), keys.size() * sizeof(Key)).ok()) return 0;
    const cuda::CUfunction f = function(fmt::format("look_up{}", table.view().words()).c_str());
    const double seconds = time(20, [&](int) {
      run(f, 0, kAclThreads, view, keys_.address(), numbers_.address(), static_cast<unsigned>(kAclKeys));
    });
    check(
        driver_.cuMemcpyDtoHAsync(answers_.host(), numbers_.address(), kComparedKeys * sizeof(uint32_t), stream_.get()),
        "copying results");
    if (!stream_.synchronize()) return 0;
    const auto* const got = reinterpret_cast<const uint32_t*>(answers_.host());
    if (!std::equal(expected.begin(), expected.end(), got)) return 0;
    return static_cast<double>(kAclKeys) / seconds * 1e-9;
  }

 private:
  cuda::DeviceBuffer keys_, numbers_;
  cuda::PinnedMemory answers_;
};

/// Measures one file of rules. `bench`: null if there is no device.
bool measure(const std::string& file, const AclOptions& options, AclBench* bench, Report& report, Errors& errors) {
  std::vector<FlowRule> rules;
  std::vector<std::string> problems;
  if (const std::string fault = read_flow_rules(file, rules, problems); !fault.empty())
    return errors.error("{}", fault).ok();
  for (const std::string& problem : problems) errors.warning("{}", problem);
  if (rules.empty()) return errors.error("{}: no rules", file).ok();
  AclTable table(options);
  for (uint32_t i = 0; i < rules.size(); ++i) table.insert(i, acl_rule(rules[i], i));
  table.commit();
  const std::string group =
      fmt::format("{}, {} rules, keys of {} bytes, c = {}", std::filesystem::path(file).filename().string(),
                  rules.size(), 4 * options.words, options.collisions);
  bool ok = true;
  for (const bool inside : {true, false}) {
    const std::vector<Key> keys = inside ? acl_bench::keys_inside(rules, kAclKeys) : acl_bench::keys_uniform(kAclKeys);
    const char* const what = inside ? "inside rules" : "uniform keys";
    double seconds = 0;
    const std::vector<uint32_t> expected = look_up_on_cpu(table.view(), keys, seconds);
    report.figure(group, fmt::format("{}, one CPU", what), 1e-6 / seconds, "M/s");
    if (bench == nullptr) continue;
    const double rate = bench->measure(table, keys, expected);
    if (rate == 0) report.note(group, fmt::format("WRONG: {}", what));
    ok &= rate > 0;
    report.figure(group, fmt::format("{}, device", what), rate, "G/s");
  }
  return ok;
}

int acl_command(int argc, char** argv) {
  std::vector<std::string> files;
  std::vector<uint32_t> words{4}, collisions{AclOptions().collisions};
  bool json = false;
  int device = 0;
  cli::CommandLine line(
      "headrace acl",
      "Measures lookups in tables of rules: on a device, with keys and answers in its memory, and on one CPU.");
  line.add_option("files", files, "Files of rules, ClassBench's or ovs-ofctl's, about IPv4")
      ->required()
      ->option_text("FILE...");
  line.add_option("--words", words, "32-bit words of a key: 4, 12 or 32; default: 4")
      ->check(CLI::IsMember({4, 12, 32}))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
  line.add_option("--collisions", collisions, "Most entries of a group that a finer tuple would part; default: 40")
      ->check(CLI::Range(1, 10000))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
  line.add_option("--device", device, "Number of the CUDA device")->option_text("N");
  line.add_flag("--json", json, "Print one JSON object at the end instead of lines");
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  Report report(json);
  std::unique_ptr<AclBench> bench;
  std::string why_not;
  if (cuda::cuda_device_count(&why_not) == 0) {
    report.note("device", why_not);
  } else {
    const std::shared_ptr<cuda::Device> opened = cuda::Device::open(device, errors);
    if (opened == nullptr) return 1;
    bench = std::make_unique<AclBench>(opened, report);
    if (!bench->open(errors)) return 1;
  }
  bool ok = true;
  for (const std::string& file : files) {
    for (const uint32_t width : words) {
      for (const uint32_t most : collisions) {
        AclOptions options;
        options.words = width;
        options.collisions = most;
        ok &= measure(file, options, bench.get(), report, errors);
      }
    }
  }
  if (json) cli::print("{}\n", report.json().dump(2));
  return ok ? 0 : 1;
}

const cli::ExtraCommand kAcl({"acl", &acl_command, "measure lookups in tables of rules on both processors"});

}  // namespace
}  // namespace headrace::device_bench
