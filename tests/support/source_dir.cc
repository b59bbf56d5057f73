#include "support/source_dir.hh"

namespace headrace {
const std::string kSourceDir = HEADRACE_SOURCE_DIR;
}
