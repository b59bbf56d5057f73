#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Adds bytes to the front of packets.
///
///     Unstrip(LENGTH)
///
/// The bytes are those that Strip removed, if any; otherwise their values are arbitrary. A packet whose buffer has no
/// room is dropped and counted.
struct Unstrip : Shader<Unstrip> {
  static constexpr auto kRegions = regions(ReadWrite{meta::data}, ReadWrite{meta::length});
  enum { kNoRoom };
  static constexpr auto kCounters = counters(reason("no room in front"));

  uint32_t bytes = 0;

  Status configure(Args& args);

  void move(Offsets& at) const { at.data -= static_cast<int>(bytes); }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.push(bytes)) return 0;
    p.count(kNoRoom);
    return kDrop;
  }
};

HEADRACE_ELEMENT(Unstrip)

}  // namespace headrace
