#pragma once
#include "elements/ip/CheckIPHeader.hh"

namespace headrace {

/// Checks IP headers as CheckIPHeader does, but looks at the checksum only when asked to.
///
///     CheckIPHeader2([OFFSET, keyword OFFSET, INTERFACES, BADSRC, GOODDST, CHECKSUM, VERBOSE, DETAILS])
///
/// CHECKSUM: default false. For the rest see CheckIPHeader.
struct CheckIPHeader2 : CheckIPHeader {
  HEADRACE_SHADER CheckIPHeader2() { ignored_sum = ~uint32_t{0}; }
};

}  // namespace headrace
