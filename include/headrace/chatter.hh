#pragma once
#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace headrace {

/// Writes a line to standard error in one call, so that lines of several workers do not mix.
inline void chatter_line(std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

template <typename... A>
void chatter(fmt::format_string<A...> format, A&&... arguments) {
  chatter_line(fmt::format(format, std::forward<A>(arguments)...));
}

}  // namespace headrace
