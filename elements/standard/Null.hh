#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Passes packets unchanged.
///
///     Null
///
/// Use it to name a point in the graph. Null1 to Null8 are the same.
struct Null : Shader<Null> {
  static constexpr auto kRegions = regions();

  HEADRACE_SHADER Next shade(auto&) const { return 0; }
};

HEADRACE_ELEMENT(Null)
HEADRACE_ELEMENT_ALIAS(Null1, Null)
HEADRACE_ELEMENT_ALIAS(Null2, Null)
HEADRACE_ELEMENT_ALIAS(Null3, Null)
HEADRACE_ELEMENT_ALIAS(Null4, Null)
HEADRACE_ELEMENT_ALIAS(Null5, Null)
HEADRACE_ELEMENT_ALIAS(Null6, Null)
HEADRACE_ELEMENT_ALIAS(Null7, Null)
HEADRACE_ELEMENT_ALIAS(Null8, Null)

}  // namespace headrace
