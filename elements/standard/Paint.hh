#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the paint annotation of packets.
///
///     Paint(COLOR [, ANNO])
///
/// COLOR: 0 to 255.
/// ANNO: the one-byte annotation that is set. Default PAINT.
///
/// Handlers: `color` (rw).
struct Paint : Shader<Paint> {
  static constexpr auto kRegions = regions(Set{anno::any});

  uint8_t color = 0;
  int32_t offset = anno::paint.kOffset;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  Extent extent(Anchor) const { return {offset, offset + 1}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    p.store8(Anchor::kAnno, offset, color);
    return 0;
  }
};

HEADRACE_ELEMENT(Paint)

}  // namespace headrace
