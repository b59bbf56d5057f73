// `headrace patterns`: the search for patterns, on a device and on the CPU.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/cuda_backend.hh"
#include "bench/device/device_bench.hh"
#include "bench/device/pattern_kernels.hh"
#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/output.hh"
#include "headrace/device/jobs.hh"
#include "io/memory/payloads.hh"
#include "tables/pattern/pattern_matcher.hh"

namespace headrace::device_bench {

namespace {

constexpr size_t kContent = size_t{32} << 20;  // bytes of payloads of each kind
constexpr unsigned kBlockThreads = 256;
constexpr int kSlowCpuSeconds = 2;
constexpr unsigned kCompared = 8192;  // payloads whose matches are compared with the CPU's

double gbps(size_t bytes, double seconds) { return static_cast<double>(bytes) * 8e-9 / seconds; }

/// What the device's kernels count, and what the CPU finds in some of the same payloads.
struct Found {
  uint64_t matches = 0;
  uint64_t sum = 0;
  uint64_t cut = 0;
};

struct Payloads {
  std::string name;
  std::string content;
};

/// "text", "random", or the bytes of a file, again and again.
Status make_content(const std::string& kind, std::string& content, Errors& errors) {
  if (kind == "text") {
    content = make_text_payload(kContent, 7);
  } else if (kind == "random") {
    content = make_random_payload(kContent, 7);
  } else {
    std::ifstream file(kind, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file || bytes.empty()) return errors.error("{}: no such file, or an empty one", kind);
    while (content.size() < kContent) content += bytes;
    content.resize(kContent);
  }
  return {};
}

/// One core over all payloads, or as many as it manages in a while. \returns Gbps
template <typename Scan>
double time_cpu(const std::string& content, size_t length, Scan&& scan) {
  const size_t n = content.size() / length;
  const auto* bytes = reinterpret_cast<const uint8_t*>(content.data());
  size_t done = 0;
  const Clock::time_point begin = Clock::now();
  while (done < n && ((done & 1023) != 0 || seconds_since(begin) < kSlowCpuSeconds)) {
    scan(PayloadBytes{bytes + done * length, static_cast<uint32_t>(length)});
    ++done;
  }
  return gbps(done * length, seconds_since(begin));
}

class PatternBench : DeviceBench {
 public:
  PatternBench(std::shared_ptr<cuda::Device> device, Report& report) : DeviceBench(std::move(device), report) {}

  Status open(Errors& errors) { return DeviceBench::open(kPatternKernels, errors); }

  /// Searches `content` cut into payloads, in the device's memory. \returns false when the device has failed, or found
  /// something else than the CPU
  bool measure(const PatternMatcher& matcher, const std::string& group, const Payloads& payloads, size_t length) {
    const size_t stride = (length + 15) / 16 * 16;
    const auto n = static_cast<unsigned>(payloads.content.size() / length);
    std::vector<uint8_t> cells(n * stride);
    for (unsigned i = 0; i < n; ++i) std::memcpy(&cells[i * stride], &payloads.content[i * length], length);
    cuda::DeviceBuffer there, results;
    cuda::PinnedMemory answer;
    if (!there.allocate(device_, cells.size()) || !results.allocate(device_, 3 * sizeof(uint64_t)) ||
        !answer.allocate(device_, 3 * sizeof(uint64_t)) ||
        !memory_.upload(there.address(), cells.data(), cells.size()).ok())
      return false;
    Uploads uploads(memory_);
    const PatternView* const view = uploads.object(matcher.mirror(uploads));
    if (!uploads.ok()) {
      report_.note(group, "the table does not fit into the device's memory");
      return true;
    }
    constexpr unsigned kShared = kBlockThreads / 32 * kStageBytes;
    bool right = true;
    for (const bool candidates : {false, true}) {
      const cuda::CUfunction f = function(candidates ? "patterns_candidates" : "patterns_first");
      int fit = 0;
      driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, f, kBlockThreads, kShared);
      const auto blocks = static_cast<unsigned>(fit * device_->attribute(cuda::kMultiprocessorCount));
      const auto launch = [&](unsigned payloads) {
        run_shared(f, blocks, kBlockThreads, kShared, there.address(), payloads, static_cast<unsigned>(stride),
                   static_cast<unsigned>(length), view, results.address());
      };
      const double seconds = time(3, [&](int) { launch(n); });
      report_.figure(group, fmt::format("{} B, {}", length, candidates ? "candidates" : "first match"),
                     gbps(n * length, seconds), "Gbps");
      check(driver_.cuMemsetD8Async(results.address(), 0, 3 * sizeof(uint64_t), stream_.get()), "clearing results");
      const unsigned compared = std::min(n, kCompared);
      launch(compared);
      check(driver_.cuMemcpyDtoHAsync(answer.host(), results.address(), 3 * sizeof(uint64_t), stream_.get()),
            "copying results");
      if (!stream_.synchronize()) return false;
      Found device;
      std::memcpy(&device, answer.host(), sizeof device);
      right &= agrees(matcher, group, payloads.content, length, compared, candidates, device);
    }
    return right;
  }

 private:
  /// Whether the device found what the same engine finds on the CPU with a team of 32, and that what Vectorscan finds,
  /// but for payloads that were given up.
  bool agrees(const PatternMatcher& matcher, const std::string& group, const std::string& content, size_t length,
              unsigned n, bool candidates, const Found& device) {
    const PatternView view = matcher.view();
    Found same;
    unsigned others = 0;
    for (unsigned i = 0; i < n; ++i) {
      const PayloadBytes payload{reinterpret_cast<const uint8_t*>(content.data()) + i * length,
                                 static_cast<uint32_t>(length)};
      const auto key_of = [](const Candidates& found) {
        return found.none() ? FirstMatch::kNone : found.cut() ? FirstMatch::kCut : found.packed;
      };
      const HostTeam<32> team;
      const uint64_t key =
          candidates ? key_of(headrace::candidates(view, team, payload)) : first_match(view, team, payload).key;
      if (key == FirstMatch::kCut) {
        ++same.cut;
        continue;
      }
      const uint64_t scanned = candidates ? key_of(matcher.candidates(payload)) : matcher.first(payload).key;
      if (scanned != key && scanned != FirstMatch::kCut) ++others;
      if (key == FirstMatch::kNone) continue;
      ++same.matches;
      same.sum += key;
    }
    if (same.cut != 0)
      report_.figure(group, fmt::format("{} B, {}, given up", length, candidates ? "candidates" : "first match"),
                     static_cast<double>(same.cut) / n * 100, "%");
    if (others == 0 && same.matches == device.matches && same.sum == device.sum && same.cut == device.cut) return true;
    report_.note(group,
                 fmt::format("WRONG: {} payloads match on the device, {} on the CPU (sums {:x}, {:x}; given up {}, "
                             "{}); Vectorscan differs in {}",
                             device.matches, same.matches, device.sum, same.sum, device.cut, same.cut, others));
    return false;
  }
};

int patterns_command(int argc, char** argv) {
  std::vector<std::string> files;
  std::vector<std::string> engines{"prefilter", "dfa", "compressed"};
  std::vector<size_t> lengths{512, 1460};
  std::vector<std::string> kinds{"text", "random"};
  bool nocase = false, json = false, no_device = false, no_cpu = false;
  int device = 0;
  cli::CommandLine line(
      "headrace patterns",
      "Measures the search for patterns: by each engine in a device's memory, and on one core of the CPU.", "FILE...");
  line.add_option("FILE", files, "File of patterns, one a line")->required();
  const auto list = [](CLI::Option* option) { option->delimiter(',')->allow_extra_args(false)->option_text("LIST"); };
  list(line.add_option("--engine", engines, "prefilter, dfa, compressed; default: all"));
  list(line.add_option("--length", lengths, "Bytes of a payload; default: 512,1460")->check(CLI::Range(1, 2048)));
  list(line.add_option("--payload", kinds,
                       "text, random, or files whose bytes are cut into payloads; default: text,random"));
  line.add_flag("--nocase", nocase, "Letters of all patterns match in both cases");
  line.add_option("--device", device, "Number of the CUDA device")->option_text("N");
  line.add_flag("--no-device", no_device, "Leave the device out");
  line.add_flag("--no-cpu", no_cpu, "Leave out what the CPU does alone");
  line.add_flag("--json", json, "Print one JSON object at the end instead of lines");
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  Report report(json);
  PatternSet set;
  bool ok = true;
  for (const std::string& file : files) ok &= set.add_file(file, errors).ok();
  if (nocase) set.ignore_case();
  if (!ok || set.empty()) return errors.error("no patterns can be searched for").ok() ? 0 : 1;

  std::unique_ptr<PatternBench> bench;
  std::string why_not;
  if (no_device || cuda::cuda_device_count(&why_not) == 0) {
    if (!no_device) report.note("device", why_not);
  } else {
    const std::shared_ptr<cuda::Device> opened = cuda::Device::open(device, errors);
    if (opened == nullptr) return 1;
    bench = std::make_unique<PatternBench>(opened, report);
    if (!bench->open(errors)) return 1;
  }
  std::vector<Payloads> payloads;
  for (const std::string& kind : kinds) {
    payloads.push_back({kind, {}});
    if (!make_content(kind, payloads.back().content, errors)) return 1;
  }
  for (const std::string& engine : engines) {
    PatternMatcherOptions options;
    const auto wanted = parse_engine(engine);
    if (!wanted) return errors.error("no such engine: {}", engine).ok() ? 0 : 1;
    options.engine = *wanted;
    PatternMatcher matcher;
    const Clock::time_point begin = Clock::now();
    if (!matcher.build(set, options, errors)) continue;
    const std::string group = fmt::format("{} patterns, {}", set.size(), engine);
    report.figure(group, "built in", seconds_since(begin), "s");
    report.figure(group, "memory", static_cast<double>(matcher.device_bytes()) * 1e-6, "MB");
    for (const Payloads& p : payloads)
      for (const size_t length : lengths)
        if (bench != nullptr) ok &= bench->measure(matcher, fmt::format("{}, {}", group, p.name), p, length);
    if (no_cpu || engine != engines.front()) continue;
    for (const Payloads& p : payloads)
      for (const size_t length : lengths) {
        const std::string cpu = fmt::format("{} patterns, one core, {}", set.size(), p.name);
        uint64_t sink = 0;
        const auto figure = [&](const char* what, double rate) {
          report.figure(cpu, fmt::format("{} B, {}", length, what), rate, "Gbps");
        };
        figure("all matches", time_cpu(p.content, length, [&](const PayloadBytes& bytes) {
                 (void)matcher.scan(bytes, [&](uint32_t pattern, uint32_t) { sink += pattern; });
               }));
        figure("first match",
               time_cpu(p.content, length, [&](const PayloadBytes& bytes) { sink += matcher.first(bytes).key; }));
        figure("candidates", time_cpu(p.content, length,
                                      [&](const PayloadBytes& bytes) { sink += matcher.candidates(bytes).packed; }));
        if (sink == 1) report.note("sum", "1");  // so that nothing is left out as unused
      }
  }
  if (json) cli::print("{}\n", report.json().dump(2));
  return ok ? 0 : 1;
}

const cli::ExtraCommand kPatterns({"patterns", &patterns_command,
                                   "measure the search for patterns, on the device and on the CPU"});

}  // namespace
}  // namespace headrace::device_bench
