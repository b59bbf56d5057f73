#pragma once
/// \file
/// A rule in the language of Snort and Suricata, read and checked.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "headrace/ip_protocol.hh"
#include "tables/regex/pcre_expression.hh"
#include "tables/rules/interval_set.hh"

namespace headrace::rules {

using ip_protocol::kIcmp, ip_protocol::kIcmp6, ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kSctp;

__extension__ using Address6 = unsigned __int128;

struct AddressSet {
  IntervalSet<uint32_t> v4;  // host order
  IntervalSet<Address6> v6;

  static AddressSet all() { return {IntervalSet<uint32_t>::all(), IntervalSet<Address6>::all()}; }
  bool empty() const { return v4.empty() && v6.empty(); }
  bool is_all() const { return v4.is_all() && v6.is_all(); }
};
using PortSet = IntervalSet<uint16_t>;

/// What a rule's action says about a packet that it matches. All but kPass are alerts; whether such packets are dropped
/// is for the configuration to say.
enum class Action : uint8_t { kAlert, kLog, kPass, kDrop, kReject };

/// Whose packets a rule looks at.
enum class Protocol : uint8_t { kIp, kIp4, kIp6, kTcp, kUdp, kTcpOrUdp, kSctp, kIcmp, kIcmp4, kIcmp6 };

/// Whether a packet of an IP version that carries `protocol` is one of those.
inline bool is_of(Protocol which, int version, uint8_t protocol) {
  const bool icmp = protocol == (version == 4 ? kIcmp : kIcmp6);
  switch (which) {
    case Protocol::kIp:
      return true;
    case Protocol::kIp4:
      return version == 4;
    case Protocol::kIp6:
      return version == 6;
    case Protocol::kTcp:
      return protocol == kTcp;
    case Protocol::kUdp:
      return protocol == kUdp;
    case Protocol::kTcpOrUdp:
      return protocol == kTcp || protocol == kUdp;
    case Protocol::kSctp:
      return protocol == kSctp;
    case Protocol::kIcmp:
      return icmp;
    case Protocol::kIcmp4:
      return version == 4 && icmp;
    case Protocol::kIcmp6:
      return version == 6 && icmp;
  }
  return false;
}

/// The bytes that a content or a regular expression is looked for in. Rules with kOther are read but do not run.
enum class Buffer : uint8_t { kPayload, kOther };

/// Bytes that a payload must have, or must not. Positions count from the beginning of the buffer, or for a relative
/// content from the end of the match before it.
struct Content {
  std::string bytes;  // lower case with `nocase`
  Buffer buffer = Buffer::kPayload;
  bool negated = false;
  bool nocase = false;
  bool relative = false;
  /// `fast_pattern:only`: it may be anywhere, and is no match that another content could be relative to.
  bool anywhere = false;
  bool ends_with = false;
  /// The match begins here or later: `offset`, or `distance`, which may be negative.
  int32_t from = 0;
  /// The match lies within this many bytes from there: `depth` or `within`. -1: no bound.
  int32_t room = -1;
};

/// `pcre`.
struct Regex {
  PcreExpression expression;
  std::string text;  // as the rule has it
  Buffer buffer = Buffer::kPayload;
  bool negated = false;
  bool relative = false;
};

/// `isdataat`.
struct DataAt {
  uint32_t offset = 0;
  bool negated = false;
  bool relative = false;
};

using Step = std::variant<Content, Regex, DataAt>;

/// A number in a packet that a rule looks at.
enum class Field : uint8_t {
  kPayloadLength,
  kTtl,
  kTos,
  kIpId,
  kIpProtocol,
  kFragmentBits,    // reserved 4, don't fragment 2, more fragments 1
  kFragmentOffset,  // in units of 8 bytes
  kIpOptions,       // a bit of IpOptionBit for each that is there
  kTcpFlags,
  kTcpSequence,
  kTcpAcknowledgment,
  kTcpWindow,
  kIcmpType,
  kIcmpCode,
  kIcmpId,
  kIcmpSequence,
  kSameAddresses,  // 1: source and destination are the same
};

/// Bits of Field::kIpOptions.
enum IpOptionBit : uint32_t {
  kOptionEnd = 1,
  kOptionNop = 2,
  kOptionRecordRoute = 4,
  kOptionTimestamp = 8,
  kOptionSecurity = 16,
  kOptionExtendedSecurity = 32,
  kOptionLooseRoute = 64,
  kOptionStrictRoute = 128,
  kOptionStreamId = 256,
  kOptionCipso = 512,
  kOptionRouterAlert = 1024,
  kOptionQuickStart = 2048,
  kOptionOther = 4096,
};

/// A condition on a field. A packet that has no such field does not meet it.
struct FieldTest {
  enum class Compare : uint8_t {
    kWithin,     // a <= v <= b
    kNotWithin,  //
    kEqualBits,  // (v & b) == a
    kAllBits,    // (v & b & a) == a
    kAnyBits,    // (v & b & a) != 0
    kNotAllBits  // (v & b & a) != a
  };
  Field field;
  Compare compare = Compare::kWithin;
  uint32_t a = 0;
  uint32_t b = 0;

  bool holds(uint32_t v) const {
    switch (compare) {
      case Compare::kWithin:
        return v >= a && v <= b;
      case Compare::kNotWithin:
        return v < a || v > b;
      case Compare::kEqualBits:
        return (v & b) == a;
      case Compare::kAllBits:
        return (v & b & a) == a;
      case Compare::kAnyBits:
        return (v & b & a) != 0;
      case Compare::kNotAllBits:
        return (v & b & a) != a;
    }
    return false;
  }
};

struct Rule {
  Action action = Action::kAlert;
  Protocol protocol = Protocol::kIp;
  std::shared_ptr<const AddressSet> src, dst;
  std::shared_ptr<const PortSet> sports, dports;
  bool both_ways = false;

  uint32_t sid = 0;
  uint32_t gid = 1;
  uint32_t rev = 0;
  uint32_t priority = 3;
  std::string msg;
  std::string classtype;
  /// The description of the class, or its name where no file explains it.
  std::string category;

  /// `flow` asks for an established connection. Of that a single packet shows one thing: a TCP segment with SYN is not
  /// part of one.
  bool established = false;
  /// It has a `flow` of which more than a single packet shows would have to be known.
  bool flow_ignored = false;

  std::vector<FieldTest> tests;
  std::vector<Step> steps;

  /// The literal that a packet must contain for the rule to match at all: a part of the content in `steps[fast_step]`.
  /// -1: there is none.
  int fast_step = -1;
  uint32_t fast_offset = 0;
  uint32_t fast_length = 0;
  /// A payload that contains the literal meets all steps.
  bool fast_is_all = false;

  std::string file;
  int line = 0;

  /// Whether it may match packets of IP that carry a protocol.
  bool is_about(uint8_t carried) const {
    if (!is_of(protocol, 4, carried) && !is_of(protocol, 6, carried)) return false;
    return std::all_of(tests.begin(), tests.end(),
                       [&](const FieldTest& test) { return test.field != Field::kIpProtocol || test.holds(carried); });
  }

  const Content& fast_content() const { return std::get<Content>(steps[static_cast<size_t>(fast_step)]); }
  std::string fast_literal() const { return fast_content().bytes.substr(fast_offset, fast_length); }
};

/// A line that is not run.
struct RefusedRule {
  std::string file;
  int line = 0;
  uint32_t sid = 0;  // 0: not known
  std::string reason;
  /// The rule is well formed, but asks for what is not supported; otherwise it is wrong.
  bool unsupported = false;

  /// "file:line: reason"
  std::string text() const { return file + ":" + std::to_string(line) + ": " + reason; }
};

}  // namespace headrace::rules
