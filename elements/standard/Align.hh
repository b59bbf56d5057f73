#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Does nothing.
///
///     Align(MODULUS, OFFSET)
///
/// In Click this element moves packets, for processors that require aligned access. Headrace's elements read words at
/// any address, so configurations with it run at no cost.
///
/// MODULUS: 2, 4 or 8.
/// OFFSET: less than MODULUS.
struct Align : Shader<Align> {
  static constexpr auto kRegions = regions();

  Status configure(Args& args);

  HEADRACE_SHADER Next shade(auto&) const { return 0; }
};

HEADRACE_ELEMENT(Align)

}  // namespace headrace
