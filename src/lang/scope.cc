#include "lang/scope.hh"

#include <algorithm>
#include <optional>

#include "lang/argument_text.hh"

namespace headrace::lang {

void Scope::define(std::string name, std::string value) {
  for (auto& variable : variables_) {
    if (variable.first == name) {
      variable.second = std::move(value);
      return;
    }
  }
  variables_.emplace_back(std::move(name), std::move(value));
}

const std::string* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent_.get()) {
    for (const auto& variable : scope->variables_) {
      if (variable.first == name) return &variable.second;
    }
  }
  return nullptr;
}

std::string Scope::expand(std::string_view text, size_t& budget, int depth) const {
  const auto lookup = [this, &budget, depth](std::string_view name) -> std::optional<std::string> {
    const std::string* value = budget > 0 ? find(name) : nullptr;
    if (!value) return std::nullopt;
    // A replacement costs something even where the value is empty: definitions that name each other many times
    // multiply.
    budget -= std::min(budget, value->size() + 1);
    return expand(*value, budget, depth + 1);
  };
  return expand_variables(text, lookup, {}, ExpandInto::kText, depth);
}

std::shared_ptr<const Scope> Scope::enclosing(std::shared_ptr<const Scope> scope, int depth) {
  while (scope->depth_ >= depth && scope->parent_) scope = scope->parent_;
  return scope;
}

}  // namespace headrace::lang
