#include "tables/rules/rule_header.hh"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <optional>

#include "tables/rules/rule_text.hh"

namespace headrace::rules {

namespace {

/// Lists within lists, and variables that stand for variables.
constexpr int kDeepest = 32;

const std::pair<const char*, const char*> kDefaults[] = {
    // Where things are is for the user to say: without that, anywhere.
    {"HOME_NET", "any"},
    {"EXTERNAL_NET", "any"},
    {"HTTP_SERVERS", "any"},
    {"SMTP_SERVERS", "any"},
    {"SQL_SERVERS", "any"},
    {"DNS_SERVERS", "any"},
    {"TELNET_SERVERS", "any"},
    {"AIM_SERVERS", "any"},
    {"DC_SERVERS", "any"},
    {"DNP3_SERVER", "any"},
    {"DNP3_CLIENT", "any"},
    {"MODBUS_CLIENT", "any"},
    {"MODBUS_SERVER", "any"},
    {"ENIP_CLIENT", "any"},
    {"ENIP_SERVER", "any"},
    {"SSH_SERVERS", "any"},
    {"FTP_SERVERS", "any"},
    {"SIP_SERVERS", "any"},
    // Ports have their usual values.
    {"HTTP_PORTS", "80"},
    {"SHELLCODE_PORTS", "!80"},
    {"ORACLE_PORTS", "1521"},
    {"SSH_PORTS", "22"},
    {"DNP3_PORTS", "20000"},
    {"MODBUS_PORTS", "502"},
    {"FILE_DATA_PORTS", "[$HTTP_PORTS,110,143]"},
    {"FTP_PORTS", "21"},
    {"SIP_PORTS", "[5060,5061]"},
    {"GENEVE_PORTS", "6081"},
    {"VXLAN_PORTS", "4789"},
    {"TEREDO_PORTS", "3544"},
    {"GTP_PORTS", "[2123,2152,3386]"},
};

void append(AddressSet& set, const AddressSet& more) {
  set.v4.append(more.v4);
  set.v6.append(more.v6);
}
void append(PortSet& set, const PortSet& more) { set.append(more); }
void normalize(AddressSet& set) {
  set.v4.normalize();
  set.v6.normalize();
}
void normalize(PortSet& set) { set.normalize(); }
AddressSet without(const AddressSet& a, const AddressSet& b) { return {a.v4.without(b.v4), a.v6.without(b.v6)}; }
PortSet without(const PortSet& a, const PortSet& b) { return a.without(b); }

std::optional<uint32_t> address4(std::string_view text) {
  in_addr a;
  if (inet_pton(AF_INET, std::string(text).c_str(), &a) != 1) return {};
  return ntohl(a.s_addr);
}

std::optional<Address6> address6(std::string_view text) {
  in6_addr a;
  if (inet_pton(AF_INET6, std::string(text).c_str(), &a) != 1) return {};
  Address6 value = 0;
  for (const uint8_t byte : a.s6_addr) value = value << 8 | byte;
  return value;
}

template <typename T>
bool add_prefix(IntervalSet<T>& set, T address, uint32_t length) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  if (length > kBits) return false;
  const T host = length == 0 ? static_cast<T>(~T{0}) : length == kBits ? T{0} : static_cast<T>(~T{0}) >> length;
  set.add(static_cast<T>(address & ~host), static_cast<T>(address | host));
  return true;
}

/// The prefix length that a mask such as 255.255.0.0 stands for.
std::optional<uint32_t> mask_length(std::string_view text) {
  const std::optional<uint32_t> mask = address4(text);
  if (!mask) return {};
  const uint32_t host = ~*mask;
  if ((host & (host + 1)) != 0) return {};
  return static_cast<uint32_t>(__builtin_popcount(*mask));
}

bool read_address(std::string_view text, AddressSet& set, std::string& error) {
  const auto wrong = [&] {
    error = fmt::format("bad address '{}'", text);
    return false;
  };
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::string_view a = trimmed(text.substr(0, dash)), b = trimmed(text.substr(dash + 1));
    if (const auto first = address4(a), last = address4(b); first && last && *first <= *last) {
      set.v4.add(*first, *last);
      return true;
    }
    if (const auto first = address6(a), last = address6(b); first && last && *first <= *last) {
      set.v6.add(*first, *last);
      return true;
    }
    return wrong();
  }
  const size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  std::optional<uint32_t> length;
  if (slash != std::string_view::npos) {
    length = whole_number<uint32_t>(text.substr(slash + 1), 128);
    if (!length) length = mask_length(text.substr(slash + 1));
    if (!length) return wrong();
  }
  if (const auto a = address4(address)) return add_prefix(set.v4, *a, length.value_or(32)) || wrong();
  if (const auto a = address6(address)) return add_prefix(set.v6, *a, length.value_or(128)) || wrong();
  return wrong();
}

bool read_port(std::string_view text, PortSet& set, std::string& error) {
  const size_t colon = text.find(':');
  std::optional<uint32_t> first, last;
  if (colon == std::string_view::npos) {
    first = last = whole_number<uint32_t>(text, 65535);
  } else {
    const std::string_view a = trimmed(text.substr(0, colon)), b = trimmed(text.substr(colon + 1));
    if (!a.empty() || !b.empty()) {
      first = a.empty() ? std::optional<uint32_t>(0) : whole_number<uint32_t>(a, 65535);
      last = b.empty() ? std::optional<uint32_t>(65535) : whole_number<uint32_t>(b, 65535);
    }
  }
  if (!first || !last || *first > *last) {
    error = fmt::format("bad port '{}'", text);
    return false;
  }
  set.add(static_cast<uint16_t>(*first), static_cast<uint16_t>(*last));
  return true;
}

}  // namespace

HeaderSets::HeaderSets(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {
  for (const auto& [name, value] : kDefaults) variables_.try_emplace(name, value);
}

/// One element of a list, without negation.
template <typename Set, typename ReadOne>
bool HeaderSets::read_item(std::string_view text, int depth, Set& set, std::string& error, ReadOne read_one) const {
  if (depth > kDeepest) {
    error = "lists or variables are nested too deeply";
    return false;
  }
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) {
      error = fmt::format("']' is missing in '{}'", text);
      return false;
    }
    return read_list(text.substr(1, text.size() - 2), depth + 1, set, error, read_one);
  }
  if (text.starts_with('$')) {
    const auto variable = variables_.find(std::string(text.substr(1)));
    if (variable == variables_.end()) {
      error = fmt::format("undefined variable '{}'", text);
      return false;
    }
    return read_list(variable->second, depth + 1, set, error, read_one);
  }
  if (same_word(text, "any")) {
    set = Set::all();
    return true;
  }
  return read_one(text, set, error);
}

/// What the elements stand for that are not negated (everything if all are), less the negated ones.
template <typename Set, typename ReadOne>
bool HeaderSets::read_list(std::string_view text, int depth, Set& set, std::string& error, ReadOne read_one) const {
  Set in, out;
  bool some_in = false;
  size_t begin = 0;
  int brackets = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '[') ++brackets;
      if (text[i] == ']' && --brackets < 0) break;
      if (text[i] != ',' || brackets > 0) continue;
    }
    std::string_view item = trimmed(text.substr(begin, i - begin));
    begin = i + 1;
    bool negated = false;
    while (item.starts_with('!')) {
      negated = !negated;
      item = trimmed(item.substr(1));
    }
    if (item.empty()) {
      error = fmt::format("empty element in the list '{}'", text);
      return false;
    }
    Set one;
    if (!read_item(item, depth, one, error, read_one)) return false;
    append(negated ? out : in, one);
    some_in |= !negated;
  }
  if (brackets != 0) {
    error = fmt::format("brackets do not match in '{}'", text);
    return false;
  }
  normalize(in);
  normalize(out);
  set = without(some_in ? in : Set::all(), out);
  return true;
}

template <typename Set, typename Read>
std::shared_ptr<const Set> HeaderSets::cached(std::map<std::string, std::shared_ptr<const Set>, std::less<>>& cache,
                                              std::string_view text, const char* what, std::string& error, Read read) {
  if (const auto at = cache.find(text); at != cache.end()) return at->second;
  auto set = std::make_shared<Set>();
  if (!read_list(text, 0, *set, error, read)) return nullptr;
  if (set->empty()) {
    error = fmt::format("no {} matches '{}'", what, text);
    return nullptr;
  }
  return cache.emplace(std::string(text), std::move(set)).first->second;
}

std::shared_ptr<const AddressSet> HeaderSets::addresses(std::string_view text, std::string& error) {
  return cached(addresses_, text, "address", error, read_address);
}

std::shared_ptr<const PortSet> HeaderSets::ports(std::string_view text, std::string& error) {
  return cached(ports_, text, "port", error, read_port);
}

}  // namespace headrace::rules
