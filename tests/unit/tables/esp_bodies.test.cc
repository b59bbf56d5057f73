/// \file
/// The bodies of ESP's cryptography against each other: one lane, teams, intel-ipsec-mb.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "esp_packets.hh"

namespace headrace {
namespace {

using namespace testing;

std::string label(const TestAssociation& a, size_t length, uint32_t skip) {
  return fmt::format("{} {} {} bytes at {}{}", name_of(a.keys.cipher), name_of(a.keys.integrity), length, skip,
                     a.keys.extended() ? " extended" : "");
}

/// Seals with each body, and opens with each what they have made.
void compare(const TestAssociation& a, const ByteVector& packet, uint32_t high, uint32_t skip) {
  const ByteVector sealed = seal(Body::kLibrary, a, packet, high, skip);
  for (const Body body : bodies_of(a.keys.cipher)) {
    ASSERT_EQ(to_hex(sealed), to_hex(seal(body, a, packet, high, skip))) << label(a, packet.size(), skip);
    ByteVector opened = sealed;
    ASSERT_TRUE(open(body, a, opened, high, skip)) << label(a, packet.size(), skip);
    // What the ICV was before is lost.
    ASSERT_TRUE(std::equal(packet.begin(), packet.end() - a.keys.icv_length, opened.begin()))
        << label(a, packet.size(), skip);
  }
}

TEST(ESPBodies, AgreeForEveryLength) {
  std::mt19937 random(1);
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    const TestAssociation plain(cipher, integrity, random), extended(cipher, integrity, random, true);
    for (uint32_t payload = 0; payload <= 1600; payload += payload < 100 ? 1 : 7 + random() % 23) {
      const TestAssociation& a = payload % 2 == 0 ? plain : extended;
      const uint32_t bytes = a.keys.cbc() ? payload / a.keys.block * a.keys.block : payload;
      compare(a, random_bytes(random, a.keys.overhead() + bytes), random(), random() % 16);
    }
  }
}

TEST(ESPBodies, AgreeForEveryAlignment) {
  std::mt19937 random(2);
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    const TestAssociation a(cipher, integrity, random, true);
    for (const uint32_t payload : {0u, 16u, 64u, 496u, 512u, 528u})
      for (uint32_t skip = 0; skip < 16; ++skip)
        compare(a, random_bytes(random, a.keys.overhead() + payload), random(), skip);
  }
}

TEST(ESPBodies, TeamsOfEverySize) {
  std::mt19937 random(3);
  const TestAssociation a(Cipher::kAES128GCM, Integrity::kNone, random);
  const auto check = [&]<uint32_t kSize>(const HostTeam<kSize>& team) {
    for (const uint32_t payload : {3u, 100u, 1000u}) {
      const ByteVector packet = random_bytes(random, a.keys.overhead() + payload);
      PlacedBytes placed(packet, 6);
      esp_encrypt(team, a.keys, placed.data(), static_cast<uint32_t>(packet.size()), 0);
      EXPECT_EQ(to_hex(seal(Body::kLibrary, a, packet, 0, 6)), to_hex(placed.bytes())) << kSize;
    }
  };
  check(HostTeam<2>());
  check(HostTeam<3>());
  check(HostTeam<8>());
  check(HostTeam<31>());
}

/// Triple-DES of a packet, block by block.
void des3_encrypt(uint8_t* esp, const ESPJob& job) {
  if (!job.keys->fits(job.length)) return;
  for (uint32_t at = job.keys->front(); at < job.length - job.keys->icv_length; at += 8) {
    // The block before, or the IV.
    for (uint32_t i = 0; i < 8; ++i) esp[at + i] ^= esp[at - 8 + i];
    test_library().encrypt_block_des3(*job.host, esp + at);
  }
}

/// The library with batches of different associations, algorithms and lengths, among them packets that are too short.
TEST(ESPBodies, MixedBatches) {
  std::mt19937 random(4);
  std::vector<std::unique_ptr<TestAssociation>> associations;
  for (const auto [cipher, integrity] : kAllAlgorithms)
    for (const bool extended : {false, true})
      associations.push_back(std::make_unique<TestAssociation>(cipher, integrity, random, extended));
  for (int round = 0; round < 20; ++round) {
    const uint32_t n = round == 0 ? 256 : random() % 257;
    std::vector<ByteVector> plain(n);
    std::vector<std::unique_ptr<PlacedBytes>> placed(n);
    std::vector<ESPJob> jobs(n);
    for (uint32_t i = 0; i < n; ++i) {
      const TestAssociation& a = *associations[random() % associations.size()];
      const uint32_t payload = a.keys.cbc() ? random() % 40 * a.keys.block : random() % 640;
      const bool too_short = random() % 16 == 0;
      plain[i] = random_bytes(random, too_short ? random() % a.keys.overhead() : a.keys.overhead() + payload);
      placed[i] = std::make_unique<PlacedBytes>(plain[i], random() % 16, 64);
      jobs[i] = {placed[i]->data(), static_cast<uint32_t>(plain[i].size()), static_cast<uint32_t>(random()), &a.keys,
                 &a.host};
    }
    const auto sealed = [&](uint32_t i) {
      PlacedBytes copy(plain[i], 3);
      const ESPJob& job = jobs[i];
      if (job.keys->cipher == Cipher::k3DESCBC)
        des3_encrypt(copy.data(), job);
      else
        esp_encrypt(HostTeam<1>(), *job.keys, copy.data(), job.length, job.sequence_high);
      esp_authenticate(*job.keys, copy.data(), job.length, job.sequence_high);
      return copy.bytes();
    };
    if (round % 2 == 0) {
      test_library().seal(jobs.data(), n);
    } else {
      test_library().encrypt(jobs.data(), n);
      test_library().authenticate(jobs.data(), n);
    }
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_EQ(jobs[i].good, jobs[i].keys->fits(jobs[i].length));
      EXPECT_EQ(to_hex(placed[i]->bytes()), to_hex(sealed(i)));
      EXPECT_TRUE(placed[i]->intact());
    }
    // One in four is damaged on the way.
    std::vector<ByteVector> received(n);
    std::vector<bool> damaged(n);
    for (uint32_t i = 0; i < n; ++i) {
      damaged[i] = !jobs[i].good || random() % 4 == 0;
      if (jobs[i].good && damaged[i]) placed[i]->data()[random() % jobs[i].length] ^= 1 << random() % 8;
      received[i] = placed[i]->bytes();
    }
    if (round % 2 == 0) {
      test_library().open(jobs.data(), n);
    } else {
      test_library().verify(jobs.data(), n);
      std::vector<ESPJob> verified;
      std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(verified), [](const ESPJob& job) { return job.good; });
      test_library().decrypt(verified.data(), static_cast<uint32_t>(verified.size()));
      for (ESPJob& job : jobs)
        for (const ESPJob& other : verified)
          if (job.esp == other.esp) job.good = other.good;
    }
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_EQ(jobs[i].good, !damaged[i]);
      const size_t kept = damaged[i] ? received[i].size() : received[i].size() - jobs[i].keys->icv_length;
      const ByteVector& wanted = damaged[i] ? received[i] : plain[i];
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(kept), placed[i]->data()));
    }
  }
}

TEST(ESPBodies, AFlippedBitAnywhere) {
  std::mt19937 random(5);
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    for (const bool extended : {false, true}) {
      const TestAssociation a(cipher, integrity, random, extended);
      const uint32_t high = random();
      const ByteVector sealed = seal(Body::kLibrary, a, random_bytes(random, a.keys.overhead() + 48), high, 0);
      for (size_t bit = 0; bit < sealed.size() * 8; ++bit) {
        ByteVector wrong = sealed;
        wrong[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
        for (const Body body : bodies_of(cipher)) {
          ByteVector received = wrong;
          ASSERT_FALSE(open(body, a, received, high, bit % 16)) << label(a, sealed.size(), 0) << ", bit " << bit;
          ASSERT_EQ(to_hex(received), to_hex(wrong)) << label(a, sealed.size(), 0) << ", bit " << bit;
        }
      }
      // The upper half of the sequence number counts exactly if it is extended.
      for (const Body body : bodies_of(cipher)) {
        ByteVector received = sealed;
        EXPECT_EQ(open(body, a, received, high ^ 1, 0), !extended) << label(a, sealed.size(), 0);
      }
    }
  }
}

TEST(ESPBodies, WhatDoesNotFitStaysAsItIs) {
  std::mt19937 random(6);
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    const TestAssociation a(cipher, integrity, random);
    std::vector<uint32_t> lengths(a.keys.overhead());
    std::iota(lengths.begin(), lengths.end(), 0);
    if (a.keys.cbc()) lengths.push_back(a.keys.overhead() + 20);
    for (const uint32_t length : lengths) {
      const ByteVector packet = random_bytes(random, length);
      for (const Body body : bodies_of(cipher)) {
        EXPECT_EQ(to_hex(packet), to_hex(seal(body, a, packet, 0, 0)));
        ByteVector received = packet;
        EXPECT_FALSE(open(body, a, received, 0, 0));
        EXPECT_EQ(to_hex(packet), to_hex(received));
        PlacedBytes placed(packet, 0);
        EXPECT_FALSE(esp_decrypt(HostTeam<1>(), a.keys, placed.data(), length, 0));
      }
    }
  }
}

/// Only the library has Triple-DES; the others leave packets as they are, and decrypt none.
TEST(ESPBodies, TripleDESIsTheLibrarys) {
  std::mt19937 random(9);
  const TestAssociation a(Cipher::k3DESCBC, Integrity::kHMACSHA1, random);
  const ByteVector packet = random_bytes(random, a.keys.overhead() + 48);
  const auto length = static_cast<uint32_t>(packet.size());
  PlacedBytes placed(packet, 0);
  esp_encrypt(HostTeam<32>(), a.keys, placed.data(), length, 0);
  EXPECT_FALSE(esp_decrypt(HostTeam<32>(), a.keys, placed.data(), length, 0));
  EXPECT_EQ(to_hex(packet), to_hex(placed.bytes()));
}

TEST(ESPBodies, NoAssociation) {
  const ESPKeys none{};
  EXPECT_FALSE(none.exists());
  const ByteVector packet(64, 0x11);
  PlacedBytes placed(packet, 0);
  esp_encrypt(HostTeam<32>(), none, placed.data(), 64, 0);
  esp_authenticate(none, placed.data(), 64, 0);
  EXPECT_FALSE(esp_verify(none, placed.data(), 64, 0));
  EXPECT_FALSE(esp_decrypt(HostTeam<32>(), none, placed.data(), 64, 0));
  ESPJob job = {placed.data(), 64, 0, &none, nullptr};
  test_library().seal(&job, 1);
  EXPECT_FALSE(job.good);
  test_library().open(&job, 1);
  EXPECT_FALSE(job.good);
  EXPECT_EQ(to_hex(packet), to_hex(placed.bytes()));
}

/// Jumbo frames, and packets as long as IP allows; one byte more does not fit.
TEST(ESPBodies, LongPackets) {
  std::mt19937 random(7);
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    const TestAssociation a(cipher, integrity, random);
    const uint32_t most = (ESPKeys::kLongest - a.keys.overhead()) / a.keys.block * a.keys.block;
    EXPECT_FALSE(a.keys.fits(ESPKeys::kLongest + 1));
    for (const uint32_t payload : {8960u, most}) compare(a, random_bytes(random, a.keys.overhead() + payload), 0, 4);
  }
}

std::string refused(const ESPKeyMaterial& material) {
  ESPKeys keys;
  ESPHostKeys host;
  std::memset(&keys, 0xff, sizeof(keys));
  Errors errors;
  EXPECT_FALSE(make_keys(material, keys, host, errors).ok());
  EXPECT_FALSE(keys.exists());
  return errors.str();
}

TEST(ESPKeyMaterial, WrongKeys) {
  const ByteVector key(64);
  const auto of = [&](size_t n) { return std::span(key).first(n); };
  EXPECT_EQ(refused({Cipher::kAES128CTR, Integrity::kHMACSHA1, of(16), of(20)}),
            "the key of AES-128-CTR has 16 bytes and a salt of 4, together 20, not 16\n");
  EXPECT_EQ(refused({Cipher::kAES256GCM, Integrity::kNone, of(32), of(0)}),
            "the key of AES-256-GCM has 32 bytes and a salt of 4, together 36, not 32\n");
  EXPECT_EQ(refused({Cipher::kAES128CBC, Integrity::kHMACSHA1, of(20), of(20)}),
            "the key of AES-128-CBC has 16 bytes, not 20\n");
  EXPECT_EQ(refused({Cipher::kAES256CBC, Integrity::kHMACSHA1, of(16), of(20)}),
            "the key of AES-256-CBC has 32 bytes, not 16\n");
  EXPECT_EQ(refused({Cipher::k3DESCBC, Integrity::kHMACSHA256, of(16), of(32)}),
            "the key of 3DES-CBC has 24 bytes, not 16\n");
  EXPECT_EQ(refused({Cipher::kNull, Integrity::kHMACSHA1, of(1), of(20)}), "the key of NULL has 0 bytes, not 1\n");
  EXPECT_EQ(refused({Cipher::kAES128CTR, Integrity::kHMACSHA1, of(20), of(16)}),
            "the key of HMAC-SHA1-96 has 20 bytes, not 16\n");
  EXPECT_EQ(refused({Cipher::kAES128CTR, Integrity::kHMACSHA256, of(20), of(20)}),
            "the key of HMAC-SHA-256-128 has 32 bytes, not 20\n");
  EXPECT_EQ(refused({Cipher::kAES128GCM, Integrity::kNone, of(20), of(20)}),
            "the key of no integrity has 0 bytes, not 20\n");
  EXPECT_EQ(refused({Cipher::kAES128GCM, Integrity::kHMACSHA1, of(20), of(20)}),
            "AES-128-GCM has an integrity of its own and takes no HMAC-SHA1-96\n");
  EXPECT_EQ(refused({Cipher::kAES128CTR, Integrity::kNone, of(20), of(0)}),
            "AES-128-CTR needs HMAC-SHA1-96 or HMAC-SHA-256-128\n");
  EXPECT_EQ(refused({Cipher::kNull, Integrity::kNone, of(0), of(0)}), "NULL needs HMAC-SHA1-96 or HMAC-SHA-256-128\n");
  // Both mistakes at once.
  EXPECT_EQ(refused({Cipher::kAES256CTR, Integrity::kHMACSHA256, of(35), of(31)}),
            "the key of AES-256-CTR has 32 bytes and a salt of 4, together 36, not 35\n"
            "the key of HMAC-SHA-256-128 has 32 bytes, not 31\n");
}

TEST(ESPKeyMaterial, Wiped) {
  std::mt19937 random(8);
  for (const auto [cipher, integrity] : kAllAlgorithms) {
    TestAssociation a(cipher, integrity, random);
    EXPECT_TRUE(a.keys.exists());
    wipe(a.keys);
    wipe(a.host);
    const auto* const keys = reinterpret_cast<const uint8_t*>(&a.keys);
    const auto* const host = reinterpret_cast<const uint8_t*>(&a.host);
    EXPECT_TRUE(std::all_of(keys, keys + sizeof(a.keys), [](uint8_t byte) { return byte == 0; }));
    EXPECT_TRUE(std::all_of(host, host + sizeof(a.host), [](uint8_t byte) { return byte == 0; }));
  }
}

}  // namespace
}  // namespace headrace
