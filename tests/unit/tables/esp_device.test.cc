/// \file
/// ESP's cryptography as a device has it: compiled by NVRTC, and on a device if there is one.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device_compile.hh"
#include "esp_packets.hh"

namespace headrace {
namespace {

using namespace testing;

/// A packet of the kernels below.
struct DevicePacket {
  uint32_t at, length, association, sequence_high;
};

/// Kernels with a warp, or eight lanes of one, for a packet where a team works on it, else with a thread.
constexpr const char* kKernels = R"(#include "tables/sa/esp_crypto_view.hh"
using namespace headrace;
struct Packet {
  uint32_t at, length, association, sequence_high;
};
template <typename F>
inline void each(unsigned n, unsigned lanes, F&& f) {
  const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) / lanes, step = gridDim.x * blockDim.x / lanes;
  for (unsigned i = first; i < n; i += step) f(i);
}
template <typename Team>
inline void encrypt_each(const Team& team, const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n) {
  BestAESTable::fill();
  __syncthreads();
  each(n, Team::size(), [&](unsigned i) {
    const Packet p = packets[i];
    const TeamKeys<Team> copy(team, keys[p.association]);
    esp_encrypt(team, *copy, bytes + p.at, p.length, p.sequence_high);
  });
}
template <typename Team>
inline void decrypt_each(const Team& team, const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n,
                         uint8_t* good) {
  BestAESTable::fill();
  __syncthreads();
  each(n, Team::size(), [&](unsigned i) {
    const Packet p = packets[i];
    if (good[i] == 0) return;
    const TeamKeys<Team> copy(team, keys[p.association]);
    const bool right = esp_decrypt(team, *copy, bytes + p.at, p.length, p.sequence_high);
    team.run([&](uint32_t lane) {
      if (lane == 0) good[i] = right;
    });
  });
}
/// For teams of blocks of 128 threads.
inline LaneTeam<8> few() {
  static __shared__ uint4 memory[128 / 8 * LaneTeam<8>::memory_bytes() / 16];
  return LaneTeam<8>(reinterpret_cast<uint8_t*>(memory) + threadIdx.x / 8 * LaneTeam<8>::memory_bytes());
}
extern "C" __global__ void encrypt(const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n, uint8_t*) {
  encrypt_each(WarpTeam(), keys, bytes, packets, n);
}
extern "C" __global__ void decrypt(const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n,
                                   uint8_t* good) {
  decrypt_each(WarpTeam(), keys, bytes, packets, n, good);
}
extern "C" __global__ void encrypt_by_few(const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n,
                                          uint8_t*) {
  encrypt_each(few(), keys, bytes, packets, n);
}
extern "C" __global__ void decrypt_by_few(const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n,
                                          uint8_t* good) {
  decrypt_each(few(), keys, bytes, packets, n, good);
}
extern "C" __global__ void authenticate(const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n,
                                        uint8_t*) {
  each(n, 1, [&](unsigned i) {
    const Packet p = packets[i];
    esp_authenticate(keys[p.association], bytes + p.at, p.length, p.sequence_high);
  });
}
extern "C" __global__ void verify(const ESPKeys* keys, uint8_t* bytes, const Packet* packets, unsigned n,
                                  uint8_t* good) {
  each(n, 1, [&](unsigned i) {
    const Packet p = packets[i];
    good[i] = esp_verify(keys[p.association], bytes + p.at, p.length, p.sequence_high);
  });
}
)";

TEST(ESPCompile, ForADevice) {
  std::string why_not;
  const cuda::Nvrtc* nvrtc = cuda::Nvrtc::get(&why_not);
  if (nvrtc == nullptr) GTEST_SKIP() << why_not;
  EXPECT_EQ(device_complaint(*nvrtc, kKernels, "--gpu-architecture=sm_90", nullptr, true), "");
  EXPECT_EQ(device_complaint(*nvrtc, kKernels, "--gpu-architecture=sm_80", nullptr, true), "");
}

/// Runs the kernels, if there is a device; what fails fails the test.
class ESPDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    const cuda::Nvrtc* nvrtc = cuda::Nvrtc::get(&why_not);
    if (nvrtc != nullptr) driver_ = cuda::Driver::get(&why_not);
    if (driver_ == nullptr) GTEST_SKIP() << why_not;
    int devices = 0;
    if (driver_->cuDeviceGetCount(&devices) != cuda::CUresult::kSuccess || devices == 0) GTEST_SKIP() << "no device";
    check(driver_->cuDeviceGet(&device_, 0));
    check(driver_->cuDevicePrimaryCtxRetain(&context_, device_));
    check(driver_->cuCtxSetCurrent(context_));
    int major = 0, minor = 0;
    check(driver_->cuDeviceGetAttribute(&major, cuda::kComputeCapabilityMajor, device_));
    check(driver_->cuDeviceGetAttribute(&minor, cuda::kComputeCapabilityMinor, device_));
    std::string image;
    const std::string architecture = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
    ASSERT_EQ(device_complaint(*nvrtc, kKernels, architecture.c_str(), &image, true), "");
    check(driver_->cuModuleLoadData(&module_, image.data()));
    check(driver_->cuStreamCreate(&stream_, cuda::kStreamNonBlocking));
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    for (const cuda::CUdeviceptr address : memory_) check(driver_->cuMemFree(address));
    if (stream_ != nullptr) check(driver_->cuStreamDestroy(stream_));
    if (module_ != nullptr) check(driver_->cuModuleUnload(module_));
    check(driver_->cuDevicePrimaryCtxRelease(device_));
  }

  void check(cuda::CUresult result) const { ASSERT_EQ(result, cuda::CUresult::kSuccess) << driver_->text(result); }
  template <typename T>
  cuda::CUdeviceptr copy(const std::vector<T>& from) {
    cuda::CUdeviceptr to = 0;
    check(driver_->cuMemAlloc(&to, from.size() * sizeof(T)));
    memory_.push_back(to);
    check(driver_->cuMemcpyHtoDAsync(to, from.data(), from.size() * sizeof(T), stream_));
    return to;
  }
  template <typename T>
  void fetch(std::vector<T>& to, cuda::CUdeviceptr from) {
    check(driver_->cuMemcpyDtoHAsync(to.data(), from, to.size() * sizeof(T), stream_));
    check(driver_->cuStreamSynchronize(stream_));
  }
  void run(const char* kernel, cuda::CUdeviceptr keys, cuda::CUdeviceptr bytes, cuda::CUdeviceptr packets, uint32_t n,
           cuda::CUdeviceptr good) {
    cuda::CUfunction function = nullptr;
    check(driver_->cuModuleGetFunction(&function, module_, kernel));
    check(driver_->cuFuncSetAttribute(function, cuda::kFunctionMaxDynamicShared, kAESTableBytes));
    void* parameters[] = {&keys, &bytes, &packets, &n, &good};
    check(driver_->cuLaunchKernel(function, 64, 1, 1, 128, 1, 1, kAESTableBytes, stream_, parameters, nullptr));
  }

 private:
  const cuda::Driver* driver_ = nullptr;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  cuda::CUmodule module_ = nullptr;
  cuda::CUstream stream_ = nullptr;
  std::vector<cuda::CUdeviceptr> memory_;
};

TEST_F(ESPDevice, AgreesWithTheLibrary) {
  std::mt19937 random(1);
  std::vector<std::unique_ptr<TestAssociation>> associations;
  std::vector<ESPKeys> keys;
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    for (const bool extended : {false, true}) {
      auto a = std::make_unique<TestAssociation>(cipher, integrity, random, extended);
      if (a->keys.cbc()) continue;
      associations.push_back(std::move(a));
      keys.push_back(associations.back()->keys);
    }
  }
  // Every length for every association, at any address; one in 16 is too short.
  std::vector<uint8_t> plain;
  std::vector<DevicePacket> packets;
  for (uint32_t payload = 0; payload <= 1600; ++payload) {
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const uint32_t length = random() % 16 == 0 ? random() % keys[i].overhead() : keys[i].overhead() + payload;
      const auto at = static_cast<uint32_t>((plain.size() + 15) / 16 * 16 + random() % 16);
      packets.push_back({at, length, i, static_cast<uint32_t>(random())});
      plain.resize(at + length + 16);
    }
  }
  for (uint8_t& byte : plain) byte = static_cast<uint8_t>(random());
  const auto n = static_cast<uint32_t>(packets.size());

  std::vector<uint8_t> wanted = plain, sealed(plain.size()), good(n, 1);
  const auto job_of = [&](std::vector<uint8_t>& bytes, uint32_t i) {
    const TestAssociation& a = *associations[packets[i].association];
    return ESPJob{bytes.data() + packets[i].at, packets[i].length, packets[i].sequence_high, &a.keys, &a.host};
  };
  for (uint32_t i = 0; i < n; ++i) {
    ESPJob job = job_of(wanted, i);
    test_library().seal(&job, 1);
  }
  const cuda::CUdeviceptr device_keys = copy(keys), device_packets = copy(packets), device_good = copy(good);
  for (const char* encrypt : {"encrypt", "encrypt_by_few"}) {
    const cuda::CUdeviceptr device_bytes = copy(plain);
    run(encrypt, device_keys, device_bytes, device_packets, n, device_good);
    run("authenticate", device_keys, device_bytes, device_packets, n, device_good);
    fetch(sealed, device_bytes);
    // All bytes, also those around the packets.
    EXPECT_TRUE(wanted == sealed) << encrypt;
  }

  // One in four is damaged on the way.
  for (uint32_t i = 0; i < n; ++i) {
    if (packets[i].length != 0 && random() % 4 == 0)
      sealed[packets[i].at + random() % packets[i].length] ^= static_cast<uint8_t>(1 << random() % 8);
  }
  std::vector<uint8_t> opened(plain.size()), wanted_good(n);
  wanted = sealed;
  for (uint32_t i = 0; i < n; ++i) {
    ESPJob job = job_of(wanted, i);
    test_library().open(&job, 1);
    wanted_good[i] = job.good;
  }
  for (const char* decrypt : {"decrypt", "decrypt_by_few"}) {
    const cuda::CUdeviceptr received = copy(sealed);
    run("verify", device_keys, received, device_packets, n, device_good);
    run(decrypt, device_keys, received, device_packets, n, device_good);
    fetch(opened, received);
    fetch(good, device_good);
    EXPECT_TRUE(wanted_good == good) << decrypt;
    EXPECT_TRUE(wanted == opened) << decrypt;
  }
}

}  // namespace
}  // namespace headrace
