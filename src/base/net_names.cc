/// Names of protocols, services and annotations that every configuration knows.

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <string>

#include "headrace/args.hh"
#include "headrace/fields.hh"
#include "headrace/ip_protocol.hh"

namespace headrace {
namespace {

template <typename V>
struct Named {
  std::string_view name;
  V value;
};

template <typename V, size_t N>
std::optional<V> find_in(const Named<V> (&table)[N], std::string_view name) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [name](const auto& e) { return e.name == name; });
  if (found == std::end(table)) return std::nullopt;
  return found->value;
}

#define HEADRACE_ANNOTATION_NAME(NAME, field, ...) {NAME, {anno::field.kOffset, anno::field.kSize}},
constexpr Named<AnnotationRange> kAnnotations[] = {HEADRACE_ANNOTATIONS(HEADRACE_ANNOTATION_NAME)};
#undef HEADRACE_ANNOTATION_NAME

// Minimal systems have neither /etc/protocols nor /etc/services; these names work there too.
constexpr Named<uint8_t> kProtocols[] = {
    {"icmp", ip_protocol::kIcmp},         {"igmp", ip_protocol::kIgmp},       {"ipip", ip_protocol::kIpIp},
    {"tcp", ip_protocol::kTcp},           {"udp", ip_protocol::kUdp},         {"dccp", ip_protocol::kDccp},
    {"ipv6", ip_protocol::kIp6},          {"gre", ip_protocol::kGre},         {"esp", ip_protocol::kEsp},
    {"ah", ip_protocol::kAuthentication}, {"ipv6-icmp", ip_protocol::kIcmp6}, {"icmp6", ip_protocol::kIcmp6},
    {"ospf", ip_protocol::kOspf},         {"pim", ip_protocol::kPim},         {"vrrp", ip_protocol::kVrrp},
    {"sctp", ip_protocol::kSctp},
};

constexpr Named<uint16_t> kServices[] = {
    {"auth", 113},    {"bgp", 179},         {"bootpc", 68},      {"bootps", 67},       {"chargen", 19}, {"daytime", 13},
    {"discard", 9},   {"dns", 53},          {"domain", 53},      {"echo", 7},          {"finger", 79},  {"ftp", 21},
    {"ftp-data", 20}, {"http", 80},         {"https", 443},      {"imap3", 220},       {"imaps", 993},  {"irc", 194},
    {"ldap", 389},    {"netbios-dgm", 138}, {"netbios-ns", 137}, {"netbios-ssn", 139}, {"nntp", 119},   {"ntp", 123},
    {"pop3", 110},    {"pop3s", 995},       {"pptp", 1723},      {"rip", 520},         {"route", 520},  {"smtp", 25},
    {"snmp", 161},    {"snmp-trap", 162},   {"ssh", 22},         {"sunrpc", 111},      {"syslog", 514}, {"telnet", 23},
    {"tftp", 69},     {"www", 80},
};

std::optional<uint16_t> find_system_service(const std::string& name, const char* protocol) {
  servent entry, *result = nullptr;
  char buffer[2048];
  if (getservbyname_r(name.c_str(), protocol, &entry, buffer, sizeof buffer, &result) != 0 || !result)
    return std::nullopt;
  return ntohs(static_cast<uint16_t>(result->s_port));
}

const char* service_protocol_name(int protocol) {
  switch (protocol) {
    case ip_protocol::kTcp:
      return "tcp";
    case ip_protocol::kUdp:
      return "udp";
    case ip_protocol::kSctp:
      return "sctp";
    case ip_protocol::kDccp:
      return "dccp";
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<AnnotationRange> find_builtin_annotation(std::string_view name) { return find_in(kAnnotations, name); }

std::optional<uint8_t> find_ip_protocol(std::string_view name) {
  if (const auto known = find_in(kProtocols, name)) return known;
  protoent entry, *result = nullptr;
  char buffer[2048];
  if (getprotobyname_r(std::string(name).c_str(), &entry, buffer, sizeof buffer, &result) != 0 || !result)
    return std::nullopt;
  if (result->p_proto < 0 || result->p_proto > 255) return std::nullopt;
  return static_cast<uint8_t>(result->p_proto);
}

std::optional<uint16_t> find_service(std::string_view name, int protocol) {
  const bool tcp_or_udp = protocol == 0 || protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp;
  if (tcp_or_udp)
    if (const auto known = find_in(kServices, name)) return known;
  const std::string text(name);
  if (protocol == 0) {
    if (const auto port = find_system_service(text, "tcp")) return port;
    return find_system_service(text, "udp");
  }
  const char* protocol_name = service_protocol_name(protocol);
  return protocol_name ? find_system_service(text, protocol_name) : std::nullopt;
}

}  // namespace headrace
