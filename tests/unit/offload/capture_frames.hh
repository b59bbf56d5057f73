#pragma once
/// \file
/// Real packets for tests.

#include <cstddef>
#include <string>
#include <vector>

namespace headrace::testing {

/// The first frames of each Ethernet capture that is there: the tree's, and those of the folder of data.
std::vector<std::string> captured_frames(size_t most_of_a_capture);

}  // namespace headrace::testing
