#include "control/script_format.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/argument_text.hh"
#include "headrace/args.hh"

namespace headrace::control {

namespace {

/// Wider fields than any sensible output has; keeps a script from asking for gigabytes.
constexpr int kMaxWidth = 65536;

constexpr const char* kLetters = "expected one of o x X u d i s %";

/// Reads one conversion behind its '%'.
class Conversion {
 public:
  Conversion(std::string_view& format, std::string_view& words, Errors& errors)
      : format_(format), words_(words), errors_(errors), all_(format) {}

  Status apply(std::string& out) {
    while (!format_.empty() && std::string_view("0#- +").find(format_.front()) != std::string_view::npos)
      spec_ += take();
    if (!take_count("width", -kMaxWidth, width_)) return Status::failed();
    spec_ += "*";
    if (!format_.empty() && format_.front() == '.') {
      take();
      if (!take_count("precision", 0, precision_)) return Status::failed();
      spec_ += ".*";
      has_precision_ = true;
    }
    take_size();
    if (format_.empty()) return errors_.error("conversion '{}' has no letter, {}", read(), kLetters);
    const char letter = take();
    switch (letter) {
      case '%':
        out += '%';
        return {};
      case 's': {
        std::string text;
        if (!take_value(text, "a word")) return Status::failed();
        return print(out, "s", text.c_str());
      }
      case 'd':
      case 'i': {
        int64_t n;
        if (!take_value(n, "an integer")) return Status::failed();
        return print(out, "lld", static_cast<long long>(bits_ == 16 ? static_cast<int16_t>(n) : n));
      }
      case 'o':
      case 'x':
      case 'X':
      case 'u': {
        Unsigned n;
        if (!take_value(n, "an integer")) return Status::failed();
        if (bits_ == 16) n.value = static_cast<uint16_t>(n.value);
        return print(out, (std::string("ll") + letter).c_str(), static_cast<unsigned long long>(n.value));
      }
      default:
        return errors_.error("unknown conversion '{}', {}", read(), kLetters);
    }
  }

 private:
  /// Negative numbers stand for what they are in two's complement.
  struct Unsigned {
    uint64_t value;
  };
  static bool parse(std::string_view word, Unsigned& n) {
    if (parse_argument(word, n.value, {})) return true;
    int64_t negative;
    if (!parse_argument(word, negative, {})) return false;
    n.value = static_cast<uint64_t>(negative);
    return true;
  }
  template <typename T>
  static bool parse(std::string_view word, T& value) {
    return parse_argument(word, value, {});
  }

  char take() {
    const char c = format_.front();
    format_.remove_prefix(1);
    return c;
  }

  /// The conversion as far as it has been read.
  std::string read() const { return "%" + std::string(all_.substr(0, all_.size() - format_.size())); }

  template <typename T>
  Status take_value(T& value, const char* expected) {
    const std::string_view word = lang::take_word(words_);
    if (word.empty()) return errors_.error("'{}' has no word", read());
    return parse(word, value) ? Status() : errors_.error("expected {} for '{}', found '{}'", expected, read(), word);
  }

  /// A width or precision: digits, a word for '*', or nothing (0).
  Status take_count(const char* what, int min, int& count) {
    std::string found;
    bool good = true;
    if (!format_.empty() && format_.front() == '*') {
      take();
      const std::string_view word = lang::take_word(words_);
      good = parse_argument(word, count, {});
      found = fmt::format(", found '{}'", word);
    } else {
      while (!format_.empty() && format_.front() >= '0' && format_.front() <= '9')
        count = std::min(count * 10 + (take() - '0'), kMaxWidth + 1);
    }
    if (good && count >= min && count <= kMaxWidth) return {};
    return errors_.error("expected an integer from {} to {} as the {} of '{}'{}", min, kMaxWidth, what, read(), found);
  }

  void take_size() {
    while (!format_.empty() && std::string_view("hlLq").find(format_.front()) != std::string_view::npos)
      bits_ = take() == 'h' ? 16 : 64;
  }

  template <typename T>
  Status print(std::string& out, const char* end, T value) {
    const std::string format = "%" + spec_ + end;
    const auto write = [&](char* to, size_t size) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      return has_precision_ ? std::snprintf(to, size, format.c_str(), width_, precision_, value)
                            : std::snprintf(to, size, format.c_str(), width_, value);
#pragma GCC diagnostic pop
    };
    const int size = write(nullptr, 0);
    if (size < 0) return errors_.error("'{}' gives more than 2 GiB", read());
    std::string text(static_cast<size_t>(size) + 1, 0);
    write(text.data(), text.size());
    out.append(text, 0, static_cast<size_t>(size));
    return {};
  }

  std::string_view& format_;
  std::string_view& words_;
  Errors& errors_;
  const std::string_view all_;  // of the format, from behind the '%'
  std::string spec_;
  int width_ = 0, precision_ = 0;
  bool has_precision_ = false;
  int bits_ = 64;
};

}  // namespace

Status format_words(std::string_view text, std::string& out, Errors& errors) {
  const std::string unquoted = lang::unquote(lang::take_word(text));
  std::string_view format = unquoted;
  std::string result;
  while (!format.empty()) {
    const size_t percent = std::min(format.find('%'), format.size());
    result += format.substr(0, percent);
    format.remove_prefix(percent);
    if (format.empty()) break;
    format.remove_prefix(1);
    if (!Conversion(format, text, errors).apply(result)) return Status::failed();
  }
  if (!text.empty()) return errors.error("no conversion takes '{}'", text);
  out = std::move(result);
  return {};
}

}  // namespace headrace::control
