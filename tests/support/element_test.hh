#pragma once
/// \file
/// Shorthand for tests of elements in small graphs.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "support/test_router.hh"

namespace headrace::testing {

/// The Capture called `name`.
inline const Capture& capture(TestRouter& r, std::string_view name) {
  return dynamic_cast<const Capture&>(*r.router().find(name));
}

/// The packets that a Capture holds, as hexadecimal text.
inline std::vector<std::string> captured(TestRouter& r, std::string_view name) {
  const Capture& c = capture(r, name);
  std::vector<std::string> packets;
  for (size_t i = 0; i < c.seen().size(); ++i) packets.push_back(to_hex(c.bytes(i)));
  return packets;
}

/// Hexadecimal text as to_hex() writes it: lower case without blanks.
inline std::string plain_hex(std::string_view hex) { return to_hex(from_hex(hex)); }

inline std::vector<std::string> plain_hex(std::initializer_list<std::string_view> packets) {
  std::vector<std::string> plain;
  for (const std::string_view p : packets) plain.push_back(plain_hex(p));
  return plain;
}

}  // namespace headrace::testing
