#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sends packets to the output given by their paint annotation.
///
///     PaintSwitch([ANNO])
///
/// Output K: packets whose paint annotation is K. A packet with paint 255 goes to every output. A packet without an
/// output of its number is dropped and counted.
///
/// ANNO: the one-byte annotation to test. Default PAINT.
struct PaintSwitch : Shader<PaintSwitch> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(Read{anno::any});
  enum { kNoCopy };
  static constexpr auto kCounters = counters(headrace::counter("no buffer for a copy"));
  static constexpr int kEverywhere = 255;

  int32_t offset = anno::paint.kOffset;

  Status configure(Args& args);
  Next escape(Packet*& p, Emitter& emit) const;

  Extent extent(Anchor) const { return {offset, offset + 1}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint8_t color = p.load8(Anchor::kAnno, offset);
    return color == kEverywhere ? kEscape : color;
  }
};

HEADRACE_ELEMENT(PaintSwitch)

}  // namespace headrace
