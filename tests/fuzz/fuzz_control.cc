// Feeds bytes to a client's session with the control socket, in the pieces that the first byte says. The router has
// read and write handlers of a few elements.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "control/control_server.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace {

using namespace headrace;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  abort();
}

Router& router() {
  static Runtime runtime(Runtime::Options{});
  static const std::unique_ptr<Router> made = [] {
    Errors errors;
    lang::Configuration configuration;
    const char* text =
        "i :: Idle -> c :: Counter -> q :: Queue(7) -> Idle; s :: Script(TYPE PASSIVE, return $(add $1 1));"
        "r :: RadixIPLookup(0/0 0); Idle -> r -> Discard;";
    if (!lang::parse(text, "config", {}, configuration, errors).ok()) fail("bad configuration");
    return Router::create(configuration, runtime, errors);
  }();
  return *made;
}

/// Every answer is a number of lines with one code each, the last one without a hyphen, and data where it says so.
void check_answers(std::string_view out) {
  while (!out.empty()) {
    const size_t end = out.find("\r\n");
    if (end == std::string_view::npos || end < 4) fail("an answer is no line");
    const std::string_view line = out.substr(0, end);
    out.remove_prefix(end + 2);
    for (int i = 0; i < 3; ++i)
      if (line[i] < '0' || line[i] > '9') fail("an answer has no code");
    if (line[3] != ' ' && line[3] != '-') fail("an answer has neither a blank nor a hyphen behind its code");
    if (!out.starts_with("DATA ")) continue;
    const size_t size_end = out.find("\r\n");
    const size_t size = std::strtoull(std::string(out.substr(5, size_end - 5)).c_str(), nullptr, 10);
    if (out.size() < size_end + 2 + size) fail("data is missing");
    out.remove_prefix(size_end + 2 + size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] ? data[0] : bytes.size();
  control::ControlSession session;
  control::ControlSession::Rights rights;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const size_t before = out.size();
    const bool open = session.take(
        bytes.substr(at, piece), [] { return &router(); }, rights, out);
    check_answers(std::string_view(out).substr(before));
    if (!open) break;
  }
  return 0;
}
