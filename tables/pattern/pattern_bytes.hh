#pragma once
/// \file
/// The bytes of a set's patterns, as engines compare them.

#include <memory>

#include "tables/memory/device_array.hh"
#include "tables/pattern/match_view.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace {

/// Owns what a PatternBytesView shows.
class PatternBytes {
 public:
  explicit PatternBytes(const PatternSet& set);

  PatternBytesView view() const { return {words_.data(), begins_.data()}; }
  PatternBytesView mirror(Mirror& mirror) const { return {words_.mirror(mirror), begins_.mirror(mirror)}; }
  size_t memory() const { return words_.bytes() + begins_.bytes(); }

 private:
  DeviceArray<PatternWord> words_;
  DeviceArray<uint32_t> begins_;
};

}  // namespace headrace
