#pragma once
/// \file
/// A search for patterns that cannot be wrong, and the comparison of all engines with it.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/pattern/pattern_matcher.hh"

namespace headrace {

struct PatternMatch {
  uint32_t end;
  uint32_t pattern;
  auto operator<=>(const PatternMatch&) const = default;
};

inline PayloadBytes payload_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())};
}

/// Compares every pattern at every place where its first byte is.
class NaivePatterns {
 public:
  explicit NaivePatterns(const PatternSet& set) : set_(&set), by_first_(256) {
    for (uint32_t number = 0; number < set.size(); ++number) {
      const auto first = static_cast<unsigned char>(set[number].bytes[0]);
      by_first_[first].push_back(number);
      if (set[number].nocase && is_letter(first)) by_first_[first ^ 0x20u].push_back(number);
    }
  }

  /// All matches, by end and pattern.
  std::vector<PatternMatch> scan(std::string_view text) const {
    std::vector<PatternMatch> all;
    for (size_t at = 0; at < text.size(); ++at) {
      for (const uint32_t number : by_first_[static_cast<unsigned char>(text[at])]) {
        if (matches((*set_)[number], text.substr(at)))
          all.push_back({static_cast<uint32_t>(at + (*set_)[number].bytes.size()), number});
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  static bool matches(const Pattern& pattern, std::string_view text) {
    if (text.size() < pattern.bytes.size()) return false;
    for (size_t i = 0; i < pattern.bytes.size(); ++i) {
      const auto a = static_cast<unsigned char>(pattern.bytes[i]), b = static_cast<unsigned char>(text[i]);
      if (a != b && !(pattern.nocase && fold_case(a) == fold_case(b))) return false;
    }
    return true;
  }

  const PatternSet* set_;
  std::vector<std::vector<uint32_t>> by_first_;
};

inline FirstMatch naive_first(const std::vector<PatternMatch>& all) {
  FirstMatch first;
  if (!all.empty()) first.key = uint64_t{all.front().end} << 32 | all.front().pattern;
  return first;
}

inline Candidates naive_candidates(const std::vector<PatternMatch>& all) {
  std::vector<uint32_t> numbers;
  for (const PatternMatch& match : all) numbers.push_back(match.pattern + 1);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() > 4) numbers[3] = 0xffff;
  Candidates found;
  for (size_t i = 0; i < numbers.size() && i < 4; ++i) found.packed |= uint64_t{numbers[i]} << (16 * i);
  return found;
}

/// All that can search for a set.
class AllEngines {
 public:
  static constexpr ScanBudget kPlenty{1u << 26, 1u << 10};

  explicit AllEngines(PatternSet set, ScanBudget budget = kPlenty) : naive_(matcher_.patterns()) {
    Errors errors;
    PatternMatcherOptions options;
    options.storm = kPlenty;
    options.dfa.budget = options.prefilter.budget = budget;
    good_ = matcher_.build(std::move(set), options, errors).ok() &&
            dfa_.build(matcher_.patterns(), options.dfa, errors).ok() &&
            compressed_.build(matcher_.patterns(), options.dfa, errors).ok() &&
            prefilter_.build(matcher_.patterns(), options.prefilter, errors).ok();
    faults_ = errors.str();
    naive_ = NaivePatterns(matcher_.patterns());
  }

  const std::string& faults() const { return faults_; }
  const PatternMatcher& matcher() const { return matcher_; }
  const FullDfa& dfa() const { return dfa_; }
  const CompressedDfa& compressed() const { return compressed_; }
  const Prefilter& prefilter() const { return prefilter_; }
  const NaivePatterns& naive() const { return naive_; }

  /// What differs between the engines, or an empty text.
  std::string compare(std::string_view text) const {
    if (!good_) return "not built: " + faults_;
    const std::vector<PatternMatch> all = naive_.scan(text);
    // A copy of exactly its size, for a sanitizer to see what reads beyond.
    const std::vector<uint8_t> copy(text.begin(), text.end());
    const PayloadBytes bytes{copy.data(), static_cast<uint32_t>(copy.size())};
    std::string wrong = compare_cpu(bytes, all);
    wrong += compare_teams("full DFA", dfa_.view(), bytes, all);
    wrong += compare_teams("compressed DFA", compressed_.view(), bytes, all);
    wrong += compare_teams("prefilter", prefilter_.view(), bytes, all);
    wrong += compare_one<HostTeam<32>>("any engine", matcher_.view(), bytes, all);
    return wrong;
  }

  /// All matches that a view finds; empty if the scan was cut.
  template <typename Team, typename View>
  static std::vector<PatternMatch> scan(const View& view, const PayloadBytes& bytes, bool& whole) {
    using Matches = std::vector<PatternMatch>;
    typename Team::template Lanes<Matches> lanes;
    whole = view.template scan<Team, Matches>(Team(), bytes, lanes, [](Matches& mine, uint32_t pattern, uint32_t end) {
      mine.push_back({end, pattern});
    });
    Matches all;
    for (uint32_t lane = 0; lane < Team::size(); ++lane) {
      all.insert(all.end(), lanes.of[lane].begin(), lanes.of[lane].end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  static std::string differ(const std::string& name, const char* what, const std::vector<PatternMatch>& found,
                            const std::vector<PatternMatch>& all) {
    if (found == all) return {};
    const auto [f, a] = std::mismatch(found.begin(), found.end(), all.begin(), all.end());
    const auto text = [](const auto& at, const auto& end) {
      return at == end ? std::string("none") : fmt::format("{} at {}", at->pattern, at->end);
    };
    return fmt::format("{}, {}: {} matches, not {}; found {}, not {}\n", name, what, found.size(), all.size(),
                       text(f, found.end()), text(a, all.end()));
  }
  std::string compare_cpu(const PayloadBytes& bytes, const std::vector<PatternMatch>& all) const {
    std::vector<PatternMatch> found;
    uint32_t last = 0;
    std::string wrong;
    const bool whole = matcher_.scan(bytes, [&](uint32_t pattern, uint32_t end) {
      if (end < last) wrong = "CPU: ends do not ascend\n";
      last = end;
      found.push_back({end, pattern});
    });
    std::sort(found.begin(), found.end());
    if (!whole) wrong += "CPU: cut\n";
    wrong += differ("CPU", "scan", found, all);
    if (!(matcher_.first(bytes) == naive_first(all))) wrong += "CPU: first\n";
    if (!(matcher_.candidates(bytes) == naive_candidates(all))) wrong += "CPU: candidates\n";
    if (matcher_.any(bytes) == all.empty()) wrong += "CPU: any\n";
    return wrong;
  }
  template <typename View>
  static std::string compare_teams(const char* name, const View& view, const PayloadBytes& bytes,
                                   const std::vector<PatternMatch>& all) {
    return compare_one<HostTeam<1>>(name, view, bytes, all) + compare_one<HostTeam<2>>(name, view, bytes, all) +
           compare_one<HostTeam<7>>(name, view, bytes, all) + compare_one<HostTeam<32>>(name, view, bytes, all);
  }
  template <typename Team, typename View>
  static std::string compare_one(const char* engine, const View& view, const PayloadBytes& bytes,
                                 const std::vector<PatternMatch>& all) {
    const std::string name = fmt::format("{}, team of {}", engine, Team::size());
    bool whole = false;
    std::string wrong = differ(name, "scan", scan<Team>(view, bytes, whole), all);
    if (!whole) wrong += name + ": cut\n";
    if (!(first_match(view, Team(), bytes) == naive_first(all))) wrong += name + ": first\n";
    if (!(candidates(view, Team(), bytes) == naive_candidates(all))) wrong += name + ": candidates\n";
    if (any_match(view, Team(), bytes) != static_cast<int>(!all.empty())) wrong += name + ": any\n";
    return wrong;
  }

  PatternMatcher matcher_;
  FullDfa dfa_;
  CompressedDfa compressed_;
  Prefilter prefilter_;
  NaivePatterns naive_;
  std::string faults_;
  bool good_ = false;
};

}  // namespace headrace
