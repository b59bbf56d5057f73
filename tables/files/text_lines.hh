#pragma once
/// \file
/// Text files that may be compressed, line by line.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace headrace {

/// Longer lines are no data; the bound keeps a wrong file from filling the memory.
inline constexpr size_t kLongestTextLine = 4096;

/// Calls `consumer` for each line of a file, without its newline. The file may be compressed by gzip, xz, bzip2 or
/// zstd, see ByteReader. Of a line longer than `longest` one byte more is passed. Returns why the file cannot
/// be read, or an empty text; lines before the fault have been passed then.
std::string read_text_lines(const std::string& path, const std::function<void(std::string_view)>& consumer,
                            size_t longest = kLongestTextLine);

}  // namespace headrace
