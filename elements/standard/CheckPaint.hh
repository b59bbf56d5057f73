#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Passes packets of one color.
///
///     CheckPaint(COLOR [, ANNO])
///
/// Output 0: packets whose paint annotation is COLOR. Output 1 (optional): all others; without it they are dropped and
/// counted.
///
/// COLOR: 0 to 255.
/// ANNO: the one-byte annotation to test. Default PAINT.
///
/// Handlers: `color` (rw).
struct CheckPaint : Shader<CheckPaint> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Read{anno::any});
  enum { kOther };
  static constexpr auto kCounters = counters(reason("other color"));

  uint8_t color = 0;
  int32_t offset = anno::paint.kOffset;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  Extent extent(Anchor) const { return {offset, offset + 1}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.load8(Anchor::kAnno, offset) == color) return 0;
    p.count(kOther);
    return 1;
  }
};

HEADRACE_ELEMENT(CheckPaint)

}  // namespace headrace
