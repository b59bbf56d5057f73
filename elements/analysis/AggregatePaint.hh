#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Sets the aggregate annotation to the paint annotation.
///
///     AggregatePaint([BITS, keyword INCREMENTAL])
///
/// BITS: number of low bits of the paint to use, 1 to 8. Default 8.
/// INCREMENTAL true: the aggregate is shifted left by BITS, and the paint is added. Default false.
struct AggregatePaint : Shader<AggregatePaint> {
  static constexpr Field<Anchor::kAnno, 20, uint32_t> aggregate{};
  static constexpr auto kRegions = regions(Read{anno::paint}, ReadWrite{aggregate});

  int32_t bits = 8;
  bool incremental = false;

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t paint = p.get(anno::paint) & ((1u << bits) - 1);
    p.set(aggregate, incremental ? (p.get(aggregate) << bits) + paint : paint);
    return 0;
  }
};

HEADRACE_ELEMENT(AggregatePaint)

}  // namespace headrace
