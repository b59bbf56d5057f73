#pragma once
/// \file
/// How the sequence numbers of a TCP connection are moved when an element on the way makes segments longer or shorter.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

/// Where in each direction of a connection (0: as it was opened, 1: back) bytes were added or taken away. A value:
/// a changed copy takes the place of the one that others may be reading.
class SequenceShift {
 public:
  /// From sequence number `from` on, as the sender counts, `bytes` are added to what lies before. Returns false when
  /// that is before an earlier change; a change at the same place replaces it, as retransmissions do.
  bool add(bool direction, uint32_t from, int32_t bytes);

  /// The sequence number that the receiver of `direction` shall see.
  uint32_t sequence(bool direction, uint32_t sender) const;
  /// What the sender of the other direction's data shall see of an acknowledgement that travels in `direction`.
  uint32_t acknowledgment(bool direction, uint32_t receiver) const;

  /// True once the sequence number is so far beyond the last change (1 GiB) that the ones before do not matter.
  bool outdated(bool direction, uint32_t sender) const;
  /// From now on the sum of all changes counts everywhere.
  void settle(bool direction);

  /// Bytes added in all.
  int32_t total(bool direction) const;
  /// True if numbers of `direction` may change.
  bool active(bool direction) const { return total(direction) != 0 || !ways_[direction].changes.empty(); }

 private:
  static constexpr uint32_t kOutdated = 1u << 30;
  static constexpr size_t kMostChanges = 16;
  struct Change {
    uint32_t from;
    int32_t total;  // of this one and those before
  };
  struct Way {
    int32_t before = 0;  // what is added ahead of the first change
    std::vector<Change> changes;
  };
  static bool reached(uint32_t sequence, uint32_t mark) { return static_cast<int32_t>(sequence - mark) >= 0; }

  std::array<Way, 2> ways_;
};

}  // namespace headrace
