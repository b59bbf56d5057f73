#pragma once
/// \file
/// The owner of an Aho-Corasick automaton with all of its transitions.

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/error.hh"
#include "tables/memory/device_array.hh"
#include "tables/pattern/full_dfa_view.hh"
#include "tables/pattern/pattern_bytes.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace {

/// What an automaton may take.
struct DfaLimits {
  size_t states = 8'000'000;
  size_t bytes = size_t{1} << 30;
  ScanBudget budget;
};

/// Every transition in its place: the fastest automaton, and the largest. Does not change once it has been made.
class FullDfa {
 public:
  /// Errors: too many states, too much memory; each with the number and the limit.
  Status build(const PatternSet& set, const DfaLimits& limits, Errors& errors);

  FullDfaView view() const;
  /// The view of a device's copy.
  FullDfaView mirror(Mirror& mirror) const;

  size_t states() const { return states_; }
  /// Bytes of all that a scan may read.
  size_t memory() const;
  double build_seconds() const { return seconds_; }
  /// "full DFA: 12345 states, 98 classes, 4.7 MB, built in 0.01 s"
  std::string description() const;

 private:
  DeviceArray<uint32_t> rows_;
  DeviceArray<uint8_t> class_of_;
  DeviceArray<DfaOutput> outputs_;
  DeviceArray<uint32_t> numbers_;
  PatternBytes texts_{PatternSet()};
  uint32_t stride_ = 0;
  size_t states_ = 0;
  ScanBudget budget_;
  double seconds_ = 0;
};

}  // namespace headrace
