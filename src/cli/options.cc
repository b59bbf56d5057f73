#include "cli/options.hh"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "cli/output.hh"

namespace headrace::cli {

void OptionReader::complain(const std::string& message) const { cli::complain("{}: {}\n", program_, message); }

int OptionReader::next() {
  value_.clear();
  has_value_ = negated_ = false;
  if (letters_ && *letters_) return short_option();
  letters_ = nullptr;
  while (at_ < argc_) {
    const char* word = argv_[at_++];
    if (only_arguments_ || word[0] != '-' || word[1] == 0) {
      value_ = word;
      has_value_ = true;
      return kArgument;
    }
    if (std::strcmp(word, "--") == 0) {
      only_arguments_ = true;
      continue;
    }
    if (word[1] == '-') return long_option(word + 2);
    letters_ = word + 1;
    return short_option();
  }
  return kDone;
}

const Option* OptionReader::find_long(const std::string& name, bool negated, bool& ambiguous) const {
  const Option* found = nullptr;
  for (const Option& option : options_) {
    if (!option.name || (negated && !option.negatable)) continue;
    if (name == option.name) {
      ambiguous = false;
      return &option;
    }
    if (std::string_view(option.name).substr(0, name.size()) != name) continue;
    // Two names for one option do not contradict each other.
    if (found && found->id != option.id) ambiguous = true;
    found = &option;
  }
  return found;
}

int OptionReader::long_option(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  written_ = "--" + name;
  bool ambiguous = false;
  const Option* option = find_long(name, false, ambiguous);
  if (!option && name.starts_with("no-")) {
    option = find_long(name.substr(3), true, ambiguous);
    negated_ = option != nullptr;
  }
  if (ambiguous) {
    complain(fmt::format("option '{}' is ambiguous", written_));
    return kBad;
  }
  if (!option) {
    complain(fmt::format("unrecognized option '{}'", written_));
    return kBad;
  }
  if (equals != std::string::npos) {
    if (option->value == Option::Value::kNone || negated_) {
      complain(fmt::format("'{}' can't take an argument", written_));
      return kBad;
    }
    value_ = word.substr(equals + 1);
    has_value_ = true;
    return option->id;
  }
  return option->value == Option::Value::kRequired && !negated_ ? take_value(*option) : option->id;
}

int OptionReader::short_option() {
  const char letter = *letters_++;
  written_ = fmt::format("-{}", letter);
  for (const Option& option : options_) {
    if (option.letter != letter) continue;
    if (option.value != Option::Value::kNone && *letters_) {
      value_ = letters_;
      has_value_ = true;
      letters_ = nullptr;
      return option.id;
    }
    return option.value == Option::Value::kRequired ? take_value(option) : option.id;
  }
  complain(fmt::format("unrecognized option '{}'", written_));
  return kBad;
}

int OptionReader::take_value(const Option& option) {
  if (at_ >= argc_) {
    complain(fmt::format("'{}' requires an argument", written_));
    return kBad;
  }
  value_ = argv_[at_++];
  has_value_ = true;
  return option.id;
}

std::vector<std::string> OptionReader::rest() {
  std::vector<std::string> words;
  while (at_ < argc_ && std::strcmp(argv_[at_++], "--") != 0) words.emplace_back(argv_[at_ - 1]);
  return words;
}

bool OptionReader::integer(int& out) {
  const char* end = value_.data() + value_.size();
  int read;
  if (const auto [at, error] = std::from_chars(value_.data(), end, read); error == std::errc() && at == end) {
    out = read;
    return true;
  }
  complain(fmt::format("'{}' expects an integer, not '{}'", written_, value_));
  return false;
}

bool OptionReader::number(double& out) {
  const char* end = value_.data() + value_.size();
  double read;
  if (const auto [at, error] = std::from_chars(value_.data(), end, read); error == std::errc() && at == end) {
    out = read;
    return true;
  }
  complain(fmt::format("'{}' expects a real number, not '{}'", written_, value_));
  return false;
}

}  // namespace headrace::cli
