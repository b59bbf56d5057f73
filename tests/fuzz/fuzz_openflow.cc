/// Fuzzes the codec of OpenFlow: the first byte says how to read and into which pieces the rest, a stream of messages, is
/// cut. A message is refused with an error that can be written, or it is the same when it is written and read again.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "control/openflow/codec.hh"
#include "control/openflow/framer.hh"
#include "tests/support/openflow_messages.hh"

namespace {

using namespace headrace::openflow;

void require_openflow(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void check_openflow_message(std::span<const std::uint8_t> bytes, Reading reading) {
  const std::string wrong = check_fixed_point(bytes, reading);
  require_openflow(wrong.empty(), wrong.c_str());
  Message message;
  const ErrorCode error = decode(bytes, message, reading);
  Bytes out;
  if (error == ErrorCode::kNone) {
    // In the other version, where it may lose something but not its form.
    message.version = message.version == Version::k1_0 ? Version::k1_3 : Version::k1_0;
    message.hello_version = 0;
    (void)encode(message, out);
    if (out.empty()) return;
  } else {
    require_openflow(encode(error_message(error, bytes), out), "an error cannot be written");
  }
  Framer framer;
  framer.add(out);
  size_t total = 0;
  for (auto one = framer.next(); !one.empty(); one = framer.next()) {
    total += one.size();
    Message again;
    require_openflow(decode(one, again, Reading::kAsWritten) == ErrorCode::kNone, "the other form is refused");
  }
  require_openflow(total == out.size() && !framer.broken(), "lengths are wrong");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Reading reading = (data[0] & 1) != 0 ? Reading::kAsWritten : Reading::kStrict;
  const size_t piece = data[0] / 2 != 0 ? data[0] / 2 : size;
  std::span<const std::uint8_t> stream(data + 1, size - 1);
  Framer framer;
  while (!stream.empty() && !framer.broken()) {
    const auto some = stream.first(std::min(piece, stream.size()));
    stream = stream.subspan(some.size());
    framer.add(some);
    for (auto message = framer.next(); !message.empty(); message = framer.next())
      check_openflow_message(message, reading);
    require_openflow(framer.waiting() <= kMaxMessageBytes + piece, "the framer keeps too much");
  }
  return 0;
}
