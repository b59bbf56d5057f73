#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Diverts packets for destinations that receive too many.
///
///     Block(THRESH)
///
/// Input 0 and outputs, push. Output 0: packets whose forward rate annotation, which IPRateMonitor sets, is at most
/// THRESH. Output 1: the others.
///
/// THRESH: an integer; 0: all packets leave by output 0.
///
/// Handlers: `thresh` (rw).
struct Block : Shader<Block> {
  static constexpr Ports kPorts{"1/2"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Field<Anchor::kAnno, 20, uint32_t> forward_rate{};
  static constexpr auto kRegions = regions(Read{forward_rate});

  int32_t threshold = 0;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    return threshold != 0 && static_cast<int32_t>(p.get(forward_rate)) > threshold;
  }
};

HEADRACE_ELEMENT(Block)

}  // namespace headrace
