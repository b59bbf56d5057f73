#pragma once
/// \file
/// An Ethernet frame as a list of its fields, and what OpenFlow's actions make of it: slow and simple, to compare with.
/// Bytes are made anew each time, with all checksums computed over all that they cover.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::testing {

using Address6 = std::array<uint32_t, 4>;

struct OpenFlowFrame {
  struct Tag {
    uint16_t type, tci;
  };
  enum class Network { kRaw, kArp, kIp4, kIp6 };

  uint64_t dst = 0, src = 0;  ///< Ethernet addresses
  std::vector<Tag> tags;      ///< the outermost first
  uint16_t type = 0;          ///< behind the tags
  // 802.1ah: if the type is 0x88e7, the I-TAG and the customer's frame.
  uint32_t pbb_tci = 0;
  std::vector<OpenFlowFrame> customer;
  std::vector<uint32_t> labels;  ///< of MPLS, the outermost first

  Network network = Network::kRaw;
  uint8_t tos = 0, ttl = 64, protocol = 0;
  uint32_t flow_label = 0;
  uint32_t src4 = 0, dst4 = 0;  ///< or of ARP
  Address6 src6{}, dst6{};
  uint16_t fragment = 0;  ///< IPv4's word, or offset and M bit of IPv6's header
  bool has_fragment_header = false, hop_by_hop = false;
  int options = 0;  ///< words of options of IPv4
  uint16_t arp_op = 0;
  uint64_t sha = 0, tha = 0;

  uint16_t sport = 0, dport = 0;
  uint8_t icmp_type = 0, icmp_code = 0;
  bool no_checksum = false;  ///< of UDP
  std::optional<Address6> target;
  std::optional<uint64_t> sll, tll;
  std::string payload;
  std::string padding;  ///< of the link, behind IP

  /// What the actions have done to it is not defined.
  bool undefined = false;

  std::string bytes() const;

  /// What follows the Ethernet type is what the type says.
  bool visible(Network what) const;
  bool is_ip() const { return visible(Network::kIp4) || visible(Network::kIp6); }
  bool later_fragment() const { return (fragment & (network == Network::kIp4 ? 0x1fff : 0xfff8)) != 0; }
  bool is_fragment() const { return (fragment & (network == Network::kIp4 ? 0x3fff : 0xfff9)) != 0; }
  bool mpls() const { return (type == 0x8847 || type == 0x8848) && !labels.empty(); }
  bool pbb() const { return type == 0x88e7 && !customer.empty(); }

  enum class Done { kYes, kInvalidTtl };
  /// Does an operation as tables/openflow/program_view.hh writes it, but for outputs and groups.
  Done act(const uint32_t* op);

 private:
  void set_field(const uint32_t* op);
  uint8_t* inner_ttl();
};

}  // namespace headrace::testing
