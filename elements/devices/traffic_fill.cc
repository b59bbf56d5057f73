/// \file
/// How TrafficSource writes frames into buffers.

#include <cstring>

#include "elements/devices/TrafficSource.hh"
#include "elements/devices/frame_stamp.hh"
#include "headrace/checksum.hh"

namespace headrace {

namespace {

/// What is written of each frame's header: with a whole cache line, one store does.
constexpr size_t kWholeLine = 64;

}  // namespace

template <size_t kHeader, typename Record, typename Write>
uint64_t TrafficSource::fill_from(const std::vector<Record>& records, Sender& sender, Batch& batch, Write&& write) {
  constexpr int kAhead = 16;
  // Records come one after the other. In large batches hardware alone does not ask for them early enough. For packets that
  // come alone it does, and to ask for a record with each of them made them slower.
  constexpr size_t kRecordsAhead = 2048 / sizeof(Record);
  const Record* const all = records.data();
  const size_t count = records.size();
  size_t at = sender.next;
  uint64_t bytes = 0;
  const int n = batch.size();
  uint8_t header[64];
  if constexpr (kHeader > 0) std::memcpy(header, sender.share.header, 64);
  for (int i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      __builtin_prefetch(batch[i + kAhead], 1);
      __builtin_prefetch(batch[i + kAhead]->buffer() + Packet::kDefaultHeadroom, 1);
      __builtin_prefetch(all + at + kRecordsAhead);
    }
    Packet* p = batch[i];
    const Record& r = all[at];
    if (++at == count) at = 0;
    p->reset(r.length);
    p->set_rx_hash(r.hash);
    uint8_t* d = p->data();
    if constexpr (kHeader > 0) std::memcpy(d, header, kHeader);
    write(d, r);
    bytes += r.length;
  }
  sender.next = at;
  return bytes;
}

uint64_t TrafficSource::fill_records(Sender& sender, Batch& batch) {
  const auto write = [](uint8_t* d, const TrafficRecord& r) {
    const uint16_t ip_length = __builtin_bswap16(static_cast<uint16_t>(r.length - 14));
    const uint16_t udp_length = __builtin_bswap16(static_cast<uint16_t>(r.length - 34));
    std::memcpy(d + 16, &ip_length, 2);
    std::memcpy(d + 24, &r.checksum, 2);
    std::memcpy(d + 30, &r.dst, 4);
    std::memcpy(d + 34, &r.src_port, 2);
    std::memcpy(d + 38, &udp_length, 2);
  };
  constexpr size_t kHeaders = 14 + 20 + 8;
  return sender.keeps_payload ? fill_from<kHeaders>(sender.share.records, sender, batch, write)
                              : fill_from<kWholeLine>(sender.share.records, sender, batch, write);
}

uint64_t TrafficSource::fill_records6(Sender& sender, Batch& batch) {
  const auto write = [](uint8_t* d, const TrafficRecord6& r) {
    // What follows the IPv6 header: its payload, and all of the UDP packet.
    const uint16_t length = __builtin_bswap16(static_cast<uint16_t>(r.length - 54));
    std::memcpy(d + 18, &length, 2);
    std::memcpy(d + 38, r.dst, 16);
    std::memcpy(d + 54, &r.src_port, 2);
    std::memcpy(d + 58, &length, 2);
  };
  return sender.keeps_payload ? fill_from<kShortestIp6>(sender.share.records6, sender, batch, write)
                              : fill_from<kWholeLine>(sender.share.records6, sender, batch, write);
}

template <size_t kRoom>
uint64_t TrafficSource::fill_headers(const std::vector<TrafficHeader<kRoom>>& headers, Sender& sender, Batch& batch) {
  return sender.keeps_payload ? fill_from<0>(headers, sender, batch,
                                             [](uint8_t* d, const TrafficHeader<kRoom>& h) {
                                               std::memcpy(d, h.bytes, h.size);
                                               // Behind what is not IP there is padding.
                                               if (h.size < 60 && FrameStamp::place(d) == FrameStamp::kNowhere)
                                                 std::memset(d + h.size, 0, 60u - h.size);
                                             })
                              : fill_from<0>(headers, sender, batch, [](uint8_t* d, const TrafficHeader<kRoom>& h) {
                                  std::memcpy(d, h.bytes, kRoom);
                                  std::memset(d + kRoom, 0, sizeof h - kRoom);
                                });
}

template <size_t kRoom>
void TrafficSource::add_payloads(const std::vector<TrafficHeader<kRoom>>& headers, const Sender& sender, Batch& batch,
                                 size_t first) const {
  const bool written = stamp_ || numbers_ || sender.keeps_payload;
  for (Packet* p : batch) {
    const TrafficHeader<kRoom>& h = headers[first];
    if (++first == headers.size()) first = 0;
    // Without these, zeros are behind the headers up to the end of a whole line.
    if (h.checksum == 0 || (!written && h.length <= sizeof h)) continue;
    uint8_t* const at = p->data() + (h.checksum & ~kNeverZero);
    const auto sum = static_cast<uint16_t>(~(at[0] << 8 | at[1]));
    uint16_t checksum = ChecksumSum().add16(sum).add(p->data() + h.size, h.length - h.size).checksum();
    if (checksum == 0 && (h.checksum & kNeverZero) != 0) checksum = 0xffff;
    at[0] = static_cast<uint8_t>(checksum >> 8);
    at[1] = static_cast<uint8_t>(checksum);
  }
}

void TrafficSource::add_payloads(const Sender& sender, Batch& batch, size_t first) const {
  if (!sender.share.narrow.empty()) add_payloads(sender.share.narrow, sender, batch, first);
  if (!sender.share.wide.empty()) add_payloads(sender.share.wide, sender, batch, first);
}

uint64_t TrafficSource::fill(Sender& sender, Batch& batch) {
  const TrafficShare& share = sender.share;
  if (!share.frames.empty()) return fill_frames(sender, batch);
  if (!share.narrow.empty()) return fill_headers(share.narrow, sender, batch);
  if (!share.wide.empty()) return fill_headers(share.wide, sender, batch);
  return share.records6.empty() ? fill_records(sender, batch) : fill_records6(sender, batch);
}

uint64_t TrafficSource::fill_frames(Sender& sender, Batch& batch) {
  const std::vector<TrafficShare::Frame>& frames = sender.share.frames;
  uint64_t bytes = 0;
  for (int i = 0; i < batch.size(); ++i) {
    const TrafficShare::Frame& f = frames[sender.next];
    if (++sender.next == frames.size()) sender.next = 0;
    Packet* p = batch[i];
    const auto length = static_cast<uint32_t>(f.bytes.size());
    if (length > p->capacity() - Packet::kDefaultHeadroom) [[unlikely]] {
      // A jumbo frame: this buffer is too small for it.
      p->kill();
      p = Packet::make(f.bytes.data(), length);
      if (!p) {
        batch[i] = batch[batch.size() - 1];
        batch.resize(batch.size() - 1);
        --i;
        counters_.add(kMissed, 1);
        continue;
      }
      batch[i] = p;
    } else {
      p->reset(length);
      std::memcpy(p->data(), f.bytes.data(), length);
    }
    p->set_rx_hash(f.hash);
    bytes += length;
  }
  return bytes;
}

}  // namespace headrace
