#include "tables/decision/ip_words.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace headrace::decision {

namespace {

template <typename V>
struct Named {
  std::string_view name;
  V value;
};

template <typename V, size_t N>
std::optional<V> find_in(const Named<V> (&table)[N], std::string_view name) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& entry) { return entry.name == name; });
  return found == std::end(table) ? std::nullopt : std::optional(found->value);
}

constexpr Named<IpType> kTypes[] = {
    {"ce", {IpType::kCe}},
    {"dscp", kIpDscp},
    {"ect", {IpType::kEct}},
    {"frag", {IpType::kFragment}},
    {"hl", kIpHeaderLength},
    {"host", {IpType::kHost}},
    {"id", kIpId},
    {"len", kIpLength},
    {"net", {IpType::kNet}},
    {"opt", {IpType::kTcpOption}},
    {"port", {IpType::kPort}},
    {"proto", {IpType::kProtocol}},
    {"tos", kIpTos},
    {"ttl", kIpTtl},
    {"type", kIcmpType},
    {"unfrag", {IpType::kUnfragmented}},
    {"vers", kIpVersion},
    {"win", kTcpWindow},
};

constexpr std::string_view kSyntaxWords[] = {"dest", "dst", "ether", "ip", "not", "src"};

constexpr Named<int> kPseudoProtocols[] = {
    {"payload", kPayload},
    {"tcpudp", kTcpOrUdp},
    {"transp", kAnyTransport},
};

/// RFC 9293, 3.1, and RFC 3168.
constexpr Named<int> kTcpOptions[] = {
    {"ack", 0x10}, {"cwr", 0x80}, {"ece", 0x40}, {"fin", 0x01},
    {"psh", 0x08}, {"rst", 0x04}, {"syn", 0x02}, {"urg", 0x20},
};

/// RFC 792, 950, 1256.
constexpr Named<int> kIcmpTypes[] = {
    {"echo", 8},           {"echo-reply", 0},        {"inforeq", 15},   {"inforeq-reply", 16},   {"maskreq", 17},
    {"maskreq-reply", 18}, {"parameterproblem", 12}, {"redirect", 5},   {"routeradvert", 9},     {"routersolicit", 10},
    {"sourcequench", 4},   {"timeexceeded", 11},     {"timestamp", 13}, {"timestamp-reply", 14}, {"unreachable", 3},
};

/// True for numbers, addresses and the like, which are not worth a search in the system's files.
bool looks_numeric(std::string_view word) {
  return word.find_first_not_of("0123456789./:") == std::string_view::npos ||
         (word.starts_with("0x") && word.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos);
}

}  // namespace

std::string protocol_text(int protocol) {
  switch (protocol) {
    case kUnknownProtocol:
      return "";
    case kIcmp:
      return "icmp";
    case ip_protocol::kIgmp:
      return "igmp";
    case ip_protocol::kIpIp:
      return "ipip";
    case kTcp:
      return "tcp";
    case kUdp:
      return "udp";
    case kTcpOrUdp:
      return "tcpudp";
    case kAnyTransport:
      return "transp";
    case kPayload:
      return "payload";
    default:
      return fmt::format("ip proto {}", protocol);
  }
}

std::string type_text(const IpType& type, Direction direction) {
  std::string_view before;
  switch (direction) {
    case Direction::kUnsaid:
      break;
    case Direction::kSource:
      before = "src ";
      break;
    case Direction::kDestination:
      before = "dst ";
      break;
    case Direction::kBoth:
      before = "src and dst ";
      break;
    case Direction::kEither:
      before = "src or dst ";
      break;
  }
  std::string name;
  switch (type.kind) {
    case IpType::kNone:
      name = "<none>";
      break;
    case IpType::kInteger:
      name = "number";
      break;
    case IpType::kHost:
      name = "ip host";
      break;
    case IpType::kNet:
      name = "ip net";
      break;
    case IpType::kEther:
      name = "ether host";
      break;
    case IpType::kProtocol:
      name = "proto";
      break;
    case IpType::kPort:
      name = "port";
      break;
    case IpType::kTcpOption:
      name = "tcp opt";
      break;
    case IpType::kFragment:
      name = "ip frag";
      break;
    case IpType::kUnfragmented:
      name = "ip unfrag";
      break;
    case IpType::kEct:
      name = "ip ect";
      break;
    case IpType::kCe:
      name = "ip ce";
      break;
    case IpType::kField:
      for (const auto& known : kTypes) {
        if (known.value == type) name = known.name;
      }
      if (name.empty()) {
        name = fmt::format("{}[...]", type.field.protocol != 0 ? protocol_text(type.field.protocol) : "ip");
      } else {
        name = fmt::format("{} {}", type.field.protocol != 0 ? protocol_text(type.field.protocol) : "ip", name);
      }
      break;
  }
  return fmt::format("{}{}", before, name);
}

int IpWords::port(std::string_view word, int protocol) const {
  std::optional<uint16_t> found;
  if (scope_ != nullptr) found = scope_->find_port(word, protocol);
  if (!found) found = find_service(word, protocol);
  return found ? *found : -1;
}

const IpWords::Entry& IpWords::entry(std::string_view word) {
  const auto known = entries_.find(word);
  if (known != entries_.end()) return known->second;
  Entry entry;
  if (!looks_numeric(word)) {
    if (const auto pseudo = find_in(kPseudoProtocols, word)) {
      entry.protocol = *pseudo;
    } else if (const auto protocol = find_ip_protocol(word)) {
      entry.protocol = *protocol;
    }
    entry.tcp_port = port(word, kTcp);
    entry.udp_port = port(word, kUdp);
    entry.tcp_option = find_in(kTcpOptions, word).value_or(-1);
    entry.icmp_type = find_in(kIcmpTypes, word).value_or(-1);
  }
  return entries_.emplace(word, entry).first->second;
}

IpWords::Meaning IpWords::find(std::string_view word, const IpType& type, int protocol) {
  if (type == IpType::kNone) {
    if (const auto known = find_in(kTypes, word)) return {Meaning::kType, *known, 0, {}};
    if (std::find(std::begin(kSyntaxWords), std::end(kSyntaxWords), word) != std::end(kSyntaxWords)) {
      return {Meaning::kSyntax, {}, 0, {}};
    }
  }
  // A host may bear the name of a service.
  if (type.kind == IpType::kHost || type.kind == IpType::kNet || type.kind == IpType::kEther) return {};
  const Entry& known = entry(word);

  struct Candidate {
    IpType type;
    int value;
    bool wanted;
    std::string_view name;
  };
  auto protocol_is = [&](int a, int b) { return protocol == kUnknownProtocol || protocol == a || protocol == b; };
  auto type_is = [&](const IpType& other) { return type == IpType::kNone || type == other; };
  const bool same_port = known.tcp_port == known.udp_port;
  std::vector<Candidate> candidates = {
      {{IpType::kProtocol}, known.protocol, type_is({IpType::kProtocol}), "proto"},
      {{IpType::kPort},
       known.tcp_port,
       type_is({IpType::kPort}) && (protocol_is(kTcp, kTcpOrUdp) || (same_port && protocol == kUdp)),
       same_port ? "port" : "tcp port"},
      {{IpType::kPort},
       same_port ? -1 : known.udp_port,
       type_is({IpType::kPort}) && protocol_is(kUdp, kTcpOrUdp),
       "udp port"},
      {{IpType::kTcpOption},
       known.tcp_option,
       type_is({IpType::kTcpOption}) && protocol_is(kTcp, kTcpOrUdp),
       "tcp opt"},
      {kIcmpType, known.icmp_type, type_is(kIcmpType) && protocol_is(kIcmp, kIcmp), "icmp type"},
  };
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.value < 0; });
  if (candidates.empty()) return {};

  const auto wanted =
      std::count_if(candidates.begin(), candidates.end(), [](const auto& candidate) { return candidate.wanted; });
  if (wanted == 1) {
    const auto found =
        std::find_if(candidates.begin(), candidates.end(), [](const auto& candidate) { return candidate.wanted; });
    return {Meaning::kValue, found->type, static_cast<uint32_t>(found->value), {}};
  }
  std::string context;
  if (protocol != kUnknownProtocol) context = protocol_text(protocol) + " ";
  // The names of these types begin with a protocol of their own.
  if (type == IpType::kTcpOption) {
    context += "opt ";
  } else if (type == kIcmpType) {
    context += "type ";
  } else if (type != IpType::kNone) {
    context += type_text(type) + " ";
  }
  std::string choices;
  for (const Candidate& candidate : candidates) {
    choices += fmt::format("{}'{} {}'", choices.empty() ? "" : ", ", candidate.name, word);
  }
  return {Meaning::kAmbiguous,
          {},
          0,
          fmt::format("'{}{}' is {}; try {}", context, word, wanted > 1 ? "ambiguous" : "meaningless", choices)};
}

}  // namespace headrace::decision
