#include "tables/rules/confirm.hh"

#include <algorithm>
#include <optional>

#include "tables/rules/literal_search.hh"

namespace headrace::rules {

namespace {

/// How much backtracking a search may do, and what that costs. Most searches end with the first limits and are cheap;
/// one that does not is done again with the next. The last limits are Suricata's defaults, and so is the reason: one
/// packet must not hold up the others.
struct Effort {
  PcreLimits limits;
  uint32_t cost;
};
constexpr Effort kEfforts[] = {{{.matches = 64, .depth = 64}, WorkLimit::kRegexCost},
                               {{.matches = 512, .depth = 512}, WorkLimit::kRegexMoreCost},
                               {{.matches = 3500, .depth = 1500}, WorkLimit::kRegexDeepCost}};

/// kNever: no other choice of matches before this step would help. kCut: the limit was reached.
enum class Outcome { kMatch, kNoMatch, kNever, kCut };

class Confirmation {
 public:
  Confirmation(const Rule& rule, std::string_view payload, WorkLimit& limit)
      : steps_(rule.steps), payload_(payload), size_(static_cast<int64_t>(payload.size())), limit_(limit) {}

  /// Whether a regular expression has backtracked too much, so that a match may have been missed.
  bool gave_up() const { return gave_up_; }

  /// Steps from `i` on; `last` is where the match before them ends.
  Outcome run(size_t i, uint32_t last) {
    for (; i < steps_.size(); ++i) {
      if (!limit_.spend(1)) return Outcome::kCut;
      if (const auto* content = std::get_if<Content>(&steps_[i])) {
        if (!content->negated && !content->anywhere) return run_content(*content, i, last);
        if (const Outcome o = run_simple(*content, last); o != Outcome::kMatch) return o;
      } else if (const auto* regex = std::get_if<Regex>(&steps_[i])) {
        if (!regex->negated) return run_regex(*regex, i, last);
        if (const Outcome o = run_negated(*regex, last); o != Outcome::kMatch) return o;
      } else {
        const auto& at = std::get<DataAt>(steps_[i]);
        const bool there = at.relative ? int64_t{last} + at.offset <= size_ : at.offset < size_;
        if (there == at.negated) return at.relative ? Outcome::kNoMatch : Outcome::kNever;
      }
    }
    return Outcome::kMatch;
  }

 private:
  /// Where a content may lie: [from, to).
  struct Room {
    int64_t from, to;
  };
  Room room_of(const Content& c, uint32_t last) const {
    if (c.anywhere) return {0, size_};
    const int64_t begin = (c.relative ? int64_t{last} : 0) + c.from;
    const int64_t to = c.room < 0 ? size_ : std::min(size_, begin + c.room);
    return {std::max<int64_t>(begin, 0), to};
  }
  /// The first place of `c` in the room, or kNotFound; false when the work is not allowed.
  bool find(const Content& c, const Room& room, uint32_t& at) {
    at = kNotFound;
    const auto n = static_cast<int64_t>(c.bytes.size());
    int64_t from = room.from;
    if (c.ends_with) from = std::max(from, size_ - n);
    const int64_t to = room.to;
    if (from > to - n || (c.ends_with && to < size_)) return true;
    at = find_literal(payload_.substr(0, static_cast<size_t>(to)), c.bytes, static_cast<uint32_t>(from), c.nocase);
    const int64_t searched = (at == kNotFound ? to : int64_t{at} + n) - from;
    return limit_.spend(static_cast<uint32_t>(searched / 32));
  }

  /// A content that is no match for others to be relative to.
  Outcome run_simple(const Content& c, uint32_t last) {
    uint32_t at;
    if (!find(c, room_of(c, last), at)) return Outcome::kCut;
    if ((at != kNotFound) != c.negated) return Outcome::kMatch;
    return c.relative ? Outcome::kNoMatch : Outcome::kNever;
  }

  Outcome run_content(const Content& c, size_t i, uint32_t last) {
    Room room = room_of(c, last);
    const bool again = depends_on_place(i);
    for (bool first = true;; first = false) {
      uint32_t at;
      if (!find(c, room, at)) return Outcome::kCut;
      if (at == kNotFound) return first && !c.relative ? Outcome::kNever : Outcome::kNoMatch;
      const Outcome o = run(i + 1, at + static_cast<uint32_t>(c.bytes.size()));
      if (o != Outcome::kNoMatch) return o;
      if (!again) return Outcome::kNever;
      room.from = int64_t{at} + 1;
    }
  }

  /// Nothing when the limit is reached.
  std::optional<PcreExpression::Result> match(const Regex& regex, std::string_view subject, uint32_t from,
                                              PcreExpression::Found& found) {
    using Result = PcreExpression::Result;
    if (limit_.exhausted()) return std::nullopt;
    Result result = Result::kCut;
    uint32_t cost = 0;
    for (const Effort& effort : kEfforts) {
      result = regex.expression.search(subject, from, effort.limits, found);
      cost += effort.cost;
      if (result != Result::kCut) break;
    }
    if (!regex.expression.is_anchored()) {
      // One that gave up was tried at few places, but PCRE2 may have looked through the rest for a byte that it needs.
      const auto size = static_cast<uint32_t>(subject.size());
      const uint32_t tried = std::max(result == Result::kYes ? found.begin : size, from) - from;
      cost += tried / (result == Result::kCut ? 32 : 8);
    }
    if (!limit_.spend(cost)) return std::nullopt;
    gave_up_ |= result == Result::kCut;
    return result;
  }

  /// One that gives up proves nothing: neither that it matches, nor that it does not.
  Outcome run_negated(const Regex& regex, uint32_t last) {
    PcreExpression::Found found;
    const auto result = match(regex, payload_.substr(regex.relative ? last : 0), 0, found);
    if (!result) return Outcome::kCut;
    if (*result == PcreExpression::Result::kNo) return Outcome::kMatch;
    return regex.relative ? Outcome::kNoMatch : Outcome::kNever;
  }

  Outcome run_regex(const Regex& regex, size_t i, uint32_t last) {
    const uint32_t begin = regex.relative ? last : 0;
    const std::string_view subject = payload_.substr(begin);
    const bool again = depends_on_place(i);
    uint32_t from = 0;
    for (bool first = true;; first = false) {
      PcreExpression::Found found;
      const auto result = match(regex, subject, from, found);
      if (!result) return Outcome::kCut;
      // One that gave up here may match behind another match of the steps before.
      if (*result != PcreExpression::Result::kYes)
        return first && !regex.relative ? Outcome::kNever : Outcome::kNoMatch;
      const Outcome o = run(i + 1, begin + found.end);
      if (o != Outcome::kNoMatch) return o;
      if (!again) return Outcome::kNever;
      from = std::max(from, found.begin) + 1;
      if (from > subject.size()) return Outcome::kNoMatch;
    }
  }

  /// Whether what follows step `i` is relative to its match.
  bool depends_on_place(size_t i) const {
    for (++i; i < steps_.size(); ++i) {
      if (const auto* content = std::get_if<Content>(&steps_[i])) {
        if (content->relative) return true;
        if (!content->negated && !content->anywhere) return false;
      } else if (const auto* regex = std::get_if<Regex>(&steps_[i])) {
        if (regex->relative) return true;
        if (!regex->negated) return false;
      } else if (std::get<DataAt>(steps_[i]).relative) {
        return true;
      }
    }
    return false;
  }

  const std::vector<Step>& steps_;
  const std::string_view payload_;
  const int64_t size_;
  WorkLimit& limit_;
  bool gave_up_ = false;
};

}  // namespace

Confirmed confirm_steps(const Rule& rule, std::string_view payload, WorkLimit& limit) {
  const uint32_t allowed = std::min(limit.left(), WorkLimit::kRuleUnits);
  WorkLimit of_rule(allowed);
  Confirmation confirmation(rule, payload, of_rule);
  const Outcome outcome = confirmation.run(0, 0);
  (void)limit.spend(allowed - of_rule.left());
  if (outcome == Outcome::kMatch) return Confirmed::kMatch;
  return outcome == Outcome::kCut || confirmation.gave_up() ? Confirmed::kCut : Confirmed::kNoMatch;
}

}  // namespace headrace::rules
