#pragma once
/// \file
/// What stands between the parentheses of a rule.

#include <string>
#include <string_view>
#include <vector>

#include "tables/rules/rule.hh"

namespace headrace::rules {

/// Reads the options of one rule into it.
class OptionReader {
 public:
  explicit OptionReader(Rule& rule) : rule_(rule) {}

  /// False, with error() set, when something is wrong. Options that are right but not supported are in unsupported().
  bool read(std::string_view options);
  const std::string& error() const { return error_; }
  /// Keywords, each once, in order.
  const std::vector<std::string>& unsupported() const { return unsupported_; }

 private:
  bool fail(std::string text);
  void miss(std::string keyword);
  bool option(std::string_view name, std::string_view value);
  bool common(std::string_view name, std::string_view value, bool& known);

  bool quoted(std::string_view name, std::string_view& value, std::string& text, bool* negated);
  bool content(std::string_view value);
  bool modifier(std::string_view name, std::string_view value);
  bool place(std::string_view name, std::string_view value);
  bool fast_pattern(std::string_view value);
  bool pcre(std::string_view value);
  bool is_data_at(std::string_view value);
  bool flow(std::string_view value);
  bool finish();
  bool finish_content(Content& content);
  void choose_fast_pattern();

  /// What modifiers said about a content, until all of them are known.
  struct Marks {
    bool offset = false, depth = false, distance = false, within = false, starts_with = false;
    bool fast = false;
    uint32_t fast_offset = 0;
    uint32_t fast_length = 0;  // 0: to the end
  };

  Rule& rule_;
  std::string error_;
  std::vector<std::string> unsupported_;
  int last_content_ = -1;
  std::vector<Marks> marks_;  // of each step
};

}  // namespace headrace::rules
