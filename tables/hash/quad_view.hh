#pragma once
/// \file
/// Loads of four words at a time from tables that change under their readers, for both processors. Includes no standard
/// header.

#include <headrace/shader_types.hh>

namespace headrace {

/// Four adjacent words.
struct Quad {
  uint32_t w[4];

  /// Words 2i and 2i + 1, the first in the lower half.
  HEADRACE_SHADER uint64_t pair(uint32_t i) const { return uint64_t{w[2 * i + 1]} << 32 | w[2 * i]; }
};

/// The four words at an address of a table that 16 divides, as load_shared() loads each. Aligned pairs of them are not torn
/// either. A device takes one load for it, and that is what most lookups there are made of; in the order in which they are
/// written, so that loads which stand together are under way together.
HEADRACE_SHADER Quad load_quad(const void* words) {
#if defined(__CUDA_ARCH__)
  Quad quad;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(quad.w[0]), "=r"(quad.w[1]), "=r"(quad.w[2]), "=r"(quad.w[3])
               : "l"(words));
  return quad;
#else
  using Pair [[gnu::may_alias]] = uint64_t;
  const auto* const pairs = static_cast<const Pair*>(words);
  const uint64_t first = load_shared(pairs), second = load_shared(pairs + 1);
  return {{static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32), static_cast<uint32_t>(second),
           static_cast<uint32_t>(second >> 32)}};
#endif
}

}  // namespace headrace
