#pragma once
/// \file
/// The tree of a pattern set's prefixes, from which both automata are made.

#include <cstdint>
#include <vector>

#include "headrace/error.hh"
#include "tables/memory/device_array.hh"
#include "tables/pattern/dfa_view.hh"
#include "tables/pattern/pattern_bytes.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace {

/// The states of an Aho-Corasick automaton without its transitions to shorter prefixes. States are numbered breadth
/// first from 0, the root, so that a state's children have consecutive numbers, and its suffix link a lower one.
///
/// An automaton cannot keep letters apart for one pattern and not for the other. As soon as one pattern takes both
/// cases, capitals are small letters for all, and what the automaton finds of the others is compared byte by byte.
struct PatternTrie {
  struct Children {
    uint32_t begin, end;
  };

  bool folded = false;
  uint32_t classes = 1;               ///< of bytes; class 0 is in no pattern
  uint8_t class_of[256]{};            ///< at most 255 classes besides 0
  std::vector<uint32_t> first_child;  ///< by state, and one more
  std::vector<uint8_t> in_class;      ///< of the byte that leads to the state
  std::vector<uint16_t> depth;
  std::vector<uint32_t> suffix;  ///< the state of the longest proper suffix that is a prefix
  std::vector<uint16_t> output;  ///< the number of its output or of its longest suffix's that has one; 0: none

  DeviceArray<DfaOutput> outputs;  ///< from 1; a last one ends the numbers
  DeviceArray<uint32_t> numbers;

  size_t size() const { return in_class.size(); }
  Children children(uint32_t state) const { return {first_child[state], first_child[state + 1]}; }
  /// The child by a class, or 0.
  uint32_t child(uint32_t state, uint8_t c) const;

  /// Errors: more than `most_states`. `engine` begins the message.
  Status build(const PatternSet& set, size_t most_states, const char* engine, Errors& errors);

 private:
  void choose_classes(const PatternSet& set);
  void link_suffixes();
};

}  // namespace headrace
