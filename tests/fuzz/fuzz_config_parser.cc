// Feeds any text to the parser. What it accepts must survive being written and parsed again, letter by letter.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <headrace/error.hh>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lang/lang.hh"

namespace {

using namespace headrace;

/// The classes of the second round: what begins with a capital letter and is no generated name.
bool is_class(std::string_view name) {
  return name[0] >= 'A' && name[0] <= 'Z' && name.find_first_of("@/") == std::string_view::npos;
}

/// Where every unknown name is a class, a name for both an element and a class depends on which comes first.
bool has_ambiguous_name(const lang::Configuration& configuration) {
  std::set<std::string> classes;
  for (const lang::ElementDecl& element : configuration.elements) classes.insert(element.class_name);
  return std::any_of(configuration.elements.begin(), configuration.elements.end(),
                     [&](const lang::ElementDecl& element) { return classes.count(element.name) != 0; });
}

/// A reference without a value stays as it is, and as in Click reaches to the first brace: behind a replacement next to
/// it that may be another one than before.
bool has_reference_in_braces(std::string_view flat) { return flat.find("${") != std::string_view::npos; }

bool parse_again(std::string_view text, const lang::Options& options, std::string& flat) {
  lang::Configuration configuration;
  Errors errors;
  const bool ok = lang::parse(text, "config", options, configuration, errors).ok();
  flat = lang::unparse(configuration);
  if (ok == (errors.error_count() > 0)) abort();
  return ok && !has_ambiguous_name(configuration);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lang::Options options;
  options.limits = {.elements = 4096, .connections = 16384, .text_bytes = size_t{1} << 20};
  options.variables = {{"cmd", "1, \"x\""}};
  // A compound element that comes with the program, with any body at all.
  options.shipped = [](const lang::ElementUse& use, Errors& errors) -> std::optional<std::string> {
    if (use.class_name != "Shipped") return std::nullopt;
    if (use.inputs < 0 || use.outputs < 0 || use.name.empty()) abort();
    if (use.config == "bad") (void)errors.error_at(use.landmark, "bad");
    return use.config == "bad" ? std::nullopt : std::optional<std::string>(use.config);
  };
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string once, twice, thrice;
  for (const bool known : {false, true}) {
    if (known) options.is_class = is_class;
    if (!parse_again(text, options, once) || has_reference_in_braces(once)) continue;
    // A variable that had no value the first time is still there the second time.
    if (!parse_again(once, options, twice) || !parse_again(twice, options, thrice) || twice != thrice) {
      std::fprintf(stderr, "first:\n%s\nsecond:\n%s\nthird:\n%s\n", once.c_str(), twice.c_str(), thrice.c_str());
      abort();
    }
  }
  return 0;
}
