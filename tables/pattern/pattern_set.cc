#include "tables/pattern/pattern_set.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/text.hh"
#include "tables/files/text_lines.hh"

namespace headrace {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// A character as a message shows it.
std::string shown(char c) {
  return c > ' ' && c <= '~' ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

/// Reads the text of a pattern from front to back.
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  std::string read(std::string& bytes) {
    const bool quoted = !text_.empty() && text_.front() == '"';
    if (quoted) {
      text_.remove_prefix(1);
    }
    while (!text_.empty()) {
      const char c = take();
      if (c == '"') {
        if (!quoted) return "a quote within a pattern is written \\\"";
        if (!text_.empty()) return fmt::format("unexpected {} after the closing quote", shown(text_.front()));
        return {};
      }
      std::string reason;
      if (c == '\\') {
        reason = escape(bytes);
      } else if (c == '|') {
        reason = hex(bytes);
      } else {
        bytes.push_back(c);
      }
      if (!reason.empty()) return reason;
    }
    return quoted ? "the closing quote is missing" : "";
  }

 private:
  char take() {
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }

  std::string escape(std::string& bytes) {
    if (text_.empty()) return "nothing follows the last backslash";
    const char c = take();
    switch (c) {
      case 'n':
        bytes.push_back('\n');
        return {};
      case 'r':
        bytes.push_back('\r');
        return {};
      case 't':
        bytes.push_back('\t');
        return {};
      case '0':
        bytes.push_back('\0');
        return {};
      case '\\':
      case '|':
      case '"':
      case '#':
      case ';':
      case ':':
        bytes.push_back(c);
        return {};
      case 'x': {
        if (text_.size() < 2 || hex_digit(text_[0]) < 0 || hex_digit(text_[1]) < 0)
          return "\\x needs two hexadecimal digits";
        const int high = hex_digit(take());
        bytes.push_back(static_cast<char>(high << 4 | hex_digit(take())));
        return {};
      }
      default:
        return fmt::format("unknown escape: a backslash and {}", shown(c));
    }
  }

  std::string hex(std::string& bytes) {
    for (;;) {
      while (!text_.empty() && is_blank(text_.front())) text_.remove_prefix(1);
      if (text_.empty()) return "the closing | is missing";
      const char c = take();
      if (c == '|') return {};
      const int high = hex_digit(c);
      if (high < 0) return fmt::format("{} between bars is no hexadecimal digit", shown(c));
      if (text_.empty() || hex_digit(text_.front()) < 0) return "a byte between bars has two hexadecimal digits";
      bytes.push_back(static_cast<char>(high << 4 | hex_digit(take())));
    }
  }

  std::string_view text_;
};

}  // namespace

std::string parse_pattern(std::string_view text, Pattern& pattern) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  pattern = Pattern();
  if (text.starts_with("i:")) {
    pattern.nocase = true;
    text.remove_prefix(2);
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  }
  std::string reason = PatternReader(text).read(pattern.bytes);
  if (reason.empty() && pattern.bytes.empty()) reason = "the pattern is empty";
  return reason;
}

std::string unparse_pattern(const Pattern& pattern) {
  std::string text = pattern.nocase ? "i:\"" : "\"";
  for (const char c : pattern.bytes) {
    if (c == '"' || c == '\\' || c == '|') {
      text += '\\';
      text += c;
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text + '"';
}

std::string PatternSet::refuse(const Pattern& pattern) const {
  if (pattern.bytes.empty()) return "the pattern is empty";
  if (pattern.bytes.size() > kLongestPattern)
    return fmt::format("the pattern has {} bytes, the limit is {}", pattern.bytes.size(), kLongestPattern);
  if (patterns_.size() == kMostPatterns) return fmt::format("there are more than {} patterns", kMostPatterns);
  return {};
}

void PatternSet::take(Pattern pattern) {
  longest_ = std::max(longest_, pattern.bytes.size());
  total_bytes_ += pattern.bytes.size();
  patterns_.push_back(std::move(pattern));
}

Status PatternSet::add(Pattern pattern, Errors& errors) {
  const std::string reason = refuse(pattern);
  if (!reason.empty()) return errors.error("{}", reason);
  take(std::move(pattern));
  return {};
}

Status PatternSet::add_file(const std::string& path, Errors& errors) {
  constexpr int kErrorsShown = 20;
  int line = 0;
  int bad = 0;
  const std::string fault = read_text_lines(path, [&](std::string_view text) {
    ++line;
    Pattern pattern;
    std::string reason;
    if (text.size() > kLongestTextLine) {
      reason = "line is too long";
    } else {
      if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
      if (text.starts_with('#') || text.find_first_not_of(" \t") == std::string_view::npos) return;
      reason = parse_pattern(text, pattern);
      if (reason.empty()) reason = refuse(pattern);
    }
    if (reason.empty()) {
      take(std::move(pattern));
    } else if (++bad <= kErrorsShown) {
      (void)errors.error_at({path, line}, "{}", reason);
    }
  });
  if (bad > kErrorsShown) {
    const int more = bad - kErrorsShown;
    (void)errors.error_at({path}, "{} more bad {}", more, more == 1 ? "line" : "lines");
  }
  if (!fault.empty()) return errors.error_at({path}, "{}", fault);
  return bad == 0 ? Status() : Status::failed();
}

}  // namespace headrace
