#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the aggregate annotation to the length of the packet.
///
///     AggregateLength([keyword IP])
///
/// The extra length annotation is added to the length. Output 0: packets with the annotation. Output 1 (optional): with
/// IP, packets without a network header; without it they are dropped and counted.
///
/// IP true: the length counts from the network header on. Default false.
struct AggregateLength : Shader<AggregateLength> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Field<Anchor::kAnno, 20, uint32_t> aggregate{};
  static constexpr Field<Anchor::kAnno, 28, uint32_t> extra_length{};
  static constexpr bool kChecksHeaders = true;
  static constexpr auto kRegions = regions(Read{meta::length}, Read{extra_length}, Write{aggregate});
  enum { kNoHeader };
  static constexpr auto kCounters = counters(reason("no network header"));

  bool ip = false;

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    const int length = ip ? p.length_from(Anchor::kNetwork) : static_cast<int>(p.length());
    if (ip && !p.has_network_header()) {
      p.count(kNoHeader);
      return 1;
    }
    p.set(aggregate, static_cast<uint32_t>(length) + p.get(extra_length));
    return 0;
  }
};

HEADRACE_ELEMENT(AggregateLength)

}  // namespace headrace
