#pragma once
/// \file
/// Parses small texts for the language tests.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "lang/lang.hh"

namespace headrace::lang {

struct Parsed {
  bool ok = false;
  Configuration configuration;
  std::string flat;      ///< unparse(configuration)
  std::string messages;  ///< all lines, each with a newline
};

/// Options under which only the classes of these tests exist.
inline Options known_classes() {
  Options options;
  options.is_class = [](std::string_view name) {
    static const std::set<std::string, std::less<>> kClasses{"Idle", "Null", "Discard", "Queue", "Paint", "Tee", "A/B"};
    return kClasses.count(name) != 0;
  };
  return options;
}

inline Parsed parse_text(std::string_view text, const Options& options = known_classes(),
                         const std::string& filename = "c") {
  Parsed parsed;
  Errors errors;
  parsed.ok = parse(text, filename, options, parsed.configuration, errors).ok();
  parsed.flat = unparse(parsed.configuration);
  parsed.messages = errors.str();
  EXPECT_EQ(parsed.ok, errors.error_count() == 0);
  return parsed;
}

/// The flat text of a configuration that has to be faultless.
inline std::string flat(std::string_view text, const Options& options = known_classes()) {
  const Parsed parsed = parse_text(text, options);
  EXPECT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.messages, "") << text;
  return parsed.flat;
}

/// The messages about a configuration that has to be faulty.
inline std::string faults(std::string_view text, const Options& options = known_classes()) {
  const Parsed parsed = parse_text(text, options);
  EXPECT_FALSE(parsed.ok) << text;
  return parsed.messages;
}

}  // namespace headrace::lang
