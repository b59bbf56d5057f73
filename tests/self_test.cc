// Adds the unit tests to the binary as `headrace selftest`, in builds that link them into it (preset `portable`), so that
// a machine can be checked that has nothing but the binary.
#include <string_view>

#include "cli/commands.hh"
#include "support/carrier.hh"

namespace headrace {
namespace {

int self_test(int argc, char** argv) {
  // Every command is asked for its part of the man page and of completion. This one's options are GoogleTest's.
  const std::string_view first = argc == 2 ? argv[1] : "";
  if (first == "--man" || first == "--bash-completion") return 0;
  return testing::run_tests(argc, argv);
}

const cli::ExtraCommand kSelfTest({"selftest", &self_test, "run the tests that are built into this binary"});

}  // namespace
}  // namespace headrace
