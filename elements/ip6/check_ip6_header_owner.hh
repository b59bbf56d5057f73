#pragma once
#include <vector>

#include "elements/ip/header_check.hh"
#include "elements/ip6/CheckIP6Header.hh"

namespace headrace {

/// What CheckIP6Header keeps on the host.
struct CheckIP6HeaderOwner : HeaderCheckOwner {
  std::vector<ip6::Words> bad_sources;
};

}  // namespace headrace
