#pragma once
/// \file
/// Perl-compatible regular expressions on the host, by PCRE2 within limits.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tables/regex/regex_syntax.hh"

struct pcre2_real_code_8;

namespace headrace {

/// What a search may cost: a backtracking expression can take exponentially many steps. Which of the limits are set is
/// for the user to say; those of PCRE2 are high.
struct PcreLimits {
  static constexpr uint32_t kHigh = 10'000'000;

  /// Items of the expression that are tried at a place, of an expression that is `counted`.
  uint64_t steps = ~uint64_t{0};
  /// How often PCRE2 backtracks, and how deep.
  uint32_t matches = kHigh;
  uint32_t depth = kHigh;
};

/// An expression with all of Perl's syntax. Searches may run on all threads at once; each thread has what it needs for
/// them, so that nothing is allocated for a packet. Copies are the same expression.
class PcreExpression {
 public:
  struct Options {
    RegexFlags flags;
    bool anchored = false;  ///< a match begins where the search does
    bool end_only = false;  ///< `$` does not match before a newline at the end
    bool ungreedy = false;  ///< quantifiers are lazy, unless `?` follows
    bool counted = false;   ///< PcreLimits::steps holds, the same in the interpreter and in compiled code
  };
  enum class Result : uint8_t {
    kNo,
    kYes,
    kCut  ///< given up: a limit was reached, or memory for backtracking did not suffice
  };
  struct Found {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  /// Returns why `text` is no expression, with the offset, or an empty text.
  std::string compile(std::string_view text, const Options& options);
  /// Compiles to machine code where PCRE2 can do that; worth its time only for expressions that will run. Before
  /// threads share it.
  void translate();
  /// True when a match can only begin where the search does.
  bool is_anchored() const { return anchored_; }
  /// The leftmost match that begins at byte `from` or behind it, as Perl finds it.
  Result search(std::string_view subject, uint32_t from, const PcreLimits& limits, Found& found) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::shared_ptr<pcre2_real_code_8> code_;
  bool anchored_ = false;
};

}  // namespace headrace
