#include "tables/sa/secgw_file.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "headrace/text.hh"
#include "tables/files/route_text.hh"
#include "tables/files/text_lines.hh"

namespace headrace {

namespace {

constexpr std::string_view kOtherAlgorithms[] = {
    "aes-192-cbc",       "aes-192-ctr", "des-cbc",         "aes-192-gcm",  "aes-128-ccm", "aes-256-ccm",
    "chacha20-poly1305", "sha384-hmac", "aes-xcbc-mac-96", "aes-128-gmac", "sha512-hmac",
};

/// A word of the file as an error message shows it. What may be a key is not shown.
std::string shown_word(std::string_view word) {
  const bool digits = std::all_of(word.begin(), word.end(), [](char c) { return hex_digit(c) >= 0 || c == ':'; });
  if (digits && (word.size() > 10 || word.find(':') != std::string_view::npos)) return "(hexadecimal)";
  return route_text::shown(word);
}

/// A decimal number, or a hexadecimal one.
std::optional<uint32_t> parse_spi(std::string_view word) {
  if (word.starts_with("0x")) return whole_number<uint32_t>(word.substr(2), ~uint32_t{0}, 16);
  return whole_number<uint32_t>(word);
}

template <typename T>
std::optional<std::pair<T, T>> parse_pair(std::string_view word) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto first = whole_number<T>(word.substr(0, colon));
  const auto last = whole_number<T>(word.substr(colon + 1));
  if (!first || !last) return std::nullopt;
  return std::pair{*first, *last};
}

std::optional<Ip6Prefix> parse_prefix(std::string_view word, bool v6) {
  if (v6) {
    Ip6Prefix prefix;
    return parse(word, prefix) ? std::optional(prefix) : std::nullopt;
  }
  IpPrefix prefix;
  if (!parse(word, prefix) || prefix.length() < 0) return std::nullopt;
  return policy_prefix(prefix);
}

std::optional<Ip6Address> parse_address(std::string_view word, bool v6) {
  Ip6Address address;
  if (v6) return parse(word, address) ? std::optional(address) : std::nullopt;
  IpAddress v4;
  return parse(word, v4) ? std::optional(Ip6Address::v4_mapped(v4)) : std::nullopt;
}

using Identity = std::pair<IPsecDirection, uint32_t>;  // with an SPI

/// What reads the file.
class SecgwReader {
 public:
  SecgwReader(const std::string& path, SecgwConfig& config, Errors& errors)
      : path_(path), config_(config), errors_(errors) {
    // Joined lines contain keys; they never move, and are overwritten.
    joined_.reserve(kLongestStatement);
  }
  ~SecgwReader() { explicit_bzero(joined_.data(), joined_.capacity()); }
  SecgwReader(const SecgwReader&) = delete;
  SecgwReader& operator=(const SecgwReader&) = delete;

  void line(std::string_view text);
  /// False if there was an error.
  bool finish();
  /// Associations that are there, right or wrong.
  const std::set<Identity>& mentioned() const { return mentioned_; }

 private:
  struct Word {
    std::string_view text;
    int line = 0;
  };
  static constexpr size_t kLongestStatement = size_t{16} << 10;
  static constexpr int kShown = 50;  // errors, and warnings

  void end_statement();
  void statement();
  void policy();
  void association();
  void route();
  void neighbor();

  // Words of the statement. What reads a value reports a mistake, and the statement goes on behind it.
  bool at_end() const { return at_ == words_.size(); }
  const Word& word() const { return words_[at_ - 1]; }
  bool next() {
    if (at_end()) return false;
    ++at_;
    return true;
  }
  bool value(std::string_view expected);
  bool one_of(std::string_view expected, std::initializer_list<std::string_view> names, size_t& found);
  bool family(bool& v6);
  bool direction(IPsecDirection& to);
  /// Goes to the next option.
  bool next_option();
  template <typename T>
  void number(T& to, std::string_view expected);
  void prefix(bool v6, Ip6Prefix& to);
  void ports(PortRange& to);
  void protocol(std::optional<uint8_t>& to);
  void spi(uint32_t& to);
  void encapsulation(std::optional<UDPEncapsulation>& to);
  void dscp(std::optional<uint8_t>& to);
  void cipher(bool aead, AssociationConfig& config);
  void integrity(AssociationConfig& config);
  void key(std::string_view name, std::string_view algorithm, std::string_view sizes, size_t bytes, SecretBytes& to);
  void bad_algorithm(std::string_view expected);
  /// Reads the value of an option of policies, or of associations. False if there is no such option.
  bool policy_option(const Word& option, Policy& policy);
  bool association_option(const Word& option, AssociationConfig& config);
  bool ignored_option(const Word& option);
  void addresses(AssociationConfig& config);

  bool bad(const Word& word, std::string_view reason) {
    return bad_at(word.line, fmt::format("'{}': {}", shown_word(word.text), reason));
  }
  /// The same for a word that is no key, whatever it looks like.
  void bad_plain(const Word& word, std::string_view reason) {
    bad_at(word.line, fmt::format("'{}': {}", route_text::shown(word.text), reason));
  }
  bool bad_at(int line, std::string_view reason) {
    statement_bad_ = true;
    if (++error_count_ <= kShown) (void)errors_.error_at({path_, line}, "{}", reason);
    return false;
  }
  void warn(int line, std::string_view reason) {
    if (++warning_count_ <= kShown) errors_.warning_at({path_, line}, "{}", reason);
  }
  void ignored(const Word& word, std::string_view why) {
    warn(word.line, fmt::format("'{}' is ignored: {}", shown_word(word.text), why));
  }
  /// The line of an option of this statement.
  int line_of(std::string_view option) const {
    const auto found = std::find_if(words_.begin(), words_.end(), [&](const Word& w) { return w.text == option; });
    return found == words_.end() ? words_.front().line : found->line;
  }

  const std::string& path_;
  SecgwConfig& config_;
  Errors& errors_;
  int error_count_ = 0, warning_count_ = 0;

  int line_ = 0;
  std::string joined_;
  std::vector<std::pair<size_t, int>> line_begins_;  // where lines begin in joined_
  bool open_ = false;                                // the last line ended with a backslash
  bool too_long_ = false;

  std::vector<Word> words_;
  size_t at_ = 0;  // words that were taken
  std::set<std::string_view> options_;
  std::optional<Word> source_, destination_;
  bool statement_bad_ = false;
  std::set<Identity> mentioned_;
};

void SecgwReader::line(std::string_view text) {
  ++line_;
  if (text.size() > kLongestTextLine) {
    too_long_ = true;
    text = {};
  }
  const bool comment = text.starts_with('#');
  text = text.substr(0, text.find('#'));
  // A comment of its own does not end what the line before it has begun.
  if (comment && open_) return;
  while (!text.empty() && detail::is_blank(text.back())) text.remove_suffix(1);
  open_ = text.ends_with('\\');
  if (open_) {
    const size_t kept = text.size() - 1;
    text = text.substr(0, kept);
  }
  line_begins_.emplace_back(joined_.size(), line_);
  if (joined_.size() + text.size() > kLongestStatement) {
    too_long_ = true;
  } else {
    joined_.append(text);
  }
  if (!open_) end_statement();
}

bool SecgwReader::finish() {
  if (open_) {
    end_statement();
    bad_at(line_, "'\\': the file ends where a line should follow");
  }
  if (error_count_ > kShown) (void)errors_.error_at({path_, 0}, "{} more errors", error_count_ - kShown);
  if (warning_count_ > kShown) errors_.warning_at({path_, 0}, "{} more warnings", warning_count_ - kShown);
  return error_count_ == 0;
}

void SecgwReader::end_statement() {
  words_.clear();
  options_.clear();
  at_ = 0;
  statement_bad_ = false;
  if (too_long_) {
    bad_at(line_begins_.front().second,
           fmt::format("longer than {} bytes in a line, or {} in joined lines", kLongestTextLine, kLongestStatement));
  } else {
    std::string_view rest = joined_;
    for (std::string_view text = next_word(rest); !text.empty(); text = next_word(rest)) {
      const size_t offset = static_cast<size_t>(text.data() - joined_.data());
      const auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), std::pair{offset, line_ + 1});
      words_.push_back({text, std::prev(after)->second});
    }
    if (!words_.empty()) statement();
  }
  words_.clear();
  explicit_bzero(joined_.data(), joined_.size());
  joined_.clear();
  line_begins_.clear();
  open_ = too_long_ = false;
}

void SecgwReader::statement() {
  (void)next();
  if (word().text == "sp") return policy();
  if (word().text == "sa") return association();
  if (word().text == "rt") return route();
  if (word().text == "neigh") return neighbor();
  if (word().text == "flow") return ignored(word(), "it chooses queues of network cards");
  bad(word(), "expected sp, sa, rt, neigh or flow");
}

bool SecgwReader::value(std::string_view expected) {
  if (next()) return true;
  return bad(words_.back(), fmt::format("expected {} after it", expected));
}

bool SecgwReader::one_of(std::string_view expected, std::initializer_list<std::string_view> names, size_t& found) {
  if (!value(expected)) return false;
  const auto name = std::find(names.begin(), names.end(), word().text);
  if (name == names.end()) return bad(word(), fmt::format("expected {}", expected));
  found = static_cast<size_t>(name - names.begin());
  return true;
}

bool SecgwReader::family(bool& v6) {
  size_t found = 0;
  if (!one_of("ipv4 or ipv6", {"ipv4", "ipv6"}, found)) return false;
  v6 = found == 1;
  return true;
}

bool SecgwReader::direction(IPsecDirection& to) {
  size_t found = 0;
  if (!one_of("in or out", {"in", "out"}, found)) return false;
  to = found == 0 ? IPsecDirection::kIn : IPsecDirection::kOut;
  return true;
}

bool SecgwReader::next_option() {
  if (!next()) return false;
  if (!options_.insert(word().text).second) bad(word(), "given twice");
  return true;
}

template <typename T>
void SecgwReader::number(T& to, std::string_view expected) {
  if (!value(expected)) return;
  if (const auto found = whole_number<T>(word().text)) {
    to = *found;
  } else {
    bad(word(), fmt::format("expected {}", expected));
  }
}

void SecgwReader::prefix(bool v6, Ip6Prefix& to) {
  const std::string_view expected = v6 ? "an IPv6 address and the length of its prefix, as 2001:db8::/32"
                                       : "an IPv4 address and the length of its prefix, as 10.0.0.0/8";
  if (!value(expected)) return;
  if (const auto found = parse_prefix(word().text, v6)) {
    to = *found;
  } else {
    bad_plain(word(), fmt::format("expected {}", expected));
  }
}

void SecgwReader::ports(PortRange& to) {
  constexpr std::string_view kExpected = "ports FIRST:LAST, each 0 to 65535";
  if (!value(kExpected)) return;
  const auto found = parse_pair<uint16_t>(word().text);
  if (found && found->first <= found->second) {
    to = {found->first, found->second};
  } else {
    bad_plain(word(), fmt::format("expected {}", kExpected));
  }
}

void SecgwReader::protocol(std::optional<uint8_t>& to) {
  constexpr std::string_view kExpected = "a protocol as NUMBER:255, or 0:0 for all";
  if (!value(kExpected)) return;
  const auto found = parse_pair<uint8_t>(word().text);
  if (!found || (found->second != 255 && found->first != found->second)) {
    bad_plain(word(), fmt::format("expected {}", kExpected));
  } else if (found->first != 0) {
    to = found->first;
  }
}

void SecgwReader::spi(uint32_t& to) {
  constexpr std::string_view kExpected = "an SPI, 1 to 4294967295";
  if (!value(kExpected)) return;
  const auto found = parse_spi(word().text);
  if (found && *found != 0) {
    to = *found;
  } else {
    bad(word(), fmt::format("expected {}", kExpected));
  }
}

void SecgwReader::encapsulation(std::optional<UDPEncapsulation>& to) {
  constexpr std::string_view kExpected = "ports SOURCE:DESTINATION, each 1 to 65535";
  if (!value(kExpected)) return;
  if (const auto found = parse_pair<uint16_t>(word().text)) {
    to = {found->first, found->second};
  } else {
    bad_plain(word(), fmt::format("expected {}", kExpected));
  }
}

void SecgwReader::dscp(std::optional<uint8_t>& to) {
  constexpr std::string_view kExpected = "copy, or a DSCP from 0 to 63";
  if (!value(kExpected) || word().text == "copy") return;
  to = whole_number<uint8_t>(word().text, 63);
  if (!to) bad(word(), fmt::format("expected {}", kExpected));
}

bool SecgwReader::policy_option(const Word& option, Policy& policy) {
  if (option.text == "esp") return true;
  if (option.text == "protect") {
    policy.action = PolicyAction::kProtect;
    spi(policy.spi);
  } else if (option.text == "bypass") {
    policy.action = PolicyAction::kBypass;
  } else if (option.text == "discard") {
    policy.action = PolicyAction::kDiscard;
  } else if (option.text == "pri") {
    number(policy.priority, "a priority, 0 to 2147483647");
  } else if (option.text == "src") {
    prefix(policy.v6, policy.source);
  } else if (option.text == "dst") {
    prefix(policy.v6, policy.destination);
  } else if (option.text == "sport") {
    ports(policy.source_ports);
  } else if (option.text == "dport") {
    ports(policy.destination_ports);
  } else if (option.text == "proto") {
    protocol(policy.protocol);
  } else {
    return bad(option, "expected esp, protect, bypass, discard, pri, src, dst, proto, sport or dport");
  }
  return true;
}

void SecgwReader::policy() {
  SecgwConfig::PolicyLine read;
  Policy& policy = read.policy;
  read.line = word().line;
  if (!family(policy.v6) || !direction(policy.direction)) return;
  if (!policy.v6) policy.source = policy.destination = policy_prefix({});
  while (next_option()) {
    if (!policy_option(word(), policy)) return;
  }
  const Word& front = words_.front();
  const size_t actions = options_.count("protect") + options_.count("bypass") + options_.count("discard");
  if (options_.count("esp") == 0) bad(front, "the policy lacks 'esp'");
  if (actions != 1) {
    bad(front, actions == 0 ? "the policy lacks one of protect, bypass and discard"
                            : "the policy has more than one of protect, bypass and discard");
  }
  if (!statement_bad_) config_.policies.push_back(read);
}

/// The word is no algorithm. What follows it as its key is skipped.
void SecgwReader::bad_algorithm(std::string_view expected) {
  const bool known =
      std::find(std::begin(kOtherAlgorithms), std::end(kOtherAlgorithms), word().text) != std::end(kOtherAlgorithms);
  bad(word(), fmt::format("{}expected {}", known ? "not supported; " : "", expected));
  if (!at_end() && words_[at_].text.ends_with("_key")) at_ = std::min(at_ + 2, words_.size());
}

void SecgwReader::cipher(bool aead, AssociationConfig& config) {
  const std::string_view expected =
      aead ? "aes-128-gcm or aes-256-gcm" : "null, aes-128-cbc, aes-256-cbc, 3des-cbc, aes-128-ctr or aes-256-ctr";
  if (!value(expected)) return;
  const CipherTraits* const traits = find_cipher(word().text);
  if (traits == nullptr || traits->authenticates != aead) return bad_algorithm(expected);
  config.cipher = traits->cipher;
  key(aead ? "aead_key" : "cipher_key", traits->name, key_sizes(*traits),
      size_t{traits->key_bytes} + traits->salt_bytes, config.key);
}

void SecgwReader::integrity(AssociationConfig& config) {
  constexpr std::string_view kExpected = "null, sha1-hmac or sha256-hmac";
  if (!value(kExpected)) return;
  const IntegrityTraits* const traits = find_integrity(word().text);
  if (traits == nullptr) return bad_algorithm(kExpected);
  config.integrity = traits->integrity;
  key("auth_key", traits->name, fmt::format("{} bytes", traits->key_bytes), traits->key_bytes, config.integrity_key);
}

void SecgwReader::key(std::string_view name, std::string_view algorithm, std::string_view sizes, size_t bytes,
                      SecretBytes& to) {
  const bool there = !at_end() && words_[at_].text == name;
  if (bytes == 0 && !there) return;
  if (!there) return (void)bad(word(), fmt::format("expected {} after it, and {}", name, sizes));
  (void)next();
  const Word option = word();
  if (!value("bytes, joined by colons")) return;
  if (bytes == 0) return (void)bad(option, fmt::format("{} takes no key", algorithm));
  // The bytes themselves are never shown.
  std::string_view text = word().text;
  size_t count = 0;
  to.wipe();
  for (bool more = true; more; ++count) {
    const size_t colon = text.find(':');
    const std::string_view byte = text.substr(0, colon);
    const auto number = whole_number<uint8_t>(byte, 255, 16);
    if (!number || byte.size() > 2)
      return (void)bad(option, fmt::format("byte {} is not hexadecimal from 0 to ff", count + 1));
    (void)to.append(*number);
    more = colon != std::string_view::npos;
    if (more) text.remove_prefix(colon + 1);
  }
  if (count != bytes) bad(option, fmt::format("{} needs {}, found {}", algorithm, sizes, count));
}

/// Options for network cards that ipsec-secgw uses.
bool SecgwReader::ignored_option(const Word& option) {
  uint32_t unused = 0;
  size_t found = 0;
  if (option.text == "telemetry") return true;
  if (option.text == "type") {
    if (one_of("no-offload, lookaside-protocol-offload, inline-protocol-offload or inline-crypto-offload",
               {"no-offload", "lookaside-protocol-offload", "inline-protocol-offload", "inline-crypto-offload"},
               found) &&
        found != 0)
      ignored(word(), "Headrace encrypts by itself");
  } else if (option.text == "port_id") {
    number(unused, "the number of a port");
  } else if (option.text == "fallback") {
    if (one_of("lookaside-none", {"lookaside-none"}, found)) ignored(option, "there is no offload to fall back from");
  } else if (option.text == "flow-direction") {
    number(unused, "a port and a queue");
    number(unused, "a queue");
    ignored(option, "it chooses a queue of a network card");
  } else if (option.text == "mss") {
    number(unused, "a number of bytes");
    ignored(option, "there is no segmentation offload");
  } else if (option.text == "reassembly_en") {
    ignored(option, "network cards do not reassemble");
  } else {
    return bad(option,
               "expected mode, cipher_algo, auth_algo, aead_algo, src, dst, esn, udp-encap, encap-port, replay-window, "
               "dscp, df, most-packets, most-bytes, or another option of ipsec-secgw");
  }
  return true;
}

bool SecgwReader::association_option(const Word& option, AssociationConfig& config) {
  size_t found = 0;
  if (option.text == "mode") {
    if (one_of("ipv4-tunnel, ipv6-tunnel or transport", {"ipv4-tunnel", "ipv6-tunnel", "transport"}, found))
      config.mode = static_cast<IPsecMode>(found);
  } else if (option.text == "cipher_algo" || option.text == "aead_algo") {
    cipher(option.text == "aead_algo", config);
  } else if (option.text == "auth_algo") {
    integrity(config);
  } else if (option.text == "src" || option.text == "dst") {
    // Which family it is, the mode says, perhaps later.
    if (value("an address")) (option.text == "src" ? source_ : destination_) = word();
  } else if (option.text == "esn") {
    config.extended_sequence = true;
    number(config.first_sequence, "the first sequence number, 1 to 18446744073709551615");
  } else if (option.text == "udp-encap") {
    if (!config.udp_encapsulation) config.udp_encapsulation.emplace();
  } else if (option.text == "encap-port") {
    encapsulation(config.udp_encapsulation);
  } else if (option.text == "replay-window") {
    number(config.replay_window, "a number of packets, 64 to 4096");
  } else if (option.text == "dscp") {
    dscp(config.outer_dscp);
  } else if (option.text == "df") {
    if (one_of("copy, set or clear", {"copy", "set", "clear"}, found)) config.outer_df = static_cast<OuterDF>(found);
  } else if (option.text == "most-packets") {
    number(config.most_packets, "a number of packets");
  } else if (option.text == "most-bytes") {
    number(config.most_bytes, "a number of bytes");
  } else {
    return ignored_option(option);
  }
  return true;
}

/// Reads src and dst, as the mode has it.
void SecgwReader::addresses(AssociationConfig& config) {
  const bool v6 = config.mode == IPsecMode::kTunnel6;
  for (const auto& [option, given, address] :
       {std::tuple{"src", source_, &config.source}, std::tuple{"dst", destination_, &config.destination}}) {
    if (config.mode == IPsecMode::kTransport) {
      if (given)
        bad_at(given->line, fmt::format("'{}': an association in transport mode has no addresses of its own", option));
    } else if (!given) {
      bad(words_.front(), fmt::format("the tunnel lacks {}", option));
    } else if (const auto parsed = parse_address(given->text, v6)) {
      *address = *parsed;
    } else {
      bad_plain(*given, fmt::format("expected an {} address", v6 ? "IPv6" : "IPv4"));
    }
  }
}

void SecgwReader::association() {
  SecgwConfig::AssociationLine read;
  AssociationConfig& config = read.config;
  read.line = word().line;
  if (!direction(config.direction)) return;
  spi(config.spi);
  mentioned_.emplace(config.direction, config.spi);
  source_ = destination_ = std::nullopt;
  while (next_option()) {
    if (!association_option(word(), config)) return;
  }

  const Word& front = words_.front();
  if (options_.contains("aead_algo")) {
    for (const char* const other : {"cipher_algo", "auth_algo"}) {
      if (options_.contains(other)) bad_at(line_of(other), fmt::format("'{}': aead_algo stands in its place", other));
    }
  } else {
    if (!options_.contains("cipher_algo")) bad(front, "the association lacks cipher_algo or aead_algo");
    if (!options_.contains("auth_algo")) bad(front, "the association lacks auth_algo or aead_algo");
  }
  if (options_.contains("encap-port") && !options_.contains("udp-encap"))
    bad_at(line_of("encap-port"), "'encap-port': the association lacks udp-encap");
  if (options_.contains("mode")) {
    addresses(config);
  } else {
    bad(front, "the association lacks mode");
  }
  if (statement_bad_) return;
  for (const AssociationProblem& problem : check_association(config)) {
    const int line = line_of(problem.word);
    if (problem.fatal) {
      bad_at(line, fmt::format("'{}': {}", problem.word, problem.text));
    } else if (problem.word != fmt::format("{}", config.spi)) {  // of SPIs that are reserved check_secgw() warns once
      warn(line, fmt::format("'{}': {}", problem.word, problem.text));
    }
  }
  if (!statement_bad_) config_.associations.push_back(std::move(read));
}

void SecgwReader::route() {
  SecgwConfig::Route route;
  route.line = word().line;
  if (!family(route.v6)) return;
  while (next_option()) {
    const Word option = word();
    if (option.text == "dst") {
      prefix(route.v6, route.prefix);
    } else if (option.text == "port") {
      number(route.port, "the number of a port");
    } else if (option.text == "src") {
      Ip6Prefix unused;
      prefix(route.v6, unused);
      ignored(option, "routes go by destination");
    } else {
      return (void)bad(option, "expected dst or port");
    }
  }
  if (!options_.contains("dst")) bad(words_.front(), "the route lacks dst");
  if (!statement_bad_) config_.routes.push_back(route);
}

void SecgwReader::neighbor() {
  SecgwConfig::Neighbor neighbor;
  neighbor.line = word().line;
  size_t found = 0;
  if (!one_of("port", {"port"}, found)) return;
  number(neighbor.port, "the number of a port");
  if (!value("an Ethernet address")) return;
  if (!parse(word().text, neighbor.address)) {
    bad_plain(word(), "expected an Ethernet address");
  } else if (neighbor.address.is_group() || neighbor.address == EtherAddress()) {
    bad_plain(word(), "expected the Ethernet address of a neighbor, not of a group or of nobody");
  }
  if (next()) bad(word(), "unexpected after a neighbor");
  if (!statement_bad_) config_.neighbors.push_back(neighbor);
}

/// \param mentioned associations that are in the file, but have mistakes
bool check_lines(const SecgwConfig& config, std::set<Identity> mentioned, const std::string& path, Errors& errors) {
  const int before = errors.error_count();
  std::map<std::pair<Identity, Ip6Address>, int> lines;
  size_t reserved = 0;
  for (const auto& [association, line] : config.associations) {
    const bool by_destination =
        association.direction == IPsecDirection::kIn && association.mode != IPsecMode::kTransport;
    const Identity identity{association.direction, association.spi};
    const auto [first, added] =
        lines.emplace(std::pair{identity, by_destination ? association.destination : Ip6Address()}, line);
    if (!added) {
      (void)errors.error_at({path, line}, "'{}': line {} has an association '{}' with this SPI{} already",
                            association.spi, first->second, to_string(association.direction),
                            by_destination ? " and destination" : "");
    }
    mentioned.insert(identity);
    reserved += association.spi < 256;
  }
  for (const auto& [policy, line] : config.policies) {
    if (policy.action == PolicyAction::kProtect && !mentioned.contains({policy.direction, policy.spi}))
      (void)errors.error_at({path, line}, "'{}': there is no association '{}' with this SPI", policy.spi,
                            to_string(policy.direction));
  }
  if (reserved != 0) {
    errors.warning_at({path, 0}, "{} {} up to 255, which {} reserved (RFC 4303, section 2.1)", reserved,
                      reserved == 1 ? "association has an SPI" : "associations have SPIs",
                      reserved == 1 ? "is" : "are");
  }
  return errors.error_count() == before;
}

}  // namespace

bool read_secgw_text(std::string_view text, const std::string& path, SecgwConfig& config, Errors& errors) {
  SecgwReader reader(path, config, errors);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

bool check_secgw(const SecgwConfig& config, const std::string& path, Errors& errors) {
  return check_lines(config, {}, path, errors);
}

bool read_secgw(const std::string& path, SecgwConfig& config, Errors& errors) {
  SecgwReader reader(path, config, errors);
  const std::string fault = read_text_lines(path, [&](std::string_view line) { reader.line(line); });
  const bool good = reader.finish();
  if (fault.empty()) return check_lines(config, reader.mentioned(), path, errors) && good;
  (void)errors.error("{}: {}", path, fault);
  return false;
}

}  // namespace headrace
