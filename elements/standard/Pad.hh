#pragma once
#include <headrace/element.hh>

#include "headrace/random_numbers.hh"

namespace headrace {

/// Makes packets longer.
///
///     Pad([LENGTH, keyword ZERO, RANDOM, MAXLENGTH, VERBOSE])
///
/// Adds bytes at the end of packets that are shorter than LENGTH, or, without LENGTH, as many bytes as the extra length
/// annotation gives. The annotation is then set to 0. A packet whose buffer has no room is dropped and counted.
///
/// LENGTH: minimum length of packets.
/// ZERO true: the new bytes are zero. Default true, except with RANDOM; if false, they keep the old contents of the
/// buffer.
/// RANDOM true: the new bytes are random. Default false.
/// MAXLENGTH: maximum length after padding. Default 0: no limit.
/// VERBOSE: accepted but ignored; `limited` counts what it would report.
///
/// Handlers: `limited` (r) packets that MAXLENGTH kept shorter.
class Pad final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;
  std::vector<RegionInfo> annotations() const override { return declared(ReadWrite{anno::extra_length}); }

 private:
  enum class Fill : uint8_t { kNothing, kZero, kRandom };
  void fill_random(uint8_t* to, uint32_t n);

  uint32_t length_ = 0;
  uint32_t max_length_ = 0;
  Fill fill_ = Fill::kZero;
  RandomNumbers random_;
  ThreadCounters limited_{1};
};

HEADRACE_ELEMENT(Pad)

}  // namespace headrace
