#pragma once
/// \file
/// Groups of an OpenFlow switch, as words that both processors read. Includes no standard header.
///
/// A group has a *slot*, which operations name, for as long as it exists. The slot's word is the index of the group's
/// *record*, which is immutable like programs and lies among them: a head, see GroupWord, and the buckets.

#include <headrace/shader_types.hh>

namespace headrace::openflow {

/// Words of a group's record.
namespace group_word {
inline constexpr uint32_t kKind = 0;    ///< kAll to kFastFailover as in enum ofp_group_type; bit 8: needs the host;
                                        ///< from bit 16 on: the number of buckets
inline constexpr uint32_t kWeight = 1;  ///< of all buckets together
inline constexpr uint32_t kHead = 2;
inline constexpr uint32_t kNeedsHost = 1u << 8;
}  // namespace group_word

/// Words of a bucket.
namespace bucket_word {
inline constexpr uint32_t kProgram = 0;
inline constexpr uint32_t kUpTo = 1;   ///< the weights of this bucket and of those before it
inline constexpr uint32_t kWatch = 2;  ///< bits of the live words that keep it alive: a port's, see LiveView
inline constexpr uint32_t kWatchGroup = 3;
inline constexpr uint32_t kCounter = 4;  ///< the number under which it is counted
inline constexpr uint32_t kCount = 5;
}  // namespace bucket_word

enum class GroupKind : uint8_t { kAll, kSelect, kIndirect, kFastFailover };

/// Which ports and groups are alive: a bit each. LOCAL is port 0 here; groups follow by their slots.
class LiveView {
 public:
  static constexpr uint32_t kPorts = 2048;
  static constexpr uint32_t kGroups = 65536;
  static constexpr uint32_t kWords = (kPorts + kGroups) / 32;
  /// The bit of what is never alive: no watched port.
  static constexpr uint32_t kNever = 0xffffffffu;
  /// The bit of what is alive always: a bucket that watches nothing.
  static constexpr uint32_t kAlways = 0xfffffffeu;

  LiveView() = default;
  HEADRACE_SHADER explicit LiveView(const uint32_t* words) : words_(words) {}

  HEADRACE_SHADER static uint32_t group_bit(uint32_t slot) { return kPorts + slot; }
  HEADRACE_SHADER bool alive(uint32_t bit) const {
    if (bit >= kAlways) return bit == kAlways;
    return (load_shared(words_ + bit / 32) >> bit % 32 & 1) != 0;
  }

 private:
  const uint32_t* words_ = nullptr;
};

/// A group as of one moment.
class GroupView {
 public:
  static constexpr uint32_t kNoBucket = 0xffffffffu;

  /// \param record null: there is no such group, and a packet for it goes nowhere
  HEADRACE_SHADER GroupView(const uint32_t* record, LiveView live) : words_(record), live_(live) {}

  HEADRACE_SHADER bool exists() const { return words_ != nullptr; }
  HEADRACE_SHADER GroupKind kind() const {
    return static_cast<GroupKind>(load_shared(words_ + group_word::kKind) & 0xff);
  }
  /// A packet may need more than one bucket, or a bucket's program needs the host or names a group.
  HEADRACE_SHADER bool needs_host() const {
    return (load_shared(words_ + group_word::kKind) & group_word::kNeedsHost) != 0;
  }
  HEADRACE_SHADER uint32_t buckets() const { return load_shared(words_ + group_word::kKind) >> 16; }
  HEADRACE_SHADER uint32_t program(uint32_t bucket) const { return word(bucket, bucket_word::kProgram); }
  HEADRACE_SHADER uint32_t counter(uint32_t bucket) const { return word(bucket, bucket_word::kCounter); }
  HEADRACE_SHADER bool alive(uint32_t bucket) const {
    return live_.alive(word(bucket, bucket_word::kWatch)) || live_.alive(word(bucket, bucket_word::kWatchGroup));
  }

  /// The bucket that a packet takes in a group other than one of all; kNoBucket: none, and the packet is dropped.
  /// \param hash 32 well-mixed bits of the packet's flow
  HEADRACE_SHADER uint32_t choose(uint32_t hash) const {
    if (kind() == GroupKind::kSelect) return select(hash);
    for (uint32_t i = 0; i < buckets(); ++i)
      if (alive(i)) return i;
    return kNoBucket;
  }

 private:
  HEADRACE_SHADER uint32_t word(uint32_t bucket, uint32_t word) const {
    return load_shared(words_ + group_word::kHead + bucket * bucket_word::kCount + word);
  }
  /// Buckets in proportion to their weights. Flows whose bucket dies go to the others in proportion, and come back; no
  /// other flow moves.
  HEADRACE_SHADER uint32_t select(uint32_t hash) const {
    const uint32_t count = buckets(), total = load_shared(words_ + group_word::kWeight);
    if (total == 0) return kNoBucket;
    const uint32_t at = scale(hash, total);
    uint32_t low = 0;
    for (uint32_t high = count - 1; low < high;) {
      const uint32_t middle = (low + high) / 2;
      if (word(middle, bucket_word::kUpTo) > at) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return alive(low) ? low : select_alive(hash);
  }
  HEADRACE_SHADER uint32_t select_alive(uint32_t hash) const {
    uint32_t total = 0;
    for (uint32_t i = 0; i < buckets(); ++i)
      if (alive(i)) total += weight(i);
    if (total == 0) return kNoBucket;
    uint32_t at = scale((hash ^ hash >> 16) * 0x9e3779b1u, total);
    uint32_t last = kNoBucket;
    for (uint32_t i = 0; i < buckets(); ++i) {
      if (weight(i) == 0 || !alive(i)) continue;
      last = i;
      if (at < weight(i)) break;
      at -= weight(i);
    }
    return last;
  }
  HEADRACE_SHADER uint32_t weight(uint32_t i) const {
    return word(i, bucket_word::kUpTo) - (i == 0 ? 0 : word(i - 1, bucket_word::kUpTo));
  }
  HEADRACE_SHADER static uint32_t scale(uint32_t hash, uint32_t range) {
    return static_cast<uint32_t>(uint64_t{hash} * range >> 32);
  }

  const uint32_t* words_;
  LiveView live_;
};

}  // namespace headrace::openflow
