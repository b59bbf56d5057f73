// Feeds any text to the parser. What it accepts must survive being written and parsed again, letter by letter.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <headrace/error.hh>
#include <string>
#include <string_view>

#include "lang/lang.hh"

namespace {

using namespace headrace;

bool parse_again(std::string_view text, const lang::Options& options, std::string& flat) {
  lang::Configuration configuration;
  Errors errors;
  const bool ok = lang::parse(text, "config", options, configuration, errors).ok();
  flat = lang::unparse(configuration);
  if (ok == (errors.error_count() > 0)) abort();
  return ok;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lang::Options options;
  options.limits = {.elements = 4096, .connections = 16384, .text_bytes = size_t{1} << 20};
  options.variables = {{"cmd", "1, \"x\""}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string once, twice, thrice;
  for (const bool known : {false, true}) {
    if (known)
      options.is_class = [](std::string_view name) { return !name.empty() && name[0] >= 'A' && name[0] <= 'Z'; };
    if (!parse_again(text, options, once)) continue;
    // A variable that had no value the first time is still there the second time.
    if (!parse_again(once, options, twice) || !parse_again(twice, options, thrice) || twice != thrice) {
      std::fprintf(stderr, "first:\n%s\nsecond:\n%s\nthird:\n%s\n", once.c_str(), twice.c_str(), thrice.c_str());
      abort();
    }
  }
  return 0;
}
