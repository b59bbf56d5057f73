#include "elements/ip/rewriter_pattern.hh"

#include <optional>
#include <random>

#include "elements/ip/IPRewriterPatterns.hh"
#include "headrace/text.hh"

namespace headrace {

namespace {

bool parse_address_range(std::string_view text, IpAddress& first, uint32_t& last, const ArgContext& context) {
  const ArgContext quiet(context.scope());
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    IpAddress low, high;
    if (!parse_argument(text.substr(0, dash), low, quiet) || !parse_argument(text.substr(dash + 1), high, quiet) ||
        low > high)
      return false;
    first = low;
    last = high.host_order() - low.host_order();
    return true;
  }
  IpPrefix prefix;
  if (!PrefixOrAddress().parse(text, prefix, quiet) || !prefix.address || !prefix.mask || prefix.length() < 0)
    return false;
  const int length = prefix.length();
  // The addresses of a network without its own and the broadcast address, but where there are only these two.
  first = length == 32   ? prefix.address
          : length == 31 ? prefix.network()
                         : prefix.network() | IpAddress::from_host_order(1);
  last = length == 32 ? 0 : length == 31 ? 1 : (~prefix.mask).host_order() - 2;
  return true;
}

}  // namespace

uint32_t RewriterPattern::random_below(uint32_t n) {
  thread_local std::mt19937 random{std::random_device{}()};
  return static_cast<uint32_t>(uint64_t{static_cast<uint32_t>(random())} * n >> 32);
}

std::string_view RewriterPattern::take_suffix(std::string_view text) {
  if (text.ends_with('#'))
    order_ = Order::kInTurn;
  else if (text.ends_with('?'))
    order_ = Order::kRandom;
  else
    return text;
  return text.substr(0, text.size() - 1);
}

bool RewriterPattern::parse_address(std::string_view text, const ArgContext& context) {
  if (text == "-" || parse_argument(text, saddr_, ArgContext(context.scope()))) return true;
  if (!parse_address_range(take_suffix(text), saddr_, last_, context)) return false;
  if (last_ > 0) range_ = Range::kAddress;
  return true;
}

bool RewriterPattern::parse_port(std::string_view text) {
  if (text == "-") return true;
  text = take_suffix(text);
  const size_t dash = text.find('-');
  const bool range = dash != std::string_view::npos;
  const std::optional<uint16_t> low = whole_number<uint16_t>(text.substr(0, dash));
  const std::optional<uint16_t> high = range ? whole_number<uint16_t>(text.substr(dash + 1)) : low;
  if (!low || !high || *high < *low || (!range && *low == 0)) return false;
  sport_ = *low;
  if (*high > *low) {
    if (range_ != Range::kNone) return false;
    range_ = Range::kPort;
    last_ = *high - *low;
  }
  return true;
}

std::shared_ptr<RewriterPattern> RewriterPattern::parse(const std::vector<std::string>& words, const Element& user,
                                                        const ArgContext& context, std::string& error) {
  if (words.empty() || words.size() > 4) {
    error = "syntax error, expected the name of a pattern, SADDR DADDR [SPORT] or SADDR SPORT DADDR DPORT";
    return nullptr;
  }
  if (words.size() == 1) {
    auto named = IPRewriterPatterns::find(words[0], user);
    if (!named) error = fmt::format("no such pattern '{}'", words[0]);
    return named;
  }
  // SADDR DADDR, SADDR DADDR SPORT, or SADDR SPORT DADDR DPORT.
  const bool four = words.size() == 4;
  auto pattern = std::make_shared<RewriterPattern>();
  pattern->with_ports_ = words.size() > 2;
  std::optional<uint16_t> dport = 0;
  if (!pattern->parse_address(words[0], context)) {
    error = "bad source address";
  } else if (words.size() > 2 && !pattern->parse_port(words[four ? 1 : 2])) {
    error = "bad source port";
  } else if (const std::string& daddr = words[four ? 2 : 1];
             daddr != "-" && !parse_argument(daddr, pattern->daddr_, ArgContext(context.scope()))) {
    error = "bad destination address";
  } else if (four && words[3] != "-" && !(dport = whole_number<uint16_t>(words[3])).value_or(0)) {
    error = "bad destination port";
  } else {
    pattern->dport_ = *dport;
    return pattern;
  }
  return nullptr;
}

std::string RewriterPattern::unparse() const {
  std::string text = saddr_ ? saddr_.unparse() : "-";
  if (range_ == Range::kAddress) text += "-" + IpAddress::from_host_order(saddr_.host_order() + last_).unparse();
  if (with_ports_) {
    if (range_ == Range::kPort)
      text += fmt::format(" {}-{}", sport_, sport_ + last_);
    else
      text += sport_ ? fmt::format(" {}", sport_) : " -";
  }
  text += daddr_ ? " " + daddr_.unparse() : " -";
  if (with_ports_) text += dport_ ? fmt::format(" {}", dport_) : " -";
  return text;
}

}  // namespace headrace
