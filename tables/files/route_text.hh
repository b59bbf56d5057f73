#pragma once
/// \file
/// What the readers of route files share.

#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"
#include "headrace/text.hh"
#include "tables/files/text_lines.hh"

namespace headrace::route_text {

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// A word of the file as an error message shows it: short, and fit for a terminal.
inline std::string shown(std::string_view word) {
  constexpr size_t kLongest = 40;
  std::string text(word.substr(0, kLongest));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text + (word.size() > kLongest ? "..." : "");
}

/// Makes routes of lines.
///
/// `Route` has a member `line` for the number of its line. `parse` reads one line into a route and returns what is
/// wrong with it, or an empty text.
template <typename Route>
class RouteReader {
 public:
  using Parse = std::string (*)(std::string_view, Route&);
  RouteReader(const std::string& path, std::vector<Route>& routes, Errors& errors, Parse parse)
      : path_(path), routes_(routes), errors_(errors), parse_(parse) {}

  void line(std::string_view text) {
    ++line_;
    if (text.size() > kLongestTextLine) return bad("line is too long");
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (!text.empty() && text.front() == ';') return;
    text = text.substr(0, text.find('#'));
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    if (text.empty()) return;
    Route route;
    route.line = line_;
    const std::string reason = parse_(text, route);
    if (!reason.empty()) return bad(reason);
    routes_.push_back(route);
  }

  /// False if there were bad lines.
  bool finish() {
    if (bad_ > kErrorsShown) {
      const int more = bad_ - kErrorsShown;
      (void)errors_.error("{}: {} more bad {}", path_, more, more == 1 ? "line" : "lines");
    }
    return bad_ == 0;
  }

 private:
  static constexpr int kErrorsShown = 20;

  void bad(std::string_view reason) {
    if (++bad_ <= kErrorsShown) (void)errors_.error("{}:{}: {}", path_, line_, reason);
  }

  const std::string& path_;
  std::vector<Route>& routes_;
  Errors& errors_;
  Parse parse_;
  int line_ = 0;
  int bad_ = 0;
};

/// Reads the routes of a file; false, with what is wrong in `errors`, if not all of it could be read.
template <typename Route>
bool read_file(const std::string& path, std::vector<Route>& routes, Errors& errors,
               typename RouteReader<Route>::Parse parse) {
  RouteReader<Route> reader(path, routes, errors, parse);
  const std::string fault = read_text_lines(path, [&](std::string_view line) { reader.line(line); });
  const bool all_good = reader.finish();
  if (fault.empty()) return all_good;
  (void)errors.error("{}: {}", path, fault);
  return false;
}

}  // namespace headrace::route_text
