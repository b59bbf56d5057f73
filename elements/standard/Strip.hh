#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Removes bytes from the front of packets.
///
///     Strip(LENGTH)
///
/// A packet shorter than LENGTH becomes empty. The header annotations stay, so Unstrip can restore headers.
struct Strip : Shader<Strip> {
  static constexpr auto kRegions = regions(ReadWrite{meta::data}, ReadWrite{meta::length});
  enum { kShort };
  static constexpr auto kCounters = counters(headrace::counter("shorter than LENGTH"));

  uint32_t bytes = 0;

  Status configure(Args& args);

  void move(Offsets& at) const { at.data += static_cast<int>(bytes); }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (!p.pull(bytes)) {
      p.count(kShort);
      p.pull(p.length());
    }
    return 0;
  }
};

HEADRACE_ELEMENT(Strip)

}  // namespace headrace
