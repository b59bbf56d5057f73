#pragma once
/// \file
/// The owner of a compressed Aho-Corasick automaton.

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/error.hh"
#include "tables/memory/device_array.hh"
#include "tables/pattern/compressed_dfa_view.hh"
#include "tables/pattern/full_dfa.hh"
#include "tables/pattern/pattern_bytes.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace {

/// The automaton of FullDfa in a small part of its memory. Does not change once it has been made.
class CompressedDfa {
 public:
  /// Errors: too many states, too much memory, too many transitions; each with the number and the limit.
  Status build(const PatternSet& set, const DfaLimits& limits, Errors& errors);

  CompressedDfaView view() const;
  /// The view of a device's copy.
  CompressedDfaView mirror(Mirror& mirror) const;

  size_t states() const { return states_; }
  /// Bytes of all that a scan may read.
  size_t memory() const;
  double build_seconds() const { return seconds_; }
  /// "compressed DFA: 12345 states, 23456 transitions kept (92 % full), 0.4 MB, built in 0.01 s"
  std::string description() const;

 private:
  DeviceArray<CompressedState> entries_;
  DeviceArray<CompressedState> defaults_;
  DeviceArray<uint8_t> class_of_;
  DeviceArray<DfaOutput> outputs_;
  DeviceArray<uint32_t> numbers_;
  PatternBytes texts_{PatternSet()};
  uint32_t classes_ = 0;
  size_t states_ = 0;
  size_t kept_ = 0;
  ScanBudget budget_;
  double seconds_ = 0;
};

}  // namespace headrace
