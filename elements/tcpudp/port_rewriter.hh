#pragma once
/// \file
/// What the rewriters of addresses and ports share: keys of packets, and what is done to UDP and TCP headers.

#include "elements/ip/rewriter_base.hh"

namespace headrace {

/// The base of IPRewriter, TCPRewriter and UDPRewriter.
class PortRewriter : public RewriterBase {
 protected:
  struct PortKey {
    uint32_t space;
    FlowId id;
    uint8_t protocol;
  };

  /// The addresses and ports of a packet with at least 8 bytes behind its IP header that is no later fragment.
  static bool ports_of(const Packet& p, const Ip4Header& ip, FlowId& id) {
    if (!ip.is_first_fragment() || p.network_length() < ip.header_length() + 8) return false;
    const auto& header = *reinterpret_cast<const UdpHeader*>(ip.bytes() + ip.header_length());
    id = {ip.src, ip.dst, header.src_port, header.dst_port};
    return true;
  }

  // --- TCP: a flow is done, or has data, both ways

  enum TcpState : uint8_t { kDone = 1, kData = 4 };  // shifted left by one for the way back
  enum TcpLife : uint8_t { kNoData, kBothData, kBothDone };
  struct TcpTimes {
    Interval no_data = Interval::from_sec(300), data = Interval::from_sec(86400), done = Interval::from_sec(240);
    FlowTable::Lifetimes lifetimes(Interval guarantee) const { return {guarantee.ns, {no_data.ns, data.ns, done.ns}}; }
  };
  /// TCP_TIMEOUT and so on, and TCP_GUARANTEE.
  void read_times(Args& args, TcpTimes& times);
  void apply_tcp(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);

  // --- UDP: a flow becomes a stream with its third packet if one has come back

  enum UdpState : uint8_t { kBack = 1, kPacket = 2, kMostPackets = 3 * kPacket };
  enum UdpLife : uint8_t { kShort, kStreaming };
  struct UdpTimes {
    Interval idle = Interval::from_sec(300);
    std::optional<Interval> streaming;
    FlowTable::Lifetimes lifetimes(Interval guarantee) const {
      return {guarantee.ns, {idle.ns, streaming.value_or(idle).ns, idle.ns}};
    }
  };
  /// Also for TCP and DCCP where they are treated like UDP.
  void apply_udp(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);

  /// With the bytes that sequence numbers are shifted by.
  static std::string list_tcp(const FlowEntry& entry);
  /// `saddr sport daddr dport` of a TCP flow, rewritten; empty without a flow.
  Status look_up(int protocol, const std::string& text, std::string& value, Errors& errors);

 private:
  void track_tcp(FlowRecord& flow, const Ip4Header& ip, const TcpHeader& tcp, bool back);
  void shift_sequence(FlowRecord& flow, TcpHeader& tcp, int length, bool back);
  static void count_packet(FlowRecord& flow, bool back);
};

}  // namespace headrace
