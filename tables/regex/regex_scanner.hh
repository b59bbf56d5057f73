#pragma once
/// \file
/// A set of regular expressions of any kind: automata for devices, Vectorscan and PCRE2 on the host.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"
#include "headrace/worker.hh"
#include "tables/regex/pcre_expression.hh"
#include "tables/regex/regex_table.hh"

struct hs_database;
struct hs_scratch;

namespace headrace {

/// Finds the first match of a set of expressions. What the automata of a RegexTable can do exactly is done by them on a
/// device, and by Vectorscan on the host, if the Vectorscan that is installed finds all that it should; else by them,
/// too. All other expressions are tried by PCRE2 on the host, where a candidate was found.
///
/// A match ends first if no other one, of this or another expression, ends before it. Of an expression that PCRE2
/// tries, the leftmost match counts, as Perl finds it. Does not change once built; any number of threads may search.
class RegexScanner {
 public:
  RegexScanner();
  explicit RegexScanner(const RegexTable::Limits& limits);
  ~RegexScanner();
  RegexScanner(const RegexScanner&) = delete;
  RegexScanner& operator=(const RegexScanner&) = delete;

  /// Adds an expression, which gets the next number from 0 on. Returns why it is none, or an empty text.
  std::string add(std::string_view text, RegexFlags flags);
  Status build(Errors& errors);

  struct First {
    FirstMatch match;
    bool cut = false;  ///< the budget did not suffice: there may be others
  };
  /// What a device would find, with all that it would ask answered.
  First first(const PayloadBytes& bytes) const;

  size_t size() const { return table_.expressions().size(); }
  const RegexTable& table() const { return table_; }
  /// Some expression has to be tried on every text.
  bool asks_always() const { return !always_.empty(); }
  bool uses_vectorscan() const { return database_ != nullptr; }
  /// A line for each expression: number, expression, where it is matched, and why there.
  std::string list() const;
  /// Lines about automata and library.
  std::string text() const;

  /// Whether the Vectorscan that is installed finds matches at the end of a text. 5.4.9 on x86, for one, does not
  /// (VectorCamp/vectorscan issue 317).
  static bool vectorscan_is_sound();

 private:
  struct FreeDatabase {
    void operator()(hs_database* database) const;
  };
  struct FreeScratch {
    void operator()(hs_scratch* scratch) const;
  };
  using Scratch = std::unique_ptr<hs_scratch, FreeScratch>;
  struct Search;

  bool build_vectorscan();
  void try_expression(uint32_t number, const PayloadBytes& bytes, First& first) const;

  RegexTable table_;
  std::vector<PcreExpression> pcres_;  // by number
  std::vector<uint32_t> always_;       // numbers of expressions that are tried on every text
  std::unique_ptr<hs_database, FreeDatabase> database_;
  std::unique_ptr<PerThread<Scratch>> scratch_;
  /// Numbers of candidates in the text at hand, one bit each.
  mutable PerThread<std::vector<uint64_t>> candidates_;
  std::string library_;
};

}  // namespace headrace
