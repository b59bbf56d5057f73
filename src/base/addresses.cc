#include "headrace/addresses.hh"

#include <arpa/inet.h>

#include <optional>

#include "base/characters.hh"
#include "headrace/text.hh"

namespace headrace {
namespace {

/// The number of leading ones if no one follows a zero, else -1.
template <size_t N>
int ones_in_front(const std::array<uint8_t, N>& bytes) {
  int length = 0;
  size_t at = 0;
  while (at < N && bytes[at] == 0xff) ++at;
  length = static_cast<int>(at) * 8;
  if (at < N) {
    const int ones = std::countl_one(bytes[at]);
    if (static_cast<uint8_t>(bytes[at] << ones) != 0) return -1;
    length += ones;
    for (++at; at < N; ++at)
      if (bytes[at] != 0) return -1;
  }
  return length;
}

template <size_t N, typename F>
std::array<uint8_t, N> combine(const std::array<uint8_t, N>& a, const std::array<uint8_t, N>& b, F f) {
  std::array<uint8_t, N> result;
  for (size_t i = 0; i < N; ++i) result[i] = static_cast<uint8_t>(f(a[i], b[i]));
  return result;
}

}  // namespace

std::string IpAddress::unparse() const {
  const uint32_t value = host_order();
  return fmt::format("{}.{}.{}.{}", value >> 24, value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff);
}

std::string IpAddress::unparse_mask() const {
  const int length = prefix_length();
  return length >= 0 ? std::to_string(length) : unparse();
}

std::string IpPrefix::unparse() const { return address.unparse() + "/" + mask.unparse_mask(); }

Ip6Address Ip6Address::prefix_mask(int length) {
  Ip6Address mask;
  for (uint8_t& byte : mask.bytes_) {
    byte = length >= 8 ? 0xff : length <= 0 ? 0 : static_cast<uint8_t>(0xff << (8 - length));
    length -= 8;
  }
  return mask;
}

Ip6Address Ip6Address::v4_mapped(IpAddress address) {
  Ip6Address mapped;
  mapped.bytes_[10] = mapped.bytes_[11] = 0xff;
  address.copy_to(mapped.bytes_.data() + 12);
  return mapped;
}

int Ip6Address::prefix_length() const { return ones_in_front(bytes_); }

bool Ip6Address::is_v4_mapped() const { return *this == v4_mapped(embedded_v4()); }

std::string Ip6Address::unparse() const {
  char text[INET6_ADDRSTRLEN];
  // Cannot fail: the family is known and the buffer large enough.
  return inet_ntop(AF_INET6, bytes_.data(), text, sizeof text);
}

Ip6Address Ip6Address::operator&(const Ip6Address& other) const {
  return Ip6Address(combine(bytes_, other.bytes_, std::bit_and<int>()));
}

Ip6Address Ip6Address::operator|(const Ip6Address& other) const {
  return Ip6Address(combine(bytes_, other.bytes_, std::bit_or<int>()));
}

Ip6Address Ip6Address::operator~() const {
  return Ip6Address(combine(bytes_, bytes_, [](int a, int) { return ~a; }));
}

std::string Ip6Prefix::unparse() const { return fmt::format("{}/{}", address.unparse(), length); }

std::string EtherAddress::unparse() const {
  const auto& b = bytes_;
  return fmt::format("{:02X}-{:02X}-{:02X}-{:02X}-{:02X}-{:02X}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

std::string EtherAddress::unparse_colon() const {
  const auto& b = bytes_;
  return fmt::format("{:02X}:{:02X}:{:02X}:{:02X}:{:02X}:{:02X}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

int parse_leading_octets(std::string_view text, IpAddress& out) {
  uint8_t octets[4] = {};
  int count = 0;
  size_t at = 0;
  while (true) {
    int octet = 0;
    const size_t begin = at;
    for (; at < text.size() && lang::is_digit(text[at]); ++at) {
      octet = octet * 10 + (text[at] - '0');
      if (octet > 255) return 0;
    }
    if (at == begin) return 0;
    octets[count++] = static_cast<uint8_t>(octet);
    if (at == text.size()) break;
    if (text[at] != '.' || count == 4) return 0;
    ++at;
  }
  out = IpAddress::from_bytes(octets);
  return count;
}

bool parse(std::string_view text, IpAddress& out) {
  IpAddress address;
  if (parse_leading_octets(text, address) != 4) return false;
  out = address;
  return true;
}

bool parse_mask(std::string_view text, IpAddress& out) {
  if (const std::optional<int> length = whole_number(text, 32)) {
    out = IpAddress::prefix_mask(*length);
    return true;
  }
  return parse(text, out);
}

bool parse(std::string_view text, IpPrefix& out) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return false;
  IpPrefix prefix;
  const int octets = parse_leading_octets(text.substr(0, slash), prefix.address);
  if (octets == 0 || !parse_mask(text.substr(slash + 1), prefix.mask)) return false;
  // Bits of the mask that reach octets the user left out are more likely a slip than zeros meant.
  if (prefix.mask & ~IpAddress::prefix_mask(octets * 8)) return false;
  out = prefix;
  return true;
}

bool parse(std::string_view text, Ip6Address& out) {
  char terminated[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof terminated || text.find('\0') != std::string_view::npos) return false;
  terminated[text.copy(terminated, text.size())] = '\0';
  uint8_t bytes[16];
  if (inet_pton(AF_INET6, terminated, bytes) != 1) return false;
  out = Ip6Address::from_bytes(bytes);
  return true;
}

bool parse(std::string_view text, Ip6Prefix& out) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return false;
  Ip6Prefix prefix;
  if (!parse(text.substr(0, slash), prefix.address)) return false;
  const std::string_view behind = text.substr(slash + 1);
  if (const std::optional<int> length = whole_number(behind, 128)) {
    prefix.length = *length;
  } else {
    Ip6Address mask;
    if (!parse(behind, mask)) return false;
    prefix.length = mask.prefix_length();
    if (prefix.length < 0) return false;
  }
  out = prefix;
  return true;
}

bool parse(std::string_view text, EtherAddress& out) {
  std::array<uint8_t, 6> bytes{};
  char separator = 0;
  size_t at = 0;
  for (size_t group = 0; group < bytes.size(); ++group) {
    if (group > 0) {
      if (at == text.size() || (text[at] != ':' && text[at] != '-')) return false;
      if (separator != 0 && text[at] != separator) return false;
      separator = text[at++];
    }
    int digits = 0;
    for (; digits < 2 && at < text.size(); ++digits, ++at) {
      const int digit = hex_digit(text[at]);
      if (digit < 0) break;
      bytes[group] = static_cast<uint8_t>(bytes[group] << 4 | digit);
    }
    if (digits == 0) return false;
  }
  if (at != text.size()) return false;
  out = EtherAddress(bytes);
  return true;
}

bool parse_prefix_or_address(std::string_view text, IpPrefix& out) {
  IpAddress address;
  if (parse(text, address)) {
    out = IpPrefix::of(address, 32);
    return true;
  }
  return parse(text, out);
}

bool parse_prefix_or_address(std::string_view text, Ip6Prefix& out) {
  Ip6Address address;
  if (parse(text, address)) {
    out = {address, 128};
    return true;
  }
  return parse(text, out);
}

}  // namespace headrace
