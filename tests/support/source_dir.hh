#pragma once
/// \file
/// Where the source tree is: tests find conf/, tests/ and ../shared from here, wherever they are run.

#include <string>

namespace headrace {
extern const std::string kSourceDir;
}
