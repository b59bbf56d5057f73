#pragma once
/// \file
/// What rules look at in a packet's headers.

#include <cstdint>
#include <headrace/payload.hh>
#include <string_view>

#include "tables/rules/rule.hh"

namespace headrace::rules {

/// The headers of an IPv4 or IPv6 packet. The payload is the one that l4_payload() finds. Points into the packet.
class PacketFacts {
 public:
  explicit PacketFacts(const PacketBytes& packet);

  /// False: it is no IP packet, or too short for its header. Then nothing else is known.
  bool is_ip() const { return version_ != 0; }
  int version() const { return version_; }
  /// Of the payload of IP, behind IPv6's extension headers.
  uint8_t protocol() const { return protocol_; }
  uint32_t src4() const { return src4_; }
  uint32_t dst4() const { return dst4_; }
  Address6 src6() const { return src6_; }
  Address6 dst6() const { return dst6_; }
  /// TCP, UDP and SCTP; not in later fragments.
  bool has_ports() const { return has_ports_; }
  uint16_t src_port() const { return src_port_; }
  uint16_t dst_port() const { return dst_port_; }
  bool is_icmp() const { return protocol_ == (version_ == 4 ? 1 : 58); }
  std::string_view payload() const { return payload_; }

  /// The value of a field; false when the packet has none.
  bool field(Field field, uint32_t& value) const;
  /// What the rule asks of addresses, ports and protocol.
  bool header_matches(const Rule& rule) const;
  /// All conditions of the rule but its steps.
  bool meets(const Rule& rule) const;

 private:
  bool tcp_field(Field field, uint32_t& value) const;
  bool icmp_field(Field field, uint32_t& value) const;
  uint32_t ip_options() const;
  bool endpoints_match(const Rule& rule, bool swapped) const;

  uint8_t version_ = 0;
  uint8_t protocol_ = 0;
  bool has_ports_ = false;
  uint16_t fragment_ = 0;  // as in an IPv4 header
  uint16_t src_port_ = 0, dst_port_ = 0;
  uint32_t src4_ = 0, dst4_ = 0;
  Address6 src6_ = 0, dst6_ = 0;
  const uint8_t* network_ = nullptr;
  const uint8_t* transport_ = nullptr;  // null in later fragments
  uint32_t transport_length_ = 0;
  uint32_t id_ = 0;
  bool has_id_ = false;
  std::string_view payload_;
};

}  // namespace headrace::rules
