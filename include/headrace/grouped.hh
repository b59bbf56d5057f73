#pragma once
/// \file
/// Large numbers as text.

#include <cstdint>
#include <string>

namespace headrace {

/// 901899 as "901,899".
inline std::string grouped(uint64_t n) {
  std::string s = std::to_string(n);
  for (size_t at = s.size(); at > 3;) s.insert(at -= 3, 1, ',');
  return s;
}

}  // namespace headrace
