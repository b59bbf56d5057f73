#include "tables/lpm4/route_file.hh"

#include <bit>
#include <string_view>

#include "tables/files/route_text.hh"

namespace headrace {

using namespace route_text;

namespace {

/// Reads a dotted address. Returns how many of its four bytes there were, the rest being 0, or 0 if it is malformed.
int parse_address(std::string_view text, uint32_t& address) {
  address = 0;
  for (int bytes = 1; bytes <= 4; ++bytes) {
    const size_t dot = text.find('.');
    uint32_t byte = 0;
    const std::string_view digits = text.substr(0, dot);
    if (digits.size() > 3 || !parse_number(digits, byte) || byte > 255) return 0;
    address |= byte << (32 - 8 * bytes);
    if (dot == std::string_view::npos) return bytes;
    text.remove_prefix(dot + 1);
  }
  return 0;
}

bool parse_full_address(std::string_view text, uint32_t& address) { return parse_address(text, address) == 4; }

uint32_t mask_of(int length) { return length == 0 ? 0 : ~uint32_t{0} << (32 - length); }

/// Reads one line into `route`. Returns what is wrong with it, or an empty text.
std::string parse_route(std::string_view text, TextRoute& route) {
  const std::string_view prefix = take_word(text);
  const size_t slash = prefix.find('/');
  const std::string_view address = prefix.substr(0, slash);
  const int bytes = parse_address(address, route.prefix);
  if (bytes == 0) return fmt::format("bad address '{}'", shown(address));
  if (slash == std::string_view::npos) {
    if (bytes != 4) return fmt::format("'{}' has no prefix length", shown(address));
    route.length = 32;
  } else {
    const std::string_view length = prefix.substr(slash + 1);
    uint32_t mask = 0;
    if (parse_number(length, route.length)) {
      if (route.length > 32) return fmt::format("prefix length {} is above 32", route.length);
    } else if (parse_full_address(length, mask) && mask == mask_of(std::countl_one(mask))) {
      route.length = std::countl_one(mask);
    } else {
      return fmt::format("bad prefix length '{}'", shown(length));
    }
    if (route.length > 8 * bytes) {
      return fmt::format("'{}' says less than {} bits of the address", shown(prefix), route.length);
    }
    route.prefix &= mask_of(route.length);
  }

  std::string_view word = take_word(text);
  uint32_t value = 0;
  if (word == "-") {
    word = take_word(text);
  } else if (parse_full_address(word, value)) {
    route.gateway = value;
    word = take_word(text);
  }
  if (!word.empty()) {
    if (!parse_number(word, value)) {
      return fmt::format("expected a gateway or a port, found '{}'", shown(word));
    }
    route.port = value;
    word = take_word(text);
  }
  if (!word.empty()) return fmt::format("unexpected '{}' after the route", shown(word));
  return {};
}

}  // namespace

bool read_routes(const std::string& path, std::vector<TextRoute>& routes, Errors& errors) {
  return read_file<TextRoute>(path, routes, errors, parse_route);
}

}  // namespace headrace
