// The line protocol of ControlSocket: commands in, answers out.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "control/control_server.hh"
#include "headrace/router.hh"
#include "headrace/text.hh"

namespace headrace::control {

namespace {

enum Code {
  kOk = 200,
  kOkWithWarnings = 220,
  kSyntax = 500,
  kUnimplemented = 501,
  kNoElement = 510,
  kNoHandler = 511,
  kHandlerError = 520,
  kDataTooBig = 521,
  kPermission = 530,
  kNoRouter = 540,
  kUnspecified = 590
};

void answer(std::string& out, int code, std::string_view text, bool more = false) {
  fmt::format_to(std::back_inserter(out), "{}{}{}\r\n", code, more ? '-' : ' ', text);
}

/// A heading, if there is one, and beneath it the lines of `errors`.
void answer(std::string& out, int code, const std::string& heading, const Errors& errors) {
  const std::vector<std::string>& lines = errors.lines();
  if (!heading.empty()) answer(out, code, lines.empty() ? heading : heading + ":", !lines.empty());
  for (size_t i = 0; i < lines.size(); ++i) answer(out, code, lines[i], i + 1 < lines.size());
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) words.emplace_back(word);
  return words;
}

/// What follows the first `words` words of `line`, without the blanks around it.
std::string rest(std::string_view line, int words) {
  for (int n = 0; n < words; ++n) next_word(line);
  return std::string(trimmed(line));
}

/// Finds a handler by the name that a client gave; null after an answer.
const Handler* find(Router& router, const std::string& proxy, const std::string& given, Element*& element,
                    std::string& out) {
  std::string name = given;
  // "0.name" and ".name" are the router's own, too.
  const size_t dot = name.find('.');
  if (dot == 0 || (dot == 1 && name[0] == '0')) name.erase(0, dot + 1);
  if (const size_t d = name.find('.'); d != std::string::npos && !proxy.empty())
    if (router.find(proxy + "/" + name.substr(0, d))) name = proxy + "/" + name;
  Errors ignored;
  const Handler* h = router.find_handler(name, nullptr, element, ignored);
  if (h && !(h->flags & Handler::kPrivate)) return h;
  const size_t d = name.rfind('.');
  if (!h && !element && d != std::string::npos)
    answer(out, kNoElement, fmt::format("No element named '{}'", name.substr(0, d)));
  else
    answer(out, kNoHandler, fmt::format("No handler named '{}'", given));
  return nullptr;
}

}  // namespace

std::string ControlSession::greeting() { return "Click::ControlSocket/1.3\r\n"; }

bool ControlSession::add(std::string_view bytes, std::string& out) {
  const size_t skipped = std::min<uint64_t>(skip_, bytes.size());
  skip_ -= skipped;
  in_.append(bytes.substr(skipped));
  if (in_.size() <= kMostData + 65536) return true;
  // Neither a line nor what is up to a terminator may be so long.
  answer(out, kDataTooBig, "Too much data");
  return false;
}

bool ControlSession::take_line(std::string& line, size_t& end) const {
  const size_t at = in_.find_first_of("\r\n");
  // Behind a final CR there may be an LF under way, which belongs to it.
  if (at == std::string::npos) return false;
  line = in_.substr(0, at);
  end = at + 1 + (in_[at] == '\r' && at + 1 < in_.size() && in_[at + 1] == '\n');
  return true;
}

bool ControlSession::command_complete() {
  for (;;) {
    std::string line;
    size_t end;
    if (!take_line(line, end)) return false;
    std::vector<std::string> words = split(line);
    if (words.empty()) {
      // Also the LF of a CR LF of which only the first half had come.
      in_.erase(0, end);
      continue;
    }
    command_ = {};
    std::string verb = words[0];
    std::transform(verb.begin(), verb.end(), verb.begin(), [](unsigned char c) { return std::toupper(c); });
    command_.words.assign(words.begin() + 1, words.end());
    const auto refuse = [&](int code, std::string text) {
      command_.code = code;
      command_.error = std::move(text);
    };
    if (verb == "GET") verb = "READ";
    if (verb == "SET") verb = "WRITE";
    if (verb == "SETDATA") verb = "WRITEDATA";
    const size_t given = command_.words.size();
    if (verb == "READ" || verb == "WRITE") {
      if (given < 1) refuse(kSyntax, "Wrong number of arguments");
      if (given > 1) command_.data = rest(line, 2);
    } else if (verb == "READDATA" || verb == "WRITEDATA") {
      const std::optional<uint64_t> length =
          given == 2 ? whole_number(command_.words[1], (uint64_t{1} << 62) - 1) : std::nullopt;
      const uint64_t n = length.value_or(0);
      if (given != 2) {
        refuse(kSyntax, "Wrong number of arguments");
      } else if (!length) {
        refuse(kSyntax, fmt::format("Syntax error in '{}'", verb));
      } else if (n > kMostData) {
        refuse(kDataTooBig, fmt::format("Data too large for handler '{}'", command_.words[0]));
        const size_t here = std::min<uint64_t>(n, in_.size() - end);
        skip_ = n - here;
        end += here;
      } else if (in_.size() - end < n) {
        return false;
      } else {
        command_.data = in_.substr(end, n);
        end += n;
      }
      verb.resize(verb.size() - 4);
    } else if (verb == "READUNTIL" || verb == "WRITEUNTIL") {
      if (given < 1) {
        refuse(kSyntax, "Wrong number of arguments");
      } else {
        const std::string terminator = rest(line, 2);
        size_t at = end;
        for (;;) {
          const size_t stop = in_.find_first_of("\r\n", at);
          if (stop == std::string::npos || (in_[stop] == '\r' && stop + 1 == in_.size())) return false;
          const std::string_view text = std::string_view(in_).substr(at, stop - at);
          const bool found = text.starts_with(terminator) && trimmed(text) == terminator;
          const size_t next = stop + 1 + (in_[stop] == '\r' && in_[stop + 1] == '\n');
          if (found) {
            command_.data = in_.substr(end, at - end);
            end = next;
            break;
          }
          at = next;
        }
      }
      verb.resize(verb.size() - 5);
    }
    command_.verb = std::move(verb);
    in_.erase(0, end);
    return true;
  }
}

bool ControlSession::carry_out(Router* router, const Rights& rights, std::string& out) {
  const std::string& verb = command_.verb;
  if (command_.code) {
    answer(out, command_.code, command_.error);
  } else if (verb == "QUIT" || verb == "CLOSE") {
    if (!command_.words.empty()) answer(out, kSyntax, "Bad command syntax");
    answer(out, kOk, "Goodbye!");
    return false;
  } else if (verb == "HELP") {
    static constexpr const char* kLines[] = {
        "Commands:",
        "READ HANDLER [ARGS]        the value of a read handler, as DATA",
        "READDATA HANDLER N         the same, ARGS are the N bytes that follow",
        "READUNTIL HANDLER [END]    the same, ARGS are the lines that follow up to END, or an empty one",
        "WRITE HANDLER [ARGS]       calls a write handler",
        "WRITEDATA HANDLER N        the same, ARGS are the N bytes that follow",
        "WRITEUNTIL HANDLER [END]   the same, ARGS are the lines that follow up to END, or an empty one",
        "CHECKREAD HANDLER          whether it can be read",
        "CHECKWRITE HANDLER         whether it can be written",
        "QUIT                       ends the connection"};
    for (const char* const& line : kLines) answer(out, kOk, line, &line != std::end(kLines) - 1);
  } else if (verb == "READ" || verb == "WRITE" || verb == "CHECKREAD" || verb == "CHECKWRITE") {
    const bool write = verb.ends_with("WRITE");
    if (!router)
      answer(out, kNoRouter, "No router installed");
    else if (verb.size() <= 5)
      read_or_write(*router, rights, write, out);
    else if (command_.words.size() != 1)
      answer(out, kSyntax, "Wrong number of arguments");
    else
      check(*router, rights, write, out);
  } else {
    answer(out, kUnimplemented, fmt::format("Command '{}' unimplemented", verb));
  }
  return true;
}

void ControlSession::read_or_write(Router& router, const Rights& rights, bool write, std::string& out) {
  const std::string& name = command_.words[0];
  Element* element = nullptr;
  const Handler* h = find(router, rights.proxy, name, element, out);
  if (!h) return;
  Errors errors;
  if (!write) {
    if (!h->read) return answer(out, kPermission, fmt::format("Handler '{}' write-only", name));
    std::string value;
    if (!router.call_read(*h, command_.data, value, errors))
      return answer(out, kUnspecified, fmt::format("Read handler '{}' error", name), errors);
    answer(out, kOk, fmt::format("Read handler '{}' OK", name));
    fmt::format_to(std::back_inserter(out), "DATA {}\r\n", value.size());
    out += value;
    return;
  }
  if (!h->write) return answer(out, kPermission, fmt::format("Handler '{}' read-only", name));
  if (!rights.write) return answer(out, kPermission, fmt::format("Permission denied for '{}'", name));
  // `h` may be gone afterwards: a handler can replace the configuration.
  const Status status = router.call_write(*h, command_.data, errors);
  if (!status.ok() || errors.error_count() > 0)
    answer(out, kHandlerError, fmt::format("Write handler '{}' error", name), errors);
  else if (errors.warning_count() > 0)
    answer(out, kOkWithWarnings, fmt::format("Write handler '{}' OK with warnings", name), errors);
  else
    answer(out, kOk, fmt::format("Write handler '{}' OK", name), errors);
}

void ControlSession::check(Router& router, const Rights& rights, bool write, std::string& out) {
  const std::string& name = command_.words[0];
  Element* element = nullptr;
  const Handler* h = find(router, rights.proxy, name, element, out);
  if (!h) return;
  if (write ? !h->write : !h->read)
    answer(out, kNoHandler, fmt::format("Handler '{}' not {}", name, write ? "writable" : "readable"));
  else if (write && !rights.write)
    answer(out, kPermission, fmt::format("Permission denied for '{}'", name));
  else
    answer(out, kOk, fmt::format("{} handler '{}' OK", write ? "Write" : "Read", name));
}

}  // namespace headrace::control
