#include "headrace/error.hh"

#include <algorithm>
#include <cstdio>

namespace headrace {

Errors::~Errors() { say_how_many_more(); }

void Errors::say_how_many_more() {
  const int more = error_count_ - std::max(limit_, told_);
  if (limit_ == 0 || more <= 0) return;
  emit(fmt::format("... and {} more error{}", more, more == 1 ? "" : "s"));
  told_ = error_count_;
}

void Errors::conclude(std::string text) {
  say_how_many_more();
  emit(std::move(text));
}

std::string Errors::str() const {
  std::string all;
  for (const std::string& line : lines_) {
    all += line;
    all += '\n';
  }
  return all;
}

void Errors::emit(std::string line) {
  if (output_ == Output::kStderr) {
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
    line.pop_back();
  }
  lines_.push_back(std::move(line));
}

Status Errors::report(const Landmark& where, Severity severity, std::string text) {
  if (severity == Severity::kError) ++error_count_;
  if (severity == Severity::kWarning) ++warning_count_;
  if (limit_ > 0 && error_count_ > limit_) return severity == Severity::kError ? Status::failed() : Status();

  std::string prefix;
  if (where.file.empty()) {
    int depth = 0;
    for (Frame& frame : frames_) {
      if (!frame.printed) {
        frame.printed = true;
        const std::string at = frame.where.str();
        emit(std::string(2 * depth, ' ') + (at.empty() ? frame.text : at + ": " + frame.text));
      }
      ++depth;
    }
    prefix.assign(2 * depth, ' ');
  } else {
    prefix = where.str() + ": ";
  }
  if (severity == Severity::kWarning) prefix += "warning: ";

  // A message of several lines keeps its indentation.
  const std::string indent(prefix.find_first_not_of(' ') == std::string::npos ? prefix : std::string("  "));
  size_t begin = 0;
  bool first = true;
  while (begin <= text.size()) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    if (first || end > begin) emit((first ? prefix : indent) + text.substr(begin, end - begin));
    first = false;
    begin = end + 1;
  }
  return severity == Severity::kError ? Status::failed() : Status();
}

Errors::Context::Context(Errors& errors, Landmark where, std::string text) : errors_(errors) {
  errors_.frames_.push_back({std::move(where), std::move(text), false});
}

Errors::Context::~Context() { errors_.frames_.pop_back(); }

}  // namespace headrace
