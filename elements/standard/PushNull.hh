#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Passes packets unchanged, and makes its path a push path.
///
///     PushNull
struct PushNull : Shader<PushNull> {
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions();

  HEADRACE_SHADER Next shade(auto&) const { return 0; }
};

HEADRACE_ELEMENT(PushNull)

}  // namespace headrace
