#include "control/openflow/channel/target.hh"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

namespace headrace::openflow {

namespace {

struct Scheme {
  std::string_view name;
  Target::Kind kind;
  bool passive;
};
constexpr Scheme kSchemes[] = {
    {"tcp", Target::Kind::kTcp, false}, {"ssl", Target::Kind::kSsl, false}, {"unix", Target::Kind::kUnix, false},
    {"ptcp", Target::Kind::kTcp, true}, {"pssl", Target::Kind::kSsl, true}, {"punix", Target::Kind::kUnix, true},
};

bool read_port(std::string_view text, bool zero_allowed, uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && (port != 0 || zero_allowed);
}

/// "HOST", "[HOST]", and what stands behind it: nothing or ":REST". An address of IPv6 may lack the brackets if nothing
/// follows it.
bool read_host(std::string_view text, std::string& host, std::string_view& rest) {
  size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos) return false;
    host = text.substr(1, end++ - 1);
  } else if (std::count(text.begin(), text.end(), ':') > 1) {
    end = text.npos;
    host = text;
  } else {
    host = text.substr(0, end);
  }
  rest = end >= text.size() ? std::string_view() : text.substr(end);
  return !host.empty() && (rest.empty() || rest.starts_with(':'));
}

}  // namespace

bool parse_target(std::string_view text, Target& target, std::string& error) {
  target = {};
  const size_t colon = text.find(':');
  const auto* const scheme = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                          [&](const Scheme& s) { return s.name == text.substr(0, colon); });
  if (colon == text.npos || scheme == std::end(kSchemes)) {
    error = fmt::format(
        "'{}': expected tcp:HOST[:PORT], ssl:HOST[:PORT], unix:FILE, ptcp:[PORT][:HOST], "
        "pssl:[PORT][:HOST] or punix:FILE",
        text);
    return false;
  }
  target.kind = scheme->kind;
  target.passive = scheme->passive;
  const std::string_view what = text.substr(colon + 1);
  std::string_view rest;
  if (target.kind == Target::Kind::kUnix) {
    target.port = 0;
    target.file = what;
    constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
    if (!what.empty() && what.size() <= kMost) return true;
    error = fmt::format("'{}': expected the name of a file, of at most {} characters", text, kMost);
  } else if (target.passive) {
    const size_t end = what.find(':');
    const std::string_view port = what.substr(0, end);
    const bool good_port = port.empty() || read_port(port, true, target.port);
    if (good_port && (end == what.npos || (read_host(what.substr(end + 1), target.host, rest) && rest.empty())))
      return true;
    error = fmt::format("'{}': expected {}:[PORT][:HOST], with addresses of IPv6 in brackets", text, scheme->name);
  } else {
    if (read_host(what, target.host, rest) && (rest.empty() || read_port(rest.substr(1), false, target.port)))
      return true;
    error = fmt::format("'{}': expected {}:HOST[:PORT], with addresses of IPv6 in brackets", text, scheme->name);
  }
  return false;
}

std::string to_string(const Target& target) {
  const auto* const scheme = std::find_if(std::begin(kSchemes), std::end(kSchemes), [&](const Scheme& s) {
    return s.kind == target.kind && s.passive == target.passive;
  });
  if (target.kind == Target::Kind::kUnix) return fmt::format("{}:{}", scheme->name, target.file);
  const std::string host = target.host.find(':') == target.host.npos ? target.host : fmt::format("[{}]", target.host);
  if (!target.passive) return fmt::format("{}:{}:{}", scheme->name, host, target.port);
  return fmt::format("{}:{}{}{}", scheme->name, target.port, host.empty() ? "" : ":", host);
}

}  // namespace headrace::openflow
