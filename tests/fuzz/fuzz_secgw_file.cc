/// Fuzzes the reader of configurations of ipsec-secgw: any text gives a configuration or errors; what is in the
/// configuration is valid, comes from lines of the text, and reads back as it is written.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tables/sa/secgw_file.hh"

namespace {

using namespace headrace;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  SecgwConfig config;
  Errors errors;
  const bool good = read_secgw_text(text, "fuzz.cfg", config, errors);
  require(good == (errors.error_count() == 0));
  require(errors.error_count() <= 51 && errors.warning_count() <= 51);
  int lines = 1;
  for (const char c : text) lines += c == '\n';
  const auto check_line = [&](int line) { require(line >= 1 && line <= lines); };

  std::string written;
  for (const auto& [policy, line] : config.policies) {
    check_line(line);
    require(PolicyTable::check(policy).empty());
    written += policy.unparse() + "\n";
  }
  for (const auto& [association, line] : config.associations) {
    check_line(line);
    for (const AssociationProblem& problem : check_association(association)) require(!problem.fatal);
    require(!association.unparse().empty());
  }
  for (const auto& route : config.routes) {
    check_line(route.line);
    require(route.prefix.length >= (route.v6 ? 0 : 96) && route.prefix.length <= 128);
  }
  for (const auto& neighbor : config.neighbors) {
    check_line(neighbor.line);
    require(!neighbor.address.is_group() && neighbor.address != EtherAddress());
  }
  (void)check_secgw(config, "fuzz.cfg", errors);

  SecgwConfig again;
  Errors none;
  require(read_secgw_text(written, "again.cfg", again, none));
  require(again.policies.size() == config.policies.size());
  for (size_t i = 0; i < again.policies.size(); ++i)
    require(again.policies[i].policy.unparse() == config.policies[i].policy.unparse());
  return 0;
}
