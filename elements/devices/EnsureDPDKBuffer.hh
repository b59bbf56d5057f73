#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Does nothing.
///
///     EnsureDPDKBuffer([FORCE_COPY, EXTRA_HEADROOM, keyword FAIL])
///
/// In FastClick this element copies packets into buffers that DPDK can send without a further copy. Here all packets
/// live in the same pools, from which DPDK's devices take their buffers, so configurations with it run at no cost.
///
/// FORCE_COPY, EXTRA_HEADROOM, FAIL: accepted but ignored. Not FORCE_COPY together with FAIL.
class EnsureDPDKBuffer final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override {
    bool force = false, fail = false;
    int32_t headroom = 0;
    args.read_p("FORCE_COPY", force).read_p("EXTRA_HEADROOM", headroom);
    if (!args.read("FAIL", fail).complete()) return Status::failed();
    if (force && fail) return args.errors().error("you cannot have both FORCE_COPY and FAIL at the same time");
    return {};
  }
  void push(int, Batch& batch) override { output(0).push(batch); }
  int pull(int, Batch& batch, int max) override { return input(0).pull(batch, max); }
};

HEADRACE_ELEMENT(EnsureDPDKBuffer)

}  // namespace headrace
