#pragma once
/// \file
/// The owner of a search without states.

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/error.hh"
#include "tables/memory/device_array.hh"
#include "tables/pattern/pattern_bytes.hh"
#include "tables/pattern/pattern_set.hh"
#include "tables/pattern/prefilter_view.hh"

namespace headrace {

struct PrefilterLimits {
  size_t bytes = size_t{1} << 30;
  /// Most bits of a bitmap, as a power of two: 2^19 are 64 KB.
  uint32_t most_bits = 19;
  ScanBudget budget;
};

/// Bitmaps of windows, and the patterns behind them. Does not change once it has been made.
class Prefilter {
 public:
  /// Errors: too much memory, with the amount and the limit.
  Status build(const PatternSet& set, const PrefilterLimits& limits, Errors& errors);

  PrefilterView view() const;
  /// The view of a device's copy.
  PrefilterView mirror(Mirror& mirror) const;

  /// Bytes of all that a scan may read, and of the bitmaps alone.
  size_t memory() const;
  size_t bitmap_memory() const;
  double build_seconds() const { return seconds_; }
  /// "prefilter: 9000 windows of 8 bytes, 800 of 4, 150 of 3, 50 shorter, 96 KB of bitmaps, 0.8 MB, built in 0.01 s"
  std::string description() const;

 private:
  struct Table {
    DeviceArray<uint32_t> bits;
    DeviceArray<uint32_t> buckets;
    DeviceArray<WindowEntry> entries;
    uint32_t bit_shift = 0;
    uint32_t bucket_shift = 0;

    size_t memory() const { return bits.bytes() + buckets.bytes() + entries.bytes(); }
    WindowTableView view() const { return {bits.data(), buckets.data(), entries.data(), bit_shift, bucket_shift}; }
    WindowTableView mirror(Mirror& mirror) const {
      return {bits.mirror(mirror), buckets.mirror(mirror), entries.mirror(mirror), bit_shift, bucket_shift};
    }
  };
  static constexpr int kTables = 5;
  static constexpr uint32_t kWindow[kTables] = {8, 4, 3, 2, 1};

  static Table make_table(const PatternSet& set, const PatternBytesView& texts, uint32_t window,
                          const std::vector<uint32_t>& numbers, uint32_t most_bits);
  static DeviceArray<uint32_t> make_pairs(const PatternSet& set);

  Table tables_[kTables];
  DeviceArray<uint32_t> pairs_;
  PatternBytes texts_{PatternSet()};
  ScanBudget budget_;
  double seconds_ = 0;
};

}  // namespace headrace
