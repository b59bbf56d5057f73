#pragma once
/// \file
/// Reads rule files of Snort and Suricata.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tables/rules/rule.hh"
#include "tables/rules/rule_header.hh"

namespace headrace::rules {

/// What was read: rules that can run, and for each of the others why it does not.
struct RuleSet {
  std::vector<Rule> rules;
  std::vector<RefusedRule> refused;
  uint64_t read = 0;      // rules, with those that were refused
  uint64_t disabled = 0;  // commented out, and not read
  /// How many rules were refused for each option that is not supported; a rule may have several.
  std::map<std::string, uint64_t> unsupported;

  uint64_t refused_unsupported() const;
  uint64_t without_fast_pattern() const;
  uint64_t flow_ignored() const;
  /// "4,005 rules: 1,362 run, 2,641 ask for what is not supported (http_uri 1,642, ...), 2 are wrong"
  std::string summary(size_t most_reasons = 5) const;
};

/// Reads files one after the other into one set. Classes that a file explains apply to rules read before it, too.
class RuleReader {
 public:
  struct Options {
    /// Values of variables, by name without `$`.
    std::map<std::string, std::string> variables;
    /// Read rules that are commented out, too.
    bool disabled = false;
    /// Rules for an application protocol (http, tls, dns, ...) run for every packet of what carries it. Otherwise they
    /// are refused, since nobody here knows which streams are of that application.
    bool applications = false;
  };
  explicit RuleReader(Options options);

  /// What is wrong with variables that were given: "NAME: reason", each.
  std::vector<std::string> bad_variables();

  /// An empty text, or why the file cannot be read.
  std::string read_rules(const std::string& path);
  /// Reads a text as if it was that file.
  void read_text(std::string_view text, const std::string& file);
  /// A file with lines `config classification: name,description,priority`; other lines are refused.
  std::string read_classification(const std::string& path);

  /// What was read so far, once.
  RuleSet finish();

  /// A longer line, or several that backslashes join, is refused.
  static constexpr size_t kLongestLine = size_t{64} << 10;

 private:
  struct Class {
    std::string description;
    uint32_t priority;
  };
  /// Gathers lines that backslashes join.
  struct Lines {
    std::string text;
    int first = 0;
    int number = 0;
    bool open = false;
  };
  void line(Lines& lines, std::string_view text, const std::string& file);
  void end(Lines& lines, const std::string& file);
  void statement(std::string_view text, const std::string& file, int line);
  void rule(std::string_view text, const std::string& file, int line);
  bool header(std::string_view text, Rule& rule, std::string& error);
  std::string classification(std::string_view text);
  void refuse(const Rule& rule, std::string reason, bool unsupported = false);
  void keep(Rule rule);

  Options options_;
  HeaderSets sets_;
  std::map<std::string, Class, std::less<>> classes_;
  std::map<uint64_t, size_t> by_sid_;  // gid << 32 | sid: place in set_.rules
  std::vector<bool> replaced_;         // of set_.rules
  RuleSet set_;
};

}  // namespace headrace::rules
