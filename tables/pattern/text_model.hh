#pragma once
/// \file
/// How often bytes occur in what networks carry: a rough guess, to choose which part of a pattern is rare.

#include <array>
#include <string_view>
#include <vector>

namespace headrace {

/// Chances of pairs of bytes, letters of both cases being one, learned from a built-in sample of HTTP, HTML, scripts and
/// binary padding.
class TextModel {
 public:
  TextModel();
  /// The natural logarithm of the chance that these bytes begin at a place of a payload.
  double log_chance(std::string_view bytes) const;

 private:
  std::array<float, 256> single_{};
  std::vector<float> pair_;  // [first][second]: of the second behind the first
};

}  // namespace headrace
