/// \file
/// ESP's cryptography on one core, and the most that intel-ipsec-mb gives when it is called by hand.
///
/// As in ../shared/peers/ipsecmb.c: 256 packets that lie in the second-level cache, of 1,024 associations in turn.
/// `bytes` is what is encrypted of a packet; the rates are of packets and of those bytes.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "headrace/error.hh"
#include "tables/sa/esp_library.hh"
#include "tables/sa/esp_manager.hh"

namespace headrace {
namespace {

constexpr uint32_t kAssociations = 1024;
constexpr uint32_t kPackets = 256;
constexpr uint32_t kRoom = 2048;  // bytes of a packet

enum Suite : int64_t { kCTR, kCBC, kGCM };

struct Association {
  ESPKeys keys;
  ESPHostKeys host;
};

/// Associations and packets, and which association each packet has.
class Traffic {
 public:
  explicit Traffic(const benchmark::State& state) : bytes_(static_cast<uint32_t>(state.range(1))) {
    constexpr Cipher kCiphers[] = {Cipher::kAES128CTR, Cipher::kAES128CBC, Cipher::kAES128GCM};
    const auto suite = static_cast<size_t>(state.range(0));
    const Integrity integrity = suite == kGCM ? Integrity::kNone : Integrity::kHMACSHA1;
    std::mt19937 random(1);
    for (Association& a : associations_) {
      std::vector<uint8_t> key(key_length(kCiphers[suite])), other(key_length(integrity));
      for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
      for (uint8_t& byte : other) byte = static_cast<uint8_t>(random());
      Errors errors;
      if (!make_keys({kCiphers[suite], integrity, key, other, false}, a.keys, a.host, errors)) std::abort();
    }
  }
  uint8_t* packet(uint32_t i) { return packets_.data() + i % kPackets * size_t{kRoom}; }
  const Association& association(uint32_t i) const { return associations_[i * 7919 % kAssociations]; }
  uint32_t bytes() const { return bytes_; }
  ESPJob job(uint32_t i) {
    const Association& a = association(i);
    return {packet(i), a.keys.overhead() + bytes_, 0, &a.keys, &a.host};
  }

 private:
  uint32_t bytes_;
  std::vector<Association> associations_ = std::vector<Association>(kAssociations);
  std::vector<uint8_t> packets_ = std::vector<uint8_t>(kPackets * size_t{kRoom}, 0x5a);
};

void report(benchmark::State& state) {
  const auto packets = static_cast<int64_t>(state.iterations() * kPackets);
  state.SetItemsProcessed(packets);
  state.SetBytesProcessed(packets * state.range(1));
}

/// One job for cipher and hash, 32 jobs at a time; for GCM a call a packet.
void esp_by_hand(benchmark::State& state) {
  Traffic traffic(state);
  IMB_MGR* const manager = alloc_mb_mgr(0);
  init_mb_mgr_auto(manager, nullptr);
  const uint32_t bytes = traffic.bytes();
  const bool gcm = state.range(0) == kGCM, cbc = state.range(0) == kCBC;
  static uint8_t ivs[kPackets][16], tags[kPackets][16];
  uint32_t at = 0;
  for (auto _ : state) {
    if (gcm) {
      for (uint32_t i = 0; i < kPackets; ++i, ++at) {
        gcm_context_data context;
        uint8_t* const p = traffic.packet(i);
        IMB_AES128_GCM_ENC(manager, reinterpret_cast<const gcm_key_data*>(traffic.association(at).host.gcm), &context,
                           p + 16, p + 16, bytes, ivs[i], p, 8, tags[i], 16);
      }
      continue;
    }
    for (uint32_t first = 0; first < kPackets; first += 32) {
      IMB_JOB* jobs[32];
      while (IMB_GET_NEXT_BURST(manager, 32, jobs) < 32) IMB_FLUSH_BURST(manager, 32, jobs);
      for (uint32_t i = 0; i < 32; ++i, ++at) {
        const Association& a = traffic.association(at);
        IMB_JOB& job = *jobs[i];
        job.cipher_direction = IMB_DIR_ENCRYPT;
        job.cipher_mode = cbc ? IMB_CIPHER_CBC : IMB_CIPHER_CNTR;
        job.src = traffic.packet(first + i);
        job.dst = traffic.packet(first + i) + 16;
        job.iv = ivs[first + i];
        job.iv_len_in_bytes = 16;
        job.enc_keys = a.keys.round_keys;
        job.dec_keys = a.host.decryption_keys;
        job.key_len_in_bytes = 16;
        job.cipher_start_src_offset_in_bytes = 16;
        job.msg_len_to_cipher_in_bytes = bytes;
        job.chain_order = IMB_ORDER_CIPHER_HASH;
        job.hash_alg = IMB_AUTH_HMAC_SHA_1;
        job.hash_start_src_offset_in_bytes = 0;
        job.msg_len_to_hash_in_bytes = bytes + 16;
        job.auth_tag_output = tags[first + i];
        job.auth_tag_output_len_in_bytes = 12;
        job.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const uint8_t*>(a.keys.inner);
        job.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const uint8_t*>(a.keys.outer);
      }
      IMB_SUBMIT_BURST_NOCHECK(manager, 32, jobs);
    }
  }
  IMB_JOB* jobs[32];
  while (IMB_FLUSH_BURST(manager, 32, jobs) != 0) continue;
  free_mb_mgr(manager);
  report(state);
}

void esp_seal(benchmark::State& state) {
  Traffic traffic(state);
  ESPLibrary library;
  ESPJob jobs[kPackets];
  uint32_t at = 0;
  for (auto _ : state) {
    for (uint32_t i = 0; i < kPackets; ++i) jobs[i] = traffic.job(at++);
    library.seal(jobs, kPackets);
  }
  report(state);
}

/// What was sealed in the same round, which takes time but is not counted.
void esp_open(benchmark::State& state) {
  Traffic traffic(state);
  ESPLibrary library;
  ESPJob jobs[kPackets];
  uint32_t at = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint32_t i = 0; i < kPackets; ++i) jobs[i] = traffic.job(at++);
    library.seal(jobs, kPackets);
    state.ResumeTiming();
    library.open(jobs, kPackets);
  }
  report(state);
}

void suites(benchmark::internal::Benchmark* b) {
  b->ArgNames({"suite", "bytes"})->ArgsProduct({{kCTR, kCBC, kGCM}, {64, 128, 256, 512, 1024, 1456}});
}
BENCHMARK(esp_by_hand)->Apply(suites);
BENCHMARK(esp_seal)->Apply(suites);
BENCHMARK(esp_open)->Apply(suites);

}  // namespace
}  // namespace headrace
