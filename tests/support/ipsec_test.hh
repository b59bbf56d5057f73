#pragma once
/// \file
/// Associations and packets for tests of IPsec's elements.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "elements/ipsec/IPsecDatabase.hh"
#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {

/// The bytes of a key as a file has them; those of different `number`s differ.
inline std::string key_text(int bytes, int number = 0) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += fmt::format("{}{:02x}", i == 0 ? "" : ":", 0xa0 + (i * 7 + number * 11) % 96);
  return text;
}

/// What a file says of the algorithms of an association with AES-128-CTR and HMAC-SHA1-96.
inline std::string ctr_sha1(int number = 0) {
  return "cipher_algo aes-128-ctr cipher_key " + key_text(20, number) + " auth_algo sha1-hmac auth_key " +
         key_text(20, number + 1);
}

/// An association of a tunnel. Numbers are kept for the whole process, so each test needs an SPI or keys of its own.
inline std::string tunnel_line(std::string_view direction, uint32_t spi, const std::string& algorithms,
                               std::string_view options = {}) {
  return fmt::format("sa {} {} {} mode ipv4-tunnel src 192.0.2.1 dst 192.0.2.2 {}\n", direction, spi, algorithms,
                     options);
}

/// A policy about everything.
inline std::string protect_all(std::string_view direction, uint32_t spi) {
  return fmt::format("sp ipv4 {} esp protect {} pri 1\n", direction, spi);
}

/// A packet of UDP from 10.0.0.1 to 10.0.0.2 whose payload says `in clear`.
inline std::string clear_packet() {
  return from_hex("45000024 00010000 4011 66c6 0a000001 0a000002 0001 0002 0010 0000") + "in clear";
}

inline const IPsecDatabase& database(TestRouter& r) {
  return dynamic_cast<const IPsecDatabase&>(*r.router().find("db"));
}

}  // namespace headrace::testing
