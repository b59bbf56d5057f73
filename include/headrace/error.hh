#pragma once
/// \file
/// Errors of a configuration, collected so that one run shows them all.

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace {

/// A place in a configuration: the file and line that an error message begins with.
struct Landmark {
  std::string file;
  int line = 0;

  /// "file:line", or "file" when there is no line, or "" when nothing is known.
  std::string str() const {
    if (file.empty()) return {};
    return line > 0 ? fmt::format("{}:{}", file, line) : file;
  }
};

/// The outcome of a step whose failure has already been reported to an Errors object.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  static constexpr Status failed() { return Status(false); }
  constexpr bool ok() const { return ok_; }
  constexpr explicit operator bool() const { return ok_; }
  constexpr Status& operator&=(Status other) {
    ok_ = ok_ && other.ok_;
    return *this;
  }

 private:
  constexpr explicit Status(bool ok) : ok_(ok) {}
  bool ok_ = true;
};

/// Collects messages. Nothing here throws or exits; the caller checks error_count() after a step.
///
/// Messages have Click's form. Without a context a message reads `landmark: text` (warnings:
/// `landmark: warning: text`). Within a Context, the context's line is printed once, before its first message, and its
/// messages are indented by two blanks below it:
///
///     router.click:3: While configuring 'q :: Queue':
///       CAPACITY: expected an integer
class Errors {
 public:
  /// Where finished lines go.
  enum class Output { kStderr, kCollect };

  explicit Errors(Output output = Output::kCollect) : output_(output) {}
  /// Reports how many errors limit() has suppressed.
  ~Errors();
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

  /// Reports an error; always returns a failed Status so that a caller can `return errors.error(...)`.
  template <typename... A>
  Status error(fmt::format_string<A...> format, A&&... args) {
    return report({}, Severity::kError, fmt::format(format, std::forward<A>(args)...));
  }
  template <typename... A>
  Status error_at(const Landmark& where, fmt::format_string<A...> format, A&&... args) {
    return report(where, Severity::kError, fmt::format(format, std::forward<A>(args)...));
  }
  template <typename... A>
  void warning(fmt::format_string<A...> format, A&&... args) {
    (void)report({}, Severity::kWarning, fmt::format(format, std::forward<A>(args)...));
  }
  template <typename... A>
  void warning_at(const Landmark& where, fmt::format_string<A...> format, A&&... args) {
    (void)report(where, Severity::kWarning, fmt::format(format, std::forward<A>(args)...));
  }
  /// A line that is neither an error nor a warning.
  template <typename... A>
  void message(fmt::format_string<A...> format, A&&... args) {
    (void)report({}, Severity::kMessage, fmt::format(format, std::forward<A>(args)...));
  }

  /// Prints at most this many errors; later ones are only counted.
  void limit(int errors) { limit_ = errors; }
  /// Says in a last line what the errors led to; it is none itself. Always shown.
  void conclude(std::string text);

  int error_count() const { return error_count_; }
  int warning_count() const { return warning_count_; }
  /// Every line so far, as printed.
  const std::vector<std::string>& lines() const { return lines_; }
  /// All lines joined, each ended by a newline.
  std::string str() const;

  /// While it lives, messages without a landmark of their own are printed below `text` at `where`.
  class Context {
   public:
    Context(Errors& errors, Landmark where, std::string text);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

   private:
    Errors& errors_;
  };

 private:
  enum class Severity { kMessage, kWarning, kError };
  struct Frame {
    Landmark where;
    std::string text;
    bool printed = false;
  };

  Status report(const Landmark& where, Severity severity, std::string text);
  void emit(std::string line);
  void say_how_many_more();

  Output output_;
  int limit_ = 0;  // 0: none
  int told_ = 0;   // errors that are shown, or counted in a line "... and N more"
  int error_count_ = 0;
  int warning_count_ = 0;
  std::vector<std::string> lines_;
  std::vector<Frame> frames_;
};

}  // namespace headrace
