/// \file
/// How packets of workers become messages.

#include <algorithm>

#include "control/openflow/switch/switch.hh"
#include "tables/key/key_fields.hh"

namespace headrace::openflow {

namespace {

void add_field(KeyMatch& match, uint8_t number, uint64_t value) {
  const KeyField& field = key_fields()[number];
  set_key_field(match.value, field, {0, value});
  set_key_field(match.mask, field, key_field_ones(field));
}

constexpr uint8_t kTunnelId = 38;  // OXM number

}  // namespace

void Switch::send_packet_in(const QueuedPacketIn& in) {
  Packet* const packet = in.packet;
  PacketIn message;
  message.reason = in.reason;
  message.table = in.table;
  message.total_len = static_cast<uint16_t>(std::min<uint32_t>(packet->length(), UINT16_MAX));
  message.cookie = UINT64_MAX;
  if (in.entry != Visits::kNone) {
    const std::lock_guard guard(datapath_->lock());
    message.cookie = pipeline_.cookie_of(in.entry);
  }
  add_field(message.match.key, oxm::kInPort, in.in_port);
  if (in.metadata != 0) add_field(message.match.key, oxm::kMetadata, in.metadata);
  if (in.tunnel_id != 0) add_field(message.match.key, kTunnelId, in.tunnel_id);
  // Packets that no entry has matched are for whoever set miss_send_len (OpenFlow 1.0.0, section 5.3.2); so are those with
  // a TTL that is not valid.
  const bool missed = in.reason == PacketInReason::kNoMatch && in.entry == Visits::kNone;
  const bool by_miss_send_len = missed || in.reason == PacketInReason::kInvalidTtl;
  const bool whole = in.max_length == kWholePacket && !by_miss_send_len;
  const uint8_t* const data = packet->data();
  if (!whole) message.buffer = buffers_.store(packet, in.in_port, datapath_->now());
  const bool cut = message.buffer != kNoBuffer && !by_miss_send_len;
  const size_t bytes = cut ? std::min<size_t>(message.total_len, in.max_length) : message.total_len;
  message.data.assign(data, data + bytes);
  // In 1.3 a packet that no entry has matched, not even one for that, is dropped.
  channel_->packet_in(message, by_miss_send_len, missed);
  if (message.buffer == kNoBuffer) packet->kill();
}

}  // namespace headrace::openflow
