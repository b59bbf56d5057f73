// Adds the unit tests to the binary as `headrace selftest`, in builds that link them into it (preset `portable`), so that
// a machine can be checked that has nothing but the binary.
#include "cli/commands.hh"
#include "support/carrier.hh"

namespace headrace {
namespace {

const cli::ExtraCommand kSelfTest({"selftest", &testing::run_tests, "run the tests that are built into this binary"});

}  // namespace
}  // namespace headrace
