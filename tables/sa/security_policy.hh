#pragma once
/// \file
/// The security policy database of IPsec (RFC 4301, section 4.4.1).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/addresses.hh"
#include "tables/sa/ipsec_types.hh"

namespace headrace {

enum class PolicyAction : uint8_t { kDiscard, kBypass, kProtect };

/// Both ends are inside.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 65535;

  bool all() const { return first == 0 && last == 65535; }
  bool contains(uint16_t port) const { return first <= port && port <= last; }
  bool operator==(const PortRange&) const = default;
};

/// What to do with which packets.
struct Policy {
  IPsecDirection direction = IPsecDirection::kOut;
  PolicyAction action = PolicyAction::kDiscard;
  /// The family of the packets: IPv6, or IPv4.
  bool v6 = false;
  /// Of the association that protects; for kProtect only.
  uint32_t spi = 0;
  /// Of the associations that protect: AssociationConfig::reqid; 0: the SPI counts alone. With a reqid, SPI 0 is any.
  uint32_t reqid = 0;
  /// Policies with a larger number are asked first, as in DPDK's rte_acl.
  int32_t priority = 0;
  /// Prefixes of the family: those of IPv4 are IPv4-mapped and at least 96 bits long, see policy_prefix(). Host bits
  /// are ignored.
  Ip6Prefix source, destination;
  /// The protocol above IP; none: all.
  std::optional<uint8_t> protocol;
  /// A range that is not all ports holds for packets with ports only: not for ICMP or fragments (RFC 4301, section
  /// 4.4.1.1).
  PortRange source_ports, destination_ports;

  bool operator==(const Policy&) const = default;
  /// As a line of a file of ipsec-secgw: "sp ipv4 out esp protect 5 pri 1 dst 10.0.0.0/8 sport 0:65535 dport 0:65535".
  std::string unparse() const;
};

/// The prefix as a Policy has it.
Ip6Prefix policy_prefix(const IpPrefix& prefix);

/// What a policy looks at.
struct PolicySelector {
  bool v6 = false;
  bool has_ports = false;
  uint8_t protocol = 0;
  uint16_t source_port = 0, destination_port = 0;
  Ip6Address source, destination;  // IPv4-mapped unless v6

  /// \param addresses source and destination, as they stand in an IPv4 header
  static PolicySelector of_v4(const void* addresses, uint8_t protocol) {
    PolicySelector packet;
    packet.set_v4(addresses, protocol);
    return packet;
  }
  /// \param addresses the same of an IPv6 header
  static PolicySelector of_v6(const void* addresses, uint8_t protocol) {
    PolicySelector packet;
    packet.set_v6(addresses, protocol);
    return packet;
  }
  /// The same in place, where nobody has set anything. A copy of what has just been stored would have to wait.
  void set_v4(const void* addresses, uint8_t number) {
    protocol = number;
    source = Ip6Address::v4_mapped(IpAddress::from_bytes(addresses));
    destination = Ip6Address::v4_mapped(IpAddress::from_bytes(static_cast<const char*>(addresses) + 4));
  }
  void set_v6(const void* addresses, uint8_t number) {
    v6 = true;
    protocol = number;
    source = Ip6Address::from_bytes(addresses);
    destination = Ip6Address::from_bytes(static_cast<const char*>(addresses) + 16);
  }
  void set_ports(uint16_t source, uint16_t destination) {
    has_ports = true;
    source_port = source;
    destination_port = destination;
  }
};

/// What a lookup finds.
struct PolicyAnswer {
  /// RFC 4301, section 5.1: what no policy is about is discarded.
  PolicyAction action = PolicyAction::kDiscard;
  bool found = false;
  uint32_t spi = 0;
  uint32_t reqid = 0;

  bool operator==(const PolicyAnswer&) const = default;
};

/// A form of the database that does not change any more.
class PolicyGeneration;

/// What a reader asks; valid until its next quiescent state (headrace/rcu.hh).
class PolicyView {
 public:
  explicit PolicyView(const PolicyGeneration* generation) : generation_(generation) {}

  /// The policy that is asked first of those that hold the packet.
  PolicyAnswer lookup(IPsecDirection direction, const PolicySelector& packet) const {
    PolicyAnswer answer;
    lookup(direction, packet, answer);
    return answer;
  }
  /// The same where the answer is to be: to return it at once would wait for its parts.
  void lookup(IPsecDirection direction, const PolicySelector& packet, PolicyAnswer& answer) const;

 private:
  const PolicyGeneration* generation_;
};

/// Policies in the order in which they are asked: by priority, larger ones first, then as they were added.
///
/// A lookup is a tuple space search (V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple space
/// search", SIGCOMM 1999): policies with the same lengths of both prefixes, and both with or both without a protocol,
/// share a hash table, so a lookup costs a probe for each such combination of lengths, and looks at the ports of the
/// policies that agree in prefixes and protocol. It ends once no table left has a policy that would be asked earlier
/// than the one that was found.
///
/// Any thread may change the database while others look up in views; a lookup that overlaps a change gives the old
/// or the new answer. A change makes a new generation, in time proportional to the number of policies.
class PolicyTable {
 public:
  PolicyTable();
  ~PolicyTable();
  PolicyTable(const PolicyTable&) = delete;
  PolicyTable& operator=(const PolicyTable&) = delete;

  /// Why a policy cannot be, or an empty text: a prefix of the wrong family, a range of ports whose end lies before its
  /// begin, an SPI of 0.
  static std::string check(const Policy& policy);

  /// Replaces all policies. They must pass check().
  void build(std::span<const Policy> policies);
  void add(const Policy& policy) { change({}, {&policy, 1}); }
  /// Removes, for each of `gone`, the first policy that is equal, and adds those of `fresh`, in one step.
  void change(std::span<const Policy> gone, std::span<const Policy> fresh);
  /// Removes the first policy that is equal. False if there is none.
  bool remove(const Policy& policy);
  void clear() { build({}); }

  /// In the order in which they are asked.
  std::vector<Policy> policies() const;
  size_t size() const;
  /// The number of hash tables that a lookup may ask, for a direction and a family.
  size_t tuples(IPsecDirection direction, bool v6) const;

  PolicyView view() const { return PolicyView(current_.load(std::memory_order_acquire)); }
  PolicyAnswer lookup(IPsecDirection direction, const PolicySelector& packet) const {
    return view().lookup(direction, packet);
  }

 private:
  void publish();
  static void discard(std::unique_ptr<const PolicyGeneration> generation);

  mutable std::mutex mutex_;
  std::vector<Policy> policies_;  // in the order in which they are asked
  std::unique_ptr<const PolicyGeneration> generation_;
  std::atomic<const PolicyGeneration*> current_;
};

}  // namespace headrace
