#pragma once
/// \file
/// Whether a payload is what a rule describes.

#include <cstdint>
#include <string_view>

#include "tables/rules/rule.hh"

namespace headrace::rules {

/// How much work one packet may cost. A unit is a step of a rule, or 32 bytes searched for a content. A try of a
/// regular expression costs kRegexCost, and one unit for each 8 bytes at which it was tried; one that backtracks much
/// costs kRegexMoreCost more, and kRegexDeepCost on top of it if that was not enough, whether it then succeeds or gives
/// up. Beyond the limit the packet is cut: the rules that were not tried yet may match it or not.
///
/// The last two costs trade evasion against load. A packet of 1,500 bytes has room for some 130 separate texts, of ten
/// bytes and more, that each make an expression such as (a+)+ need the highest limits; the rule must look behind them
/// all. But a packet of "aaaa..." may buy nothing but such tries: then one rule costs 0.8 to 3 ms of a core (AMD EPYC,
/// 1,460 bytes; 0.2 ms for contents alone), and four such rules, after which the packet is cut, up to 12 ms.
class WorkLimit {
 public:
  static constexpr uint32_t kUnits = 1 << 16;
  /// Of one rule, so that an expensive one does not keep the others from being tried. Some 2,700 contents that are each
  /// followed by an expression that fails, about as many as Suricata tries (inspection-recursion-limit); some 900 if the
  /// expression backtracks much, 160 if it gives up.
  static constexpr uint32_t kRuleUnits = 1 << 14;
  static constexpr uint32_t kRegexCost = 4;
  static constexpr uint32_t kRegexMoreCost = 12;
  static constexpr uint32_t kRegexDeepCost = 80;

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

/// kCut: a limit was reached, or no match was found but a regular expression gave up somewhere. Unless the limit is
/// exhausted, other rules can still be tried.
enum class Confirmed { kMatch, kNoMatch, kCut };

/// Whether contents, regular expressions and `isdataat` of the rule hold for `payload`: there is a choice of matches
/// such that each step holds relative to the match before it. As Snort and Suricata do it, a content whose follower
/// fails is looked for again behind its match. A regular expression that gives up does not hold at that place.
Confirmed confirm_steps(const Rule& rule, std::string_view payload, WorkLimit& limit);

}  // namespace headrace::rules
