// `headrace limits`: what this machine and its device can do, to set results beside.

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

#include "backend/cuda/compile.hh"
#include "backend/cuda/cuda_backend.hh"
#include "bench/device/device_bench.hh"
#include "bench/device/limits_kernels.hh"
#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/output.hh"
#include "runtime/runtime.hh"
#include "tables/lpm4/lpm4.hh"
#include "tables/lpm4/route_file.hh"
#include "tables/lpm6/lpm6.hh"
#include "tables/lpm6/route_file6.hh"
#include "tables/memory/huge_array.hh"

namespace headrace::device_bench {

namespace {

using cuda::CUfunction;
using cuda::Device;
using cuda::DeviceBuffer;
using cuda::PinnedMemory;
using cuda::Stream;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCell = 2048;       // a packet buffer
constexpr unsigned kKeys = 4 << 20;  // of a launch
constexpr int kThreads = 256;        // of a block

struct Latencies {
  std::vector<double> us;
  double quantile(double q) {
    std::sort(us.begin(), us.end());
    return us.empty() ? 0 : us[std::min(us.size() - 1, static_cast<size_t>(q * static_cast<double>(us.size())))];
  }
};

/// The tables that lookups are measured in, and keys.
struct Tables {
  Lpm4 lpm4;
  std::vector<uint32_t> keys4;  // uniform
  Lpm6 lpm6;
  std::vector<Lpm6Key> keys6;  // within the prefixes
  bool has4 = false, has6 = false;
};

Status load_tables(const std::string& file4, const std::string& file6, Tables& tables, Errors& errors) {
  std::mt19937_64 random(1);
  if (!file4.empty()) {
    std::vector<TextRoute> lines;
    if (!read_routes(file4, lines, errors)) return Status::failed();
    std::vector<Lpm4::Route> routes{{0, 0, 0}};
    for (const TextRoute& line : lines)
      routes.push_back({line.prefix, line.length, static_cast<uint32_t>(random() % 256)});
    if (!tables.lpm4.build(routes)) return errors.error("{}: the table cannot be built", file4);
    tables.keys4.resize(kKeys);
    for (uint32_t& key : tables.keys4) key = static_cast<uint32_t>(random());
    tables.has4 = true;
  }
  if (!file6.empty()) {
    std::vector<TextRoute6> lines;
    if (!read_routes6(file6, lines, errors)) return Status::failed();
    std::vector<Lpm6::Route> routes;
    for (const TextRoute6& line : lines) {
      const auto& b = line.prefix.address.bytes();
      Lpm6Key key;
      for (int i = 0; i < 8; ++i) {
        key.high = key.high << 8 | b[static_cast<size_t>(i)];
        key.low = key.low << 8 | b[static_cast<size_t>(i) + 8];
      }
      routes.push_back({key, line.prefix.length, static_cast<uint32_t>(random() % 256)});
    }
    if (routes.empty()) return errors.error("{}: no routes", file6);
    if (!tables.lpm6.build(routes)) return errors.error("{}: the table cannot be built", file6);
    tables.keys6.resize(kKeys);
    for (Lpm6Key& key : tables.keys6) {
      const Lpm6::Route& route = routes[random() % routes.size()];
      const auto mask = [&](int bits) {
        return bits <= 0 ? uint64_t{0} : bits >= 64 ? ~uint64_t{0} : ~(~uint64_t{0} >> bits);
      };
      const uint64_t high = mask(route.length), low = mask(route.length - 64);
      key = {route.prefix.high | (random() & ~high), route.prefix.low | (random() & ~low)};
    }
    tables.has6 = true;
  }
  return {};
}

/// Runs `work(thread)` on so many threads, each on a CPU of its own, until it returns false, for about `limit` seconds;
/// returns how many times a second it was done in all.
double rate_of(int threads, double limit, const std::function<void(int)>& work) {
  const std::vector<int> cpus = cli::usable_cpus();
  std::atomic<bool> go{false}, stop{false};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<size_t>(cpus[cpus.size() - 1 - static_cast<size_t>(t) % cpus.size()]), &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      work(t);
      while (!go) std::this_thread::yield();
      uint64_t n = 0;
      for (; !stop.load(std::memory_order_relaxed); ++n) work(t);
      rounds += n;
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Clock::time_point begin = Clock::now();
  go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(limit));
  stop = true;
  const double seconds = seconds_since(begin);
  for (std::thread& t : all) t.join();
  return static_cast<double>(rounds) / seconds;
}

void measure_cpu(Report& report, const Tables& tables) {
  const int cores = std::max(static_cast<int>(cli::usable_cpus().size()) - 1, 1);
  std::vector<int> counts{1};
  if (cores > 1) counts.push_back(cores);
  // Headers in packet buffers: more of them than the caches hold.
  constexpr size_t kCells = size_t{1} << 18;
  HugeArray<uint8_t> cells(kCells * kCell);
  for (size_t i = 0; i < kCells; ++i) std::memset(&cells[i * kCell], static_cast<int>(i), 64);
  for (const int n : counts) {
    constexpr size_t kRun = 4096;
    std::vector<size_t> at(static_cast<size_t>(n));
    for (int t = 0; t < n; ++t) at[static_cast<size_t>(t)] = kCells / static_cast<size_t>(n) * static_cast<size_t>(t);
    std::atomic<uint64_t> sink{0};
    const double rate = rate_of(n, 0.5, [&](int t) {
      uint64_t sum = 0;
      size_t cell = at[static_cast<size_t>(t)];
      for (size_t i = 0; i < kRun; ++i) {
        uint8_t* const header = &cells[cell * kCell];
        __builtin_prefetch(&cells[((cell + 24) & (kCells - 1)) * kCell]);
        uint32_t destination;
        std::memcpy(&destination, header + 30, sizeof destination);
        sum += destination;
        --header[22];
        cell = (cell + 1) & (kCells - 1);
      }
      at[static_cast<size_t>(t)] = cell;
      sink.fetch_add(sum, std::memory_order_relaxed);
    });
    report.figure("cpu headers in 2 KB cells", fmt::format("{} cores", n), rate * kRun * 1e-6, "Mpps");
    // What it costs to bring packets that a device has written to a column of its own to their buffers.
    for (const size_t size : {size_t{64}, size_t{256}, size_t{512}, size_t{1504}}) {
      constexpr size_t kColumn = 1024, kStride = 1536;
      std::vector<HugeArray<uint8_t>> columns;
      for (int t = 0; t < n; ++t) columns.emplace_back(kColumn * kStride);
      const double copied = rate_of(n, 0.3, [&](int t) {
        size_t cell = at[static_cast<size_t>(t)];
        const uint8_t* const column = &columns[static_cast<size_t>(t)][0];
        for (size_t i = 0; i < kColumn; ++i) {
          __builtin_prefetch(&cells[((cell + 8) & (kCells - 1)) * kCell], 1);
          std::memcpy(&cells[cell * kCell], column + i * size, size);
          cell = (cell + 1) & (kCells - 1);
        }
        at[static_cast<size_t>(t)] = cell;
      });
      report.figure("cpu copies from a column to 2 KB cells", fmt::format("{} bytes, {} cores", size, n),
                    copied * kColumn * 1e-6, "Mpps");
    }
  }
  constexpr size_t kRun = 256;
  const auto lookups = [&](const char* name, int n, const auto& keys, const auto& look_up) {
    std::vector<size_t> at(static_cast<size_t>(n));
    for (int t = 0; t < n; ++t)
      at[static_cast<size_t>(t)] = keys.size() / static_cast<size_t>(n) * static_cast<size_t>(t) / kRun * kRun;
    std::atomic<uint64_t> sink{0};
    const double rate = rate_of(n, 0.5, [&](int t) {
      uint32_t hops[kRun];
      size_t& i = at[static_cast<size_t>(t)];
      uint64_t sum = 0;
      for (int k = 0; k < 64; ++k) {
        look_up(keys.data() + i, hops);
        sum += hops[k];
        i = (i + kRun) % keys.size();
      }
      sink.fetch_add(sum, std::memory_order_relaxed);
    });
    report.figure(name, fmt::format("{} cores", n), rate * 64 * kRun * 1e-6, "M/s");
  };
  for (const int n : counts) {
    if (tables.has4)
      lookups("cpu IPv4 lookups", n, tables.keys4, [view = tables.lpm4.view()](const uint32_t* keys, uint32_t* hops) {
        view.lookup_batch(keys, hops, kRun);
      });
    if (tables.has6)
      lookups("cpu IPv6 lookups", n, tables.keys6, [view = tables.lpm6.view()](const Lpm6Key* keys, uint32_t* hops) {
        view.lookup_batch(keys, hops, kRun);
      });
  }
}

/// The measurements on one device.
class DeviceLimits : DeviceBench {
 public:
  DeviceLimits(std::shared_ptr<Device> device, Report& report) : DeviceBench(std::move(device), report) {}

  Status open(Errors& errors) { return DeviceBench::open(kLimitKernels, errors); }

  bool measure(const Tables& tables) {
    return doorbell() && launch() && copies() && cells() && (!tables.has4 || lookups4(tables)) &&
           (!tables.has6 || lookups6(tables));
  }

 private:
  bool doorbell() {
    PinnedMemory words;
    if (!words.allocate(device_, 4096)) return false;
    auto* bell = reinterpret_cast<uint32_t*>(words.host());
    auto* answer = reinterpret_cast<uint32_t*>(words.host() + 256);
    constexpr unsigned kRounds = 20000;
    if (!run(function("limit_doorbell"), 1, 1, words.address(), words.address() + 256, kRounds)) return false;
    Latencies times;
    for (unsigned round = 1; round <= kRounds; ++round) {
      const Clock::time_point begin = Clock::now();
      __atomic_store_n(bell, round, __ATOMIC_RELEASE);
      while (__atomic_load_n(answer, __ATOMIC_ACQUIRE) != round)
        if (seconds_since(begin) > 1) {
          // The kernel stays, so whatever waits for it must not be called any more.
          device_->fail("no answer to a doorbell");
          return false;
        }
      if (round > 100) times.us.push_back(seconds_since(begin) * 1e6);
    }
    report_.figure("doorbell round trip", "p50", times.quantile(0.5), "us");
    report_.figure("doorbell round trip", "p99", times.quantile(0.99), "us");
    return stream_.synchronize();
  }

  bool launch() {
    PinnedMemory words;
    if (!words.allocate(device_, 4096)) return false;
    auto* answer = reinterpret_cast<uint32_t*>(words.host());
    const CUfunction f = function("limit_launch");
    Latencies times, calls;
    for (unsigned round = 1; round <= 5000; ++round) {
      const Clock::time_point begin = Clock::now();
      if (!run(f, 1, 1, words.address(), round)) return false;
      const double called = seconds_since(begin) * 1e6;
      while (__atomic_load_n(answer, __ATOMIC_ACQUIRE) != round)
        if (seconds_since(begin) > 1) return stream_.synchronize() && false;
      if (round <= 100) continue;
      times.us.push_back(seconds_since(begin) * 1e6);
      calls.us.push_back(called);
    }
    report_.figure("launch and poll", "p50", times.quantile(0.5), "us");
    report_.figure("launch and poll", "p99", times.quantile(0.99), "us");
    report_.figure("launch, the call alone", "p50", calls.quantile(0.5), "us");
    return stream_.synchronize();
  }

  bool copies() {
    constexpr size_t kMost = 256 * kMiB;
    PinnedMemory here, back;
    DeviceBuffer there, other;
    Stream second;
    if (!here.allocate(device_, kMost) || !back.allocate(device_, kMost) || !there.allocate(device_, kMost) ||
        !other.allocate(device_, kMost) || !second.create(device_))
      return false;
    for (const size_t bytes : {64 * kMiB / 1024, kMiB, 16 * kMiB, kMost}) {
      const int rounds = static_cast<int>(std::clamp<size_t>(2048 * kMiB / bytes, 8, 500));
      const std::string size = bytes < kMiB ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
      const auto gigabytes = [&](double seconds) { return static_cast<double>(bytes) / seconds * 1e-9; };
      const auto up = [&](int) { driver_.cuMemcpyHtoDAsync(there.address(), here.host(), bytes, stream_.get()); };
      const auto down = [&](cuda::CUstream s) { driver_.cuMemcpyDtoHAsync(back.host(), other.address(), bytes, s); };
      report_.figure("copies to the device", size, gigabytes(time(rounds, up)), "GB/s");
      report_.figure("copies from the device", size, gigabytes(time(rounds, [&](int) { down(stream_.get()); })),
                     "GB/s");
      // Both at once; the copies back outlast the others, so that these never run alone.
      for (int i = 0; i < 2 * rounds; ++i) down(second.get());
      report_.figure("copies to the device while others go back", size, gigabytes(time(rounds, up)), "GB/s");
      if (!second.synchronize()) return false;
    }
    return !device_->failed();
  }

  bool cells() {
    constexpr size_t kCells = size_t{1} << 17;
    PinnedMemory memory;
    DeviceBuffer sink;
    if (!memory.allocate(device_, kCells * kCell) || !sink.allocate(device_, 16)) return false;
    const CUfunction f = function("limit_cells");
    const auto measure = [&](const std::string& key, size_t stride, size_t bytes, int back) {
      const size_t n = std::min(kCells * kCell / stride, size_t{1} << 21);
      const double seconds = time(4, [&](int) {
        run(f, 0, kThreads, memory.address(), static_cast<unsigned>(n), static_cast<unsigned>(stride / 16),
            static_cast<unsigned>(bytes / 16), back, sink.address());
      });
      const char* const group = back ? "read and written in place by SMs" : "read in place by SMs";
      report_.figure(group, key, static_cast<double>(n * bytes) / seconds * 1e-9, "GB/s");
      report_.figure(group, key, static_cast<double>(n) / seconds * 1e-6, "Mpps");
    };
    for (const int back : {0, 1}) {
      measure("64-byte rows, dense", 64, 64, back);
      for (const size_t bytes : {size_t{64}, size_t{256}, size_t{512}, size_t{1024}, size_t{1504}})
        measure(fmt::format("{} bytes of 2 KB cells", bytes), kCell, bytes, back);
    }
    return !device_->failed();
  }

  /// Lookups a second, keys and answers in the device's memory. Several sets of keys, so that they come from memory,
  /// not from the cache; the answers of one are compared with the host's.
  template <typename View, typename Key, typename HostView>
  bool lookups(const char* name, const char* kernel, View view, const std::vector<Key>& keys, HostView host) {
    constexpr unsigned kSets = 4;
    const size_t bytes = keys.size() * sizeof(Key);
    DeviceBuffer there, hops;
    PinnedMemory answers;
    if (!there.allocate(device_, kSets * bytes) || !hops.allocate(device_, keys.size() * 2) ||
        !answers.allocate(device_, keys.size() * 2))
      return false;
    std::vector<Key> rotated = keys;
    for (unsigned set = 0; set < kSets; ++set) {
      if (!memory_.upload(there.address() + set * bytes, rotated.data(), bytes).ok()) return false;
      std::rotate(rotated.begin(), rotated.begin() + 12345, rotated.end());
    }
    const CUfunction f = function(kernel);
    const auto n = static_cast<unsigned>(keys.size());
    const double seconds = time(40, [&](int i) {
      run(f, 0, kThreads, view, there.address() + static_cast<unsigned>(i) % kSets * bytes, hops.address(), n);
    });
    report_.figure(name, fmt::format("{} M keys a launch", keys.size() >> 20), n / seconds * 1e-9, "G/s");
    run(f, 0, kThreads, view, there.address(), hops.address(), n);
    driver_.cuMemcpyDtoHAsync(answers.host(), hops.address(), keys.size() * 2, stream_.get());
    if (!stream_.synchronize()) return false;
    const auto* got = reinterpret_cast<const uint16_t*>(answers.host());
    size_t wrong = 0;
    for (size_t i = 0; i < keys.size(); i += 97) wrong += got[i] != static_cast<uint16_t>(host.lookup(keys[i]));
    report_.figure(name, "wrong answers", static_cast<double>(wrong), "");
    return wrong == 0;
  }

  bool lookups4(const Tables& tables) {
    Uploads uploads(memory_);
    const Lpm4View view = tables.lpm4.mirror(uploads);
    return uploads.ok() && lookups("IPv4 lookups", "limit_lookup4", view, tables.keys4, tables.lpm4.view());
  }
  bool lookups6(const Tables& tables) {
    Uploads uploads(memory_);
    const Lpm6View view = tables.lpm6.mirror(uploads);
    return uploads.ok() && lookups("IPv6 lookups", "limit_lookup6", view, tables.keys6, tables.lpm6.view());
  }
};

int limits_command(int argc, char** argv) {
  std::string table4, table6;
  int device = 0;
  bool json = false, no_cpu = false;
  cli::CommandLine line(
      "headrace limits",
      "Measures what this machine can do: copies, reads of host memory by the device, doorbells, lookups.");
  line.add_option("--table", table4, "File of IPv4 routes to look up in")->option_text("FILE");
  line.add_option("--table6", table6, "File of IPv6 routes to look up in")->option_text("FILE");
  line.add_option("--device", device, "Number of the CUDA device")->option_text("N");
  line.add_flag("--no-cpu", no_cpu, "Leave out what the CPU does alone");
  line.add_flag("--json", json, "Print one JSON object at the end instead of lines");
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  Report report(json);
  Tables tables;
  if (!load_tables(table4, table6, tables, errors)) return 1;
  bool ok = true;
  std::string why_not;
  if (cuda::cuda_device_count(&why_not) == 0) {
    report.note("device", why_not);
  } else {
    report.note("compiler", cuda::describe_compiler());
    const std::shared_ptr<Device> opened = Device::open(device, errors);
    if (opened == nullptr) return 1;
    DeviceLimits limits(opened, report);
    ok = limits.open(errors).ok() && limits.measure(tables);
    if (!ok) report.note("device", "a measurement failed");
  }
  if (!no_cpu) measure_cpu(report, tables);
  if (json) cli::print("{}\n", report.json().dump(2));
  return ok ? 0 : 1;
}

const cli::ExtraCommand kLimits({"limits", &limits_command,
                                 "measure what this machine can do: copies, device reads, lookups"});

}  // namespace
}  // namespace headrace::device_bench
