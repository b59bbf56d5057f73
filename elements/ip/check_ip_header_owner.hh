#pragma once
#include <vector>

#include "elements/ip/header_check.hh"

namespace headrace {

/// What CheckIPHeader keeps on the host.
struct CheckIPHeaderOwner : HeaderCheckOwner {
  std::vector<uint32_t> bad_sources, good_destinations;  // network order
};

}  // namespace headrace
