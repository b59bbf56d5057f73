#include "offload/rows.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/packet_pool.hh"

namespace headrace::offload {

namespace {
/// Packets whose data begins further into the buffer are rare, and their rows might extend past the buffer's end.
constexpr int kMaxData = 1024;
/// How many packets ahead memory is prefetched.
constexpr int kAhead = 6;

/// A packet and its window, which is likely to begin at byte `begin` of a packet with the usual headroom.
template <int kWindow>
inline void prefetch(const Packet* p, int begin) {
  __builtin_prefetch(p, 1);
  const uint8_t* const window = p->buffer() + static_cast<int>(Packet::kDefaultHeadroom) + begin;
  __builtin_prefetch(window, 1);
  if constexpr (kWindow > 32) __builtin_prefetch(window + kWindow - 1, 1);
}

/// Bytes in front of a packet that elements may still want: headers that were stripped.
constexpr uint32_t kStripped = 64;

/// Makes `output` the packet that `input` was, with the bytes that the device has written, from byte `first` on.
void replace(Packet& output, const Packet& input, uint16_t first) {
  output.copy_state(input);
  const uint32_t n = std::min<uint32_t>(first, kStripped);
  std::memcpy(output.buffer() + first - n, input.buffer() + first - n, n);
}
}  // namespace

template <int kWindow, bool kMore>
void Rows::choose(int window) {
  if (window == kWindow) {
    pack_ = &pack_rows<kWindow, kMore>;
    apply_ = &apply_rows<kWindow, kMore>;
  }
  if constexpr (kWindow > 0) choose<kWindow - 4, kMore>(window);
}

Rows::Rows(const Plan& plan) : plan_(&plan), layout_(plan.row()) {
  for (int g = 0; g < static_cast<int>(offsets_.size()); ++g)
    if (layout_.annotations >> g & 1) offsets_[static_cast<size_t>(annotations_++)] = static_cast<uint8_t>(4 * g);
  for (const Exit& e : plan.exits())
    for_host_.push_back(e.kind == Exit::Kind::kResume || e.kind == Exit::Kind::kEscape);
  if (layout_.address_size != 0 || layout_.results != 0)
    choose<kMaxWindow, true>(layout_.window_size);
  else
    choose<kMaxWindow, false>(layout_.window_size);
}

template <int kWindow, bool kMore>
void Rows::pack_rows(const Rows& self, uint16_t step, uint16_t untouched, Packet* const* packets,
                     Packet* const* outputs, int n, uint8_t* rows) {
  const int begin = self.layout_.window_begin, annotations = self.annotations_;
  const auto offsets = self.offsets_;
  const auto stride = static_cast<size_t>(self.layout_.stride);
  const bool with_address = kMore && self.layout_.address_size != 0, with_output = kMore && self.plan_->rewrites();
  const int result_words = kMore ? self.layout_.results * self.layout_.result_size / 4 : 0;
  const PacketPool& pool = PacketPool::instance();
  for (int i = 0; i < n; ++i, rows += stride) {
    Packet* p = packets[i];
    // Another worker, or a queue, may have had the packets last.
    if (i + kAhead < n) prefetch<kWindow>(packets[i + kAhead], begin);
    RowHeader h = p->row_header();
    // A device reads payloads only in the pool's memory.
    if (h.data + begin < 0 || h.data > kMaxData || (with_address && !pool.contains(p))) [[unlikely]] {
      h.at = untouched;
    } else {
      h.at = step;
      uint8_t* to = rows + RowLayout::kAddressAt;
      if (with_address) {
        h.rewritten = 0;
        const auto address = reinterpret_cast<uint64_t>(p->buffer());
        __builtin_memcpy(to, &address, sizeof address);
        to += sizeof address;
      }
      if (with_output) {
        const auto address = outputs[i] ? reinterpret_cast<uint64_t>(outputs[i]->buffer()) : 0;
        __builtin_memcpy(to, &address, sizeof address);
        to += sizeof address;
      }
      // No shader has given a result yet.
      for (int word = 0; word < result_words; ++word, to += 4) std::memset(to, 0, 4);
      for (int a = 0; a < annotations; ++a, to += 4)
        __builtin_memcpy(to, p->anno() + offsets[static_cast<size_t>(a)], 4);
      __builtin_memcpy(to, p->buffer() + h.data + begin, kWindow);
    }
    __builtin_memcpy(rows, &h, sizeof h);
  }
}

template <int kWindow, bool kMore>
bool Rows::apply_rows(const Rows& self, const uint8_t* rows, Packet** packets, Packet** outputs,
                      const uint16_t* untouched, int n, uint16_t* codes) {
  const int begin = self.layout_.window_begin, annotations = self.annotations_;
  const auto offsets = self.offsets_;
  const auto stride = static_cast<size_t>(self.layout_.stride);
  const int annotations_at = kMore ? self.layout_.result(self.layout_.results) : RowLayout::kAddressAt;
  const size_t exits = self.for_host_.size();
  const bool with_output = kMore && self.plan_->rewrites();
  const uint8_t* for_host = self.for_host_.data();
  uint8_t any = 0;
  const auto fetch = [&](int i) {
    prefetch<kWindow>(packets[i], begin);
    if (with_output && outputs[i]) prefetch<kWindow>(outputs[i], begin);
  };
  for (int i = 0; i < std::min(n, kAhead); ++i) fetch(i);
  for (int i = 0; i < n; ++i, rows += stride) {
    if (i + kAhead < n) fetch(i + kAhead);
    RowHeader h;
    __builtin_memcpy(&h, rows, sizeof h);
    // An invalid code would be a fault of the device; the packet is still unchanged.
    const auto exit = static_cast<size_t>(h.at - kExit);
    const bool lost =
        with_output && h.rewritten && (!outputs[i] || uint64_t{h.data} + h.length > PacketPool::kCapacity);
    if (exit >= exits || h.at == untouched[i] || lost) [[unlikely]] {
      codes[i] = untouched[i];
      any = 1;
      continue;
    }
    codes[i] = h.at;
    any |= for_host[exit];
    Packet* p = packets[i];
    const uint32_t window_at = p->headroom() + static_cast<uint32_t>(begin);
    if (with_output && h.rewritten) {
      std::swap(packets[i], outputs[i]);
      uint16_t first;
      __builtin_memcpy(&first, rows + RowLayout::kWrittenFromAt, sizeof first);
      replace(*packets[i], *p, std::min<uint16_t>(first, PacketPool::kCapacity));
      p = packets[i];
    }
    const uint8_t* from = rows + annotations_at;
    for (int a = 0; a < annotations; ++a, from += 4)
      __builtin_memcpy(p->anno() + offsets[static_cast<size_t>(a)], from, 4);
    __builtin_memcpy(p->buffer() + window_at, from, kWindow);
    p->set_row_header(h);
  }
  return any != 0;
}

}  // namespace headrace::offload
