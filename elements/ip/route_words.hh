#pragma once
/// \file
/// Routes as text: "10.0.0.0/8 192.168.1.1 2".

#include <string_view>

namespace headrace {

/// Takes the first blank-separated word off `text`.
inline std::string_view next_word(std::string_view& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) {
    text = {};
    return {};
  }
  const size_t end = text.find_first_of(" \t\r\n", begin);
  const std::string_view word = text.substr(begin, end == std::string_view::npos ? end : end - begin);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end);
  return word;
}

}  // namespace headrace
