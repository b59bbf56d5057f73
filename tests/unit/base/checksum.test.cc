#include "headrace/checksum.hh"

#include <gtest/gtest.h>

#include "support/test_router.hh"

namespace headrace {
namespace {

using testing::from_hex;

TEST(Checksum, ExampleOfRfc1071) {
  const std::string bytes = from_hex("0001 f203 f4f5 f6f7");
  EXPECT_EQ(internet_checksum(bytes.data(), bytes.size()), static_cast<uint16_t>(~0xddf2));
}

TEST(Checksum, LengthsThatAreNoMultipleOfEight) {
  std::string bytes;
  for (int i = 0; i < 65; ++i) {
    // The definition, word by word.
    uint32_t sum = 0;
    for (int j = 0; j < i; j += 2)
      sum += static_cast<uint8_t>(bytes[j]) << 8 | (j + 1 < i ? static_cast<uint8_t>(bytes[j + 1]) : 0);
    while (sum >> 16) sum = (sum >> 16) + (sum & 0xffff);
    EXPECT_EQ(internet_checksum(bytes.data(), bytes.size()), static_cast<uint16_t>(~sum)) << i;
    bytes += static_cast<char>(0xff - 7 * i);
  }
}

TEST(Checksum, HeaderWithItsChecksumSumsToZero) {
  const std::string good = from_hex("45000024 12340000 4011392d 121a042c 121a0709");
  EXPECT_EQ(internet_checksum(good.data(), good.size()), 0);
}

TEST(Checksum, UdpWithPseudoHeader) {
  std::string bytes = from_hex("45000024 12340000 4011392d 121a042c 121a0709 03e807d0 0010075d 7061796c6f616421");
  auto& ip = *reinterpret_cast<Ip4Header*>(bytes.data());
  EXPECT_EQ(transport_checksum(ip, bytes.data() + 20, 16), 0);
  bytes[27] = bytes[26] = 0;
  EXPECT_EQ(transport_checksum(ip, bytes.data() + 20, 16), 0x075d);
}

TEST(Checksum, PseudoHeaderHasTheEndOfASourceRoute) {
  std::string bytes = from_hex("48000020 00000000 40110000 01000001 02000002 830b04 03000003 04000004 00");
  auto& ip = *reinterpret_cast<Ip4Header*>(bytes.data());
  EXPECT_EQ(final_destination(ip).unparse(), "4.0.0.4");
  bytes[22] = 12;  // the pointer is behind the list: the route has been followed to its end
  EXPECT_EQ(final_destination(ip).unparse(), "2.0.0.2");
  bytes[22] = 8;
  bytes[21] = 13;  // longer than the header
  EXPECT_EQ(final_destination(ip).unparse(), "2.0.0.2");
}

}  // namespace
}  // namespace headrace
