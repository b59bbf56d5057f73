#pragma once
/// \file
/// Command-line options in the manner of Click's programs: letters may be joined (-qw), a long name may be shortened as
/// far as it stays unique, `--no-name` negates, and a value that is optional must be attached (-a1, --simtime=5).

#include <span>
#include <string>
#include <vector>

namespace headrace::cli {

struct Option {
  enum class Value { kNone, kRequired, kOptional };
  int id;                      ///< what next() returns; 0 or more
  const char* name = nullptr;  ///< without the dashes; null when there is only a letter
  char letter = 0;             ///< 0 when there is only a name
  Value value = Value::kNone;
  bool negatable = false;
};

/// Reads a command line from left to right. Options and arguments may stand in any order; "--" ends the options.
class OptionReader {
 public:
  static constexpr int kArgument = -1;
  static constexpr int kDone = -2;
  /// The option is unknown, ambiguous or lacks its value; the message has been printed.
  static constexpr int kBad = -3;

  /// \param program named in messages
  OptionReader(std::string program, int argc, char** argv, std::span<const Option> options)
      : program_(std::move(program)), argc_(argc), argv_(argv), options_(options) {}

  /// The id of the next option, or one of the constants above.
  int next();
  /// The argument, or the value of the option. Empty when an optional value is missing: see has_value().
  const std::string& value() const { return value_; }
  bool has_value() const { return has_value_; }
  bool negated() const { return negated_; }
  /// The option as the user wrote it, for messages.
  const std::string& written() const { return written_; }

  /// Takes the words up to "--", which goes too, or to the end: an option's list of arguments for a library.
  std::vector<std::string> rest();

  /// The value as a number; false with a message when it is none.
  bool integer(int& out);
  bool number(double& out);
  /// Prints a message as this reader's own are.
  void complain(const std::string& message) const;

 private:
  int long_option(const std::string& word);
  int short_option();
  int take_value(const Option& option);
  const Option* find_long(const std::string& name, bool negated, bool& ambiguous) const;

  std::string program_;
  int argc_;
  char** argv_;
  std::span<const Option> options_;
  int at_ = 1;
  const char* letters_ = nullptr;  // what is left of joined letters
  bool only_arguments_ = false;
  std::string written_, value_;
  bool has_value_ = false, negated_ = false;
};

}  // namespace headrace::cli
