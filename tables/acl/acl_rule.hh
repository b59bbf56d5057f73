#pragma once
/// \file
/// An entry of a table of masked entries, as its owner sees it.

#include <array>
#include <cstdint>

#include "tables/acl/acl_view.hh"

namespace headrace {

/// Matches keys whose bits under `mask` are `value`, and whose ports lie between `low` and `high`. Words of a key that the
/// table does not have must not be under the mask.
struct AclRule {
  static constexpr uint32_t kMostWords = 32;

  std::array<uint32_t, kMostWords> value{};
  std::array<uint32_t, kMostWords> mask{};
  /// Bounds of word kAclPortWord's upper and lower half, both inclusive.
  uint32_t low = 0;
  uint32_t high = 0xffffffffu;
  uint32_t priority = 0;
  uint32_t data = 0;

  bool operator==(const AclRule&) const = default;
};

}  // namespace headrace
