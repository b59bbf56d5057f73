#pragma once
/// \file
/// Regular expressions of rules, by PCRE2 within limits.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace headrace::rules {

/// A compiled expression. Any number of threads may use it at a time; each has match data of its own, so that nothing
/// is allocated for a packet.
class RegexCode {
 public:
  /// Null, with `error` set, when PCRE2 does not accept the expression.
  /// \param options of PCRE2_CASELESS and its kin
  static std::shared_ptr<const RegexCode> compile(std::string_view pattern, uint32_t options, std::string& error);
  /// Compiles to machine code where PCRE2 can do that; worth its time only for expressions that will run. Before
  /// threads share it.
  void translate() const;
  ~RegexCode();
  RegexCode(const RegexCode&) = delete;
  RegexCode& operator=(const RegexCode&) = delete;

  enum class Outcome { kMatch, kNoMatch, kLimit };
  struct Found {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  /// The first match in `subject` that begins at `from` or later. kLimit: it took too long to find out.
  Outcome find(std::string_view subject, uint32_t from, Found& found) const;

  /// How much backtracking a call may do. Suricata's default, and its reason: one packet must not hold up the others.
  static constexpr uint32_t kMatchLimit = 3500;
  static constexpr uint32_t kDepthLimit = 1500;

 private:
  explicit RegexCode(pcre2_real_code_8* code) : code_(code) {}
  pcre2_real_code_8* code_;
};

}  // namespace headrace::rules
