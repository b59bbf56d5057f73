#include "lang/definition.hh"

#include <algorithm>
#include <charconv>

#include "base/argument_text.hh"

namespace headrace::lang {
namespace {

constexpr std::string_view kRest = "__REST__";

}  // namespace

int Definition::find(const std::string& element_name) const {
  const auto found = names.find(element_name);
  return found == names.end() ? -1 : found->second;
}

int Definition::add(DefinedElement element) {
  const int index = static_cast<int>(elements.size());
  if (!element.anonymous) names[element.name] = index;
  elements.push_back(std::move(element));
  return index;
}

std::string Definition::anonymous_name(std::string_view class_name) const {
  return fmt::format("{}@{}", class_name, static_cast<int>(elements.size()) - uncounted + 1);
}

void Definition::connect(PortRef from, PortRef to, const Landmark& where) {
  connections.push_back({from, to, where});
  elements[static_cast<size_t>(from.element)].ports.use(Side::kOutput, from.port);
  elements[static_cast<size_t>(to.element)].ports.use(Side::kInput, to.port);
}

void Definition::name_anonymous() {
  // Where a number was hard to find, the next search for the same class goes on from there.
  std::unordered_map<std::string, long> last_numbers;
  for (size_t i = 0; i < elements.size(); ++i) {
    DefinedElement& element = elements[i];
    if (!element.anonymous) continue;
    if (names.count(element.name) != 0) {
      const size_t at = element.name.rfind('@');
      const std::string stem = element.name.substr(0, at + 1);
      long number = 0;
      std::from_chars(element.name.data() + at + 1, element.name.data() + element.name.size(), number);
      long& last = last_numbers[stem];
      number = std::max(number, last);
      // The inner elements of a group are "@3/input": what follows the number is lost, as the name is never seen.
      do {
        element.name = stem + std::to_string(++number);
      } while (names.count(element.name) != 0);
      last = number;
    }
    names[element.name] = static_cast<int>(i);
    element.anonymous = false;
  }
}

std::string Definition::signature() const {
  std::string text = printable_name();
  for (size_t i = 0; i < formals; ++i) {
    const std::string& keyword = variables[i].text;
    text += i ? ", " : "(";
    text += keyword.empty() ? "<arg>" : keyword == kRest ? "..." : keyword;
  }
  if (formals > 0) text += ')';
  return text + port_signature(inputs, outputs, std::nullopt);
}

std::string port_signature(int inputs, int outputs, std::optional<size_t> arguments) {
  const auto count = [](size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  std::string text = "[";
  if (arguments.value_or(0) > 0) text += count(*arguments, "argument") + ", ";
  return text + count(static_cast<size_t>(inputs), "input") + ", " + count(static_cast<size_t>(outputs), "output") +
         "]";
}

std::optional<std::vector<std::string>> assign_arguments(const std::vector<std::string>& arguments,
                                                         const Definition& definition) {
  const auto formal = [&](size_t i) -> std::string_view { return definition.variables[i].text; };
  size_t formals = definition.formals;
  const bool has_rest = formals > 0 && formal(formals - 1) == kRest;
  if (has_rest) --formals;
  size_t positional = 0;
  while (positional < formals && formal(positional).empty()) ++positional;

  std::vector<std::string> values(definition.formals);
  std::vector<bool> given(formals, false);
  std::vector<std::string> rest;
  size_t positional_given = 0;
  for (const std::string& argument : arguments) {
    if (positional_given < positional) {
      values[positional_given] = argument;
      given[positional_given++] = true;
      continue;
    }
    size_t slot = formals;
    if (const auto keyword = split_keyword(argument)) {
      slot = positional;
      while (slot < formals && formal(slot) != keyword->first) ++slot;
      if (slot < formals) {
        values[slot] = std::string(keyword->second);
        given[slot] = true;
      }
    }
    if (slot == formals) {
      if (!has_rest) return std::nullopt;
      rest.push_back(argument);
    }
  }
  if (std::find(given.begin(), given.end(), false) != given.end()) return std::nullopt;
  if (has_rest) values.back() = unparse_arguments(rest);
  return values;
}

}  // namespace headrace::lang
