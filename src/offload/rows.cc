#include "offload/rows.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/packet_pool.hh"

namespace headrace::offload {

namespace {
/// Packets whose data begins further into the buffer are rare, and their rows might extend past the buffer's end.
constexpr int kMaxData = 1024;
/// How many packets ahead memory is prefetched, and what only rows tell.
constexpr int kAhead = 12, kRowsAhead = 4;

/// A packet and its window, which is likely to begin at byte `begin` of a packet with the usual headroom.
template <int kWindow>
inline void prefetch(const Packet* p, int begin) {
  __builtin_prefetch(p, 1);
  if constexpr (kWindow == 0) return;
  const uint8_t* const window = p->buffer() + static_cast<int>(Packet::kDefaultHeadroom) + begin;
  __builtin_prefetch(window, 1);
  if constexpr (kWindow > 32) __builtin_prefetch(window + kWindow - 1, 1);
}

/// Bytes in front of a packet that elements may still want: headers that were stripped.
constexpr uint32_t kStripped = 64;

/// What replace() will touch of the bytes.
inline void prefetch_stripped(const Packet& output, const Packet& input, uint32_t first) {
  for (const uint32_t at : {first - std::min(first, kStripped), first}) {
    __builtin_prefetch(input.buffer() + at);
    __builtin_prefetch(output.buffer() + at, 1);
  }
}

/// Makes `output` the packet that `input` was, with the bytes that the device has written, from byte `first` on.
void replace(Packet& output, const Packet& input, uint32_t first, bool all_annotations) {
  output.copy_state(input, all_annotations);
  const uint32_t n = std::min(first, kStripped);
  std::memcpy(output.buffer() + first - n, input.buffer() + first - n, n);
}
}  // namespace

template <int kWindow, bool kMore>
void Rows::choose() {
  if (layout_.window_size == kWindow) pack_ = &pack_rows<kWindow, kMore>;
  if (layout_.written == kWindow) apply_ = &apply_rows<kWindow, kMore>;
  if constexpr (kWindow > 0) choose<kWindow - 4, kMore>();
}

void Rows::Places::add(const RowLayout& row, int32_t groups) {
  for (int g = 0; g < static_cast<int>(of.size()); ++g)
    if (groups >> g & 1)
      of[static_cast<size_t>(n++)] = {static_cast<uint8_t>(4 * g), static_cast<uint8_t>(row.annotation(4 * g))};
}

Rows::Rows(const Plan& plan) : plan_(&plan), layout_(plan.row()) {
  sent_.add(layout_, layout_.annotations_both);
  sent_.add(layout_, layout_.annotations_there);
  for (Place& p : sent_.of) p.row = static_cast<uint8_t>(p.row - layout_.header);
  received_.add(layout_, layout_.annotations_back);
  received_.add(layout_, layout_.annotations_both);
  all_ = received_;
  all_.add(layout_, layout_.annotations_there);
  all_.add(layout_, layout_.annotations_stay);
  const int32_t annotations =
      layout_.annotations_both | layout_.annotations_there | layout_.annotations_back | layout_.annotations_stay;
  all_annotations_ = annotations >> (Packet::kAnnoSize / 4) != 0;
  for (const Exit& e : plan.exits())
    for_host_.push_back(e.kind == Exit::Kind::kResume || e.kind == Exit::Kind::kEscape);
  if (layout_.address_size != 0)
    choose<kMaxWindow, true>();
  else
    choose<kMaxWindow, false>();
}

template <int kWindow, bool kMore>
void Rows::pack_rows(const Rows& self, uint16_t step, uint16_t untouched, Packet* const* packets,
                     Packet* const* outputs, int n, uint8_t* rows) {
  const RowLayout& layout = self.layout_;
  const int begin = layout.window_begin, window = layout.window() - layout.header;
  const Places sent = self.sent_;
  const auto there = static_cast<size_t>(layout.there);
  const bool with_output = kMore && self.plan_->rewrites();
  const int address_at = layout.address() - layout.header, output_at = layout.output() - layout.header;
  const PacketPool& pool = PacketPool::instance();
  for (int i = 0; i < n; ++i, rows += there) {
    Packet* p = packets[i];
    // Another worker, or a queue, may have had the packets last.
    if (i + kAhead < n) prefetch<kWindow>(packets[i + kAhead], begin);
    const auto data = static_cast<int>(p->headroom());
    // A device reads payloads only in the pool's memory.
    const bool skipped = data + begin < 0 || data > kMaxData || (kMore && !pool.contains(p));
    const Packet::RowWords header = p->row_words(skipped ? untouched : step);
    __builtin_memcpy(rows, &header, sizeof header);
    if (!skipped) [[likely]] {
      if constexpr (kMore) {
        const auto address = reinterpret_cast<uint64_t>(p->buffer());
        __builtin_memcpy(rows + address_at, &address, sizeof address);
      }
      if (with_output) {
        const auto address = outputs[i] ? reinterpret_cast<uint64_t>(outputs[i]->buffer()) : 0;
        __builtin_memcpy(rows + output_at, &address, sizeof address);
      }
      for (int a = 0; a < sent.n; ++a) {
        const Place place = sent.of[static_cast<size_t>(a)];
        __builtin_memcpy(rows + place.row, p->anno() + place.anno, 4);
      }
      __builtin_memcpy(rows + window, p->buffer() + data + begin, kWindow);
    }
  }
}

template <int kWindow, bool kMore>
bool Rows::apply_rows(const Rows& self, const uint8_t* rows, const uint8_t* whole, Packet** packets, Packet** outputs,
                      const uint16_t* untouched, int n, uint16_t* codes) {
  const RowLayout& layout = self.layout_;
  const int begin = layout.window_begin, window = layout.window(), header = layout.header;
  const Places received = self.received_;
  const auto back = static_cast<size_t>(layout.back), stride = static_cast<size_t>(layout.stride);
  const size_t exits = self.for_host_.size();
  const bool with_output = kMore && self.plan_->rewrites();
  const uint8_t* for_host = self.for_host_.data();
  uint8_t any = 0;
  const auto fetch = [&](int i, const uint8_t* row) {
    __builtin_prefetch(row);
    prefetch<kWindow>(packets[i], begin);
    if (with_output && outputs[i]) prefetch<kWindow>(outputs[i], begin);
  };
  const auto written_from = [&](const uint8_t* row) {
    uint16_t first;
    __builtin_memcpy(&first, row + layout.written_from(), sizeof first);
    return std::min<uint32_t>(first, PacketPool::kCapacity);
  };
  for (int i = 0; i < std::min(n, kAhead); ++i) fetch(i, rows + back * static_cast<size_t>(i));
  for (int i = 0; i < n; ++i, rows += back, whole += stride) {
    if (i + kAhead < n) fetch(i + kAhead, rows + back * kAhead);
    if (with_output && i + kRowsAhead < n && outputs[i + kRowsAhead])
      prefetch_stripped(*outputs[i + kRowsAhead], *packets[i + kRowsAhead], written_from(rows + back * kRowsAhead));
    RowHeader h;
    __builtin_memcpy(&h, rows + header, sizeof h);
    // An invalid code would be a fault of the device; the packet is still unchanged.
    const auto exit = static_cast<size_t>(h.at - kExit);
    const bool lost =
        with_output && h.rewritten() && (!outputs[i] || uint64_t{h.data} + h.length > PacketPool::kCapacity);
    if (exit >= exits || h.at == untouched[i] || lost) [[unlikely]] {
      codes[i] = untouched[i];
      any = 1;
      continue;
    }
    codes[i] = h.at;
    any |= for_host[exit];
    Packet* p = packets[i];
    const uint32_t window_at = p->headroom() + static_cast<uint32_t>(begin);
    if (with_output && h.rewritten()) {
      std::swap(packets[i], outputs[i]);
      replace(*packets[i], *p, written_from(rows), self.all_annotations_);
      p = packets[i];
    }
    if (h.whole()) [[unlikely]] {
      self.apply_whole(whole, *p, window_at);
    } else {
      for (int a = 0; a < received.n; ++a) {
        const Place place = received.of[static_cast<size_t>(a)];
        __builtin_memcpy(p->anno() + place.anno, rows + place.row, 4);
      }
      __builtin_memcpy(p->buffer() + window_at, rows + window, kWindow);
    }
    p->set_row_header(h);
  }
  return any != 0;
}

void Rows::apply_whole(const uint8_t* row, Packet& p, uint32_t window_at) const {
  for (int a = 0; a < all_.n; ++a) {
    const Place place = all_.of[static_cast<size_t>(a)];
    std::memcpy(p.anno() + place.anno, row + place.row, 4);
  }
  std::memcpy(p.buffer() + window_at, row + layout_.window(), static_cast<size_t>(layout_.window_size));
}

}  // namespace headrace::offload
