// Hands the unit tests to `headrace selftest`, in builds that link them into the binary.
#include "cli/self_test.hh"

#include <gtest/gtest.h>

namespace headrace {
namespace {

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

const bool kOffered = (self_test = &run) != nullptr;

}  // namespace
}  // namespace headrace
