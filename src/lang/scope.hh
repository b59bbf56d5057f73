#pragma once
/// \file
/// Values of variables while compound elements are expanded.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::lang {

/// The variables of one expanded compound element, or of the file; unknown ones are looked up in the enclosing scope.
class Scope {
 public:
  Scope(std::shared_ptr<const Scope> parent, int depth) : parent_(std::move(parent)), depth_(depth) {}

  /// Variables in the value are replaced where it is used, as in Click, so the order of definitions does not matter.
  void define(std::string name, std::string value) { bindings_[std::move(name)] = {std::move(value), false}; }
  /// The value was expanded where it was written, and is used as it is.
  void define_argument(std::string name, std::string value) { bindings_[std::move(name)] = {std::move(value), true}; }

  /// Names that are looked up in this scope itself are added to `names` from now on, whether or not they are defined.
  void note_lookups(std::set<std::string, std::less<>>& names) { lookups_ = &names; }

  /// Replaces the variables of a text. A variable stays as it stands where it would be its own value. Every byte of a
  /// value counts against `budget`; with that at 0, all variables stay.
  std::string expand(std::string_view text, size_t& budget) const;

  /// The scope that encloses a definition of the given depth, seen from `scope`.
  static std::shared_ptr<const Scope> enclosing(std::shared_ptr<const Scope> scope, int depth);

 private:
  struct Binding {
    std::string value;
    bool final = false;
  };
  struct Expansion;

  const Binding* find(std::string_view name) const;

  std::map<std::string, Binding, std::less<>> bindings_;
  std::shared_ptr<const Scope> parent_;
  int depth_;
  std::set<std::string, std::less<>>* lookups_ = nullptr;
};

}  // namespace headrace::lang
