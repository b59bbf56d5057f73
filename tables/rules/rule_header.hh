#pragma once
/// \file
/// Addresses and ports in the header of a rule, and the variables that stand for them.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tables/rules/rule.hh"

namespace headrace::rules {

/// Reads `any`, values, ranges, negations, lists and variables. What was read once is remembered, so that rules share
/// it.
class HeaderSets {
 public:
  /// \param variables names without `$`; others have the defaults that the documentation of IDSMatcher lists
  explicit HeaderSets(std::map<std::string, std::string> variables);

  /// Null, with `error` set, when the text is wrong or nothing would match it.
  std::shared_ptr<const AddressSet> addresses(std::string_view text, std::string& error);
  std::shared_ptr<const PortSet> ports(std::string_view text, std::string& error);

 private:
  template <typename Set, typename Read>
  std::shared_ptr<const Set> cached(std::map<std::string, std::shared_ptr<const Set>, std::less<>>& cache,
                                    std::string_view text, const char* what, std::string& error, Read read);
  template <typename Set, typename ReadOne>
  bool read_list(std::string_view text, int depth, Set& set, std::string& error, ReadOne read_one) const;
  template <typename Set, typename ReadOne>
  bool read_item(std::string_view text, int depth, Set& set, std::string& error, ReadOne read_one) const;

  std::map<std::string, std::string> variables_;
  std::map<std::string, std::shared_ptr<const AddressSet>, std::less<>> addresses_;
  std::map<std::string, std::shared_ptr<const PortSet>, std::less<>> ports_;
};

}  // namespace headrace::rules
