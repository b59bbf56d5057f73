#include "elements/ipsec/IPsecGateway.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace headrace {

namespace {

/// What ESP adds at most: an IPv6 header, UDP, SPI and number, an IV of CBC mode, padding, and the ICV of HMAC-SHA-256.
constexpr int kMostOverhead = 40 + 8 + 8 + 16 + 17 + 16;
constexpr int kSmallestMtu6 = 1280;

struct GatewayPort {
  bool inside = false;
  std::string ether;
  std::vector<IpPrefix> own4;
  std::vector<Ip6Address> own6;
};

/// `protected|unprotected ETH [ADDRESS ...]`.
struct PortArg {
  bool parse(std::string_view text, GatewayPort& port, const ArgContext& context) const {
    const ArgContext numbers(nullptr);
    std::vector<std::string> words;
    (void)parse_argument(text, words, numbers);
    if (words.empty()) return context.expect("protected or unprotected, and an Ethernet address");
    if (words[0] != "protected" && words[0] != "unprotected")
      return context.error("'{}': expected protected or unprotected", words[0]);
    port.inside = words[0] == "protected";
    for (size_t i = 1; i < words.size(); ++i)
      if (!take(words[i], port, context)) return false;
    if (port.ether.empty()) return context.error("'{}': expected the port's own Ethernet address as well", text);
    return true;
  }

 private:
  static bool take(const std::string& word, GatewayPort& port, const ArgContext& context) {
    const ArgContext numbers(nullptr);
    EtherAddress ether;
    IpPrefix prefix;
    Ip6Prefix prefix6;
    if (word.ends_with(":eth") || parse_argument(word, ether, numbers)) {
      if (!port.ether.empty()) return context.error("'{}': expected one Ethernet address", word);
      port.ether = word;
    } else if (PrefixOrAddress{}.parse(word, prefix, numbers)) {
      port.own4.push_back(prefix);
    } else if (PrefixOrAddress{}.parse(word, prefix6, numbers)) {
      port.own6.push_back(prefix6.address);
    } else {
      return context.error("'{}': expected an Ethernet, IPv4 or IPv6 address", word);
    }
    return true;
  }
};

std::string hexadecimal(const Ip6Address& address) {
  std::string out;
  for (const uint8_t byte : address.bytes()) out += fmt::format("{:02x}", byte);
  return out;
}

/// What the arguments say.
struct GatewayConfig {
  std::vector<GatewayPort> ports;
  int mtu = 1500, tunnel_mtu = 0;
  std::string database;  ///< arguments of IPsecDatabase
  std::string lookup;    ///< further arguments of IPsecESPLookup
  bool from_host = false, to_host = false;
  bool xfrm = false;  ///< follow the kernel's databases
};

/// Writes the configuration.
class GatewayText {
 public:
  explicit GatewayText(const GatewayConfig& config) : config_(config) {
    for (const GatewayPort& port : config.ports) {
      auto& [v4, v6] = port.inside ? inside_ : outside_;
      v4.insert(v4.end(), port.own4.begin(), port.own4.end());
      v6.insert(v6.end(), port.own6.begin(), port.own6.end());
    }
  }

  std::string write() {
    declare("db", "IPsecDatabase({})", config_.database);
    if (config_.xfrm) declare("xfrm", "IPsecXFRM(db{})", outside_addresses());
    std::string ethers;
    for (const GatewayPort& port : config_.ports) ethers += ", " + port.ether;
    declare("route", "IPsecRoute(db{})", ethers);
    declare("protected", "IPsecESPEncap(db)");
    connect("protected -> IPsecAES(db, ENCRYPT true) -> IPsecAuthHMACSHA1(db, VERIFY false) -> route");
    declare("authentic", "IPsecAuthHMACSHA1(db, VERIFY true)");
    declare("decrypted", "Classifier(0/40%f0, 0/60%f0)");
    connect("authentic -> IPsecAES(db, ENCRYPT false) -> IPsecESPUnencap(db) -> decrypted");
    for (size_t i = 0; i < config_.ports.size(); ++i) write_port(i);
    write_ip4();
    write_ip6();
    declare("for_host", "{}", config_.to_host ? "Null" : "Discard");
    if (config_.to_host) connect("for_host -> [{}] output", config_.ports.size());
    if (config_.from_host) write_host();
    return declarations_ + connections_;
  }

 private:
  struct Own {
    std::vector<IpPrefix> v4;
    std::vector<Ip6Address> v6;
  };
  using Branches = std::vector<std::pair<std::string, std::string>>;

  /// An element with a name. Names are declared before they are used.
  template <typename... A>
  void declare(std::string_view name, fmt::format_string<A...> element, A&&... arguments) {
    declarations_ += fmt::format("{} :: {};\n", name, fmt::format(element, std::forward<A>(arguments)...));
  }
  template <typename... A>
  void connect(fmt::format_string<A...> chain, A&&... arguments) {
    connections_ += fmt::format(chain, std::forward<A>(arguments)...) + ";\n";
  }

  /// An element that classifies, and where each of its patterns leads.
  void branch(const std::string& name, const char* element, const Branches& branches) {
    std::string patterns;
    for (const auto& [pattern, to] : branches) patterns += (patterns.empty() ? "" : ", ") + pattern;
    declare(name, "{}({})", element, patterns);
    for (size_t i = 0; i < branches.size(); ++i) connect("{}[{}] -> {}", name, i, branches[i].second);
  }

  static std::string to_hosts(const std::vector<IpPrefix>& own) {
    std::string pattern;
    for (const IpPrefix& prefix : own)
      pattern += fmt::format("{}dst host {}", pattern.empty() ? "" : " or ", prefix.address.unparse());
    return pattern.empty() ? "none" : pattern;
  }
  static void to_hosts6(const std::vector<Ip6Address>& own, const std::string& to, Branches& branches) {
    for (const Ip6Address& address : own) branches.emplace_back("24/" + hexadecimal(address), to);
  }

  std::string outside_addresses() const {
    std::string out;
    for (const IpPrefix& prefix : outside_.v4) out += ", " + prefix.address.unparse();
    for (const Ip6Address& address : outside_.v6) out += ", " + address.unparse();
    return out;
  }

  /// Frames of a port, by what they carry.
  void write_port(size_t i) {
    const GatewayPort& port = config_.ports[i];
    const std::string side = port.inside ? "inside" : "outside";
    Branches branches;
    std::string own4, own6;
    for (const IpPrefix& prefix : port.own4) own4 += prefix.address.unparse() + " ";
    for (const Ip6Address& address : port.own6) own6 += address.unparse() + " ";
    if (!own4.empty())
      branches.emplace_back("12/0806 20/0001", fmt::format("ARPResponder({}{}) -> [{}] output", own4, port.ether, i));
    if (!own6.empty())
      branches.emplace_back("12/86dd 20/3a 54/87",
                            fmt::format("IP6NDAdvertiser({}{}) -> [{}] output", own6, port.ether, i));
    branches.emplace_back("12/0800", side + "4");
    branches.emplace_back("12/86dd", side + "6");
    branches.emplace_back("-", "Discard");
    branch(fmt::format("frames{}", i), "Classifier", branches);
    connect("input[{0}] -> HostEtherFilter({1}) -> frames{0}", i, port.ether);
    connect("route[{0}] -> [{0}] output", i);
  }

  /// An ICMP error from an inside address, if there is one.
  void error4(const std::string& from, const std::string& arguments, const char* to) {
    const std::vector<IpPrefix>& own = inside_.v4.empty() ? outside_.v4 : inside_.v4;
    if (own.empty()) return connect("{} -> Discard", from);
    connect("{} -> ICMPError({}, {}) -> {}", from, own[0].address.unparse(), arguments, to);
  }
  void error6(const std::string& from, const std::string& arguments, const char* to) {
    const std::vector<Ip6Address>& own = inside_.v6.empty() ? outside_.v6 : inside_.v6;
    if (own.empty()) return connect("{} -> Discard", from);
    connect("{} -> ICMP6Error({}, {}) -> {}", from, own[0].unparse(), arguments, to);
  }

  std::string check4(const Own& own) const {
    std::string interfaces;
    for (const IpPrefix& prefix : own.v4) interfaces += (interfaces.empty() ? "" : " ") + prefix.unparse();
    return fmt::format("CheckIPHeader({}DETAILS true)", interfaces.empty() ? "" : "INTERFACES " + interfaces + ", ");
  }

  void write_ip4() {
    const std::string groups = "dst net 224.0.0.0/4 or dst host 255.255.255.255";
    std::vector<IpPrefix> own = inside_.v4;
    own.insert(own.end(), outside_.v4.begin(), outside_.v4.end());
    // From inside to outside. Errors are for hosts inside.
    declare("inside4", "Strip(14)");
    connect("inside4 -> {} -> own_inside4", check4(inside_));
    branch("own_inside4", "IPClassifier",
           {{to_hosts(own), "IPReassembler -> for_gateway4"}, {groups, "Discard"}, {"-", "ttl_out4"}});
    declare("ttl_out4", "DecIPTTL");
    declare("out4", "IPsecPolicy(db, out)");
    connect("ttl_out4 -> out4");
    declare("tunnel4", "IPFragmenter({})", config_.tunnel_mtu);
    connect("out4[0] -> tunnel4 -> protected");
    declare("link_out4", "IPFragmenter({})", config_.mtu);
    connect("out4[1] -> link_out4 -> route");
    error4("ttl_out4[1]", "timeexceeded", "route");
    error4("tunnel4[1]", fmt::format("unreachable, needfrag, PMTU {}", config_.tunnel_mtu), "route");
    error4("link_out4[1]", fmt::format("unreachable, needfrag, PMTU {}", config_.mtu), "route");
    // From outside to inside. Errors go through the policies.
    declare("outside4", "Strip(14)");
    connect("outside4 -> {} -> own_outside4", check4(outside_));
    branch("own_outside4", "IPClassifier",
           {{"ip proto 50 or " + to_hosts(outside_.v4), "IPReassembler -> esp4"}, {groups, "Discard"}, {"-", "in4"}});
    declare("esp4", "IPsecESPLookup(db{})", config_.lookup);
    connect("esp4 -> authentic");
    connect("esp4[1] -> for_gateway4");
    declare("in4", "IPsecPolicy(db, in)");
    connect("in4[0] -> Discard");
    connect("in4[1], decrypted[0] -> own4");
    branch("own4", "IPClassifier", {{to_hosts(own), "IPReassembler -> for_gateway_by_policy4"}, {"-", "ttl_in4"}});
    declare("ttl_in4", "DecIPTTL");
    declare("link_in4", "IPFragmenter({})", config_.mtu);
    connect("ttl_in4 -> link_in4 -> route");
    error4("ttl_in4[1]", "timeexceeded", "out4");
    error4("link_in4[1]", fmt::format("unreachable, needfrag, PMTU {}", config_.mtu), "out4");
    write_gateway("4", "IPClassifier(icmp type echo, -)", "ICMPPingResponder");
  }

  /// The gateway itself: all is for the host, or pings are answered. An answer takes the way that the question has come.
  void write_gateway(const std::string& family, const char* pings, const char* responder) {
    for (const bool by_policy : {false, true}) {
      const std::string name = (by_policy ? "for_gateway_by_policy" : "for_gateway") + family;
      if (config_.to_host) {
        declare(name, "Null");
        connect("{} -> for_host", name);
      } else {
        declare(name, "{}", pings);
        connect("{}[0] -> {} -> {}{}", name, responder, by_policy ? "out" : "link_out", family);
        connect("{}[1] -> for_host", name);
      }
    }
  }

  void write_ip6() {
    const int tunnel_mtu = std::max(config_.tunnel_mtu, kSmallestMtu6);
    // Groups, and addresses of the link, are not forwarded (RFC 4291, 2.5.6).
    const Branches on_link = {{"24/ff", "Discard"}, {"24/fe80%ffc0", "Discard"}, {"8/fe80%ffc0", "Discard"}};
    Branches from_inside, from_outside{{"6/32", "esp6"}}, by_policy;
    for (const std::vector<Ip6Address>* own : {&inside_.v6, &outside_.v6}) {
      to_hosts6(*own, "for_gateway6", from_inside);
      to_hosts6(*own, "for_gateway_by_policy6", by_policy);
    }
    to_hosts6(outside_.v6, "whole6", from_outside);
    for (Branches* branches : {&from_inside, &from_outside})
      branches->insert(branches->end(), on_link.begin(), on_link.end());
    from_inside.emplace_back("-", "hlim_out6");
    from_outside.emplace_back("-", "in6");
    by_policy.emplace_back("-", "hlim_in6");

    declare("inside6", "Strip(14)");
    connect("inside6 -> CheckIP6Header(DETAILS true) -> own_inside6");
    branch("own_inside6", "Classifier", from_inside);
    declare("hlim_out6", "DecIP6HLIM");
    declare("out6", "IPsecPolicy(db, out)");
    connect("hlim_out6 -> out6");
    declare("tunnel6", "CheckLength({})", tunnel_mtu);
    connect("out6[0] -> tunnel6 -> protected");
    declare("link_out6", "CheckLength({})", config_.mtu);
    connect("out6[1] -> link_out6 -> route");
    error6("hlim_out6[1]", "timeexceeded", "route");
    error6("tunnel6[1]", fmt::format("packettoobig, PMTU {}", tunnel_mtu), "route");
    error6("link_out6[1]", fmt::format("packettoobig, PMTU {}", config_.mtu), "route");

    declare("outside6", "Strip(14)");
    connect("outside6 -> CheckIP6Header(DETAILS true) -> own_outside6");
    branch("own_outside6", "Classifier", from_outside);
    if (!outside_.v6.empty()) {
      declare("whole6", "IP6Reassembler");
      connect("whole6 -> esp6");
    }
    declare("esp6", "IPsecESPLookup(db{})", config_.lookup);
    connect("esp6 -> authentic");
    connect("esp6[1] -> for_gateway6");
    declare("in6", "IPsecPolicy(db, in)");
    connect("in6[0] -> Discard");
    connect("in6[1], decrypted[1] -> own6");
    branch("own6", "Classifier", by_policy);
    declare("hlim_in6", "DecIP6HLIM");
    declare("link_in6", "CheckLength({})", config_.mtu);
    connect("hlim_in6 -> link_in6 -> route");
    error6("hlim_in6[1]", "timeexceeded", "out6");
    error6("link_in6[1]", fmt::format("packettoobig, PMTU {}", config_.mtu), "out6");
    write_gateway("6", "Classifier(6/3a 40/80, -)", "ICMP6PingResponder");
    if (by_policy.size() == 1) connect("Idle -> for_gateway_by_policy6");  // there is no address
  }

  /// What the host sends: IKE leaves as it is (RFC 4301, 4.4.1), all else by the policies.
  void write_host() {
    declare("from_host", "Classifier(0/40%f0, 0/60%f0)");
    connect("input[{}] -> from_host", config_.ports.size());
    declare("ike4", "IPClassifier(src udp port 500 or src udp port 4500, -)");
    // The ports are in the first fragment only.
    connect("from_host[0] -> MarkIPHeader -> IPReassembler -> ike4");
    connect("ike4[0] -> link_out4");
    connect("ike4[1] -> out4");
    declare("ike6", "Classifier(6/11 40/01f4, 6/11 40/1194, -)");
    connect("from_host[1] -> MarkIP6Header -> ike6");
    connect("ike6[0], ike6[1] -> link_out6");
    connect("ike6[2] -> out6");
  }

  const GatewayConfig& config_;
  Own inside_, outside_;
  std::string declarations_, connections_;
};

}  // namespace

Status IPsecGateway::expand(Args& args, std::string& body) {
  GatewayConfig config;
  std::vector<std::string> files, rest;
  std::optional<int> tunnel_mtu;
  std::string encap_ports;
  Errors& errors = args.errors();
  Status status = args.read_all("CONFIG", files, AnyArg()).consume();
  if (files.empty()) status &= errors.error("missing mandatory CONFIG argument");
  const Status read = args.read_all("PORT", config.ports, PortArg())
                          .read("MTU", config.mtu, Between{kSmallestMtu6, 65535})
                          .read("TUNNEL_MTU", tunnel_mtu, Between{68, 65535})
                          .read("ENCAP_PORTS", encap_ports, AnyArg())
                          .read("XFRM", config.xfrm)
                          .consume_rest(rest)
                          .complete();
  if (!read.ok()) return read;
  const auto n = static_cast<int>(config.ports.size());
  const auto inside =
      std::count_if(config.ports.begin(), config.ports.end(), [](const GatewayPort& port) { return port.inside; });
  if (inside == 0 || inside == n)
    status &= errors.error("PORT: expected a protected port and an unprotected one at least");
  const bool addressed = std::any_of(config.ports.begin(), config.ports.end(), [](const GatewayPort& port) {
    return !port.inside && !(port.own4.empty() && port.own6.empty());
  });
  if (config.xfrm && !addressed) status &= errors.error("XFRM: expected an unprotected PORT with an address");
  const int inputs = args.scope()->ninputs(), outputs = args.scope()->noutputs();
  const auto fits = [n](int connected) { return connected == n || connected == n + 1; };
  if (!fits(inputs) || !fits(outputs)) {
    status &= errors.error(
        "expected {} inputs and outputs, one for each PORT, or one more for the host; {} and {} are connected", n,
        inputs, outputs);
  }
  if (tunnel_mtu && *tunnel_mtu > config.mtu) status &= errors.error("TUNNEL_MTU: expected at most MTU {}", config.mtu);
  if (!status.ok()) return status;

  config.tunnel_mtu = tunnel_mtu.value_or(config.mtu - kMostOverhead);
  config.from_host = inputs > n;
  config.to_host = outputs > n;
  for (const std::string& file : files) config.database += (config.database.empty() ? "CONFIG " : ", CONFIG ") + file;
  for (const std::string& argument : rest) config.database += ", " + argument;
  if (!encap_ports.empty()) config.lookup = ", ENCAP_PORTS " + encap_ports;
  body = GatewayText(config).write();
  return {};
}

}  // namespace headrace
