#include "control/script_format.hh"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/argument_text.hh"
#include "headrace/args.hh"

namespace headrace::control {

namespace {

/// Wider fields than any sensible output has; keeps a script from asking for gigabytes.
constexpr int kMaxWidth = 65536;

/// Reads one conversion behind its '%'.
class Conversion {
 public:
  Conversion(std::string_view& format, std::string_view& words) : format_(format), words_(words) {}

  bool apply(std::string& out) {
    while (!format_.empty() && std::string_view("0#- +").find(format_.front()) != std::string_view::npos)
      spec_ += take();
    if (!take_count(width_)) return false;
    spec_ += "*";
    if (!format_.empty() && format_.front() == '.') {
      take();
      if (!take_count(precision_) || precision_ < 0) return false;
      spec_ += ".*";
      has_precision_ = true;
    }
    take_size();
    if (format_.empty()) return false;
    const char letter = take();
    switch (letter) {
      case '%':
        out += '%';
        return true;
      case 's': {
        std::string text;
        return parse_argument(lang::take_word(words_), text, {}) && print(out, "s", text.c_str());
      }
      case 'd':
      case 'i': {
        int64_t n;
        if (!parse_argument(lang::take_word(words_), n, {})) return false;
        return print(out, "lld", static_cast<long long>(bits_ == 16 ? static_cast<int16_t>(n) : n));
      }
      case 'o':
      case 'x':
      case 'X':
      case 'u': {
        uint64_t n;
        if (!take_unsigned(n)) return false;
        if (bits_ == 16) n = static_cast<uint16_t>(n);
        return print(out, (std::string("ll") + letter).c_str(), static_cast<unsigned long long>(n));
      }
      default:
        return false;
    }
  }

 private:
  char take() {
    const char c = format_.front();
    format_.remove_prefix(1);
    return c;
  }

  /// A width or precision: digits, a word for '*', or nothing (0).
  bool take_count(int& count) {
    if (!format_.empty() && format_.front() == '*') {
      take();
      return parse_argument(lang::take_word(words_), count, {}) && count >= -kMaxWidth && count <= kMaxWidth;
    }
    while (!format_.empty() && format_.front() >= '0' && format_.front() <= '9') {
      count = std::min(count * 10 + (take() - '0'), kMaxWidth + 1);
    }
    return count <= kMaxWidth;
  }

  void take_size() {
    while (!format_.empty() && std::string_view("hlLq").find(format_.front()) != std::string_view::npos)
      bits_ = take() == 'h' ? 16 : 64;
  }

  /// Negative numbers stand for what they are in two's complement.
  bool take_unsigned(uint64_t& n) {
    const std::string_view word = lang::take_word(words_);
    if (parse_argument(word, n, {})) return true;
    int64_t negative;
    if (!parse_argument(word, negative, {})) return false;
    n = static_cast<uint64_t>(negative);
    return true;
  }

  template <typename T>
  bool print(std::string& out, const char* end, T value) {
    const std::string format = "%" + spec_ + end;
    const auto write = [&](char* to, size_t size) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      return has_precision_ ? std::snprintf(to, size, format.c_str(), width_, precision_, value)
                            : std::snprintf(to, size, format.c_str(), width_, value);
#pragma GCC diagnostic pop
    };
    const int size = write(nullptr, 0);
    if (size < 0) return false;
    std::string text(static_cast<size_t>(size) + 1, 0);
    write(text.data(), text.size());
    out.append(text, 0, static_cast<size_t>(size));
    return true;
  }

  std::string_view& format_;
  std::string_view& words_;
  std::string spec_;
  int width_ = 0, precision_ = 0;
  bool has_precision_ = false;
  int bits_ = 64;
};

}  // namespace

bool format_words(std::string_view text, std::string& out) {
  const std::string unquoted = lang::unquote(lang::take_word(text));
  std::string_view format = unquoted;
  std::string result;
  while (!format.empty()) {
    const size_t percent = std::min(format.find('%'), format.size());
    result += format.substr(0, percent);
    format.remove_prefix(percent);
    if (format.empty()) break;
    format.remove_prefix(1);
    if (!Conversion(format, text).apply(result)) return false;
  }
  if (!text.empty()) return false;
  out = std::move(result);
  return true;
}

}  // namespace headrace::control
