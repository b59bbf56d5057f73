#pragma once
/// \file
/// Whether a payload is what a rule describes.

#include <cstdint>
#include <string_view>

#include "tables/rules/rule.hh"

namespace headrace::rules {

/// How much work one packet may cost. A unit is a step of a rule, or 32 bytes searched for a content. A regular
/// expression costs kRegexCost, and one unit for each 8 bytes at which it was tried; one that backtracks much costs
/// kRegexDeepCost more, or kRegexCutCost when it gave up. Beyond the limit the packet is cut: the rules that were not
/// tried yet may match it or not.
class WorkLimit {
 public:
  static constexpr uint32_t kUnits = 1 << 16;
  /// Of one rule, so that an expensive one does not keep the others from being tried. Some 2,700 contents that are each
  /// followed by an expression that fails, about as many as Suricata tries (inspection-recursion-limit).
  static constexpr uint32_t kRuleUnits = 1 << 14;
  static constexpr uint32_t kRegexCost = 4;
  static constexpr uint32_t kRegexDeepCost = 256;
  static constexpr uint32_t kRegexCutCost = 2048;

  explicit WorkLimit(uint32_t units = kUnits) : left_(units) {}
  /// False when nothing is left.
  bool spend(uint32_t units) {
    left_ -= units < left_ ? units : left_;
    return left_ != 0;
  }
  bool exhausted() const { return left_ == 0; }
  uint32_t left() const { return left_; }

 private:
  uint32_t left_;
};

/// kCut: a limit was reached, or a regular expression backtracked too much. Unless the limit is exhausted, other rules
/// can still be tried.
enum class Confirmed { kMatch, kNoMatch, kCut };

/// Whether contents, regular expressions and `isdataat` of the rule hold for `payload`: there is a choice of matches
/// such that each step holds relative to the match before it. As Snort and Suricata do it, a content whose follower
/// fails is looked for again behind its match.
Confirmed confirm_steps(const Rule& rule, std::string_view payload, WorkLimit& limit);

}  // namespace headrace::rules
