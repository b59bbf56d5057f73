#pragma once
/// \file
/// Values of variables while compound elements are expanded.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::lang {

/// The variables of one expanded compound element, or of the file; unknown ones are looked up in the enclosing scope.
///
/// As in Click, variables in a value are replaced where the value is used, so the order of definitions does not matter.
class Scope {
 public:
  Scope(std::shared_ptr<const Scope> parent, int depth) : parent_(std::move(parent)), depth_(depth) {}

  void define(std::string name, std::string value);

  /// Replaces the variables of a text. Every byte of a value counts against `budget`; with that at 0, variables are
  /// left as they stand.
  std::string expand(std::string_view text, size_t& budget) const { return expand(text, budget, 0); }

  /// The scope that encloses a definition of the given depth, seen from `scope`.
  static std::shared_ptr<const Scope> enclosing(std::shared_ptr<const Scope> scope, int depth);

 private:
  std::string expand(std::string_view text, size_t& budget, int depth) const;
  const std::string* find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> variables_;
  std::shared_ptr<const Scope> parent_;
  int depth_;
};

}  // namespace headrace::lang
