// `headrace esp`: ESP's cryptography on a device, in its own memory, and how fast packets come there and go back.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_backend.hh"
#include "bench/device/device_bench.hh"
#include "bench/device/esp_kernels.hh"
#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "tables/sa/aes_bitsliced_view.hh"
#include "tables/sa/esp_library.hh"

namespace headrace::device_bench {

namespace {

constexpr unsigned kPackets = 65536;  // in the device's memory
constexpr unsigned kHostPackets = 32768;
constexpr unsigned kAssociations = 256;
constexpr unsigned kStride = 2176;           // bytes from one packet to the next
constexpr unsigned kComparedPackets = 1024;  // packets that are compared with what the CPU makes
constexpr unsigned kESPThreads = 256;
constexpr unsigned kCipherBytes = 1024;  // of a packet, where the cipher is alone
constexpr unsigned kCipherRounds = 11;   // keys of AES-128
constexpr unsigned kTunnelHeader = 20;   // bytes of the outer IPv4 header, which are not encrypted

struct Suite {
  const char* name;
  Cipher cipher;
  Integrity integrity;
};
constexpr Suite kSuites[] = {{"AES-128-CTR, HMAC-SHA1-96", Cipher::kAES128CTR, Integrity::kHMACSHA1},
                             {"AES-256-CTR, HMAC-SHA-256-128", Cipher::kAES256CTR, Integrity::kHMACSHA256},
                             {"AES-128-GCM", Cipher::kAES128GCM, Integrity::kNone},
                             {"AES-256-GCM", Cipher::kAES256GCM, Integrity::kNone}};

std::vector<uint8_t> random_bytes(size_t n, std::mt19937_64& random) {
  std::vector<uint8_t> bytes((n + 7) / 8 * 8);
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = random();
    std::memcpy(&bytes[at], &word, 8);
  }
  bytes.resize(n);
  return bytes;
}

class ESPBench : DeviceBench {
 public:
  ESPBench(std::shared_ptr<cuda::Device> device, Report& report) : DeviceBench(std::move(device), report) {}

  Status open(Errors& errors) {
    if (!DeviceBench::open(kESPKernels, errors)) return Status::failed();
    if (!packets_.allocate(device_, size_t{kPackets} * kStride) ||
        !keys_.allocate(device_, kAssociations * sizeof(ESPKeys)) || !bad_.allocate(device_, sizeof(uint64_t)) ||
        !slices_.allocate(device_, kAssociations * kCipherRounds * sizeof(AESSlices)) ||
        !order_.allocate(device_, kHostPackets * sizeof(uint32_t)) ||
        !from_.allocate(device_, size_t{kHostPackets} * kStride) ||
        !to_.allocate(device_, size_t{kHostPackets} * kStride))
      return errors.error("the device has failed");
    return {};
  }

  /// Reads packets from host memory and writes them to host memory, each way.
  bool measure_link(size_t size) {
    std::vector<uint32_t> order(kHostPackets);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    if (!memory_.upload(order_.address(), order.data(), order.size() * sizeof(uint32_t)).ok()) return false;
    const cuda::CUfunction f = function("direct");
    const double seconds = time(5, [&](int) {
      run(f, 0, kESPThreads, from_.address(), to_.address(), kStride, kHostPackets, static_cast<unsigned>(size),
          order_.address());
    });
    report_.figure("host to host", fmt::format("{} B, each way", size),
                   kHostPackets / seconds * 1e-9 * static_cast<double>(size), "GB/s");
    return true;
  }

  /// AES-128 in counter mode alone, by tables and in slices of bits.
  bool measure_cipher() {
    std::mt19937_64 random(1);
    std::vector<ESPKeys> keys(kAssociations);
    std::vector<AESSlices> slices;
    for (ESPKeys& of_one : keys) {
      ESPHostKeys host_keys;
      Errors errors;
      const std::vector<uint8_t> key = random_bytes(key_length(Cipher::kAES128CTR), random);
      const std::vector<uint8_t> other = random_bytes(key_length(Integrity::kHMACSHA1), random);
      if (!make_keys({Cipher::kAES128CTR, Integrity::kHMACSHA1, key, other, false}, of_one, host_keys, errors))
        return false;
      for (uint32_t round = 0; round < kCipherRounds; ++round) {
        CipherBlock same[AESSlices::kBlocks];
        for (CipherBlock& block : same) block = RoundKeys(of_one.round_keys, of_one.rounds)[round];
        aes_slice(same, slices.emplace_back());
      }
    }
    const std::vector<uint8_t> plain = random_bytes(size_t{kPackets} * kStride, random);
    std::vector<uint8_t> wanted(plain.begin(), plain.begin() + size_t{kComparedPackets} * kStride);
    for (uint32_t i = 0; i < kComparedPackets; ++i)
      for (uint32_t b = 0; b < kCipherBytes / 16; ++b) {
        CipherBlock stream[1] = {{{i, 0, 0, b}}};
        const ESPKeys& mine = keys[i % kAssociations];
        aes_encrypt(ConstantAESTable(), RoundKeys(mine.round_keys, mine.rounds), stream);
        uint8_t* const at = &wanted[size_t{i} * kStride + b * 16];
        const CipherBlock text = load_block(at, 16) ^ stream[0];
        std::memcpy(at, text.w, 16);
      }
    if (!memory_.upload(keys_.address(), keys.data(), keys.size() * sizeof(ESPKeys)).ok() ||
        !memory_.upload(slices_.address(), slices.data(), slices.size() * sizeof(AESSlices)).ok())
      return false;
    bool right = true;
    for (const auto& [name, shared] : {std::pair("tables", kAESTableBytes), std::pair("slices", 0u)}) {
      const cuda::CUfunction f = function(name);
      const auto launch = [&, bytes = shared] {
        run_on_all(f, bytes, packets_.address(), kStride, kPackets, kCipherBytes / 16, keys_.address(),
                   slices_.address(), kAssociations);
      };
      if (!memory_.upload(packets_.address(), plain.data(), plain.size()).ok()) return false;
      launch();
      if (fetch(packets_, wanted.size()) != wanted) {
        report_.note("AES-128-CTR alone", fmt::format("WRONG: {}", name));
        right = false;
      }
      report_.figure("AES-128-CTR alone, device memory", fmt::format("{} B, {}", kCipherBytes, name),
                     kCipherBytes * 8e-9 * kPackets / time(3, [&](int) { launch(); }), "Gbps");
    }
    return right;
  }

  /// Seals and opens packets whose encrypted part has `size` bytes with its header, as in the tables of docs/ipsec.md.
  bool measure(const Suite& suite, size_t size) {
    std::mt19937_64 random(1);
    std::vector<ESPKeys> keys(kAssociations);
    std::vector<ESPHostKeys> host_keys(kAssociations);
    for (unsigned i = 0; i < kAssociations; ++i) {
      const std::vector<uint8_t> key = random_bytes(key_length(suite.cipher), random);
      const std::vector<uint8_t> other = random_bytes(key_length(suite.integrity), random);
      Errors errors;
      if (!make_keys({suite.cipher, suite.integrity, key, other, false}, keys[i], host_keys[i], errors)) return false;
    }
    const auto length = static_cast<uint32_t>(keys[0].overhead() + size);
    const std::vector<uint8_t> plain = random_bytes(size_t{kPackets} * kStride, random);
    if (!memory_.upload(packets_.address(), plain.data(), plain.size()).ok() ||
        !memory_.upload(keys_.address(), keys.data(), keys.size() * sizeof(ESPKeys)).ok())
      return false;
    const auto launch = [&](const char* name) {
      run_on_all(function(name), kAESTableBytes, packets_.address(), kStride, kPackets, length, keys_.address(),
                 kAssociations, bad_.address());
    };
    check(driver_.cuMemsetD8Async(bad_.address(), 0, sizeof(uint64_t), stream_.get()), "clearing a count");
    launch("seal");
    const std::vector<uint8_t> sealed = fetch(packets_, size_t{kComparedPackets} * kStride);
    launch("open");
    const std::vector<uint8_t> opened = fetch(packets_, size_t{kComparedPackets} * kStride);
    const std::vector<uint8_t> count = fetch(bad_, sizeof(uint64_t));
    uint64_t bad = 0;
    std::memcpy(&bad, count.data(), sizeof bad);
    const bool right = agrees(keys, host_keys, plain, sealed, opened, length) && bad == 0;
    if (!right) report_.note(suite.name, fmt::format("WRONG: {} B; {} packets not genuine", size, bad));

    const auto gbps = [&](const char* name) {
      return static_cast<double>(size) * 8e-9 * kPackets / time(3, [&](int) { launch(name); });
    };
    const std::string group = fmt::format("{}, device memory", suite.name);
    report_.figure(group, fmt::format("{} B, seal", size), gbps("seal"), "Gbps");
    // A packet that has been opened is not genuine any more.
    const double both = time(3, [&](int) {
      launch("seal");
      launch("open");
    });
    report_.figure(group, fmt::format("{} B, seal and open", size), static_cast<double>(size) * 8e-9 * kPackets / both,
                   "Gbps");
    return right;
  }

 private:
  /// Runs a kernel on all multiprocessors. \param shared bytes of shared memory for a block
  template <typename... A>
  void run_on_all(cuda::CUfunction f, unsigned shared, A... arguments) {
    check(driver_.cuFuncSetAttribute(f, cuda::kFunctionMaxDynamicShared, static_cast<int>(shared)),
          "asking for shared memory");
    int fit = 0;
    driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, f, kESPThreads, shared);
    const auto blocks = static_cast<unsigned>(fit * device_->attribute(cuda::kMultiprocessorCount));
    run_shared(f, blocks, kESPThreads, shared, arguments...);
  }
  std::vector<uint8_t> fetch(const cuda::DeviceBuffer& from, size_t n) {
    check(driver_.cuMemcpyDtoHAsync(to_.host(), from.address(), n, stream_.get()), "copying results");
    if (!stream_.synchronize()) return std::vector<uint8_t>(n);
    return {to_.host(), to_.host() + n};
  }
  /// Whether the device has sealed and opened the first packets as the CPU does.
  static bool agrees(const std::vector<ESPKeys>& keys, const std::vector<ESPHostKeys>& host_keys,
                     const std::vector<uint8_t>& plain, const std::vector<uint8_t>& sealed,
                     const std::vector<uint8_t>& opened, uint32_t length) {
    ESPLibrary library;
    std::vector<uint8_t> bytes(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(sealed.size()));
    const auto each = [&](auto&& work) {
      for (unsigned i = 0; i < kComparedPackets; ++i) {
        ESPJob job{&bytes[size_t{i} * kStride], length, 0, &keys[i % kAssociations], &host_keys[i % kAssociations]};
        work(job);
      }
    };
    each([&](ESPJob& job) { library.seal(&job, 1); });
    if (bytes != sealed) return false;
    each([&](ESPJob& job) { library.open(&job, 1); });
    return bytes == opened;
  }

  cuda::DeviceBuffer packets_, keys_, slices_, bad_, order_;
  cuda::PinnedMemory from_, to_;
};

int esp_command(int argc, char** argv) {
  std::vector<size_t> sizes{64, 256, 512, 1024, 1514};
  bool json = false, link_only = false;
  int device = 0;
  cli::CommandLine line(
      "headrace esp", "Measures ESP's cryptography in a device's memory, and how fast packets go there and come back.");
  line.add_option("--size", sizes, "Bytes of a packet; default: 64,256,512,1024,1514")
      ->check(CLI::Range(1, 2048))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
  line.add_option("--device", device, "Number of the CUDA device")->option_text("N");
  line.add_flag("--link-only", link_only, "Leave the cryptography out");
  line.add_flag("--json", json, "Print one JSON object at the end instead of lines");
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  Report report(json);
  std::string why_not;
  if (cuda::cuda_device_count(&why_not) == 0) return errors.error("{}", why_not).ok() ? 0 : 1;
  const std::shared_ptr<cuda::Device> opened = cuda::Device::open(device, errors);
  if (opened == nullptr) return 1;
  ESPBench bench(opened, report);
  if (!bench.open(errors)) return 1;
  bool ok = true;
  for (const size_t size : sizes) ok &= bench.measure_link(size + kTunnelHeader);
  if (!link_only) {
    ok &= bench.measure_cipher();
    for (const Suite& suite : kSuites)
      for (const size_t size : sizes) ok &= bench.measure(suite, size);
  }
  if (json) cli::print("{}\n", report.json().dump(2));
  return ok ? 0 : 1;
}

const cli::ExtraCommand kESP({"esp", &esp_command, "measure the cryptography of IPsec on the device"});

}  // namespace
}  // namespace headrace::device_bench
