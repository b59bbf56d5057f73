#pragma once
#include "elements/ip/CheckIPHeader.hh"

namespace headrace {

/// Checks IP headers like CheckIPHeader, but verifies the checksum only on request.
///
///     CheckIPHeader2([OFFSET, keyword OFFSET, INTERFACES, BADSRC, GOODDST, CHECKSUM, VERBOSE, DETAILS])
///
/// CHECKSUM: default false. See CheckIPHeader for everything else.
struct CheckIPHeader2 : CheckIPHeader {
  HEADRACE_SHADER CheckIPHeader2() { ignored_sum = ~uint32_t{0}; }
};

}  // namespace headrace
