#include "lang/scope.hh"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/argument_text.hh"

namespace headrace::lang {

/// The expansion of one text, with the values within values that it has come to.
struct Scope::Expansion {
  const Scope& scope;
  size_t& budget;
  std::vector<const Binding*> path;

  std::string expand(std::string_view text) {
    const auto lookup = [this](std::string_view name) { return value(name); };
    return expand_variables(text, lookup, lookup, ExpandInto::kText, static_cast<int>(path.size()));
  }

  std::optional<std::string> value(std::string_view name) {
    const Binding* binding = budget > 0 ? scope.find(name) : nullptr;
    if (!binding || std::find(path.begin(), path.end(), binding) != path.end()) return std::nullopt;
    path.push_back(binding);
    std::string text = binding->final ? binding->value : expand(binding->value);
    path.pop_back();
    // A replacement costs something even where the value is empty: definitions that name each other many times
    // multiply.
    budget -= std::min(budget, text.size() + 1);
    return text;
  }
};

const Scope::Binding* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent_.get()) {
    if (scope->lookups_ && !scope->lookups_->contains(name)) scope->lookups_->emplace(name);
    if (const auto found = scope->bindings_.find(name); found != scope->bindings_.end()) return &found->second;
  }
  return nullptr;
}

std::string Scope::expand(std::string_view text, size_t& budget) const {
  return Expansion{*this, budget, {}}.expand(text);
}

std::shared_ptr<const Scope> Scope::enclosing(std::shared_ptr<const Scope> scope, int depth) {
  while (scope->depth_ >= depth && scope->parent_) scope = scope->parent_;
  return scope;
}

}  // namespace headrace::lang
