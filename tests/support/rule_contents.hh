#pragma once
/// \file
/// The contents of real rule files, real packets and text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "tables/files/text_lines.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace::testing {

/// Different contents of the rules of an archive, commented ones, too. The archive is read as lines as it is: what lies
/// between its files is no rule.
inline PatternSet rule_contents(const std::string& path, size_t shortest) {
  PatternSet patterns;
  Errors errors;
  std::set<std::tuple<std::string, bool>> seen;
  (void)read_text_lines(path, [&](std::string_view line) {
    static constexpr std::string_view kKeyword = "content:";
    for (size_t at = line.find(kKeyword); at != std::string_view::npos; at = line.find(kKeyword, at + 1)) {
      const size_t begin = line.find_first_not_of(' ', at + kKeyword.size());
      if (begin == std::string_view::npos || line[begin] != '"') continue;
      size_t end = begin + 1;
      while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
      if (end >= line.size()) continue;
      Pattern pattern;
      if (!parse_pattern(line.substr(begin, end + 1 - begin), pattern).empty()) continue;
      pattern.nocase = line.substr(end, line.find(kKeyword, end) - end).find("nocase;") != std::string_view::npos;
      if (pattern.bytes.size() >= shortest && seen.emplace(pattern.bytes, pattern.nocase).second)
        (void)patterns.add(pattern, errors);
    }
  });
  return patterns;
}

/// The first bytes of a capture or an archive of captures.
inline std::string capture_bytes(const std::string& path, size_t most) {
  std::string bytes;
  (void)read_text_lines(path, [&](std::string_view line) {
    if (bytes.size() < most) (bytes += line) += '\n';
  });
  bytes.resize(std::min(bytes.size(), most));
  return bytes;
}

/// Requests and pages as a browser and a server might exchange them.
inline std::string http_text(size_t length, uint32_t seed) {
  static constexpr std::string_view kWords[] = {"index", "login", "search", "the",   "page", "user", "name",  "value",
                                                "image", "style", "script", "admin", "news", "data", "query", "session",
                                                "of",    "and",   "with",   "cart",  "item", "view", "upload"};
  const auto next = [&] { return seed = seed * 1664525 + 1013904223, seed >> 8; };
  const auto word = [&] { return std::string(kWords[next() % std::size(kWords)]); };
  std::string text;
  while (text.size() < length) {
    text += "GET /" + word() + "/" + word() + ".php?id=" + std::to_string(next() % 10000) + "&" + word() + "=" +
            word() + " HTTP/1.1\r\nHost: www." + word() +
            ".com\r\nUser-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) " +
            "AppleWebKit/537.36\r\nAccept: text/html,*/*;q=0.8\r\nCookie: PHPSESSID=" + std::to_string(next()) +
            "\r\n\r\n<html><head><title>" + word() + "</title></head><body><p>";
    for (int i = 0; i < 60; ++i) text += word() + " ";
    text += "</p></body></html>\r\n";
  }
  text.resize(length);
  return text;
}

}  // namespace headrace::testing
