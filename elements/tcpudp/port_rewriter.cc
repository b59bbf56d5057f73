#include "elements/tcpudp/port_rewriter.hh"

#include <algorithm>

#include "headrace/router.hh"

namespace headrace {

namespace {

constexpr uint8_t kFin = 1, kSyn = 2, kRst = 4;
constexpr uint8_t kOptionEnd = 0, kOptionNop = 1, kOptionSack = 5;

/// Replaces 32 bits of a segment at any offset, and repairs the checksum, which is in the header.
void replace(TcpHeader& tcp, uint8_t* at, uint32_t after) {
  auto& value = *reinterpret_cast<Net32*>(at);
  const uint32_t before = value;
  if (before == after) return;
  value = after;
  // Words of the checksum begin at even offsets; bytes that lie the other way count with their bytes exchanged.
  const bool odd = (at - reinterpret_cast<uint8_t*>(&tcp)) % 2 != 0;
  uint32_t change = 0;
  for (const int shift : {0, 16})
    change += static_cast<uint16_t>(~(before >> shift)) + uint32_t{static_cast<uint16_t>(after >> shift)};
  while (change >> 16) change = (change & 0xffff) + (change >> 16);
  const auto word = static_cast<uint16_t>(change);
  uint32_t sum = static_cast<uint16_t>(~tcp.checksum) + uint32_t{odd ? __builtin_bswap16(word) : word};
  sum = (sum & 0xffff) + (sum >> 16);
  tcp.checksum = static_cast<uint16_t>(~sum);
}

uint32_t sequence_at(const uint8_t* at) { return *reinterpret_cast<const Net32*>(at); }

}  // namespace

void PortRewriter::read_times(Args& args, TcpTimes& times) {
  args.read("TCP_NODATA_TIMEOUT", times.no_data)
      .read("TIMEOUT", times.data)
      .read("TCP_TIMEOUT", times.data)
      .read("TCP_DONE_TIMEOUT", times.done)
      .read("TCP_GUARANTEE", guarantee_);
}

std::string PortRewriter::list_tcp(const FlowEntry& entry) {
  const SequenceShift* shift = entry.flow().shift();
  const int32_t bytes = shift ? shift->total(entry.is_reply()) : 0;
  return list_ids(entry) + (bytes ? fmt::format(" seq {:+}", bytes) : "");
}

void PortRewriter::apply_tcp(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) {
  FlowRecord& flow = entry.flow();
  const bool back = entry.is_reply();
  const FlowId to = entry.rewritten();
  rewrite_addresses(p, ip, entry, to);
  auto& tcp = *reinterpret_cast<TcpHeader*>(ip.bytes() + ip.header_length());
  tcp.src_port = to.sport;
  tcp.dst_port = to.dport;
  FlowTable::touch(flow, now);
  const int length = p.network_length() - ip.header_length();
  if (length < 20) return;
  tcp.checksum = changed(tcp.checksum, flow.port_change(), back);
  track_tcp(flow, ip, tcp, back);
  if (flow.shift() && tcp.header_length() >= 20 && length >= tcp.header_length())
    shift_sequence(flow, tcp, tcp.header_length(), back);
}

void PortRewriter::track_tcp(FlowRecord& flow, const Ip4Header& ip, const TcpHeader& tcp, bool back) {
  const bool has_data = ip.header_length() + tcp.header_length() < ip.total_length;
  const uint8_t before = flow.state();
  uint8_t after = before;
  const auto done = static_cast<uint8_t>(kDone << back);
  if (tcp.flags & kRst)
    after |= kDone | kDone << 1;
  else if (tcp.flags & kFin)
    after |= done;
  else if ((tcp.flags & kSyn) || has_data)
    after &= static_cast<uint8_t>(~done);
  if (has_data) after |= static_cast<uint8_t>(kData << back);
  if (after == before) [[likely]]
    return;
  // The other worker may set and clear bits, too, but those of its own direction; a reset ends both.
  flow.state().fetch_or(after, std::memory_order_relaxed);
  if (before & ~after) flow.state().fetch_and(static_cast<uint8_t>(~(before & ~after)), std::memory_order_relaxed);
  const uint8_t state = flow.state();
  const auto both = [state](unsigned bit) { return (state & (bit | bit << 1)) == (bit | bit << 1); };
  table().set_life(flow, both(kDone) ? kBothDone : both(kData) ? kBothData : kNoData);
}

void PortRewriter::shift_sequence(FlowRecord& flow, TcpHeader& tcp, int length, bool back) {
  const SequenceShift& shift = *flow.shift();
  if (shift.outdated(back, tcp.sequence)) {
    FlowTable::Change change(table());
    change.settle_sequence(flow, back);
  }
  auto* bytes = reinterpret_cast<uint8_t*>(&tcp);
  const SequenceShift& now = *flow.shift();
  if (now.active(back)) replace(tcp, bytes + 4, now.sequence(back, tcp.sequence));
  if (!now.active(!back)) return;
  replace(tcp, bytes + 8, now.acknowledgment(back, tcp.acknowledgment));
  for (int at = 20; at < length && bytes[at] != kOptionEnd;) {
    if (bytes[at] == kOptionNop) {
      ++at;
      continue;
    }
    const int size = at + 1 < length ? bytes[at + 1] : 0;
    if (size < 2 || at + size > length) break;
    if (bytes[at] == kOptionSack)
      for (int edge = at + 2; edge + 4 <= at + size; edge += 4)
        replace(tcp, bytes + edge, now.acknowledgment(back, sequence_at(bytes + edge)));
    at += size;
  }
}

void PortRewriter::apply_udp(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) {
  FlowRecord& flow = entry.flow();
  const bool back = entry.is_reply();
  const FlowId to = entry.rewritten();
  rewrite_addresses(p, ip, entry, to);
  auto* header = ip.bytes() + ip.header_length();
  auto& udp = *reinterpret_cast<UdpHeader*>(header);  // the ports of TCP and DCCP are at the same place
  udp.src_port = to.sport;
  udp.dst_port = to.dport;
  if (ip.protocol == ip_protocol::kUdp) {
    udp.checksum = changed_udp(udp.checksum, flow.port_change(), back);
  } else if (ip.protocol == ip_protocol::kTcp) {
    auto& tcp = *reinterpret_cast<TcpHeader*>(header);
    if (p.network_length() >= ip.header_length() + 18) tcp.checksum = changed(tcp.checksum, flow.port_change(), back);
  } else {
    udp.checksum = changed(udp.checksum, flow.port_change(), back);  // DCCP has it where UDP has (RFC 4340, 5.1)
  }
  FlowTable::touch(flow, now);
  count_packet(flow, back);
  if (flow.state() > kMostPackets) table().set_life(flow, kStreaming);
}

void PortRewriter::count_packet(FlowRecord& flow, bool back) {
  uint8_t before = flow.state();
  for (;;) {
    auto after = static_cast<uint8_t>(before | (back ? kBack : 0));
    if (after < kMostPackets) after = static_cast<uint8_t>(after + kPacket);
    if (after == before || flow.state().compare_exchange_weak(before, after, std::memory_order_relaxed)) return;
  }
}

Status PortRewriter::look_up(int protocol, const std::string& text, std::string& value, Errors& errors) {
  FlowId id;
  Args args = Args::from_words(text, &router().scope(this), errors);
  if (!args.read_mp("SADDR", id.src)
           .read_mp("SPORT", id.sport, TcpUdpPort{ip_protocol::kTcp})
           .read_mp("DADDR", id.dst)
           .read_mp("DPORT", id.dport, TcpUdpPort{ip_protocol::kTcp})
           .complete())
    return Status::failed();
  const FlowTable::Change lock(table());
  if (const FlowEntry* entry = lock.find(space(protocol), id)) {
    const FlowId to = entry->rewritten();
    value = fmt::format("{} {} {} {}", to.src.unparse(), to.sport, to.dst.unparse(), to.dport);
  }
  return {};
}

}  // namespace headrace
