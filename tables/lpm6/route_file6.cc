#include "tables/lpm6/route_file6.hh"

#include <optional>
#include <string_view>

#include "tables/files/route_text.hh"

namespace headrace {

using namespace route_text;

namespace {

std::string parse_route(std::string_view text, TextRoute6& route) {
  const std::string_view prefix = next_word(text);
  const size_t slash = prefix.find('/');
  const std::string_view address = prefix.substr(0, slash);
  if (!parse(address, route.prefix.address)) return fmt::format("bad address '{}'", shown(address));
  route.prefix.length = 128;
  if (slash != std::string_view::npos) {
    const std::string_view length = prefix.substr(slash + 1);
    const std::optional<int> bits = whole_number<int>(length);
    if (!bits) return fmt::format("bad prefix length '{}'", shown(length));
    route.prefix.length = *bits;
    if (route.prefix.length > 128) return fmt::format("prefix length {} is above 128", route.prefix.length);
    route.prefix.address = route.prefix.network();
  }

  std::string_view word = next_word(text);
  Ip6Address gateway;
  if (word == "-") {
    word = next_word(text);
  } else if (parse(word, gateway)) {
    route.gateway = gateway;
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

bool read_routes6(const std::string& path, std::vector<TextRoute6>& routes, Errors& errors) {
  return read_file<TextRoute6>(path, routes, errors, parse_route);
}

}  // namespace headrace
