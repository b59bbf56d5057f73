#pragma once
/// \file
/// Lookups of many keys at a time on a CPU.

#include <cstddef>

#include "tables/acl/acl_view.hh"

namespace headrace {

/// Looks up `n` keys, which lie one behind the other with view.words() words each: faster than one by one, since they
/// wait for memory together. All see the table as of one commit.
void acl_find_batch(const AclView& view, const uint32_t* keys, AclMatch* matches, size_t n);

}  // namespace headrace
