#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Copies packets of one color.
///
///     PaintTee(COLOR [, ANNO])
///
/// Output 0: every packet. Output 1 (push): before it, a copy of each packet whose paint annotation is COLOR. With
/// Paint on a router's inputs it finds packets that leave by the interface where they came in, whose senders should get
/// a redirect.
///
/// COLOR: 0 to 255.
/// ANNO: the one-byte annotation to test. Default PAINT.
///
/// Handlers: `color` (rw).
struct PaintTee : Shader<PaintTee> {
  static constexpr Ports kPorts{"1/2"};
  static constexpr auto kRegions = regions(Read{anno::any});
  enum { kNoCopy };
  static constexpr auto kCounters = counters(headrace::counter("no buffer for the copy"));

  uint8_t color = 0;
  int32_t offset = anno::paint.kOffset;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);
  Next escape(Packet*& p, Emitter& emit) const;

  Extent extent(Anchor) const { return {offset, offset + 1}; }
  ShaderCode specialize() const;

  HEADRACE_SHADER Next shade(auto& p) const { return p.load8(Anchor::kAnno, offset) == color ? kEscape : 0; }
};

HEADRACE_ELEMENT(PaintTee)

}  // namespace headrace
