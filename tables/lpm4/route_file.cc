#include "tables/lpm4/route_file.hh"

#include <bit>
#include <string_view>

#include "headrace/addresses.hh"
#include "tables/files/route_text.hh"

namespace headrace {

using namespace route_text;

namespace {

/// Reads a dotted address, whose last bytes may be left out if `text` is a prefix. Returns how many bytes there were, or
/// 0 if it is malformed.
int parse_address(std::string_view text, uint32_t& address) {
  IpAddress parsed;
  const int bytes = parse_leading_octets(text, parsed);
  address = parsed.host_order();
  return bytes;
}

bool parse_full_address(std::string_view text, uint32_t& address) { return parse_address(text, address) == 4; }

uint32_t mask_of(int length) { return length == 0 ? 0 : ~uint32_t{0} << (32 - length); }

/// Reads one line into `route`. Returns what is wrong with it, or an empty text.
std::string parse_route(std::string_view text, TextRoute& route) {
  const std::string_view prefix = next_word(text);
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
    if (const auto bits = whole_number<int>(length)) {
      route.length = *bits;
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

  std::string_view word = next_word(text);
  uint32_t value = 0;
  if (word == "-") {
    word = next_word(text);
  } else if (parse_full_address(word, value)) {
    route.gateway = value;
    word = next_word(text);
  }
  if (!word.empty()) {
    route.port = whole_number<uint32_t>(word);
    if (!route.port) return fmt::format("expected a gateway or a port, found '{}'", shown(word));
    word = next_word(text);
  }
  if (!word.empty()) return fmt::format("unexpected '{}' after the route", shown(word));
  return {};
}

}  // namespace

bool read_routes(const std::string& path, std::vector<TextRoute>& routes, Errors& errors) {
  return read_file<TextRoute>(path, routes, errors, parse_route);
}

}  // namespace headrace
