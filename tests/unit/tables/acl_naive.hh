#pragma once
/// \file
/// A linear list that decides as an AclTable must: for its tests.

#include <cstdint>
#include <map>

#include "tables/acl/acl_rule.hh"

namespace headrace {

class NaiveAcl {
 public:
  static bool matches(const AclRule& rule, const uint32_t* key, uint32_t words) {
    for (uint32_t i = 0; i < words; ++i)
      if ((key[i] & rule.mask[i]) != (rule.value[i] & rule.mask[i])) return false;
    const uint32_t ports = key[kAclPortWord];
    return ports >> 16 >= rule.low >> 16 && ports >> 16 <= rule.high >> 16 && (ports & 0xffff) >= (rule.low & 0xffff) &&
           (ports & 0xffff) <= (rule.high & 0xffff);
  }

  uint32_t find(const uint32_t* key, uint32_t words) const {
    uint32_t found = AclMatch::kNone;
    const AclRule* best = nullptr;
    for (const auto& [number, rule] : rules) {
      if (best != nullptr && rule.priority <= best->priority) continue;
      if (!matches(rule, key, words)) continue;
      found = number;
      best = &rule;
    }
    return found;
  }

  std::map<uint32_t, AclRule> rules;
};

}  // namespace headrace
