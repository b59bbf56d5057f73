#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Shortens packets.
///
///     Truncate(LENGTH [, keyword EXTRA_LENGTH])
///
/// Removes all but the first LENGTH bytes.
///
/// EXTRA_LENGTH false: the removed bytes are not added to the extra length annotation. Default true.
///
/// Handlers: `nbytes` (rw) LENGTH.
struct Truncate : Shader<Truncate> {
  static constexpr auto kRegions = regions(ReadWrite{meta::length}, ReadWrite{anno::extra_length});

  uint32_t bytes = 0;
  bool count_extra = true;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t length = p.length();
    if (length <= bytes) return 0;
    if (count_extra) p.set(anno::extra_length, p.get(anno::extra_length) + length - bytes);
    p.take(length - bytes);
    return 0;
  }
};

HEADRACE_ELEMENT(Truncate)

}  // namespace headrace
