#include "tables/rules/rule_options.hh"

#include <fmt/core.h>

#include <algorithm>

#include "tables/rules/rule_fields.hh"
#include "tables/rules/rule_text.hh"

namespace headrace::rules {

namespace {

constexpr int32_t kMostBytes = 65535;
/// Steps of a rule: each of them may be a level of backtracking.
constexpr size_t kMostSteps = 255;

/// Options that Snort or Suricata know and that need more than one packet's headers and raw payload. Names that begin
/// with one of kOtherPrefixes belong to them.
constexpr std::string_view kOtherOptions[] = {
    "app-layer-event",
    "app-layer-protocol",
    "appids",
    "asn1",
    "base64_data",
    "base64_decode",
    "bsize",
    "bufferlen",
    "byte_extract",
    "byte_jump",
    "byte_math",
    "byte_test",
    "cip_attribute",
    "classification",
    "cvs",
    "cwr_uri",
    "dataset",
    "datarep",
    "decode-event",
    "detection_filter",
    "email",
    "engine-event",
    "entropy",
    "filemagic",
    "filemd5",
    "filename",
    "fileext",
    "filesha1",
    "filesha256",
    "filesize",
    "filestore",
    "file_data",
    "file_meta",
    "file_type",
    "flowbits",
    "flowint",
    "from_base64",
    "ftpbounce",
    "ftpdata_command",
    "geoip",
    "gtp_info",
    "gtp_type",
    "gtp_version",
    "hostbits",
    "icmpv4.hdr",
    "icmpv6.hdr",
    "icmpv6.mtu",
    "ike",
    "ip_rep",
    "iprep",
    "ipv4.hdr",
    "ipv6.hdr",
    "js_data",
    "l3_hash",
    "logto",
    "lowercase",
    "lua",
    "luajit",
    "md5",
    "modbus",
    "modbus_data",
    "modbus_func",
    "modbus_unit",
    "mqtt",
    "noalert",
    "num_headers",
    "num_trailers",
    "pkt_data",
    "pkt_num",
    "prefilter",
    "protected_content",
    "raw_data",
    "react",
    "regex",
    "replace",
    "requires",
    "resp",
    "rpc",
    "sd_pattern",
    "session",
    "sha256",
    "sha512",
    "so",
    "ssl_state",
    "ssl_version",
    "stream-event",
    "stream_reassemble",
    "stream_size",
    "strip_pseudo_headers",
    "strip_whitespace",
    "tag",
    "tcp.flags",
    "tcp.hdr",
    "tcp.mss",
    "threshold",
    "to_lowercase",
    "to_md5",
    "to_sha1",
    "to_sha256",
    "to_uppercase",
    "udp.hdr",
    "uppercase",
    "urilen",
    "url_decode",
    "vba_data",
    "vlan.id",
    "vlan.layers",
    "wscale",
    "xbits",
    "xor",
    "compress_whitespace",
    "dotprefix",
    "absent",
    "ack.",
    "pcrexform",
    "config",
    "flow.age",
    "flow.bytes",
};
constexpr std::string_view kOtherPrefixes[] = {
    "http_",      "http.",  "http2.",     "dns_",    "dns.",  "tls_",   "tls.",       "ssh_",   "ssh.", "ssl_",
    "smb_",       "smb.",   "dce_",       "dcerpc.", "sip_",  "sip.",   "ja3",        "ja4",    "krb5", "snmp.",
    "smtp.",      "mqtt.",  "nfs",        "rfb.",    "ike.",  "quic.",  "file.",      "dnp3",   "enip", "cip_",
    "s7commplus", "iec104", "gtp_",       "mdns.",   "ldap.", "pgsql.", "websocket.", "email.", "ftp.", "sdp.",
    "template",   "dhcp.",  "bittorrent", "flow.",   "frame", "pop3.",
};

/// Options that say something about the rule, or are only for people.
constexpr std::string_view kIgnoredOptions[] = {"reference", "metadata", "rem", "soid", "target"};

bool is_other(std::string_view name) {
  return std::find(std::begin(kOtherOptions), std::end(kOtherOptions), name) != std::end(kOtherOptions) ||
         std::any_of(std::begin(kOtherPrefixes), std::end(kOtherPrefixes), [&](auto p) { return name.starts_with(p); });
}

/// The bytes that a content's text stands for: |hex| and \ before " ; : | and itself.
bool content_bytes(std::string_view text, std::string& bytes, std::string& error) {
  bool hex = false;
  int high = -1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '|') {
      if (high >= 0) return error = "content: an odd number of hexadecimal digits", false;
      hex = !hex;
    } else if (hex) {
      if (is_blank(c)) continue;
      const int digit = hex_digit(c);
      if (digit < 0) return error = fmt::format("content: '{}' is no hexadecimal digit", c), false;
      if (high < 0) {
        high = digit;
      } else {
        bytes += static_cast<char>(high << 4 | digit);
        high = -1;
      }
    } else if (c == '\\') {
      if (++i == text.size()) return error = "content: nothing follows the last '\\'", false;
      bytes += text[i];
    } else {
      bytes += c;
    }
  }
  if (hex) return error = "content: the closing '|' is missing", false;
  if (bytes.empty()) return error = "content: no bytes", false;
  return true;
}

/// How unusual a byte is in traffic.
int rarity(uint8_t byte) {
  if (byte == 0 || byte == 0xff || byte == ' ') return 1;
  if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9')) return 2;
  if ((byte >= 'A' && byte <= 'Z') || byte == '\r' || byte == '\n') return 3;
  return 4;
}
int rarity(std::string_view bytes) {
  int sum = 0;
  for (const char c : bytes) sum += rarity(static_cast<uint8_t>(c));
  return sum;
}

/// Where the first option ends: at the next ';' that is neither escaped nor quoted; npos: it does not end. A `pcre` may
/// hold quotation marks that are not escaped, as in Suricata: it ends at a ';' behind its last one.
size_t option_end(std::string_view options) {
  const bool expression = trimmed(options.substr(0, options.find_first_of(":;"))) == "pcre";
  bool in_quotes = false;
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i] == '\\') {
      ++i;
    } else if (options[i] == '"') {
      in_quotes = !in_quotes;
    } else if (options[i] == ';') {
      if (!expression && !in_quotes) return i;
      if (!expression) continue;
      const std::string_view value = options.substr(0, i);
      const size_t open = value.find('"'), close = value.rfind('"');
      if (open == std::string_view::npos) return i;
      const std::string_view behind = trimmed(value.substr(close + 1));
      if (open != close && (behind.empty() || behind.starts_with(','))) return i;
    }
  }
  return std::string_view::npos;
}

/// The position of the quotation mark that ends a text whose first is before `from`.
size_t closing_quote(std::string_view text, size_t from) {
  for (size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i;
  }
  return std::string_view::npos;
}

}  // namespace

bool OptionReader::fail(std::string text) {
  error_ = std::move(text);
  return false;
}

void OptionReader::miss(std::string keyword) {
  if (std::find(unsupported_.begin(), unsupported_.end(), keyword) == unsupported_.end())
    unsupported_.push_back(std::move(keyword));
}

bool OptionReader::read(std::string_view options) {
  while (!trimmed(options).empty()) {
    const size_t end = option_end(options);
    std::string_view value = trimmed(options.substr(0, end));
    if (end == std::string_view::npos) {
      const bool odd = std::count(value.begin(), value.end(), '"') % 2 != 0;
      return fail(odd ? "a quotation mark is missing" : fmt::format("';' is missing behind '{}'", value.substr(0, 40)));
    }
    options.remove_prefix(end + 1);
    if (value.empty()) continue;
    const std::string_view name = take_until(value, ':');
    if (!option(name, trimmed(value))) return false;
  }
  return finish();
}

bool OptionReader::option(std::string_view name, std::string_view value) {
  bool known = true;
  if (!common(name, value, known)) return false;
  if (known) return true;
  if (name == "content") return content(value);
  if (name == "uricontent") {
    miss(std::string(name));
    if (!content(value)) return false;
    std::get<Content>(rule_.steps.back()).buffer = Buffer::kOther;
    return true;
  }
  if (name == "pcre") return pcre(value);
  if (name == "isdataat") return is_data_at(value);
  if (name == "flow") return flow(value);
  if (is_field_option(name)) return read_field_option(name, value, rule_.tests, error_);
  for (const std::string_view m : {"nocase", "rawbytes", "offset", "depth", "distance", "within", "fast_pattern",
                                   "fast_pattern_offset", "fast_pattern_length", "startswith", "endswith"})
    if (name == m) return modifier(name, value);
  if (is_other(name)) {
    miss(std::string(name));
    return true;
  }
  return fail(fmt::format("unknown option '{}'", name));
}

/// Options about the rule as a whole.
bool OptionReader::common(std::string_view name, std::string_view value, bool& known) {
  const auto read_number = [&](uint32_t& out, uint32_t least) {
    const std::optional<uint32_t> v = whole_number<uint32_t>(value);
    if (!v || *v < least) return fail(fmt::format("{}: bad number '{}'", name, value));
    out = *v;
    return true;
  };
  if (name == "sid") return read_number(rule_.sid, 1);
  if (name == "gid") return read_number(rule_.gid, 0);
  if (name == "rev") return read_number(rule_.rev, 0);
  if (name == "priority") return read_number(rule_.priority, 1);
  if (name == "classtype") {
    if (value.empty()) return fail("classtype: no name");
    rule_.classtype = value;
    return true;
  }
  if (name == "msg") {
    std::string text;
    if (!quoted(name, value, text, nullptr)) return false;
    rule_.msg.clear();
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      rule_.msg += text[i];
    }
    return true;
  }
  known = std::find(std::begin(kIgnoredOptions), std::end(kIgnoredOptions), name) != std::end(kIgnoredOptions);
  return true;
}

/// Takes a quoted text, escapes kept, off `value`. `negated`: a '!' may stand before it.
bool OptionReader::quoted(std::string_view name, std::string_view& value, std::string& text, bool* negated) {
  if (negated && value.starts_with('!')) {
    *negated = true;
    value = trimmed(value.substr(1));
  }
  size_t end = value.starts_with('"') ? closing_quote(value, 1) : std::string_view::npos;
  if (name == "pcre" && end != std::string_view::npos) end = value.rfind('"');
  if (end == std::string_view::npos) return fail(fmt::format("{}: expected a text in quotation marks", name));
  text = value.substr(1, end - 1);
  value = trimmed(value.substr(end + 1));
  if (!value.empty() && !negated) return fail(fmt::format("{}: '{}' behind the text", name, value));
  return true;
}

bool OptionReader::content(std::string_view value) {
  Content content;
  std::string text;
  if (!quoted("content", value, text, &content.negated) || !content_bytes(text, content.bytes, error_)) return false;
  last_content_ = static_cast<int>(rule_.steps.size());
  rule_.steps.emplace_back(std::move(content));
  marks_.resize(rule_.steps.size());
  // Snort 3 writes modifiers here.
  if (!value.empty() && !value.starts_with(',')) return fail(fmt::format("content: '{}' behind the text", value));
  if (!value.empty()) value.remove_prefix(1);
  while (!value.empty()) {
    std::string_view item = take_until(value, ',');
    const std::string_view name = take_until(item, ' ');
    if (is_other(name))
      miss(std::string(name));
    else if (!modifier(name, trimmed(item)))
      return false;
  }
  return true;
}

bool OptionReader::modifier(std::string_view name, std::string_view value) {
  if (last_content_ < 0) return fail(fmt::format("{}: no content before it", name));
  Content& content = std::get<Content>(rule_.steps[static_cast<size_t>(last_content_)]);
  Marks& marks = marks_[static_cast<size_t>(last_content_)];
  const auto flag = [&](bool& to) {
    if (!value.empty()) return fail(fmt::format("{}: takes no value", name));
    to = true;
    return true;
  };
  bool ignored;
  if (name == "nocase") return flag(content.nocase);
  if (name == "rawbytes") return flag(ignored);  // payloads are raw
  if (name == "startswith") return flag(marks.starts_with);
  if (name == "endswith") return flag(content.ends_with);
  if (name == "fast_pattern") return fast_pattern(value);
  if (name == "fast_pattern_offset" || name == "fast_pattern_length") {
    const std::optional<uint32_t> v = whole_number<uint32_t>(value, kMostBytes);
    if (!v) return fail(fmt::format("{}: bad number '{}'", name, value));
    (name == "fast_pattern_offset" ? marks.fast_offset : marks.fast_length) = *v;
    return true;
  }
  return place(name, value);
}

bool OptionReader::place(std::string_view name, std::string_view value) {
  Content& content = std::get<Content>(rule_.steps[static_cast<size_t>(last_content_)]);
  Marks& marks = marks_[static_cast<size_t>(last_content_)];
  struct Place {
    std::string_view name;
    bool Marks::*mark;
    int32_t Content::*field;
    int32_t least;
  };
  static constexpr Place kPlaces[] = {
      {"offset", &Marks::offset, &Content::from, 0},
      {"depth", &Marks::depth, &Content::room, 0},
      {"distance", &Marks::distance, &Content::from, -kMostBytes},
      {"within", &Marks::within, &Content::room, 0},
  };
  for (const Place& p : kPlaces) {
    if (p.name != name) continue;
    if (marks.*p.mark) return fail(fmt::format("{}: given twice for one content", name));
    marks.*p.mark = true;
    const std::optional<int32_t> v = signed_number(value, kMostBytes);
    if (!v && !value.empty() &&
        (lower(value[0]) != value[0] || (value[0] >= 'a' && value[0] <= 'z') || value[0] == '_')) {
      miss(fmt::format("{} of a variable", name));
      return true;
    }
    if (!v || *v < p.least) return fail(fmt::format("{}: bad number '{}'", name, value));
    content.*p.field = *v;
    return true;
  }
  return fail(fmt::format("content: unknown modifier '{}'", name));
}

bool OptionReader::fast_pattern(std::string_view value) {
  Marks& marks = marks_[static_cast<size_t>(last_content_)];
  marks.fast = true;
  if (value.empty()) return true;
  if (value == "only") {
    std::get<Content>(rule_.steps[static_cast<size_t>(last_content_)]).anywhere = true;
    return true;
  }
  std::string_view rest = value;
  const std::optional<uint32_t> offset = whole_number<uint32_t>(take_until(rest, ','), kMostBytes);
  const std::optional<uint32_t> length = whole_number<uint32_t>(trimmed(rest), kMostBytes);
  if (!offset || !length || *length == 0) return fail(fmt::format("fast_pattern: bad value '{}'", value));
  marks.fast_offset = *offset;
  marks.fast_length = *length;
  return true;
}

bool OptionReader::pcre(std::string_view value) {
  Regex regex;
  std::string text;
  if (!quoted("pcre", value, text, &regex.negated)) return false;
  // /expression/flags, or mXexpressionXflags with another mark.
  size_t begin = 1;
  char mark = '/';
  if (text.size() > 2 && text[0] == 'm') {
    mark = text[1];
    begin = 2;
  } else if (!text.starts_with('/')) {
    return fail("pcre: expected \"/expression/flags\"");
  }
  const size_t end = text.rfind(mark);
  if (end == std::string::npos || end < begin) return fail(fmt::format("pcre: the closing '{}' is missing", mark));
  PcreExpression::Options options;
  for (const char flag : std::string_view(text).substr(end + 1)) {
    switch (flag) {
      case 'i':
        options.flags.nocase = true;
        break;
      case 's':
        options.flags.dotall = true;
        break;
      case 'm':
        options.flags.multiline = true;
        break;
      case 'x':
        options.flags.extended = true;
        break;
      case 'A':
        options.anchored = true;
        break;
      case 'E':
        options.end_only = true;
        break;
      case 'G':
        options.ungreedy = true;
        break;
      case 'R':
        regex.relative = true;
        break;
      case 'B':  // payloads are raw
      case 'O':  // the limits hold
        break;
      default:
        if (std::string_view("UIPHDMCSKYVWQZ").find(flag) == std::string_view::npos)
          return fail(fmt::format("pcre: unknown flag '{}'", flag));
        miss(fmt::format("pcre /{}", flag));
    }
  }
  if (!value.empty()) {
    // `, flow:name` and the like keep what the expression captured.
    if (!value.starts_with(',')) return fail(fmt::format("pcre: '{}' behind the expression", value));
    miss("pcre capture");
  }
  regex.text = std::move(text);
  const std::string error = regex.expression.compile(std::string_view(regex.text).substr(begin, end - begin), options);
  if (!error.empty()) return fail(fmt::format("pcre: {}", error));
  rule_.steps.emplace_back(std::move(regex));
  marks_.resize(rule_.steps.size());
  return true;
}

bool OptionReader::is_data_at(std::string_view value) {
  DataAt at;
  const std::string_view whole = value;
  if (value.starts_with('!')) {
    at.negated = true;
    value.remove_prefix(1);
  }
  const std::string_view offset = take_until(value, ',');
  while (!value.empty()) {
    const std::string_view word = take_until(value, ',');
    if (word == "relative")
      at.relative = true;
    else if (word != "rawbytes")
      return fail(fmt::format("isdataat: bad value '{}'", whole));
  }
  const std::optional<uint32_t> v = whole_number<uint32_t>(offset, kMostBytes);
  if (!v) {
    if (offset.empty() || is_blank(offset[0]) || (offset[0] >= '0' && offset[0] <= '9') || offset[0] == '-')
      return fail(fmt::format("isdataat: bad value '{}'", whole));
    miss("isdataat of a variable");
    return true;
  }
  at.offset = *v;
  rule_.steps.emplace_back(at);
  marks_.resize(rule_.steps.size());
  return true;
}

bool OptionReader::flow(std::string_view value) {
  if (value.empty()) return fail("flow: no value");
  while (!value.empty()) {
    const std::string_view word = take_until(value, ',');
    if (word == "stateless") continue;
    if (word == "established")
      rule_.established = true;
    else if (word != "to_server" && word != "to_client" && word != "from_server" && word != "from_client" &&
             word != "not_established" && word != "only_stream" && word != "no_stream" && word != "only_frag" &&
             word != "no_frag")
      return fail(fmt::format("flow: unknown value '{}'", word));
    rule_.flow_ignored = true;
  }
  return true;
}

bool OptionReader::finish() {
  for (size_t i = 0; i < rule_.steps.size(); ++i) {
    auto* const content = std::get_if<Content>(&rule_.steps[i]);
    if (!content) continue;
    last_content_ = static_cast<int>(i);
    if (!finish_content(*content)) return false;
  }
  if (rule_.steps.size() > kMostSteps) return fail(fmt::format("more than {} contents and expressions", kMostSteps));
  if (rule_.sid == 0) return fail("no sid");
  choose_fast_pattern();
  return true;
}

bool OptionReader::finish_content(Content& content) {
  const Marks& m = marks_[static_cast<size_t>(last_content_)];
  const auto length = static_cast<int32_t>(content.bytes.size());
  if ((m.offset || m.depth || m.starts_with) && (m.distance || m.within))
    return fail("content: offset, depth and startswith do not go together with distance and within");
  if (m.starts_with && (m.offset || m.depth))
    return fail("content: startswith does not go together with offset and depth");
  if (content.anywhere && (m.offset || m.depth || m.distance || m.within || m.starts_with || content.ends_with))
    return fail("fast_pattern: a content with 'only' can have no place");
  if (content.anywhere && content.negated) return fail("fast_pattern: a negated content cannot have 'only'");
  if (content.room >= 0 && content.room < length)
    return fail(fmt::format("{}: {} is less than the {} bytes of the content", m.depth ? "depth" : "within",
                            content.room, length));
  if (m.starts_with) content.room = length;
  content.relative = m.distance || m.within;
  if (m.fast_offset + std::max(m.fast_length, 1u) > content.bytes.size())
    return fail("fast_pattern: offset and length do not lie within the content");
  if (content.nocase)
    for (char& c : content.bytes) c = lower(c);
  return true;
}

/// The content that the rule names, else the longest one, of those the most unusual one.
void OptionReader::choose_fast_pattern() {
  int chosen = -1;
  bool by_name = false;
  for (size_t i = 0; i < rule_.steps.size(); ++i) {
    const auto* const content = std::get_if<Content>(&rule_.steps[i]);
    if (!content || content->negated || content->buffer != Buffer::kPayload) continue;
    if (marks_[i].fast) {
      chosen = static_cast<int>(i);
      by_name = true;
      break;
    }
    if (chosen < 0) {
      chosen = static_cast<int>(i);
      continue;
    }
    const std::string& best = std::get<Content>(rule_.steps[static_cast<size_t>(chosen)]).bytes;
    const std::string& bytes = content->bytes;
    if (bytes.size() > best.size() || (bytes.size() == best.size() && rarity(bytes) > rarity(best)))
      chosen = static_cast<int>(i);
  }
  rule_.fast_step = chosen;
  if (chosen < 0) return;
  const Content& content = rule_.fast_content();
  const Marks& marks = marks_[static_cast<size_t>(chosen)];
  rule_.fast_offset = by_name ? marks.fast_offset : 0;
  rule_.fast_length = by_name && marks.fast_length > 0
                          ? marks.fast_length
                          : static_cast<uint32_t>(content.bytes.size()) - rule_.fast_offset;
  rule_.fast_is_all = rule_.steps.size() == 1 && content.from <= 0 && content.room < 0 && !content.ends_with &&
                      rule_.fast_length == content.bytes.size();
}

}  // namespace headrace::rules
