#include "io/linux/partial_checksum.hh"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace headrace::io {
namespace {

using Bytes = std::vector<uint8_t>;

uint32_t sum(const uint8_t* at, size_t length) {
  uint32_t total = 0;
  for (size_t i = 0; i < length; ++i) total += i % 2 ? at[i] : at[i] << 8;
  while (total >> 16) total = (total & 0xffff) + (total >> 16);
  return total;
}

struct Kind {
  bool ip6 = false;
  bool tcp = false;
  int tags = 0;
  size_t payload = 100;
};

struct Frame {
  Bytes bytes;
  size_t ip, transport, field;

  uint32_t pseudo_sum(bool ip6) const {
    const size_t length = bytes.size() - transport;
    uint8_t rest[4] = {0, bytes[ip6 ? ip + 6 : ip + 9], static_cast<uint8_t>(length >> 8),
                       static_cast<uint8_t>(length)};
    const uint32_t addresses = ip6 ? sum(&bytes[ip + 8], 32) : sum(&bytes[ip + 12], 8);
    const uint32_t total = addresses + sum(rest, 4);
    return (total & 0xffff) + (total >> 16);
  }
  void set_field(uint32_t value) {
    bytes[field] = static_cast<uint8_t>(value >> 8);
    bytes[field + 1] = static_cast<uint8_t>(value);
  }
  /// The receiver's test: the sum over everything is all ones.
  bool right(bool ip6) const {
    const uint32_t total = pseudo_sum(ip6) + sum(&bytes[transport], bytes.size() - transport);
    return ((total & 0xffff) + (total >> 16)) == 0xffff;
  }
};

/// A frame with an unfinished checksum, as Linux leaves it.
Frame unfinished(const Kind& kind) {
  Frame f;
  f.bytes.assign(12, 2);
  for (int i = 0; i < kind.tags; ++i) f.bytes.insert(f.bytes.end(), {0x81, 0, 0, 5});
  const size_t header = kind.tcp ? 20 : 8, length = header + kind.payload;
  const auto protocol = static_cast<uint8_t>(kind.tcp ? 6 : 17);
  const auto high = [](size_t n) { return static_cast<uint8_t>(n >> 8); };
  const auto low = [](size_t n) { return static_cast<uint8_t>(n); };
  if (kind.ip6) {
    f.bytes.insert(f.bytes.end(), {0x86, 0xdd});
    f.ip = f.bytes.size();
    f.bytes.insert(f.bytes.end(), {0x60, 0, 0, 0, high(length), low(length), protocol, 64});
    for (int i = 0; i < 32; ++i) f.bytes.push_back(static_cast<uint8_t>(7 * i));
  } else {
    f.bytes.insert(f.bytes.end(), {8, 0});
    f.ip = f.bytes.size();
    f.bytes.insert(
        f.bytes.end(),
        {0x45, 0, high(20 + length), low(20 + length), 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 168,
         200,  9});
  }
  f.transport = f.bytes.size();
  f.field = f.transport + (kind.tcp ? 16 : 6);
  f.bytes.resize(f.transport + length);
  for (size_t i = f.transport; i < f.bytes.size(); ++i) f.bytes[i] = static_cast<uint8_t>(i * 31);
  f.set_field(f.pseudo_sum(kind.ip6));
  return f;
}

TEST(PartialChecksum, IsFinishedWhereverItIs) {
  for (const bool ip6 : {false, true})
    for (const bool tcp : {false, true})
      for (const int tags : {0, 1, 2})
        for (const size_t payload : {0, 1, 2, 3, 100, 1401}) {
          const Kind kind{ip6, tcp, tags, payload};
          Frame f = unfinished(kind), exact = f;
          EXPECT_TRUE(finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size())));
          EXPECT_TRUE(f.right(ip6)) << ip6 << tcp << tags << ' ' << payload;
          const auto start = static_cast<uint32_t>(exact.transport);
          EXPECT_TRUE(finish_checksum(exact.bytes.data(), static_cast<uint32_t>(exact.bytes.size()), start,
                                      static_cast<uint32_t>(exact.field - exact.transport)));
          EXPECT_EQ(exact.bytes, f.bytes);
          // And once more: it is right, so nothing changes.
          EXPECT_FALSE(finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size())));
          EXPECT_EQ(exact.bytes, f.bytes);
        }
}

TEST(PartialChecksum, WhatIsRightOrWrongOtherwiseStays) {
  Frame f = unfinished({});
  finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size()));
  f.bytes.back() ^= 1;  // damaged on the way: the receiver shall notice
  const Bytes before = f.bytes;
  EXPECT_FALSE(finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size())));
  EXPECT_EQ(f.bytes, before);
  f.set_field(0);  // UDP without a checksum
  EXPECT_FALSE(finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size())));
}

TEST(PartialChecksum, FragmentsAndCutFramesStay) {
  Frame f = unfinished({});
  f.bytes[f.ip + 6] = 0x20;
  EXPECT_FALSE(finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size())));
  f = unfinished({});
  for (uint32_t length = 0; length < f.bytes.size(); ++length) {
    // In memory of its own, so that a look beyond it is noticed.
    Bytes part(f.bytes.begin(), f.bytes.begin() + length);
    EXPECT_FALSE(finish_partial_checksum(part.data(), length));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), f.bytes.begin()));
  }
  f = unfinished({.ip6 = true});
  for (uint32_t length = 0; length < f.bytes.size(); ++length) {
    Bytes part(f.bytes.begin(), f.bytes.begin() + length);
    EXPECT_FALSE(finish_partial_checksum(part.data(), length));
  }
  EXPECT_FALSE(finish_checksum(f.bytes.data(), 40, 34, 6));
  EXPECT_TRUE(finish_checksum(f.bytes.data(), 42, 34, 6));
}

TEST(PartialChecksum, ASumOfZeroIsStoredAsOnes) {
  Frame f = unfinished({.payload = 2});
  // The last two bytes make the whole sum 0xffff, whose complement would be 0: no checksum.
  f.bytes[f.bytes.size() - 2] = f.bytes[f.bytes.size() - 1] = 0;
  const uint32_t rest = 0xffff - sum(&f.bytes[f.transport], f.bytes.size() - f.transport);
  f.bytes[f.bytes.size() - 2] = static_cast<uint8_t>(rest >> 8);
  f.bytes[f.bytes.size() - 1] = static_cast<uint8_t>(rest);
  EXPECT_TRUE(finish_partial_checksum(f.bytes.data(), static_cast<uint32_t>(f.bytes.size())));
  EXPECT_EQ(f.bytes[f.field], 0xff);
  EXPECT_EQ(f.bytes[f.field + 1], 0xff);
}

}  // namespace
}  // namespace headrace::io
