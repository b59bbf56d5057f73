#pragma once
/// \file
/// Network addresses as values: IPv4, IPv6, Ethernet, and prefixes.
///
/// All types are trivially copyable. Addresses are stored in network order, as in a packet. The text format is Click's:
/// parse() reads what unparse() writes. The parse functions here accept numbers only; parse_argument() of
/// <headrace/args.hh> also resolves names (AddressInfo, devices), because it has a scope to look them up in.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

namespace headrace {

/// An IPv4 address, or a mask of its size.
class IpAddress {
 public:
  constexpr IpAddress() = default;
  static constexpr IpAddress from_host_order(uint32_t value) { return IpAddress(swap_if_little(value)); }
  static constexpr IpAddress from_network_order(uint32_t value) { return IpAddress(value); }
  static constexpr IpAddress from_octets(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    return from_host_order(uint32_t{a} << 24 | uint32_t{b} << 16 | uint32_t{c} << 8 | d);
  }
  /// From 4 bytes at `data`, which need not be aligned.
  static IpAddress from_bytes(const void* data) {
    IpAddress address;
    std::memcpy(&address.value_, data, sizeof address.value_);
    return address;
  }
  /// The mask with `length` leading ones; `length` is clamped to 0..32.
  static constexpr IpAddress prefix_mask(int length) {
    return from_host_order(length <= 0 ? 0 : length >= 32 ? ~uint32_t{0} : ~uint32_t{0} << (32 - length));
  }

  constexpr uint32_t host_order() const { return swap_if_little(value_); }
  constexpr uint32_t network_order() const { return value_; }
  /// Writes 4 bytes in network order.
  void copy_to(void* data) const { std::memcpy(data, &value_, sizeof value_); }

  /// For a mask: the number of leading ones, or -1 if the mask is not contiguous.
  constexpr int prefix_length() const {
    const uint32_t mask = host_order();
    const int ones = std::countl_one(mask);
    return mask == prefix_mask(ones).host_order() ? ones : -1;
  }
  constexpr bool is_multicast() const { return (host_order() & 0xf0000000u) == 0xe0000000u; }
  constexpr bool is_broadcast() const { return value_ == ~uint32_t{0}; }
  /// True unless the address is 0.0.0.0.
  constexpr explicit operator bool() const { return value_ != 0; }

  /// "18.26.4.9"
  std::string unparse() const;
  /// The mask as it is written after the slash of a prefix: "8" for 255.0.0.0, "255.0.255.0" if it is not contiguous.
  std::string unparse_mask() const;

  constexpr IpAddress operator&(IpAddress other) const { return IpAddress(value_ & other.value_); }
  constexpr IpAddress operator|(IpAddress other) const { return IpAddress(value_ | other.value_); }
  constexpr IpAddress operator^(IpAddress other) const { return IpAddress(value_ ^ other.value_); }
  constexpr IpAddress operator~() const { return IpAddress(~value_); }
  constexpr bool operator==(const IpAddress&) const = default;
  /// Numerical order: 1.0.0.2 < 2.0.0.1.
  constexpr std::strong_ordering operator<=>(const IpAddress& other) const {
    return host_order() <=> other.host_order();
  }

 private:
  constexpr explicit IpAddress(uint32_t value) : value_(value) {}
  static constexpr uint32_t swap_if_little(uint32_t value) {
    return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
  }

  uint32_t value_ = 0;
};

/// An IPv4 address with a mask, such as an interface (host bits set) or a route (host bits usually zero).
struct IpPrefix {
  IpAddress address;
  IpAddress mask;

  static constexpr IpPrefix of(IpAddress address, int length) { return {address, IpAddress::prefix_mask(length)}; }

  /// Number of ones in the mask, or -1 if the mask is not contiguous.
  constexpr int length() const { return mask.prefix_length(); }
  /// The address without its host bits.
  constexpr IpAddress network() const { return address & mask; }
  /// The address with all host bits set: the directed broadcast address.
  constexpr IpAddress broadcast() const { return address | ~mask; }
  /// The same prefix without host bits.
  constexpr IpPrefix normalized() const { return {network(), mask}; }
  constexpr bool contains(IpAddress other) const { return (other & mask) == network(); }
  /// "10.0.0.0/8", or "10.0.0.1/255.0.0.255" if the mask is not contiguous. Host bits are kept.
  std::string unparse() const;

  constexpr bool operator==(const IpPrefix&) const = default;
};

/// An IPv6 address (RFC 4291).
class Ip6Address {
 public:
  constexpr Ip6Address() = default;
  constexpr explicit Ip6Address(const std::array<uint8_t, 16>& bytes) : bytes_(bytes) {}
  static Ip6Address from_bytes(const void* data) {
    Ip6Address address;
    std::memcpy(address.bytes_.data(), data, sizeof address.bytes_);
    return address;
  }
  /// The mask with `length` leading ones; `length` is clamped to 0..128.
  static Ip6Address prefix_mask(int length);
  /// ::ffff:a.b.c.d
  static Ip6Address v4_mapped(IpAddress address);

  constexpr const std::array<uint8_t, 16>& bytes() const { return bytes_; }
  constexpr const uint8_t* data() const { return bytes_.data(); }
  void copy_to(void* data) const { std::memcpy(data, bytes_.data(), sizeof bytes_); }

  /// For a mask: the number of leading ones, or -1 if the mask is not contiguous.
  int prefix_length() const;
  constexpr bool is_multicast() const { return bytes_[0] == 0xff; }
  bool is_v4_mapped() const;
  /// The last four bytes.
  IpAddress embedded_v4() const { return IpAddress::from_bytes(bytes_.data() + 12); }
  /// True unless the address is "::".
  explicit operator bool() const { return *this != Ip6Address(); }

  /// RFC 5952 text; an embedded IPv4 address is written in dotted form at the end.
  std::string unparse() const;

  Ip6Address operator&(const Ip6Address& other) const;
  Ip6Address operator|(const Ip6Address& other) const;
  Ip6Address operator~() const;
  constexpr auto operator<=>(const Ip6Address&) const = default;

 private:
  std::array<uint8_t, 16> bytes_{};
};

/// An IPv6 address with a prefix length of 0 to 128.
struct Ip6Prefix {
  Ip6Address address;
  int length = 0;

  Ip6Address mask() const { return Ip6Address::prefix_mask(length); }
  Ip6Address network() const { return address & mask(); }
  bool contains(const Ip6Address& other) const { return (other & mask()) == network(); }
  /// "2001:db8::/32"; host bits are kept.
  std::string unparse() const;

  constexpr bool operator==(const Ip6Prefix&) const = default;
};

/// A 48-bit Ethernet address.
class EtherAddress {
 public:
  constexpr EtherAddress() = default;
  constexpr explicit EtherAddress(const std::array<uint8_t, 6>& bytes) : bytes_(bytes) {}
  static EtherAddress from_bytes(const void* data) {
    EtherAddress address;
    std::memcpy(address.bytes_.data(), data, sizeof address.bytes_);
    return address;
  }
  static constexpr EtherAddress broadcast() { return EtherAddress({0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); }

  constexpr const std::array<uint8_t, 6>& bytes() const { return bytes_; }
  constexpr const uint8_t* data() const { return bytes_.data(); }
  void copy_to(void* data) const { std::memcpy(data, bytes_.data(), sizeof bytes_); }

  /// A group address; the broadcast address is one.
  constexpr bool is_group() const { return bytes_[0] & 1; }
  constexpr bool is_broadcast() const { return *this == broadcast(); }
  /// Locally administered.
  constexpr bool is_local() const { return bytes_[0] & 2; }
  /// True unless the address is all zeros.
  constexpr explicit operator bool() const { return *this != EtherAddress(); }

  /// "00-01-02-03-04-05", Click's form.
  std::string unparse() const;
  /// "00:01:02:03:04:05"
  std::string unparse_colon() const;

  constexpr auto operator<=>(const EtherAddress&) const = default;

 private:
  std::array<uint8_t, 6> bytes_{};
};

static_assert(sizeof(IpAddress) == 4 && sizeof(Ip6Address) == 16 && sizeof(EtherAddress) == 6);

/// Parses the whole text as an address. Returns false and leaves `out` unchanged if it is not one. Surrounding space is
/// not allowed.
///
/// IPv4: four decimal octets.
bool parse(std::string_view text, IpAddress& out);
/// `address/length` or `address/mask`. Trailing octets of the address may be omitted if the mask does not cover them:
/// "18.26.4/24" is valid, "18.26.4/28" is not. Host bits are kept. A bare address is not a prefix.
bool parse(std::string_view text, IpPrefix& out);
/// The part of an IPv4 prefix after the slash: a length of 0 to 32, or a mask.
bool parse_mask(std::string_view text, IpAddress& out);
/// RFC 4291 text; the last four bytes may be written as an IPv4 address.
bool parse(std::string_view text, Ip6Address& out);
/// `address/length`, or `address/mask` with a contiguous mask.
bool parse(std::string_view text, Ip6Prefix& out);
/// Six groups of one or two hexadecimal digits, separated by `:` or by `-`.
bool parse(std::string_view text, EtherAddress& out);

/// Like parse(), but an address without a mask is a prefix of full length: 1.2.3.4 means 1.2.3.4/32.
bool parse_prefix_or_address(std::string_view text, IpPrefix& out);
bool parse_prefix_or_address(std::string_view text, Ip6Prefix& out);

/// Reads the octets before the slash of a prefix: 1 to 4 octets; missing ones are zero.
/// \return the number of octets, or 0 if `text` is something else
int parse_leading_octets(std::string_view text, IpAddress& out);

/// The address types of this file.
template <typename T>
concept AddressValue = std::is_same_v<T, IpAddress> || std::is_same_v<T, IpPrefix> || std::is_same_v<T, Ip6Address> ||
    std::is_same_v<T, Ip6Prefix> || std::is_same_v<T, EtherAddress>;

}  // namespace headrace

/// Multiplicative hashes: the low bits depend on every byte, so they also suit tables of 2^n buckets.
template <>
struct std::hash<headrace::IpAddress> {
  size_t operator()(headrace::IpAddress a) const noexcept {
    return static_cast<size_t>((a.network_order() * uint64_t{0x9e3779b97f4a7c15}) >> 16);
  }
};
template <>
struct std::hash<headrace::EtherAddress> {
  size_t operator()(const headrace::EtherAddress& a) const noexcept {
    uint64_t value = 0;
    std::memcpy(&value, a.data(), 6);
    return static_cast<size_t>((value * uint64_t{0x9e3779b97f4a7c15}) >> 16);
  }
};
template <>
struct std::hash<headrace::Ip6Address> {
  size_t operator()(const headrace::Ip6Address& a) const noexcept {
    uint64_t words[2];
    std::memcpy(words, a.data(), sizeof words);
    return static_cast<size_t>(((words[0] ^ std::rotl(words[1], 29)) * uint64_t{0x9e3779b97f4a7c15}) >> 16);
  }
};

/// `fmt::format("{}", address)` writes unparse(). There are no format specifiers.
template <headrace::AddressValue T>
struct fmt::formatter<T> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const T& address, Context& context) const {
    const std::string text = address.unparse();
    return std::copy(text.begin(), text.end(), context.out());
  }
};
