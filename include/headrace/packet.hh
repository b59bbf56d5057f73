#pragma once
/// \file
/// A packet: its bytes, where its headers begin, and its annotations.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "headrace/device/row.hh"
#include "headrace/fields.hh"
#include "headrace/timestamp.hh"

namespace headrace {

/// A packet. It lies at a fixed place in its buffer:
///
///     [ driver room 128 | Packet 128 | headroom 128 | data ... ]
///
/// so that `buffer()` is computed, not loaded. The first cache line holds everything that forwarding uses. Packets come
/// from a PacketPool (make(), clone()) and are returned by kill().
class alignas(64) Packet {
 public:
  static constexpr uint32_t kDefaultHeadroom = 128;
  /// Annotations that are cleared and copied with the packet. Those after them are for a shader's host body.
  static constexpr uint32_t kAnnoSize = 48;
  static constexpr uint32_t kAnnoCapacity = 56;
  static constexpr uint16_t kNoHeader = 0xffff;

  /// Makes a packet of `length` bytes with uninitialized data and cleared annotations. Null if no buffer is free (the
  /// caller counts the loss) or if the length exceeds kMaxLength.
  static Packet* make(uint32_t length, uint32_t headroom = kDefaultHeadroom);
  /// As above, with data copied from `bytes`.
  static Packet* make(const void* bytes, uint32_t length, uint32_t headroom = kDefaultHeadroom);
  static constexpr uint32_t kMaxLength = 65535 + 64;

  /// A copy with its own data, headers and annotations; null if no buffer is free.
  Packet* clone() const;
  /// Returns the buffer to its pool.
  void kill();

  uint8_t* buffer() { return reinterpret_cast<uint8_t*>(this) + sizeof(Packet); }
  const uint8_t* buffer() const { return reinterpret_cast<const uint8_t*>(this) + sizeof(Packet); }
  uint8_t* data() { return buffer() + data_; }
  const uint8_t* data() const { return buffer() + data_; }
  uint8_t* end_data() { return data() + length_; }
  const uint8_t* end_data() const { return data() + length_; }
  uint32_t length() const { return length_; }
  uint32_t headroom() const { return data_; }
  uint32_t tailroom() const { return capacity() - data_ - length_; }

  /// Removes `n` bytes from the front. If the packet is shorter, returns false and changes nothing.
  bool pull(uint32_t n) {
    if (n > length_) return false;
    if (data_ + n >= kNoHeader) [[unlikely]]
      return pull_slow(n);
    data_ = static_cast<uint16_t>(data_ + n);
    length_ -= n;
    return true;
  }
  /// Adds `n` bytes at the front, uninitialized unless they were pulled before, moving the data within the buffer if
  /// necessary. If the buffer has no room, returns false and changes nothing.
  bool push(uint32_t n) {
    if (n > data_) [[unlikely]]
      return push_slow(n);
    data_ = static_cast<uint16_t>(data_ - n);
    length_ += n;
    return true;
  }
  /// Adds `n` uninitialized bytes at the end; false if the buffer has no room.
  bool put(uint32_t n) {
    if (n > tailroom()) [[unlikely]]
      return put_slow(n);
    length_ += n;
    return true;
  }
  /// Removes `n` bytes from the end; false if the packet is shorter.
  bool take(uint32_t n) {
    if (n > length_) return false;
    length_ -= n;
    return true;
  }
  /// Moves the data so that it begins `headroom` bytes into the buffer; headers, and bytes in front that were pulled, move
  /// along. False if it does not fit.
  bool shift_to(uint32_t headroom);

  bool has_mac_header() const { return mac_ != kNoHeader; }
  bool has_network_header() const { return network_ != kNoHeader; }
  bool has_transport_header() const { return transport_ != kNoHeader; }
  uint8_t* mac_header() { return buffer() + mac_; }
  const uint8_t* mac_header() const { return buffer() + mac_; }
  uint8_t* network_header() { return buffer() + network_; }
  const uint8_t* network_header() const { return buffer() + network_; }
  uint8_t* transport_header() { return buffer() + transport_; }
  const uint8_t* transport_header() const { return buffer() + transport_; }
  /// Byte counts from data() to a header; negative when the header has been stripped.
  int mac_header_offset() const { return static_cast<int>(mac_) - data_; }
  int network_header_offset() const { return static_cast<int>(network_) - data_; }
  int transport_header_offset() const { return static_cast<int>(transport_) - data_; }
  int network_header_length() const { return static_cast<int>(transport_) - network_; }
  /// Bytes from the network (transport) header to the end of the packet.
  int network_length() const { return static_cast<int>(length_) - network_header_offset(); }
  int transport_length() const { return static_cast<int>(length_) - transport_header_offset(); }

  /// Header positions, as byte offsets from data().
  void set_mac_header(int offset_from_data = 0) { mac_ = static_cast<uint16_t>(data_ + offset_from_data); }
  void set_network_header(int offset_from_data, int header_length) {
    network_ = static_cast<uint16_t>(data_ + offset_from_data);
    transport_ = static_cast<uint16_t>(network_ + header_length);
  }
  void clear_mac_header() { mac_ = kNoHeader; }
  void clear_network_header() { network_ = transport_ = kNoHeader; }
  void clear_transport_header() { transport_ = kNoHeader; }

  PacketType packet_type() const { return static_cast<PacketType>(type_); }
  void set_packet_type(PacketType type) { type_ = static_cast<uint8_t>(type); }

  uint8_t* anno() { return anno_; }
  const uint8_t* anno() const { return anno_; }
  uint8_t anno_u8(int offset) const { return anno_[offset]; }
  void set_anno_u8(int offset, uint8_t value) { anno_[offset] = value; }
  /// Host-order integers in annotations.
  uint16_t anno_u16(int offset) const { return load<uint16_t>(offset); }
  void set_anno_u16(int offset, uint16_t value) { store(offset, value); }
  uint32_t anno_u32(int offset) const { return load<uint32_t>(offset); }
  void set_anno_u32(int offset, uint32_t value) { store(offset, value); }
  uint64_t anno_u64(int offset) const { return load<uint64_t>(offset); }
  void set_anno_u64(int offset, uint64_t value) { store(offset, value); }
  void copy_annotations(const Packet& from) {
    std::memcpy(anno_, from.anno_, kAnnoSize);
    type_ = from.type_;
    flags_ = from.flags_;
    timestamp_ = from.timestamp_;
  }

  /// Takes over everything but the bytes: lengths, headers, annotations. Both buffers have the same capacity.
  /// \param all also annotations from kAnnoSize on; without them and a timestamp, the second cache lines are left alone
  void copy_state(const Packet& from, bool all) {
    std::memcpy(static_cast<void*>(this), &from, kRowBytes);
    flags_ = from.flags_;
    std::memcpy(anno_, from.anno_, kAnnoSize);
    if (all) std::memcpy(anno_ + kAnnoSize, from.anno_ + kAnnoSize, kAnnoCapacity - kAnnoSize);
    if (flags_ & kHasTimestamp) timestamp_ = from.timestamp_;
  }

  uint32_t rx_hash() const { return anno_u32(anno_offset::kRxHash); }
  void set_rx_hash(uint32_t hash) { set_anno_u32(anno_offset::kRxHash, hash); }

  /// Time of receipt; zero when none was set.
  Timestamp timestamp() const { return flags_ & kHasTimestamp ? timestamp_ : Timestamp{}; }
  void set_timestamp(Timestamp t) {
    timestamp_ = t;
    flags_ |= kHasTimestamp;
  }

  /// How often the packet has gone around a cycle of push connections; at most kMaxTurns.
  int turns() const { return flags_ >> kTurnShift; }
  void add_turn() { flags_ = static_cast<uint8_t>(flags_ + (1 << kTurnShift)); }
  static constexpr int kMaxTurns = 127;

  /// Makes this buffer a fresh packet of `length` bytes after `headroom` bytes, with cleared annotations. For sources
  /// that recycle buffers; `length` must fit.
  void reset(uint32_t length, uint32_t headroom = kDefaultHeadroom) {
    length_ = length;
    data_ = static_cast<uint16_t>(headroom);
    mac_ = network_ = transport_ = kNoHeader;
    type_ = flags_ = 0;
    std::memset(anno_, 0, kAnnoSize);
  }
  /// What packets that were received together have in common but for their lengths: a MAC header at the beginning, and a
  /// type. Made once for all of them.
  class Received {
   public:
    Received(uint64_t headroom, PacketType type)
        : first_(headroom << 32 | headroom << 48), second_(kNoHeaders | static_cast<uint64_t>(type) << 32) {}

   private:
    friend class Packet;
    static constexpr uint64_t kNoHeaders = uint64_t{kNoHeader} << 16 | kNoHeader;
    uint64_t first_, second_;
  };
  /// As reset(), in few stores. Only for buffers of the pool.
  void reset_received(uint64_t length, const Received& as) {
    static_assert(offsetof(Packet, length_) == 0 && offsetof(Packet, data_) == 4 && offsetof(Packet, mac_) == 6 &&
                  offsetof(Packet, network_) == 8 && offsetof(Packet, transport_) == 10 &&
                  offsetof(Packet, type_) == 12 && offsetof(Packet, flags_) == 13 &&
                  offsetof(Packet, pool_class_) == 14);
    const uint64_t words[] = {length + as.first_, as.second_};
    std::memcpy(static_cast<void*>(this), words, sizeof words);
    std::memset(anno_, 0, kAnnoSize);
  }
  /// Bytes from buffer() to the end of the buffer. Those of pools have one size, so that this stays in the first cache line.
  uint32_t capacity() const { return is_pooled() ? kBufferBytes : large_capacity_; }
  /// The buffer is one of the PacketPool's, of which each has one size.
  bool is_pooled() const { return pool_class_ == 0; }

  /// A link to another packet, and a number, for the use of this packet's owner. Undefined until set.
  Packet* next() const { return next_; }
  uint16_t tag() const { return tag_; }
  void set_next(Packet* next, uint16_t tag) {
    next_ = next;
    tag_ = tag;
  }

  /// The part of a job's row that is not bytes of the packet; the caller sets `flags` and `at`.
  RowHeader row_header() const {
    RowHeader h;
    std::memcpy(&h, this, sizeof h);
    return h;
  }
  /// The same as two words, without flags and with this `at`.
  struct RowWords {
    uint64_t first, second;
  };
  RowWords row_words(uint16_t at) const {
    static_assert(offsetof(Packet, type_) == 12 && offsetof(RowHeader, type) == 12);
    RowWords w;
    std::memcpy(&w, this, sizeof w);
    w.second = (w.second & 0xff'ffff'ffff) | uint64_t{at} << 48;
    return w;
  }
  /// Where the packet and its headers lie, as offsets from buffer(), and its type.
  void get_positions(uint32_t& length, uint32_t& data, uint16_t& mac, uint16_t& network, uint16_t& transport,
                     uint8_t& type) const {
    length = length_;
    data = data_;
    mac = mac_;
    network = network_;
    transport = transport_;
    type = type_;
  }
  /// Sets where the packet (kData) and its headers lie, as offsets from buffer(), and its type.
  template <bool kData, bool kMac, bool kNetwork, bool kType>
  void set_positions(uint32_t length, uint16_t data, uint16_t mac, uint16_t network, uint16_t transport, uint8_t type) {
    if constexpr (kData) {
      length_ = length;
      data_ = data;
    }
    if constexpr (kMac) mac_ = mac;
    if constexpr (kNetwork) {
      network_ = network;
      transport_ = transport;
    }
    if constexpr (kType) type_ = type;
  }
  /// Takes over the header of a row that a job has processed.
  void set_row_header(const RowHeader& h) {
    static_assert(offsetof(RowHeader, mac) < 8 && offsetof(RowHeader, network) == 8 && offsetof(RowHeader, type) == 12);
    // In pieces of the two words that a row's header is read as. To load bytes of both at once, when they have just been
    // stored, means to wait until they are in the cache.
    const auto* const from = reinterpret_cast<const uint8_t*>(&h);
    auto* const to = reinterpret_cast<uint8_t*>(this);
    std::memcpy(to, from, 8);
    std::memcpy(to + 8, from + 8, 4);
    type_ = h.type;
  }

 private:
  friend class PacketPool;
  static constexpr size_t kRowBytes = 13;  // up to and including type_
  static constexpr uint8_t kHasTimestamp = 1;
  static constexpr int kTurnShift = 1;  // the other bits of flags_ count turns

  Packet() = default;
  bool pull_slow(uint32_t n);
  bool push_slow(uint32_t n);
  bool put_slow(uint32_t n);
  template <typename T>
  T load(int offset) const {
    T value;
    std::memcpy(&value, anno_ + offset, sizeof value);
    return value;
  }
  template <typename T>
  void store(int offset, T value) {
    std::memcpy(anno_ + offset, &value, sizeof value);
  }

  uint32_t length_ = 0;
  uint16_t data_ = kDefaultHeadroom;
  uint16_t mac_ = kNoHeader;
  uint16_t network_ = kNoHeader;
  uint16_t transport_ = kNoHeader;
  uint8_t type_ = 0;
  uint8_t flags_ = 0;
  uint16_t pool_class_ = 0;  // 1: a buffer of its own
  uint8_t anno_[kAnnoCapacity] = {};
  // The second cache line starts with the last eight annotation bytes and is rarely used.
  Timestamp timestamp_;
  uint32_t large_capacity_ = 0;  // bytes from buffer() to the end of a buffer of its own
  uint16_t tag_ = 0;
  Packet* next_ = nullptr;
};
static_assert(sizeof(Packet) == 128 && std::is_standard_layout_v<Packet>);

}  // namespace headrace
