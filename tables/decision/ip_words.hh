#pragma once
/// \file
/// What single words mean in the patterns of IPFilter and IPClassifier.

#include <cstdint>
#include <headrace/args.hh>
#include <map>
#include <string>
#include <string_view>

#include "headrace/ip_protocol.hh"

namespace headrace::decision {

using ip_protocol::kIcmp, ip_protocol::kTcp, ip_protocol::kUdp;
/// IP protocols beyond the real ones, numbered as Click does.
inline constexpr int kUnknownProtocol = -1;
inline constexpr int kTcpOrUdp = 256;
inline constexpr int kAnyTransport = 258;
inline constexpr int kPayload = 259;

/// A field of the IP header, or of the header behind it.
struct IpField {
  int protocol = 0;  // which transport header; 0: the IP header
  int bit = 0;       // where it begins
  int bits = 0;      // how long it is, up to 32; it lies within one word

  bool operator==(const IpField&) const = default;
};

/// What a primitive is about, and what its value is.
struct IpType {
  enum Kind : uint8_t {
    kNone,
    kInteger,
    kHost,
    kNet,
    kEther,
    kProtocol,
    kPort,
    kTcpOption,
    kFragment,
    kUnfragmented,
    kEct,
    kCe,
    kField
  };

  Kind kind = kNone;
  IpField field{};

  bool operator==(const IpType&) const = default;
  bool operator==(Kind other) const { return kind == other; }
};

inline constexpr IpType kIpVersion{IpType::kField, {0, 0, 4}};
inline constexpr IpType kIpHeaderLength{IpType::kField, {0, 4, 4}};
inline constexpr IpType kIpTos{IpType::kField, {0, 8, 8}};
inline constexpr IpType kIpDscp{IpType::kField, {0, 8, 6}};
inline constexpr IpType kIpLength{IpType::kField, {0, 16, 16}};
inline constexpr IpType kIpId{IpType::kField, {0, 32, 16}};
inline constexpr IpType kIpTtl{IpType::kField, {0, 64, 8}};
inline constexpr IpType kTcpWindow{IpType::kField, {6, 112, 16}};
inline constexpr IpType kIcmpType{IpType::kField, {1, 0, 8}};

/// Which end of a packet an address or port belongs to.
enum class Direction : uint8_t { kUnsaid, kSource, kDestination, kBoth, kEither };

/// As messages name them: "src ", "tcp", "src ip host".
std::string protocol_text(int protocol);
std::string type_text(const IpType& type, Direction direction = Direction::kUnsaid);

/// Looks words up, once each.
class IpWords {
 public:
  /// `scope` may be null.
  explicit IpWords(const NameScope* scope) : scope_(scope) {}

  struct Meaning {
    enum Kind : uint8_t {
      kUnknown,
      kSyntax,     // src, dst, ip, ether, not
      kType,       // host, port, ttl, ...: `type`
      kValue,      // of `type`: `value`
      kAmbiguous,  // or of a type that is not wanted: `problem`
    };
    Kind kind = kUnknown;
    IpType type{};
    uint32_t value = 0;
    std::string problem;
  };

  /// The meaning of `word` where a value of `type` is wanted and `protocol` is said; kNone and kUnknownProtocol leave
  /// it open.
  Meaning find(std::string_view word, const IpType& type, int protocol);

 private:
  /// Everything a word may stand for; -1 where it does not.
  struct Entry {
    int protocol = -1;
    int tcp_port = -1;
    int udp_port = -1;
    int tcp_option = -1;
    int icmp_type = -1;
  };
  const Entry& entry(std::string_view word);
  int port(std::string_view word, int protocol) const;

  const NameScope* scope_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace headrace::decision
