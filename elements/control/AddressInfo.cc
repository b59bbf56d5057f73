#include "elements/control/AddressInfo.hh"

#include <bit>

namespace headrace {

namespace {

/// What one word can be read as.
struct Reading {
  std::optional<EtherAddress> ether;
  std::optional<IpAddress> ip;
  std::optional<IpPrefix> prefix;
  std::optional<Ip6Address> ip6;
  std::optional<Ip6Prefix> prefix6;

  enum Kind : unsigned { kEther = 1, kIp = 2, kPrefix = 4, kIp6 = 8, kPrefix6 = 16 };
  unsigned kinds() const {
    return (ether ? kEther : 0u) | (ip ? kIp : 0u) | (prefix ? kPrefix : 0u) | (ip6 ? kIp6 : 0u) |
           (prefix6 ? kPrefix6 : 0u);
  }
};

Reading read_address(const std::string& word, NameScope* scope) {
  // Not being an address of one kind is no error.
  const ArgContext context(scope);
  Reading r;
  (void)parse_argument(word, r.ether, context);
  if (!parse_argument(word, r.ip, context) && parse_argument(word, r.prefix, context) &&
      r.prefix->address != r.prefix->network())
    r.ip = r.prefix->address;
  if (!parse_argument(word, r.ip6, context) && parse_argument(word, r.prefix6, context) &&
      r.prefix6->address != r.prefix6->network())
    r.ip6 = r.prefix6->address;
  return r;
}

Status define(const std::string& entry, Args& args) {
  std::vector<std::string> words;
  if (!parse_argument(entry, words, args.context())) return Status::failed();
  if (words.empty()) return {};
  if (words.size() < 2) return args.errors().error("expected 'NAME [ADDRS]'");
  Status status;
  NameScope& scope = *args.scope();
  unsigned defined = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    const Reading r = read_address(words[i], &scope);
    const unsigned kinds = r.kinds();
    if (kinds == 0) status &= args.errors().error("'{}' is not a recognizable address", words[i]);
    // A word with one meaning counts more than an earlier one with several, such as a device's name.
    const bool sure = std::has_single_bit(kinds);
    const auto wanted = [&](Reading::Kind kind) { return (kinds & kind) && (sure || !(defined & kind)); };
    if (wanted(Reading::kEther)) scope.define(words[0], *r.ether);
    if (wanted(Reading::kIp)) scope.define(words[0], *r.ip);
    if (wanted(Reading::kPrefix)) scope.define(words[0], *r.prefix);
    if (wanted(Reading::kIp6)) scope.define(words[0], *r.ip6);
    if (wanted(Reading::kPrefix6)) scope.define(words[0], *r.prefix6);
    defined |= kinds;
  }
  return status;
}

}  // namespace

Status AddressInfo::configure(Args& args) {
  std::vector<std::string> entries;
  args.consume_rest(entries);
  Status status = args.complete();
  for (const std::string& entry : entries) status &= define(entry, args);
  return status;
}

}  // namespace headrace
