#pragma once
/// \file
/// A set of patterns, ready to be searched for on the CPU and on devices.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "headrace/error.hh"
#include "tables/pattern/compressed_dfa.hh"
#include "tables/pattern/full_dfa.hh"
#include "tables/pattern/literal_scanner.hh"
#include "tables/pattern/pattern_set.hh"
#include "tables/pattern/pattern_view.hh"
#include "tables/pattern/prefilter.hh"

namespace headrace {

struct PatternMatcherOptions {
  /// Of devices; kNone: the best for the set that keeps within its limits.
  PatternEngine engine = PatternEngine::kNone;
  bool automaton = false;  ///< kNone chooses among the automata only
  DfaLimits dfa;           ///< of both automata
  PrefilterLimits prefilter;
  /// Most matches that the CPU looks at in one payload before it gives up. At least the budgets of the engines, so that
  /// what they scan whole is scanned whole here.
  ScanBudget storm{256, 16};
};

/// "dfa", "compressed", "prefilter" or "auto" (kNone); nothing for other words.
std::optional<PatternEngine> parse_engine(std::string_view word);
std::string_view engine_name(PatternEngine engine);

/// The same answers from the CPU, by Vectorscan, and from a device, by one of the engines. Does not change once it has
/// been built; scans may run on all threads at once.
class PatternMatcher {
 public:
  /// Errors: of the library; limits that the engine asked for exceeds.
  Status build(PatternSet set, const PatternMatcherOptions& options, Errors& errors);

  const PatternSet& patterns() const { return set_; }
  PatternEngine engine() const { return view_.engine; }

  FirstMatch first(const PayloadBytes& bytes) const;
  /// As candidates() of match_view.hh.
  template <typename Admits = EveryPattern>
  Candidates candidates(const PayloadBytes& bytes, const Admits& admits = {}) const {
    pattern_detail::LowestNumbers lowest;
    Candidates found;
    const auto add = [&](uint32_t pattern, uint32_t) {
      if (admits(pattern)) lowest.add(pattern + 1);
    };
    if (!scan(bytes, add)) {
      found.packed = Candidates::kCut;
      return found;
    }
    const uint32_t numbers[] = {lowest.first, lowest.second, lowest.third, lowest.more ? 0xffff : lowest.fourth};
    for (uint32_t i = 0; i < 4; ++i) {
      if (numbers[i] != 0xffff || (i == 3 && lowest.more)) found.packed |= uint64_t{numbers[i]} << (16 * i);
    }
    return found;
  }
  /// Whether any pattern matches.
  bool any(const PayloadBytes& bytes) const;
  /// Calls `on_match(pattern, end)` for each match, in the order of their ends; those that end at one place come in any
  /// order. False: there were more than `storm` allows, and the rest was left.
  template <typename F>
  bool scan(const PayloadBytes& bytes, F&& on_match) const {
    uint32_t left = storm_.of(bytes.length);
    return scanner_.scan(bytes, [&](uint32_t pattern, uint32_t end) {
      if (left-- == 0) return false;
      on_match(pattern, end);
      return true;
    });
  }

  /// The device's engine, in this process and as a device's copy.
  PatternView view() const { return view_; }
  PatternView mirror(Mirror& mirror) const;

  /// Lines for a handler: how many patterns, what was built, its memory and the time it took.
  std::string text() const;
  /// Bytes of the device's engine.
  size_t device_bytes() const;

 private:
  template <typename Engine, typename Limits>
  Status build_engine(const Limits& limits, Errors& errors);
  Status choose_engine(const PatternMatcherOptions& options, Errors& errors);

  PatternSet set_;
  LiteralScanner scanner_;
  std::variant<std::monostate, FullDfa, CompressedDfa, Prefilter> engine_;
  PatternView view_;
  ScanBudget storm_;
};

}  // namespace headrace
