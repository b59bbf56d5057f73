#include "tables/sa/esp_library.hh"

#include <array>
#include <cstring>
#include <new>

#include "tables/sa/esp_manager.hh"

namespace headrace {

namespace {

/// How many jobs the library gets at a time, at most IMB_MAX_BURST_SIZE: the more, the more often its 16 lanes are full.
constexpr uint32_t kBurst = 128;
static_assert(kBurst <= IMB_MAX_BURST_SIZE);

/// How many packets ahead GCM asks for keys, and for which: the round keys, and the powers of H for short packets, which
/// are last.
constexpr uint32_t kAhead = 4;
constexpr size_t kGCMRoundKeys = 176;
constexpr size_t kGCMFewPowers = 128;

constexpr uint32_t kIntegrities = 3;

/// The jobs of a call that use the same algorithm.
struct JobList {
  uint32_t size = 0;
  std::array<uint8_t, ESPLibrary::kMostJobs> numbers;
  void add(uint32_t number) { numbers[size++] = static_cast<uint8_t>(number); }
};

uint8_t* icv_of(const ESPJob& job) { return job.esp + job.length - job.keys->icv_length; }

/// True if ICVs of 12 or 16 bytes are equal; takes the same time if they are not.
bool equal(const uint8_t* a, const uint8_t* b, size_t n) {
  uint64_t first[2];
  uint32_t more[2], last[2];
  std::memcpy(&first[0], a, 8);
  std::memcpy(&first[1], b, 8);
  std::memcpy(&more[0], a + 8, 4);
  std::memcpy(&more[1], b + 8, 4);
  std::memcpy(&last[0], a + n - 4, 4);
  std::memcpy(&last[1], b + n - 4, 4);
  return ((first[0] ^ first[1]) | (more[0] ^ more[1]) | (last[0] ^ last[1])) == 0;
}

/// The salt and the IV of a counter mode, in the first 12 bytes. Stored at once: the library loads it at once, and would
/// wait for two stores.
void store_nonce(uint8_t* to, const ESPJob& job) {
  uint64_t iv;
  std::memcpy(&iv, job.esp + ESPKeys::kHeader, 8);
  using Vector = uint64_t __attribute__((vector_size(16)));
  const Vector nonce = {iv << 32 | job.keys->salt, iv >> 32};
  std::memcpy(to, &nonce, 16);
}

/// Has memory loaded into the first-level cache.
void prefetch(const void* from, size_t n) {
  for (size_t at = 0; at < n; at += 64) __builtin_prefetch(static_cast<const char*>(from) + at);
}

}  // namespace

struct ESPLibrary::State {
  State() {
    if (manager == nullptr) throw std::bad_alloc();
    init_mb_mgr_auto(manager, &arch);
    for (IMB_JOB& job : ciphers) {
      job.key_len_in_bytes = 16;
      job.hash_alg = IMB_AUTH_NULL;
      job.chain_order = IMB_ORDER_CIPHER_HASH;
    }
    for (IMB_JOB& job : hashes) {
      job.cipher_mode = IMB_CIPHER_NULL;
      job.cipher_direction = IMB_DIR_ENCRYPT;
      job.chain_order = IMB_ORDER_HASH_CIPHER;
    }
  }
  ~State() { free_mb_mgr(manager); }

  void sort(ESPJob* jobs, uint32_t n, bool cipher, bool integrity);
  void run_ciphers(ESPJob* jobs, bool encrypt);
  void run_cbc(ESPJob* jobs, const JobList& list, bool encrypt, IMB_KEY_SIZE_BYTES key_length);
  void run_des3(ESPJob* jobs, const JobList& list, bool encrypt);
  void submit_des3(const ESPHostKeys& host, const void** schedules, const uint8_t* iv, uint8_t* data, uint32_t length,
                   bool encrypt);
  void finish_des3();
  void run_counter(ESPJob* jobs, const JobList& list, uint32_t key_length);
  void run_gcm(ESPJob* jobs, const JobList& list, bool encrypt, bool short_key);
  /// The HMACs of listed jobs, into the packets or into `tags`.
  void run_hashes(ESPJob* jobs, bool verify);
  void run_hash(ESPJob* jobs, const JobList& list, bool verify, IMB_HASH_ALG algorithm);

  IMB_MGR* const manager = alloc_mb_mgr(0);
  IMB_ARCH arch = IMB_ARCH_NONE;
  std::array<JobList, kCiphers> by_cipher;
  std::array<JobList, kIntegrities> by_integrity;
  std::array<IMB_JOB, kBurst> ciphers{};
  std::array<IMB_JOB, kBurst> hashes{};
  alignas(16) uint8_t counters[kBurst][16];
  alignas(16) uint8_t tags[kBurst][ESPKeys::kLongestICV];
  alignas(16) uint8_t received[kBurst][ESPKeys::kLongestICV];
};

/// Lists the jobs of each algorithm. Those that do not fit their association are not good and in no list.
void ESPLibrary::State::sort(ESPJob* jobs, uint32_t n, bool cipher, bool integrity) {
  for (JobList& list : by_cipher) list.size = 0;
  for (JobList& list : by_integrity) list.size = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const ESPKeys& keys = *jobs[i].keys;
    jobs[i].good = keys.fits(jobs[i].length);
    if (!jobs[i].good) continue;
    if (cipher) by_cipher[static_cast<uint8_t>(keys.cipher)].add(i);
    if (integrity) by_integrity[static_cast<uint8_t>(keys.integrity)].add(i);
  }
}

void ESPLibrary::State::run_ciphers(ESPJob* jobs, bool encrypt) {
  const auto list = [&](Cipher cipher) -> const JobList& { return by_cipher[static_cast<uint8_t>(cipher)]; };
  run_counter(jobs, list(Cipher::kAES128CTR), 16);
  run_counter(jobs, list(Cipher::kAES256CTR), 32);
  run_gcm(jobs, list(Cipher::kAES128GCM), encrypt, true);
  run_gcm(jobs, list(Cipher::kAES256GCM), encrypt, false);
  run_cbc(jobs, list(Cipher::kAES128CBC), encrypt, IMB_KEY_128_BYTES);
  run_cbc(jobs, list(Cipher::kAES256CBC), encrypt, IMB_KEY_256_BYTES);
  run_des3(jobs, list(Cipher::k3DESCBC), encrypt);
}

void ESPLibrary::State::run_counter(ESPJob* jobs, const JobList& list, uint32_t key_length) {
  for (uint32_t first = 0; first < list.size; first += kBurst) {
    const uint32_t n = list.size - first < kBurst ? list.size - first : kBurst;
    for (uint32_t i = 0; i < n; ++i) {
      const ESPJob& from = jobs[list.numbers[first + i]];
      const ESPKeys& keys = *from.keys;
      // The library adds the number of the block, from 1 on.
      store_nonce(counters[i], from);
      IMB_JOB& job = ciphers[i];
      job.cipher_mode = IMB_CIPHER_CNTR;
      job.cipher_direction = IMB_DIR_ENCRYPT;
      job.key_len_in_bytes = key_length;
      job.enc_keys = keys.round_keys;
      job.iv = counters[i];
      job.iv_len_in_bytes = 12;
      job.src = job.dst = from.esp + keys.front();
      job.cipher_start_src_offset_in_bytes = 0;
      job.msg_len_to_cipher_in_bytes = from.length - keys.overhead();
    }
    IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager, ciphers.data(), n, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT,
                                    static_cast<IMB_KEY_SIZE_BYTES>(key_length));
  }
}

void ESPLibrary::State::run_cbc(ESPJob* jobs, const JobList& list, bool encrypt, IMB_KEY_SIZE_BYTES key_length) {
  const IMB_CIPHER_DIRECTION direction = encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
  for (uint32_t first = 0; first < list.size; first += kBurst) {
    uint32_t n = 0;
    for (uint32_t i = first; i < list.size && i < first + kBurst; ++i) {
      const ESPJob& from = jobs[list.numbers[i]];
      const ESPKeys& keys = *from.keys;
      if (from.length == keys.overhead()) continue;
      IMB_JOB& job = ciphers[n++];
      job.cipher_mode = IMB_CIPHER_CBC;
      job.cipher_direction = direction;
      job.key_len_in_bytes = key_length;
      job.enc_keys = keys.round_keys;
      job.dec_keys = from.host->decryption_keys;
      job.iv = from.esp + ESPKeys::kHeader;
      job.iv_len_in_bytes = 16;
      job.src = job.dst = from.esp + keys.front();
      job.cipher_start_src_offset_in_bytes = 0;
      job.msg_len_to_cipher_in_bytes = from.length - keys.overhead();
    }
    if (n > 0) IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager, ciphers.data(), n, IMB_CIPHER_CBC, direction, key_length);
  }
}

/// Triple-DES is not among what the library takes in bursts of ciphers.
void ESPLibrary::State::run_des3(ESPJob* jobs, const JobList& list, bool encrypt) {
  if (list.size == 0) return;
  const void* schedules[kMostJobs][3];  // of a packet each, until the library has returned it
  for (uint32_t i = 0; i < list.size; ++i) {
    const ESPJob& from = jobs[list.numbers[i]];
    const ESPKeys& keys = *from.keys;
    if (from.length == keys.overhead()) continue;
    submit_des3(*from.host, schedules[i], from.esp + ESPKeys::kHeader, from.esp + keys.front(),
                from.length - keys.overhead(), encrypt);
  }
  finish_des3();
}

/// \param schedules filled in; stays in use, as all else, until finish_des3()
void ESPLibrary::State::submit_des3(const ESPHostKeys& host, const void** schedules, const uint8_t* iv, uint8_t* data,
                                    uint32_t length, bool encrypt) {
  for (int i = 0; i < 3; ++i) schedules[i] = host.des[i];
  IMB_JOB& job = *IMB_GET_NEXT_JOB(manager);
  job = {};
  job.cipher_mode = IMB_CIPHER_DES3;
  job.cipher_direction = encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
  job.hash_alg = IMB_AUTH_NULL;
  job.chain_order = encrypt ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
  job.key_len_in_bytes = 24;
  job.enc_keys = job.dec_keys = schedules;
  job.iv = iv;
  job.iv_len_in_bytes = 8;
  job.src = job.dst = data;
  job.msg_len_to_cipher_in_bytes = length;
  IMB_SUBMIT_JOB_NOCHECK(manager);
}

void ESPLibrary::State::finish_des3() {
  while (IMB_FLUSH_JOB(manager) != nullptr) {
  }
}

void ESPLibrary::State::run_gcm(ESPJob* jobs, const JobList& list, bool encrypt, bool short_key) {
  const auto seal = short_key ? manager->gcm128_enc : manager->gcm256_enc;
  const auto open = short_key ? manager->gcm128_dec : manager->gcm256_dec;
  for (uint32_t i = 0; i < list.size; ++i) {
    if (i + kAhead < list.size) {
      const ESPJob& next = jobs[list.numbers[i + kAhead]];
      prefetch(next.host->gcm, kGCMRoundKeys);
      prefetch(next.host->gcm + sizeof(gcm_key_data) - kGCMFewPowers, kGCMFewPowers);
      prefetch(next.esp, 64);
    }
    ESPJob& job = jobs[list.numbers[i]];
    const ESPKeys& keys = *job.keys;
    alignas(16) uint8_t nonce[16];
    store_nonce(nonce, job);
    uint8_t extended[12];
    const uint8_t* associated = job.esp;
    if (keys.extended()) {
      const uint32_t high = __builtin_bswap32(job.sequence_high);
      std::memcpy(extended, job.esp, 4);
      std::memcpy(extended + 4, &high, 4);
      std::memcpy(extended + 8, job.esp + 4, 4);
      associated = extended;
    }
    const auto run = [&](const auto function, uint8_t* tag) {
      gcm_context_data context;
      uint8_t* const data = job.esp + keys.front();
      function(reinterpret_cast<const gcm_key_data*>(job.host->gcm), &context, data, data, job.length - keys.overhead(),
               nonce, associated, keys.extended() ? 12 : 8, tag, ESPKeys::kLongestICV);
    };
    if (encrypt) {
      run(seal, icv_of(job));
      continue;
    }
    uint8_t tag[ESPKeys::kLongestICV];
    run(open, tag);
    job.good = equal(tag, icv_of(job), sizeof(tag));
    // Nobody has seen the packet meanwhile. Adding the same key stream once more brings the ciphertext back.
    if (!job.good) run(seal, tag);
  }
}

void ESPLibrary::State::run_hashes(ESPJob* jobs, bool verify) {
  run_hash(jobs, by_integrity[static_cast<uint8_t>(Integrity::kHMACSHA1)], verify, IMB_AUTH_HMAC_SHA_1);
  run_hash(jobs, by_integrity[static_cast<uint8_t>(Integrity::kHMACSHA256)], verify, IMB_AUTH_HMAC_SHA_256);
}

void ESPLibrary::State::run_hash(ESPJob* jobs, const JobList& list, bool verify, IMB_HASH_ALG algorithm) {
  for (uint32_t first = 0; first < list.size; first += kBurst) {
    const uint32_t n = list.size - first < kBurst ? list.size - first : kBurst;
    for (uint32_t i = 0; i < n; ++i) {
      const ESPJob& from = jobs[list.numbers[first + i]];
      const ESPKeys& keys = *from.keys;
      uint8_t* const icv = icv_of(from);
      if (verify) std::memcpy(received[i], icv, keys.icv_length);
      // The upper half of the sequence number follows the ciphertext, where later the ICV is.
      const uint32_t high = __builtin_bswap32(from.sequence_high);
      if (keys.extended()) std::memcpy(icv, &high, 4);
      IMB_JOB& job = hashes[i];
      job.hash_alg = algorithm;
      job.src = from.esp;
      job.hash_start_src_offset_in_bytes = 0;
      job.msg_len_to_hash_in_bytes = from.length - keys.icv_length + (keys.extended() ? 4 : 0);
      job.auth_tag_output = verify ? tags[i] : icv;
      job.auth_tag_output_len_in_bytes = keys.icv_length;
      job.u.HMAC._hashed_auth_key_xor_ipad = reinterpret_cast<const uint8_t*>(keys.inner);
      job.u.HMAC._hashed_auth_key_xor_opad = reinterpret_cast<const uint8_t*>(keys.outer);
    }
    IMB_SUBMIT_HASH_BURST_NOCHECK(manager, hashes.data(), n, algorithm);
    if (!verify) continue;
    for (uint32_t i = 0; i < n; ++i) {
      ESPJob& job = jobs[list.numbers[first + i]];
      if (job.keys->extended()) std::memcpy(icv_of(job), received[i], job.keys->icv_length);
      job.good = equal(tags[i], received[i], job.keys->icv_length);
    }
  }
}

ESPLibrary::ESPLibrary() : state_(std::make_unique<State>()) {}
ESPLibrary::~ESPLibrary() = default;

const char* ESPLibrary::instructions() const {
  switch (state_->arch) {
    case IMB_ARCH_SSE:
      return "SSE";
    case IMB_ARCH_AVX:
      return "AVX";
    case IMB_ARCH_AVX2:
      return "AVX2";
    case IMB_ARCH_AVX512:
      return "AVX512";
    default:
      return "no AES";
  }
}

void ESPLibrary::encrypt(ESPJob* jobs, uint32_t n) {
  state_->sort(jobs, n, true, false);
  state_->run_ciphers(jobs, true);
}

void ESPLibrary::encrypt_block_des3(const ESPHostKeys& host, uint8_t* block) {
  const void* schedules[3];
  const uint8_t none[8] = {};
  state_->submit_des3(host, schedules, none, block, 8, true);
  state_->finish_des3();
}

void ESPLibrary::decrypt(ESPJob* jobs, uint32_t n) {
  state_->sort(jobs, n, true, false);
  state_->run_ciphers(jobs, false);
}

void ESPLibrary::authenticate(ESPJob* jobs, uint32_t n) {
  state_->sort(jobs, n, false, true);
  state_->run_hashes(jobs, false);
}

void ESPLibrary::verify(ESPJob* jobs, uint32_t n) {
  state_->sort(jobs, n, false, true);
  state_->run_hashes(jobs, true);
}

void ESPLibrary::seal(ESPJob* jobs, uint32_t n) {
  state_->sort(jobs, n, true, true);
  state_->run_ciphers(jobs, true);
  state_->run_hashes(jobs, false);
}

void ESPLibrary::open(ESPJob* jobs, uint32_t n) {
  verify(jobs, n);
  for (JobList& list : state_->by_cipher) list.size = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (jobs[i].good) state_->by_cipher[static_cast<uint8_t>(jobs[i].keys->cipher)].add(i);
  }
  state_->run_ciphers(jobs, false);
}

}  // namespace headrace
