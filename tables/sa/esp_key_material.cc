#include "tables/sa/esp_key_material.hh"

#include <cstring>
#include <iterator>
#include <new>

#include "tables/sa/aes_view.hh"
#include "tables/sa/esp_manager.hh"
#include "tables/sa/ghash_view.hh"
#include "tables/sa/sha1_view.hh"
#include "tables/sa/sha256_view.hh"

namespace headrace {

static_assert(sizeof(gcm_key_data) <= sizeof(ESPHostKeys::gcm) && alignof(gcm_key_data) <= alignof(ESPHostKeys));

namespace {

struct CipherKind {
  std::string_view name;
  uint8_t key, salt, iv, block;  // bytes
};
constexpr CipherKind kCipherKinds[] = {{"NULL", 0, 0, 0, 4},           {"AES-128-CTR", 16, 4, 8, 4},
                                       {"AES-256-CTR", 32, 4, 8, 4},   {"AES-128-GCM", 16, 4, 8, 4},
                                       {"AES-256-GCM", 32, 4, 8, 4},   {"AES-128-CBC", 16, 0, 16, 16},
                                       {"AES-256-CBC", 32, 0, 16, 16}, {"3DES-CBC", 24, 0, 8, 8}};
static_assert(std::size(kCipherKinds) == kCiphers);

struct IntegrityKind {
  std::string_view name;
  uint8_t key, icv;  // bytes
};
constexpr IntegrityKind kIntegrityKinds[] = {{"none", 0, 0}, {"HMAC-SHA1-96", 20, 12}, {"HMAC-SHA-256-128", 32, 16}};

const CipherKind& kind_of(Cipher cipher) { return kCipherKinds[static_cast<size_t>(cipher)]; }
const IntegrityKind& kind_of(Integrity integrity) { return kIntegrityKinds[static_cast<size_t>(integrity)]; }

/// For functions that use nothing of the manager but its addresses of functions.
const IMB_MGR* expansion_manager() {
  static IMB_MGR* const manager = [] {
    IMB_MGR* const fresh = alloc_mb_mgr(0);
    if (fresh == nullptr) throw std::bad_alloc();
    init_mb_mgr_auto(fresh, nullptr);
    return fresh;
  }();
  return manager;
}

GHashElement power_of(const ESPKeys& keys, uint32_t i) {
  return {{keys.powers[i][0], keys.powers[i][1], keys.powers[i][2], keys.powers[i][3]}};
}
void set_power(ESPKeys& keys, uint32_t i, const GHashElement& power) {
  std::memcpy(keys.powers[i], power.w, sizeof(power.w));
}

Status check(const ESPKeyMaterial& material, Errors& errors) {
  Status status;
  const CipherKind& cipher = kind_of(material.cipher);
  const IntegrityKind& integrity = kind_of(material.integrity);
  if (const size_t length = material.cipher_key.size(); length != key_length(material.cipher)) {
    status &= cipher.salt == 0 ? errors.error("the key of {} has {} bytes, not {}", cipher.name, cipher.key, length)
                               : errors.error("the key of {} has {} bytes and a salt of {}, together {}, not {}",
                                              cipher.name, cipher.key, cipher.salt, cipher.key + cipher.salt, length);
  }
  if (const size_t length = material.integrity_key.size(); length != integrity.key)
    status &=
        errors.error("the key of {} has {} bytes, not {}",
                     material.integrity == Integrity::kNone ? "no integrity" : integrity.name, integrity.key, length);
  const bool gcm = material.cipher == Cipher::kAES128GCM || material.cipher == Cipher::kAES256GCM;
  if (gcm && material.integrity != Integrity::kNone)
    status &= errors.error("{} has an integrity of its own and takes no {}", cipher.name, integrity.name);
  if (!gcm && material.integrity == Integrity::kNone)
    status &= errors.error("{} needs HMAC-SHA1-96 or HMAC-SHA-256-128", cipher.name);
  return status;
}

}  // namespace

std::string_view name_of(Cipher cipher) { return kind_of(cipher).name; }
std::string_view name_of(Integrity integrity) { return kind_of(integrity).name; }
uint32_t key_length(Cipher cipher) { return kind_of(cipher).key + kind_of(cipher).salt; }
uint32_t key_length(Integrity integrity) { return kind_of(integrity).key; }

void hmac_states(Integrity integrity, std::span<const uint8_t> key, uint32_t* inner, uint32_t* outer) {
  for (const uint8_t pad : {0x36, 0x5c}) {
    uint8_t block[64];
    std::memset(block, pad, sizeof(block));
    for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    uint32_t* const state = pad == 0x36 ? inner : outer;
    uint32_t words[16];
    load_big_endian(block, words);
    if (integrity == Integrity::kHMACSHA1) {
      SHA1::start(state);
      SHA1::add(state, words);
    } else {
      SHA256::start(state);
      SHA256::add(state, words);
    }
    explicit_bzero(block, sizeof(block));
    explicit_bzero(words, sizeof(words));
  }
}

Status make_keys(const ESPKeyMaterial& material, ESPKeys& keys, ESPHostKeys& host, Errors& errors) {
  wipe(keys);
  wipe(host);
  const Status status = check(material, errors);
  if (!status.ok()) return status;
  const CipherKind& cipher = kind_of(material.cipher);
  keys.cipher = material.cipher;
  keys.integrity = material.integrity;
  keys.iv_length = cipher.iv;
  keys.icv_length = keys.gcm() ? ESPKeys::kLongestICV : kind_of(material.integrity).icv;
  keys.block = cipher.block;
  keys.flags = material.extended ? ESPKeys::kExtended : 0;

  const uint8_t* const key = material.cipher_key.data();
  if (cipher.salt != 0) std::memcpy(&keys.salt, key + cipher.key, cipher.salt);
  if (cipher.key == 16 || cipher.key == 32) {
    keys.rounds = cipher.key / 4 + 6;
    if (cipher.key == 16)
      aes_expand<4>(key, keys.round_keys);
    else
      aes_expand<8>(key, keys.round_keys);
  }
  if (keys.cipher == Cipher::k3DESCBC) {
    for (int i = 0; i < 3; ++i) IMB_DES_KEYSCHED(expansion_manager(), host.des[i], key + 8 * i);
  }
  if (keys.aes_cbc()) {
    alignas(16) uint32_t encryption_keys[60];
    if (cipher.key == 16)
      IMB_AES_KEYEXP_128(expansion_manager(), key, encryption_keys, host.decryption_keys);
    else
      IMB_AES_KEYEXP_256(expansion_manager(), key, encryption_keys, host.decryption_keys);
    explicit_bzero(encryption_keys, sizeof(encryption_keys));
  }
  if (keys.gcm()) {
    auto* const gcm = reinterpret_cast<gcm_key_data*>(host.gcm);
    if (cipher.key == 16)
      IMB_AES128_GCM_PRE(expansion_manager(), key, gcm);
    else
      IMB_AES256_GCM_PRE(expansion_manager(), key, gcm);
    CipherBlock hash_key[1] = {};
    aes_encrypt(ConstantAESTable(), RoundKeys(keys.round_keys, keys.rounds), hash_key);
    set_power(keys, 0, ghash_element(hash_key[0]));
    for (uint32_t i = 1; i < ESPKeys::kPowers; ++i)
      set_power(keys, i, ghash_multiply(power_of(keys, i - 1), power_of(keys, 0)));
  }
  if (keys.integrity != Integrity::kNone) hmac_states(keys.integrity, material.integrity_key, keys.inner, keys.outer);
  return status;
}

void wipe(ESPKeys& keys) { explicit_bzero(&keys, sizeof(keys)); }
void wipe(ESPHostKeys& host) { explicit_bzero(&host, sizeof(host)); }

}  // namespace headrace
