#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Passes packets unchanged, and makes its path a pull path.
///
///     PullNull
struct PullNull : Shader<PullNull> {
  static constexpr Processing kProcessing{"l/l"};
  static constexpr auto kRegions = regions();

  HEADRACE_SHADER Next shade(auto&) const { return 0; }
};

HEADRACE_ELEMENT(PullNull)

}  // namespace headrace
