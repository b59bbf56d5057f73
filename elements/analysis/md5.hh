#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace headrace {

/// The MD5 digest of some bytes (RFC 1321): a name for contents, not a protection.
std::array<uint8_t, 16> md5(const uint8_t* bytes, size_t n);
/// As 32 hexadecimal digits.
std::string md5_hex(const std::array<uint8_t, 16>& digest);
/// As 22 characters of [a-zA-Z0-9_@], six bits each, lowest first.
std::string md5_text(const std::array<uint8_t, 16>& digest);

}  // namespace headrace
