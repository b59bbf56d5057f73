#pragma once
#include <headrace/element.hh>

#include "elements/standard/tee_copies.hh"

namespace headrace {

/// Sends packets to all outputs except the one with the number of their input, as an Ethernet hub does.
///
///     Hub
///
/// As many outputs as inputs, push. A packet without any other output is dropped.
class Hub final : public Element {
 public:
  static constexpr Ports kPorts{"-/="};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"#/[^#]"};

  Status configure(Args& args) override {
    count_reasons({"no buffer for a copy", "no other port"});
    return args.complete();
  }
  void push(int port, Batch& batch) override {
    const int last = noutputs() - 1 - (port == noutputs() - 1 ? 1 : 0);
    for (int i = 0; i < last; ++i) {
      if (i == port) continue;
      Batch copies;
      copy_packets(*this, batch, 0, copies);
      if (!copies.empty()) output(i).push(copies);
    }
    if (last >= 0)
      output(last).push(batch);
    else
      drop(batch, 1);
  }
};

HEADRACE_ELEMENT(Hub)

}  // namespace headrace
