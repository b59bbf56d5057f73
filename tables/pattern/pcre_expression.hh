#pragma once
/// \file
/// Perl-compatible regular expressions on the host, within bounds.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/team.hh"
#include "tables/pattern/regex_syntax.hh"

struct pcre2_real_code_8;

namespace headrace {

/// What may be spent on one text. A step is an item of the expression that is tried at a place; a backtracking
/// expression can take exponentially many.
struct PcreBudget {
  uint32_t base = 4000;
  uint32_t per_byte = 40;

  uint64_t of(size_t length) const { return base + uint64_t{per_byte} * length; }
};

/// An expression with all of Perl's syntax, by PCRE2. Searches may run on all threads at once.
class PcreExpression {
 public:
  enum class Result : uint8_t {
    kNo,
    kYes,
    kCut  ///< given up: the budget, or memory for backtracking, did not suffice
  };

  /// Returns why `text` is no expression, with the offset, or an empty text.
  std::string compile(std::string_view text, RegexFlags flags);
  /// The leftmost match at or behind byte `from`, as Perl finds it; sets its begin and end.
  Result search(const PayloadBytes& bytes, uint32_t from, const PcreBudget& budget, uint32_t& begin,
                uint32_t& end) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace headrace
