#pragma once
#include <headrace/element.hh>

#include "headrace/random_numbers.hh"

namespace headrace {

/// Samples packets at random.
///
///     RandomSample([P, keyword SAMPLE, DROP, ACTIVE])
///
/// Output 0: each packet with probability P. Output 1 (optional), push: the others; without it they are dropped.
///
/// P, SAMPLE: the probability, from 0 to 1. One of P, SAMPLE and DROP must be given.
/// DROP: 1 minus the probability. Not together with SAMPLE.
/// ACTIVE false: all packets leave by output 0. Default true.
///
/// Handlers: `sampling_prob`, `drop_prob`, `active` (rw); `drops` (r) packets that were not sampled; `config` (rw).
class RandomSample final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  std::string configuration() const override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  double probability_ = 0;
  bool active_ = true;
  ThreadCounters drops_{1};
  RandomNumbers random_;
};

HEADRACE_ELEMENT(RandomSample)

}  // namespace headrace
