#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Passes packets up to a length.
///
///     CheckLength(LENGTH)
///
/// Output 0: packets of LENGTH bytes or fewer. Output 1 (optional): longer ones; without it they are dropped and
/// counted.
///
/// Handlers: `length` (rw).
struct CheckLength : Shader<CheckLength> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Read{meta::length});
  enum { kLong };
  static constexpr auto kCounters = counters(reason("longer than LENGTH"));

  uint32_t most = 0;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.length() <= most) return 0;
    p.count(kLong);
    return 1;
  }
};

HEADRACE_ELEMENT(CheckLength)

}  // namespace headrace
