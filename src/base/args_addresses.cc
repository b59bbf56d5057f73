/// Addresses in arguments: numbers, AddressInfo's names, and the names of network devices.

#include "base/device_addresses.hh"
#include "headrace/args.hh"

namespace headrace {
namespace {

/// A name and what stands behind its last colon, which tells the kind of address that is meant.
struct SuffixedName {
  std::string_view name;
  std::string_view suffix;
  bool has_suffix = false;

  explicit SuffixedName(std::string_view text) : name(text) {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return;
    name = text.substr(0, colon);
    suffix = text.substr(colon + 1);
    has_suffix = true;
  }
  /// No suffix, or one of these, in any case.
  bool means(std::initializer_list<std::string_view> suffixes) const {
    if (!has_suffix) return true;
    for (const std::string_view candidate : suffixes)
      if (detail::same_word(candidate, suffix)) return true;
    return false;
  }
};

std::optional<IpPrefix> resolve_prefix(std::string_view name, const NameScope& scope) {
  if (const auto prefix = scope.find_prefix(name)) return prefix;
  return find_device_prefix(name);
}

std::optional<IpAddress> resolve_gateway(std::string_view text, std::string_view name, const NameScope& scope) {
  // A name with this very suffix may have been defined.
  if (const auto address = scope.find_ip(text)) return address;
  std::optional<IpPrefix> prefix = scope.find_prefix(name);
  if (!prefix) {
    if (const auto gateway = find_device_gateway(name)) return gateway;
    prefix = find_device_prefix(name);
  }
  if (!prefix) return std::nullopt;
  return prefix->network() | IpAddress::from_host_order(1);
}

std::optional<IpAddress> resolve_ip(std::string_view text, const NameScope* scope) {
  if (!scope || text.empty()) return std::nullopt;
  const SuffixedName suffixed(text);
  if (suffixed.means({"ip", "ip4"})) {
    if (const auto address = scope->find_ip(suffixed.name)) return address;
    if (const auto prefix = find_device_prefix(suffixed.name)) return prefix->address;
    return std::nullopt;
  }
  if (suffixed.means({"bcast"})) {
    const auto prefix = resolve_prefix(suffixed.name, *scope);
    return prefix ? std::optional(prefix->broadcast()) : std::nullopt;
  }
  if (suffixed.means({"gw"})) return resolve_gateway(text, suffixed.name, *scope);
  return std::nullopt;
}

/// An address with a mask of which at least one part is a name: "net/24", "10.0.0.0/mask".
std::optional<IpPrefix> resolve_slashed(std::string_view text, const NameScope& scope) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view front = text.substr(0, slash), behind = text.substr(slash + 1);
  IpPrefix prefix;
  int octets = parse_leading_octets(front, prefix.address);
  if (octets == 0) {
    const auto address = resolve_ip(front, &scope);
    if (!address) return std::nullopt;
    prefix.address = *address;
    octets = 4;
  }
  if (!parse_mask(behind, prefix.mask)) {
    const auto mask = resolve_ip(behind, &scope);
    if (!mask) return std::nullopt;
    prefix.mask = *mask;
  }
  if (prefix.mask & ~IpAddress::prefix_mask(octets * 8)) return std::nullopt;
  return prefix;
}

std::optional<IpPrefix> resolve_ip_prefix(std::string_view text, const NameScope* scope) {
  if (!scope || text.empty()) return std::nullopt;
  if (const auto prefix = resolve_slashed(text, *scope)) return prefix;
  const SuffixedName suffixed(text);
  if (!suffixed.means({"net", "ipnet", "ip4net"})) return std::nullopt;
  return resolve_prefix(suffixed.name, *scope);
}

std::optional<Ip6Address> resolve_ip6(std::string_view text, const NameScope* scope) {
  if (!scope || text.empty()) return std::nullopt;
  const SuffixedName suffixed(text);
  if (suffixed.means({"ip6"}))
    if (const auto address = scope->find_ip6(suffixed.name)) return address;
  // "::ffff:name": the last four bytes by the name of an IPv4 address.
  if (!suffixed.has_suffix) return std::nullopt;
  const auto low = resolve_ip(suffixed.suffix, scope);
  if (!low) return std::nullopt;
  Ip6Address address;
  if (!parse(std::string(suffixed.name) + ":" + low->unparse(), address)) return std::nullopt;
  return address;
}

std::optional<Ip6Prefix> resolve_ip6_prefix(std::string_view text, const NameScope* scope) {
  if (!scope || text.empty()) return std::nullopt;
  if (const size_t slash = text.rfind('/'); slash != std::string_view::npos) {
    const auto address = resolve_ip6(text.substr(0, slash), scope);
    Ip6Prefix prefix;
    if (!address || !parse("::" + std::string(text.substr(slash)), prefix)) return std::nullopt;
    prefix.address = *address;
    return prefix;
  }
  const SuffixedName suffixed(text);
  return suffixed.means({"ip6net"}) ? scope->find_ip6_prefix(suffixed.name) : std::nullopt;
}

std::optional<EtherAddress> resolve_ether(std::string_view text, const NameScope* scope) {
  if (!scope || text.empty()) return std::nullopt;
  const SuffixedName suffixed(text);
  if (!suffixed.means({"eth", "ether", "ethernet"})) return std::nullopt;
  if (const auto address = scope->find_ether(suffixed.name)) return address;
  return find_device_ether(suffixed.name);
}

/// A number if the text is one, else what its name stands for.
template <typename T>
bool parse_or_resolve(std::string_view text, T& out, const ArgContext& context,
                      std::optional<T> (*resolve)(std::string_view, const NameScope*), std::string_view what) {
  if (parse(text, out)) return true;
  const std::optional<T> resolved = resolve(text, context.scope());
  if (!resolved) return context.expect(what);
  out = *resolved;
  return true;
}

}  // namespace

bool parse_argument(std::string_view text, IpAddress& out, const ArgContext& context) {
  return parse_or_resolve(text, out, context, resolve_ip, "an IPv4 address");
}

bool parse_argument(std::string_view text, IpPrefix& out, const ArgContext& context) {
  return parse_or_resolve(text, out, context, resolve_ip_prefix, "an IPv4 prefix, such as 10.0.0.0/8");
}

bool parse_argument(std::string_view text, Ip6Address& out, const ArgContext& context) {
  return parse_or_resolve(text, out, context, resolve_ip6, "an IPv6 address");
}

bool parse_argument(std::string_view text, Ip6Prefix& out, const ArgContext& context) {
  return parse_or_resolve(text, out, context, resolve_ip6_prefix, "an IPv6 prefix, such as 2001:db8::/32");
}

bool parse_argument(std::string_view text, EtherAddress& out, const ArgContext& context) {
  return parse_or_resolve(text, out, context, resolve_ether, "an Ethernet address");
}

bool PrefixOrAddress::parse(std::string_view text, IpPrefix& out, const ArgContext& context) const {
  if (headrace::parse(text, out)) return true;
  IpAddress address;
  if (!parse_argument(text, address, context))
    return parse_argument(text, out, context) || context.expect("an IPv4 address or prefix");
  out = IpPrefix::of(address, 32);
  return true;
}

bool PrefixOrAddress::parse(std::string_view text, Ip6Prefix& out, const ArgContext& context) const {
  if (headrace::parse(text, out)) return true;
  Ip6Address address;
  if (!parse_argument(text, address, context))
    return parse_argument(text, out, context) || context.expect("an IPv6 address or prefix");
  out = {address, 128};
  return true;
}

}  // namespace headrace
