#pragma once
/// \file
/// Messages for tests of the OpenFlow codec, and the property that all of them must have.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/openflow/codec.hh"

namespace headrace::openflow {

using Bytes = std::vector<uint8_t>;

/// Bytes from hexadecimal digits; blanks are for the reader.
inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high >= 0) bytes.push_back(static_cast<uint8_t>(high << 4 | digit));
    high = high < 0 ? digit : -1;
  }
  return bytes;
}

/// A message with a header of the right length.
inline Bytes message_from_hex(Version version, uint8_t type, std::string_view body) {
  const Bytes rest = from_hex(body);
  const size_t length = rest.size() + kHeaderBytes;
  Bytes bytes{
      static_cast<uint8_t>(version), type, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length), 0, 0, 0, 7};
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Decodes, and if that succeeds: what encode() writes is one message that decodes to the same, and then to the same
/// bytes again. Returns what is wrong, or nothing.
inline std::string check_fixed_point(std::span<const uint8_t> bytes, Reading reading) {
  Message message;
  if (decode(bytes, message, reading) != ErrorCode::kNone) return {};
  Bytes written;
  if (!encode(message, written)) return "a message that was read cannot be written";
  if (written.size() > bytes.size() && message.type() != MessageType::kHello) return "it grew";
  Message again;
  if (const ErrorCode error = decode(written, again, reading); error != ErrorCode::kNone)
    return std::string("what was written is refused: ") + definition_of(error).name_1_3;
  if (!(again == message)) return "it is another message when read again";
  Bytes twice;
  if (!encode(again, twice) || twice != written) return "it is written in another way the second time";
  return {};
}

}  // namespace headrace::openflow
