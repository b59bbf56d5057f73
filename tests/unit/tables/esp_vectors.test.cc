/// \file
/// ESP's cryptography on published vectors: those of the RFCs, some of NIST's, and all of them if ../shared is there.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "esp_packets.hh"
#include "support/source_dir.hh"
#include "tables/sa/aes_bitsliced_view.hh"

namespace headrace {
namespace {

using namespace testing;

template <typename Hash>
std::string hash_of(const ByteVector& message) {
  uint32_t words[Hash::kWords];
  hash_message<Hash>({message.data(), static_cast<uint32_t>(message.size()), false, 0, 0}, words);
  std::string text;
  for (const uint32_t word : words) text += fmt::format("{:08x}", word);
  return text;
}

/// HMAC with a key of any length (RFC 2104).
template <typename Hash>
std::string hmac_of(ByteVector key, const ByteVector& message) {
  if (key.size() > 64) key = from_hex(hash_of<Hash>(key));
  uint32_t inner[Hash::kWords], outer[Hash::kWords], words[Hash::kWords];
  hmac_states(Hash::kWords == 5 ? Integrity::kHMACSHA1 : Integrity::kHMACSHA256, key, inner, outer);
  hmac<Hash>(inner, outer, {message.data(), static_cast<uint32_t>(message.size()), false, 0, 64}, words);
  std::string text;
  for (const uint32_t word : words) text += fmt::format("{:08x}", word);
  return text;
}

struct AESKeys {
  alignas(16) uint32_t words[60];
  uint32_t rounds;
  explicit AESKeys(const ByteVector& key) : rounds(static_cast<uint32_t>(key.size()) / 4 + 6) {
    if (key.size() == 16)
      aes_expand<4>(key.data(), words);
    else
      aes_expand<8>(key.data(), words);
  }
  CipherBlock encrypt(const CipherBlock& block) const {
    CipherBlock blocks[1] = {block};
    aes_encrypt(ConstantAESTable(), RoundKeys(words, rounds), blocks);
    return blocks[0];
  }
};

std::string hex_of(const CipherBlock& block) { return to_hex(reinterpret_cast<const uint8_t*>(block.w), 16); }

/// GCM as NIST SP 800-38D writes it, from the parts that the bodies use. Returns the ciphertext and the whole tag.
std::pair<ByteVector, ByteVector> plain_gcm(const ByteVector& key, const ByteVector& nonce,
                                            const ByteVector& additional, const ByteVector& text) {
  const AESKeys keys(key);
  CipherBlock counter = load_block(nonce.data(), 12);
  const auto stream = [&](uint32_t number) {
    counter.w[3] = byte_swap(number);
    return keys.encrypt(counter);
  };
  const GHashElement h = ghash_element(keys.encrypt(CipherBlock{}));
  GHashElement sum{};
  const auto add = [&](const ByteVector& bytes) {
    for (size_t at = 0; at < bytes.size(); at += 16) {
      const size_t left = std::min<size_t>(16, bytes.size() - at);
      sum = ghash_multiply(sum ^ ghash_element(load_block(bytes.data() + at, static_cast<uint32_t>(left))), h);
    }
  };
  ByteVector out(text.size());
  for (size_t at = 0; at < text.size(); at += 16) {
    const size_t left = std::min<size_t>(16, text.size() - at);
    const CipherBlock block =
        load_block(text.data() + at, static_cast<uint32_t>(left)) ^ stream(static_cast<uint32_t>(at / 16) + 2);
    std::memcpy(out.data() + at, block.w, left);
  }
  add(additional);
  add(out);
  const GHashElement lengths = {
      {static_cast<uint32_t>(out.size()) * 8, 0, static_cast<uint32_t>(additional.size()) * 8, 0}};
  sum = ghash_multiply(sum ^ lengths, h);
  const CipherBlock tag = ghash_block(sum) ^ stream(1);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(tag.w);
  return {out, ByteVector(bytes, bytes + 16)};
}

ByteVector joined(std::initializer_list<ByteVector> parts) {
  ByteVector all;
  for (const ByteVector& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
ByteVector slice(const ByteVector& bytes, size_t from, size_t n) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(from);
  return ByteVector(begin, begin + static_cast<ptrdiff_t>(n));
}

/// The ciphertext that each body makes of `text` behind an IV of 8 bytes or, for AES in CBC mode, 16. It must decrypt it, too.
void expect_ciphertext(Cipher cipher, const ByteVector& key, const ByteVector& iv, const ByteVector& text,
                       const ByteVector& wanted) {
  const bool gcm = cipher == Cipher::kAES128GCM || cipher == Cipher::kAES256GCM;
  const TestAssociation a(cipher, gcm ? Integrity::kNone : Integrity::kHMACSHA1, key, ByteVector(gcm ? 0 : 20, 0x77));
  const ByteVector packet = joined({ByteVector(8, 0x11), iv, text, ByteVector(a.keys.icv_length)});
  for (const Body body : bodies_of(cipher)) {
    ByteVector sealed = seal(body, a, packet, 0, 2);
    EXPECT_EQ(to_hex(wanted), to_hex(slice(sealed, a.keys.front(), text.size())));
    EXPECT_TRUE(open(body, a, sealed, 0, 6));
    EXPECT_EQ(to_hex(text), to_hex(slice(sealed, a.keys.front(), text.size())));
  }
}

/// In counter mode. \param block the whole counter block, whose last number is 1
void expect_counter_mode(const ByteVector& key, const ByteVector& block, const ByteVector& text,
                         const ByteVector& wanted) {
  ASSERT_EQ(to_hex(slice(block, 12, 4)), "00000001");
  expect_ciphertext(key.size() == 16 ? Cipher::kAES128CTR : Cipher::kAES256CTR, joined({key, slice(block, 0, 4)}),
                    slice(block, 4, 8), text, wanted);
}

/// The ICV that each body writes behind `message`, which is a packet that is not encrypted.
void expect_icv(Integrity integrity, const ByteVector& key, const ByteVector& message, const std::string& wanted) {
  const TestAssociation a(Cipher::kNull, integrity, {}, key);
  const ByteVector packet = joined({message, ByteVector(a.keys.icv_length)});
  for (const Body body : kBodies) {
    ByteVector sealed = seal(body, a, packet, 0, 5);
    EXPECT_EQ(to_hex(message) + wanted.substr(0, a.keys.icv_length * 2), to_hex(sealed));
    EXPECT_TRUE(open(body, a, sealed, 0, 9));
  }
}

ByteVector text_bytes(std::string_view text) { return ByteVector(text.begin(), text.end()); }

/// FIPS 197, appendix C.
TEST(ESPVectors, AES) {
  const ByteVector plain = from_hex("00112233445566778899aabbccddeeff");
  const ByteVector key = from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  const AESKeys small(slice(key, 0, 16)), large(key);
  const CipherBlock block = load_block(plain.data(), 16);
  EXPECT_EQ(hex_of(small.encrypt(block)), "69c4e0d86a7b0430d8cdb78070b4c55a");
  EXPECT_EQ(hex_of(large.encrypt(block)), "8ea2b7ca516745bfeafc49904b496089");
  EXPECT_EQ(hex_of(aes_decrypt(small.words, small.rounds, small.encrypt(block))), to_hex(plain));
  EXPECT_EQ(hex_of(aes_decrypt(large.words, large.rounds, large.encrypt(block))), to_hex(plain));
}

/// The same in slices of bits, and as the tables have it for other blocks.
TEST(ESPVectors, SlicedAES) {
  const ByteVector key = from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  std::mt19937 random(1);
  for (const AESKeys& keys : {AESKeys(slice(key, 0, 16)), AESKeys(key)}) {
    AESSlices sliced[15];
    CipherBlock blocks[AESSlices::kBlocks];
    for (uint32_t round = 0; round <= keys.rounds; ++round) {
      for (CipherBlock& same : blocks) same = RoundKeys(keys.words, keys.rounds)[round];
      aes_slice(blocks, sliced[round]);
    }
    for (CipherBlock& block : blocks)
      for (uint32_t& word : block.w) word = random();
    blocks[3] = load_block(from_hex("00112233445566778899aabbccddeeff").data(), 16);
    CipherBlock plain[AESSlices::kBlocks];
    std::copy(std::begin(blocks), std::end(blocks), plain);
    aes_encrypt_sliced(sliced, keys.rounds, blocks);
    for (size_t i = 0; i < std::size(plain); ++i) EXPECT_EQ(hex_of(blocks[i]), hex_of(keys.encrypt(plain[i]))) << i;
    EXPECT_EQ(hex_of(blocks[3]),
              keys.rounds == 10 ? "69c4e0d86a7b0430d8cdb78070b4c55a" : "8ea2b7ca516745bfeafc49904b496089");
  }
}

/// FIPS 180-4's examples.
TEST(ESPVectors, Hashes) {
  const ByteVector two = text_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
  EXPECT_EQ(hash_of<SHA1>({}), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hash_of<SHA1>(text_bytes("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hash_of<SHA1>(two), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hash_of<SHA1>(ByteVector(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  EXPECT_EQ(hash_of<SHA256>({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of<SHA256>(text_bytes("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of<SHA256>(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of<SHA256>(ByteVector(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/// RFC 2202, section 3.
TEST(ESPVectors, HMACSHA1) {
  expect_icv(Integrity::kHMACSHA1, ByteVector(20, 0x0b), text_bytes("Hi There"),
             "b617318655057264e28bc0b6fb378c8ef146be00");
  expect_icv(Integrity::kHMACSHA1, ByteVector(20, 0xaa), ByteVector(50, 0xdd),
             "125d7342b9ac11cd91a39af48aa17b4f63f175d3");
  expect_icv(Integrity::kHMACSHA1, ByteVector(20, 0x0c), text_bytes("Test With Truncation"),
             "4c1a03424b55e07fe7f27be1d58bb932");
  EXPECT_EQ(hmac_of<SHA1>(text_bytes("Jefe"), text_bytes("what do ya want for nothing?")),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
  EXPECT_EQ(hmac_of<SHA1>(ByteVector(80, 0xaa), text_bytes("Test Using Larger Than Block-Size Key - Hash Key First")),
            "aa4ae5e15272d00e95705637ce8a3b55ed402112");
}

/// RFC 4868, section 2.7.2.1, and RFC 4231.
TEST(ESPVectors, HMACSHA256) {
  ByteVector counted(32);
  for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<uint8_t>(i + 1);
  expect_icv(Integrity::kHMACSHA256, ByteVector(32, 0x0b), text_bytes("Hi There"), "198a607eb44bfbc69903a0f1cf2bbdc5");
  expect_icv(Integrity::kHMACSHA256, text_bytes("JefeJefeJefeJefeJefeJefeJefeJefe"),
             text_bytes("what do ya want for nothing?"), "167f928588c5cc2eef8e3093caa0e87c");
  expect_icv(Integrity::kHMACSHA256, ByteVector(32, 0xaa), ByteVector(50, 0xdd), "cdcb1220d1ecccea91e53aba3092f962");
  expect_icv(Integrity::kHMACSHA256, counted, ByteVector(50, 0xcd), "372efcf9b40b35c2115b1346903d2ef4");
  EXPECT_EQ(hmac_of<SHA256>(text_bytes("Jefe"), text_bytes("what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hmac_of<SHA256>(ByteVector(131, 0xaa), text_bytes("Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/// RFC 3686, section 6.
TEST(ESPVectors, CounterMode) {
  expect_counter_mode(from_hex("ae6852f8121067cc4bf7a5765577f39e"), from_hex("00000030000000000000000000000001"),
                      text_bytes("Single block msg"), from_hex("e4095d4fb7a7b3792d6175a3261311b8"));
  expect_counter_mode(from_hex("7691be035e5020a8ac6e618529f9a0dc"), from_hex("00e0017b27777f3f4a1786f000000001"),
                      from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223"),
                      from_hex("c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f"));
  expect_counter_mode(from_hex("776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104"),
                      from_hex("00000060db5672c97aa8f0b200000001"), text_bytes("Single block msg"),
                      from_hex("145ad01dbf824ec7560863dc71e3e0c0"));
}

/// NIST's CBCMMT128, 0 and 1.
TEST(ESPVectors, CBCMode) {
  expect_ciphertext(Cipher::kAES128CBC, from_hex("1f8e4973953f3fb0bd6b16662e9a3c17"),
                    from_hex("2fe2b333ceda8f98f4a99b40d2cd34a8"), from_hex("45cf12964fc824ab76616ae2f4bf0822"),
                    from_hex("0f61c4d44c5147c03c195ad7e2cc12b2"));
  expect_ciphertext(Cipher::kAES128CBC, from_hex("0700d603a1c514e46b6191ba430a3a0c"),
                    from_hex("aad1583cd91365e3bb2f0c3430d065bb"),
                    from_hex("068b25c7bfb1f8bdd4cfc908f69dffc5ddc726a197f0e5f720f730393279be91"),
                    from_hex("c4dc61d9725967a3020104a9738f23868527ce839aab1752fd8bdb95a82c4d00"));
}

/// NIST's CBCMMT256, 0 and 1.
TEST(ESPVectors, CBCModeOf256Bits) {
  expect_ciphertext(Cipher::kAES256CBC, from_hex("6ed76d2d97c69fd1339589523931f2a6cff554b15f738f21ec72dd97a7330907"),
                    from_hex("851e8764776e6796aab722dbb644ace8"), from_hex("6282b8c05c5c1530b97d4816ca434762"),
                    from_hex("6acc04142e100a65f51b97adf5172c41"));
  expect_ciphertext(Cipher::kAES256CBC, from_hex("dce26c6b4cfb286510da4eecd2cffe6cdf430f33db9b5f77b460679bd49d13ae"),
                    from_hex("fdeaa134c8d7379d457175fd1a57d3fc"),
                    from_hex("50e9eee1ac528009e8cbcd356975881f957254b13f91d7c6662d10312052eb00"),
                    from_hex("2fa0df722a9fd3b64cb18fb2b3db55ff2267422757289413f8f657507412a64c"));
}

/// The example of NIST SP 800-67, appendix B; in CBC mode as OpenSSL has it.
TEST(ESPVectors, TripleDES) {
  const ByteVector key = from_hex("0123456789abcdef23456789abcdef01456789abcdef0123");
  const ByteVector text = text_bytes("The qufck brown fox jump");
  const TestAssociation a(Cipher::k3DESCBC, Integrity::kHMACSHA1, key, ByteVector(20));
  ByteVector blocks = text;
  for (size_t at = 0; at < blocks.size(); at += 8) test_library().encrypt_block_des3(a.host, blocks.data() + at);
  EXPECT_EQ(to_hex(blocks), "a826fd8ce53b855fcce21c8112256fe668d5c05dd9b6b900");
  expect_ciphertext(Cipher::k3DESCBC, key, from_hex("fedcba9876543210"), text,
                    from_hex("f3a4ae3decb817914c2c48e192c8b059a87e9b07eac8a1dc"));
}

struct GCMCase {
  const char *key, *nonce, *text, *additional, *ciphertext, *tag;
};
/// The cases of draft-mcgrew-gcm-test-01, which are packets of ESP with GCM, except that for keys of 192 bits.
const GCMCase kGCMCases[] = {
    {"4c80cdefbb5d10da906ac73c3613a634", "2e443b684956ed7e3b244cfe",
     "45000048699a000080114db7c0a80102c0a801010a9bf15638d301000001000000000000045f736970045f75647003736970"
     "0963796265726369747902646b000021000101020201",
     "000043218765432100000000",
     "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf65925bf1f4a13c5d15b2"
     "1e1884f5ff6247aeabb786b93bce61bc17d768fd9732",
     "459018148f6cbe722fd04796562dfdb4"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d00100000100000000000003736970096379626572"
     "6369747902646b00000100010001",
     "0000a5f80000000a",
     "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642cfbb"
     "85a5b47e48a4ec3b9ba95d918bd1",
     "83b70d3aa8bc6ee4c309e9d85a41ad4a"},
    {"abbccddef00112233445566778899aababbccddef00112233445566778899aab", "112233440102030405060708",
     "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee0000000007002400020bf0000020405b4010104020102"
     "0201",
     "4a2cbfe300000002",
     "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763748a637985771d347f0545659f14e99def84"
     "2d8e",
     "b335f4eecfdbf831824b4c4915956c96"},
    {"00000000000000000000000000000000", "000000000000000000000000",
     "4500003c99c500008001cb7a40679318010101010800075c020044006162636465666768696a6b6c6d6e6f70717273747576"
     "7761626364656667686901020201",
     "0000000000000001",
     "4688daf2f973a392732909c331d56d60f694abaa414b5e7ff5fdcdfff5e9a284456476492719ffb64de7d9dca1e1d894bc3b"
     "d57873ed4d181d19d4d5c8c18af3",
     "f821d496eeb096e98ad2b69e4799c71d"},
    {"3de09874b388e6491988d0c3607eae1f", "57690e434e280000a2fca1a3",
     "4500003c99c300008001cb7c40679318010101010800085c020043006162636465666768696a6b6c6d6e6f70717273747576"
     "7761626364656667686901020201",
     "42f67e3f1010101010101010",
     "fba2caa4853cf9f0f22cb10d86dd83b0fec75691cf1a04b00d1138ec9c35791765acbd8701ad79845bf9fe3fba487bc91755"
     "e6662b4c8d0d1f5e22739530320a",
     "e0d731cc978ecafaeae88f00e80d6e48"},
    {"3de09874b388e6491988d0c3607eae1f", "57690e434e280000a2fca1a3",
     "4500001c42a200008001441f406793b6e00000020a00f5ff01020201", "42f67e3f1010101010101010",
     "fba2ca845e5df9f0f22c3e6e86dd831e1fc65792cd1af9130e1379ed", "369f071f35e034be95f112e4e7d05d35"},
    {"abbccddef00112233445566778899aab", "decaf888cafedebaceface74",
     "4500004933ba00007f119106c3fb1d10c2b1d326c02831ce0035dd7b800302d500004e20001e8c18d75b81dc91baa0476b91"
     "b924b280389d92c963bac046ec959b6266c04722b14923010101",
     "000001000000000000000001",
     "18a6fd42f72cbf4ab2a2ea901f73d814e3e7f243d95412e1c349c1d2fbec168f9190feebaf2cb01984e65863965d7472b79d"
     "a345e0e780191f0d2f0e0f496c226f2127b27db35724e7845d68",
     "651f57e65f354f75ff17015769623436"},
    {"abbccddef00112233445566778899aababbccddef00112233445566778899aab", "73616c74616e640169766563",
     "45080028732c00004006e9f90a0106120a01038f06b88023dd6bafbecb71260250101f646d540001", "17405e67156f3126dd0db99b",
     "f2d69ecdbd5a0d5b8d5ef38bad4da58d1f278fde98ef67549d524a3018d9a57ff4d3a31ce673119e",
     "451626c2415771e3b7eebca614c89b35"},
    {"3de09874b388e6491988d0c3607eae1f", "57690e434e280000a2fca1a3",
     "45000049333e00007f119182c3fb1d10c2b1d326c02831ce0035cb458003025b000001e0001e8c18d65759d52284a0352c71"
     "475c8880391c764d6e5ee0496b325ae270c03899493915010101",
     "42f67e3f1010101010101010",
     "fba2cad12fc1f9f00d3cebf305410db83d7784b607323d220f24b0a97d54182800cadb0f68d99ef0e0c0c89ae9bea8884e52"
     "d65bc1afd0740f742444747b5b39ab533163aad4550ee5160975",
     "cdb608c5769189609763b8e18caa81e2"},
    {"abbccddef00112233445566778899aababbccddef00112233445566778899aab", "73616c74616e640169766563",
     "636973636f0172756c657301746865016e6574776501646566696e6501746865746563686e6f6c6f67696573017468617477"
     "696c6c01646566696e65746f6d6f72726f7701020201",
     "17405e67156f3126dd0db99b",
     "d4b7ed86a1777f2ea13d6973d324c69e7b43f826fb56831226508bebd2dceb18d0a6df10e5487df074113e14c641024e3e67"
     "73d91a62ee429b043a10e3efe6b012a49363412364f8",
     "c0cac587f249e56b11e24f30e44ccc76"},
    {"7d773d00c144c525ac619d18c84a3f47", "d966426743457e9182443bc6", "01020201", "335467aeffffffff", "437f866b",
     "cb3f699fe9b0822bac961c4504bef270"},
    {"abbccddef00112233445566778899aab", "decaf888cafedebaceface74", "746f016265016f72016e6f7401746f0162650001",
     "000001000000000000000001", "29c9fc69a197d038ccdd14e2ddfcaa0543332164", "412503524303ed3c6c5f283843af8c3e"},
    {"6c6567616c697a656d6172696a75616e61616e64646f69746265666f72656961", "7475726e333021696765746d",
     "45000030da3a00008001df3bc0a80005c0a800010800c6cd020007006162636465666768696a6b6c6d6e6f70717273740102"
     "0201",
     "796b6963ffffffffffffffff",
     "f97ab2aa356d8edce17644ac8c78e25dd24dedbb29ebf1b64a274b39b49c3a864cd3d78ca4ae68a32b42458fb57dbe821dcc"
     "63b9",
     "d0937ba2945f669368661a329fb4c053"},
};

TEST(ESPVectors, GCM) {
  for (const GCMCase& c : kGCMCases) {
    const ByteVector key = from_hex(c.key), nonce = from_hex(c.nonce), additional = from_hex(c.additional);
    const ByteVector text = from_hex(c.text);
    const bool extended = additional.size() == 12;
    const TestAssociation a(key.size() == 16 ? Cipher::kAES128GCM : Cipher::kAES256GCM, Integrity::kNone,
                            joined({key, slice(nonce, 0, 4)}), {}, extended);
    const uint32_t high = extended ? byte_swap(load_word(additional.data() + 4, 4)) : 0;
    const ByteVector header =
        joined({slice(additional, 0, 4), slice(additional, extended ? 8 : 4, 4), slice(nonce, 4, 8)});
    const std::string wanted = to_hex(header) + c.ciphertext + c.tag;
    for (const Body body : kBodies) {
      ByteVector sealed = seal(body, a, joined({header, text, ByteVector(16)}), high, 2);
      EXPECT_EQ(wanted, to_hex(sealed));
      EXPECT_TRUE(open(body, a, sealed, high, 6));
      EXPECT_EQ(to_hex(header) + c.text + c.tag, to_hex(sealed));
    }
    const auto [ciphertext, tag] = plain_gcm(key, nonce, additional, text);
    EXPECT_EQ(c.ciphertext, to_hex(ciphertext));
    EXPECT_EQ(c.tag, to_hex(tag));
  }
}

/// NIST's response files and those of the RFCs, as the package cryptography_vectors has them.
class ESPSharedVectors : public ::testing::Test {
 protected:
  using Record = std::map<std::string, std::string>;

  static void SetUpTestSuite() {
    const std::string archive =
        kSourceDir + "/../shared/data/crypto/nist-cavp-and-rfc-vectors_cryptography-vectors.tar.xz";
    if (!std::filesystem::exists(archive)) return;
    std::string folder = (std::filesystem::temp_directory_path() / "headrace-vectors-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    const std::string command = fmt::format("tar -xJf '{}' -C '{}' 2>/dev/null", archive, folder);
    if (std::system(command.c_str()) != 0) TearDownTestSuite();
  }
  static void TearDownTestSuite() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
    folder_.clear();
  }
  void SetUp() override {
    if (folder_.empty()) GTEST_SKIP() << "no ../shared/data/crypto, or no tar and xz to unpack it";
  }

  /// Calls `f(record)` for each paragraph of a file with `name = value` lines; values of [name = value] lines are in all
  /// records that follow, and a line of one word has itself as its value. Returns how many.
  template <typename F>
  static int each(const std::string& name, F&& f) {
    std::ifstream file(folder_ + "/cryptography_vectors/" + name);
    Record section, record;
    int records = 0;
    const auto end = [&] {
      if (record.size() < 2) return record.clear();
      Record whole = section;
      for (const auto& [key, value] : record) whole[key] = value;
      record.clear();
      ++records;
      f(whole);
    };
    for (std::string line; std::getline(file, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (line.empty()) {
        end();
        continue;
      }
      if (line[0] == '#') continue;
      const bool bracket = line[0] == '[';
      if (bracket) line = line.substr(1, line.size() - 2);
      const size_t equals = line.find('=');
      const std::string key = line.substr(0, line.find_first_of(" ="));
      const size_t from = equals == std::string::npos ? 0 : line.find_first_not_of("= ", equals);
      (bracket ? section : record)[key] = from == std::string::npos ? "" : line.substr(from);
    }
    end();
    return records;
  }

 private:
  static inline std::string folder_;
};

TEST_F(ESPSharedVectors, CounterMode) {
  for (const char* name : {"ciphers/AES/CTR/aes-128-ctr.txt", "ciphers/AES/CTR/aes-256-ctr.txt"})
    EXPECT_EQ(3, each(name, [](Record& r) {
                expect_counter_mode(from_hex(r["KEY"]), from_hex(r["IV"]), from_hex(r["PLAINTEXT"]),
                                    from_hex(r["CIPHERTEXT"]));
              }));
}

TEST_F(ESPSharedVectors, CBCMode) {
  int records[2] = {};
  for (const int bits : {128, 256})
    for (const char* name : {"GFSbox", "KeySbox", "MMT", "VarKey", "VarTxt"})
      records[bits == 256] += each(fmt::format("ciphers/AES/CBC/CBC{}{}.rsp", name, bits), [&](Record& r) {
        expect_ciphertext(bits == 128 ? Cipher::kAES128CBC : Cipher::kAES256CBC, from_hex(r["KEY"]), from_hex(r["IV"]),
                          from_hex(r["PLAINTEXT"]), from_hex(r["CIPHERTEXT"]));
      });
  EXPECT_EQ(588, records[0]);
  EXPECT_EQ(830, records[1]);
}

/// The parts from which ESPVectors.GCM makes what the bodies must make, and the bodies' ciphertext: NIST has no
/// additional data as short as ESP's.
TEST_F(ESPSharedVectors, GCM) {
  int used = 0, refused = 0;
  for (const char* name : {"ciphers/AES/GCM/gcmEncryptExtIV128.rsp", "ciphers/AES/GCM/gcmDecrypt256.rsp"}) {
    each(name, [&](Record& r) {
      if (r["IVlen"] != "96") return;
      ++used;
      const ByteVector key = from_hex(r["Key"]), nonce = from_hex(r["IV"]), ciphertext = from_hex(r["CT"]);
      // Encryption is its own inverse but for the tag.
      const auto [text, unused] = plain_gcm(key, nonce, from_hex(r["AAD"]), ciphertext);
      const auto [again, tag] = plain_gcm(key, nonce, from_hex(r["AAD"]), text);
      ASSERT_EQ(to_hex(again), r["CT"]);
      const bool right = to_hex(tag).substr(0, r["Tag"].size()) == r["Tag"];
      ASSERT_EQ(right, r.count("FAIL") == 0);
      refused += right ? 0 : 1;
      if (!right) return;
      ASSERT_EQ(to_hex(text), r["PT"]);
      if (r["Taglen"] == "128" && r["AADlen"] == "0")
        expect_ciphertext(key.size() == 16 ? Cipher::kAES128GCM : Cipher::kAES256GCM, joined({key, slice(nonce, 0, 4)}),
                          slice(nonce, 4, 8), text, ciphertext);
    });
  }
  EXPECT_EQ(5250, used);
  EXPECT_GT(refused, 1000);
}

TEST_F(ESPSharedVectors, SHA1) {
  int records = 0;
  for (const char* name : {"hashes/SHA1/SHA1ShortMsg.rsp", "hashes/SHA1/SHA1LongMsg.rsp"})
    records += each(name, [](Record& r) {
      EXPECT_EQ(r["MD"], hash_of<SHA1>(slice(from_hex(r["Msg"]), 0, std::stoul(r["Len"]) / 8)));
    });
  EXPECT_EQ(129, records);
}

TEST_F(ESPSharedVectors, SHA1InARow) {
  ByteVector seed = from_hex("dd4df644eaf3d85bace2b21accaa22b28821f5cd");
  EXPECT_EQ(100, each("hashes/SHA1/SHA1Monte.rsp", [&](Record& r) {
              ByteVector digests[3] = {seed, seed, seed};
              for (int i = 0; i < 1000; ++i) {
                seed = from_hex(hash_of<SHA1>(joined({digests[0], digests[1], digests[2]})));
                digests[0] = digests[1];
                digests[1] = digests[2];
                digests[2] = seed;
              }
              EXPECT_EQ(r["MD"], to_hex(seed));
            }));
}

TEST_F(ESPSharedVectors, HMAC) {
  const auto check = [&]<typename Hash>(const char* name, Hash) {
    return each(name, [](Record& r) {
      const ByteVector key = from_hex(r["Key"]), message = from_hex(r["Msg"]);
      EXPECT_EQ(r["MD"], hmac_of<Hash>(key, message));
      if (key.size() == 20 && Hash::kWords == 5) expect_icv(Integrity::kHMACSHA1, key, message, r["MD"]);
    });
  };
  EXPECT_GE(check("HMAC/rfc-2202-sha1.txt", SHA1()), 6);
  EXPECT_GE(check("HMAC/rfc-4231-sha256.txt", SHA256()), 6);
}

}  // namespace
}  // namespace headrace
