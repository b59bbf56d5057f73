#include "tables/decision/ip_primitive.hh"

#include <bit>
#include <vector>

namespace headrace::decision {

namespace {

using ip_protocol::kDccp;
constexpr uint32_t kEcnMask = 3;  // RFC 3168, in the TOS byte

/// Words of the IP header: the fragment word, the protocol's word, the addresses. The protocol is 16 bits up in its
/// word.
constexpr int kFragmentWord = kNetworkBase + 4;
constexpr int kProtocolWord = kNetworkBase + 8;
constexpr int kSourceWord = kNetworkBase + 12;
constexpr int kDestinationWord = kNetworkBase + 16;
constexpr uint32_t kFragmentOffset = 0x1fff;
constexpr uint32_t kFragmentOffsetOrMore = 0x3fff;

Expression test(int offset, uint32_t value, uint32_t mask) {
  Test test;
  test.offset = static_cast<uint16_t>(offset);
  test.mask = mask;
  test.value = value & mask;
  return Expression(test);
}

Expression negated(Expression expression) {
  expression.negate_comparison();
  return expression;
}

Expression protocol_is(int protocol) {
  const auto one = [](uint32_t number) { return test(kProtocolWord, number << 16, 0xff << 16); };
  if (protocol == kTcpOrUdp) return Expression::any({one(kTcp), one(kUdp)});
  return one(static_cast<uint32_t>(protocol));
}

/// `(word & mask) > number` as tests for equality.
///
/// From the top: while the number's highest bits are zero, any one bit in their place makes the word greater; while
/// they are one, they must be one in the word, too. What is left goes on with the lower bits.
Expression greater(int offset, int shift, uint32_t number, uint32_t mask) {
  number &= mask;
  if (number >= mask) return Expression::constant(false);
  const bool high = number > mask >> 1;
  const uint32_t different = high ? ~(number + 1) & mask : number;
  const uint32_t upper = mask & ~static_cast<uint32_t>((uint64_t{1} << std::bit_width(different)) - 1);
  Expression first = test(offset, (high ? upper : 0) << shift, upper << shift);
  if (!high) first.negate_comparison();
  const uint32_t rest = mask & ~upper;
  if ((number & rest) >= rest) return first;
  std::vector<Expression> parts{std::move(first), greater(offset, shift, number & rest, rest)};
  return high ? Expression::all(std::move(parts)) : Expression::any(std::move(parts));
}

/// The number that `(word & mask) > number` may use in place of one with bits outside the mask.
uint32_t number_within(uint32_t number, uint32_t mask) {
  const uint32_t outside = number & ~mask;
  if (outside == 0) return number;
  const uint32_t below = static_cast<uint32_t>((uint64_t{1} << (std::bit_width(outside) - 1)) - 1);
  return (number | below) & mask;
}

}  // namespace

void IpPrimitive::set_type(const IpType& wanted, PatternErrors& errors) {
  if (type.kind != IpType::kNone) errors.error("type specified twice");
  type = wanted;
}

void IpPrimitive::set_direction(Direction wanted, PatternErrors& errors) {
  if (direction != Direction::kUnsaid) errors.error("'src' or 'dst' specified twice");
  direction = wanted;
}

void IpPrimitive::set_protocol(int wanted, PatternErrors& errors) {
  if (protocol != kUnknownProtocol && protocol != wanted) errors.error("transport protocol specified twice");
  protocol = wanted;
}

std::string IpPrimitive::relation_text() const {
  switch (relation) {
    case Relation::kGreater:
      return negated ? "<=" : ">";
    case Relation::kLess:
      return negated ? ">=" : "<";
    default:
      return negated ? "!=" : "=";
  }
}

bool IpPrimitive::fail(const char* problem, PatternErrors& errors) const {
  errors.error("'{}': {}", type_text(type, direction), problem);
  return false;
}

bool IpPrimitive::check(const IpPrimitive& before, PatternErrors& errors) {
  if (!sound) return false;
  const bool said_direction = direction != Direction::kUnsaid;
  if (!complete_type(before, errors)) return false;
  if (header == Header::kUnsaid) header = value.type == IpType::kEther ? Header::kEther : Header::kIp;
  if (header == Header::kEther && type == IpType::kHost) type = {IpType::kEther};
  if (!check_type(errors)) return false;
  if (type == IpType::kHost || type == IpType::kPort || type == IpType::kEther) {
    if (direction == Direction::kUnsaid) direction = Direction::kEither;
  } else if (said_direction) {
    errors.warning("'{}': 'src' or 'dst' ignored", type_text(type, direction));
  }
  return true;
}

/// Finds the type of a primitive that does not say it, from its value or from the primitive before.
bool IpPrimitive::complete_type(const IpPrimitive& before, PatternErrors& errors) {
  if (type.kind != IpType::kNone) return true;
  type = value.type;
  if (type == IpType::kInteger) type = before.type;
  switch (type.kind) {
    case IpType::kNone:
      if (value.type == IpType::kInteger) break;
      if (protocol == kUnknownProtocol) {
        errors.error("partial directive");
        return false;
      }
      type = {IpType::kProtocol};
      return true;
    case IpType::kPort:
      if (protocol == kUnknownProtocol) protocol = before.protocol;
      if (direction == Direction::kUnsaid) direction = before.direction;
      return true;
    case IpType::kField:
      if (type.field.protocol != 0 && protocol == kUnknownProtocol) protocol = type.field.protocol;
      return true;
    case IpType::kProtocol:
      return true;
    default:
      if (value.type == IpType::kInteger) break;
      if (direction == Direction::kUnsaid) direction = before.direction;
      return true;
  }
  errors.error("specify header field or 'port'");
  return false;
}

bool IpPrimitive::check_type(PatternErrors& errors) {
  if (header == Header::kEther && type != IpType::kEther) {
    return fail(type == IpType::kHost || type == IpType::kNet ? "address missing" : "ip only", errors);
  }
  const bool number_or_none = value.type == IpType::kNone || value.type == IpType::kInteger;
  switch (type.kind) {
    case IpType::kHost:
    case IpType::kNet:
      return check_address(type, errors);
    case IpType::kEther:
      return check_address(type, errors);
    case IpType::kProtocol:
      return check_protocol(errors);
    case IpType::kPort:
      return check_port(errors);
    case IpType::kTcpOption:
      return check_tcp_option(errors);
    case IpType::kEct:
      if (!number_or_none) return fail("value missing", errors);
      if (value.type == IpType::kNone) {
        value.number = 0;
        negated = true;
      }
      if (!check_bits(kEcnMask, errors)) return false;
      type = kIpTos;
      return true;
    case IpType::kCe:
      if (value.type != IpType::kNone || mask) return fail("value not supported", errors);
      type = kIpTos;
      number_ = mask_ = kEcnMask;
      return true;
    case IpType::kFragment:
    case IpType::kUnfragmented:
      if (value.type != IpType::kNone || mask) return fail("value not supported", errors);
      if (type == IpType::kUnfragmented) negated = true;
      type = {IpType::kFragment};
      return true;
    default:
      if (value.type != IpType::kInteger && value.type != type) return fail("value missing", errors);
      return check_bits(type.field.bits == 32 ? UINT32_MAX : (1u << type.field.bits) - 1, errors);
  }
}

bool IpPrimitive::check_address(const IpType& wanted, PatternErrors& errors) {
  if (value.type != wanted) return fail("address missing", errors);
  if (relation != Relation::kEqual) return fail("operator not supported", errors);
  if (wanted == IpType::kEther) {
    if (mask && mask->type != IpType::kEther) return fail("bad mask", errors);
    ether_mask_ = mask ? mask->ether : EtherAddress::broadcast();
    return true;
  }
  if (mask && mask->type == IpType::kEther) return fail("bad mask", errors);
  mask_ = wanted == IpType::kNet ? value.net_mask : UINT32_MAX;
  if (mask) mask_ = mask->number;
  number_ = value.number;
  type = {IpType::kHost};
  return true;
}

bool IpPrimitive::check_protocol(PatternErrors& errors) {
  if (value.type == IpType::kNone) {
    if (protocol == kUnknownProtocol) return fail("value missing", errors);
    value.number = static_cast<uint32_t>(protocol);
  } else if (value.type != IpType::kInteger && value.type != IpType::kProtocol) {
    return fail("value missing", errors);
  } else if (protocol != kUnknownProtocol && protocol != static_cast<int>(value.number)) {
    return fail("specified twice", errors);
  }
  protocol = kUnknownProtocol;
  if (value.type != IpType::kInteger && value.number >= 256) {
    if (relation != Relation::kEqual || negated || mask) {
      errors.error("'{}': operator or mask not supported", protocol_text(static_cast<int>(value.number)));
      return false;
    }
    protocol = static_cast<int>(value.number);
    return true;
  }
  if (!check_bits(0xff, errors)) return false;
  if (relation == Relation::kEqual && !value.last && mask_ == 0xff && !negated) protocol = static_cast<int>(number_);
  return true;
}

bool IpPrimitive::check_port(PatternErrors& errors) {
  if (value.type != IpType::kInteger && value.type != IpType::kPort) return fail("value missing", errors);
  if (protocol == kUnknownProtocol) protocol = kTcpOrUdp;
  if (protocol != kTcp && protocol != kUdp && protocol != kTcpOrUdp && protocol != kDccp) {
    errors.error("'port': bad protocol {}", protocol);
    return false;
  }
  return check_bits(0xffff, errors);
}

bool IpPrimitive::check_tcp_option(PatternErrors& errors) {
  if (value.type != IpType::kInteger && value.type != IpType::kTcpOption) return fail("value missing", errors);
  if (protocol == kUnknownProtocol) protocol = kTcp;
  if (protocol != kTcp) {
    errors.error("'tcp opt': bad protocol {}", protocol);
    return false;
  }
  if (relation != Relation::kEqual || negated || mask || value.last) {
    return fail("operator or mask not supported", errors);
  }
  if (value.number > 255) {
    errors.error("'tcp opt': value {} out of range", static_cast<int32_t>(value.number));
    return false;
  }
  number_ = mask_ = value.number;
  return true;
}

/// Checks a number and its mask against the largest number of their field.
bool IpPrimitive::check_bits(uint32_t bound, PatternErrors& errors) {
  if (mask && mask->type != IpType::kInteger) return fail("bad mask", errors);
  mask_ = mask ? mask->number : bound;
  if ((mask_ & bound) != mask_) {
    errors.error("'{}': mask out of range, bound 0x{:X}", type_text(type, direction), bound);
    return false;
  }
  number_ = value.number;
  if (relation != Relation::kEqual) return check_relation(errors);
  if (number_ > bound || (value.last && *value.last > bound)) {
    errors.error("'{}': out of range, bound {}", type_text(type, direction), bound);
    return false;
  }
  return true;
}

bool IpPrimitive::check_relation(PatternErrors& errors) {
  if (value.last) return fail("operator not supported", errors);
  const bool less = relation == Relation::kLess;
  if (less ? number_ == 0 || number_ > mask_ : number_ >= mask_) {
    const bool always = (less && number_ > mask_) != negated;
    errors.warning("relation '{} {}' is always {} (range 0-{})", relation_text(), number_, always ? "true" : "false",
                   mask_);
    // An empty mask tests for equality with zero, which holds.
    number_ = mask_ = 0;
    relation = Relation::kEqual;
    negated = !always;
    return true;
  }
  if (less) {
    // x < n is !(x > n - 1)
    --number_;
    relation = Relation::kGreater;
    negated = !negated;
  }
  number_ = number_within(number_, mask_);
  return true;
}

/// The relation, without its negation.
Expression IpPrimitive::compare(int offset, int shift, uint32_t number, uint32_t bits) const {
  if (relation == Relation::kGreater) return greater(offset, shift, number, bits);
  if (!value.last) return test(offset, number << shift, bits << shift);
  std::vector<Expression> limits;
  if (number > 0) limits.push_back(greater(offset, shift, number_within(number - 1, bits), bits));
  if (*value.last < bits)
    limits.push_back(decision::negated(greater(offset, shift, number_within(*value.last, bits), bits)));
  return Expression::all(std::move(limits));
}

/// Joins the tests of the packet's two ends as the direction says.
Expression IpPrimitive::compare_both(const Expression& source, const Expression& destination) const {
  Expression result;
  switch (direction) {
    case Direction::kSource:
      result = source;
      break;
    case Direction::kDestination:
      result = destination;
      break;
    case Direction::kBoth:
      result = Expression::all({source, destination});
      break;
    default:
      result = Expression::any({source, destination});
      break;
  }
  if (negated) result.negate_comparison();
  return result;
}

Expression IpPrimitive::compile_ether() const {
  const auto& address = value.ether.bytes();
  const auto& bits = ether_mask_.bytes();
  // Two bytes of padding before the header put both addresses on two words each.
  const auto two_words = [&](int offset, int first_byte) {
    std::vector<Expression> words;
    for (int word = 0; word < 2; ++word) {
      uint32_t number = 0, word_mask = 0;
      for (int i = 0; i < 4; ++i) {
        const int byte = 4 * word + i - first_byte;
        number = number << 8 | (byte >= 0 && byte < 6 ? address[byte] : 0);
        word_mask = word_mask << 8 | (byte >= 0 && byte < 6 ? bits[byte] : 0);
      }
      words.push_back(test(offset + 4 * word, number, word_mask));
    }
    return Expression::all(std::move(words));
  };
  return compare_both(two_words(kMacBase + 6, 0), two_words(0, kMacBase));
}

Expression IpPrimitive::compile_value() const {
  switch (type.kind) {
    case IpType::kHost:
      return compare_both(test(kSourceWord, number_, mask_), test(kDestinationWord, number_, mask_));
    case IpType::kEther:
      return compile_ether();
    case IpType::kPort:
      return compare_both(compare(kTransportBase, 16, number_, mask_), compare(kTransportBase, 0, number_, mask_));
    case IpType::kFragment: {
      const Expression whole = test(kFragmentWord, 0, kFragmentOffsetOrMore);
      return negated ? whole : decision::negated(whole);
    }
    case IpType::kTcpOption:
      return test(kTransportBase + 12, number_ << 16, mask_ << 16);
    default:
      break;
  }
  int offset = kProtocolWord;
  int shift = 16;
  if (type == IpType::kField) {
    offset = (type.field.protocol != 0 ? kTransportBase : kNetworkBase) + type.field.bit / 32 * 4;
    shift = 32 - (type.field.bit % 32 + type.field.bits);
  }
  Expression result = compare(offset, shift, number_, mask_);
  if (negated) result.negate_comparison();
  return result;
}

Expression IpPrimitive::compile() const {
  std::vector<Expression> parts;
  if (protocol != kUnknownProtocol && protocol <= kTcpOrUdp) parts.push_back(protocol_is(protocol));
  // Only the first fragment has the transport header.
  const bool transport =
      type == IpType::kPort || type == IpType::kTcpOption || (type == IpType::kField && type.field.protocol != 0);
  if (transport) parts.push_back(test(kFragmentWord, 0, kFragmentOffset));
  const bool protocol_says_all = type == IpType::kProtocol && protocol >= 256;
  if (!protocol_says_all) parts.push_back(compile_value());
  return Expression::all(std::move(parts));
}

}  // namespace headrace::decision
