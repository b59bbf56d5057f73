#include "elements/analysis/option_text.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace headrace {

namespace {

constexpr size_t kMaxOptions = 40;
enum IpOption : uint8_t {
  kEol = 0,
  kNop = 1,
  kRecordRoute = 7,
  kIpTimestamp = 68,
  kLooseRoute = 131,
  kStrictRoute = 137
};
enum TcpOption : uint8_t { kMss = 2, kWindowScale = 3, kSackPermitted = 4, kSack = 5, kTcpTimestamp = 8 };

uint32_t word_at(const uint8_t* p) { return static_cast<uint32_t>(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3]; }

void append_word(std::string& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
}

/// Separated pieces of text; the first is not preceded by the separator.
class Pieces {
 public:
  explicit Pieces(std::string& text) : text_(text), begin_(text.size()) {}
  std::string& next() {
    if (text_.size() > begin_) text_ += ';';
    return text_;
  }
  void finish() {
    if (text_.size() == begin_) text_ += '.';
  }
  void fail() {
    text_.resize(begin_);
    text_ += '?';
  }

 private:
  std::string& text_;
  size_t begin_;
};

void append_address(std::string& text, const uint8_t* p) { text += fmt::format("{}.{}.{}.{}", p[0], p[1], p[2], p[3]); }

void append_route(std::string& text, const char* name, const uint8_t* option) {
  const uint8_t* end = option + option[1];
  const uint8_t* pointer = option + option[2] - 1;
  const bool record = option[0] == kRecordRoute;
  text += name;
  text += '{';
  const char* separator = "";
  const uint8_t* o = option + 3;
  for (; o + 4 <= end; o += 4) {
    if (o == pointer) {
      if (record) break;
      separator = "^";
    }
    text += separator;
    append_address(text, o);
    separator = ",";
  }
  if (o == end && o == pointer && !record) text += '^';
  text += '}';
  if (record && o == pointer && o + 4 <= end) text += fmt::format("+{}", (end - o) / 4);
}

void append_ip_timestamps(std::string& text, const uint8_t* option) {
  const uint8_t* end = option + option[1];
  const uint8_t* pointer = option + option[2] - 1;
  const int kind = option[3] & 15;
  const bool addresses = kind >= 1 && kind <= 3;
  const int size = addresses ? 8 : 4;
  text += "ts";
  if (kind == 1)
    text += ".ip";
  else if (kind == 3)
    text += ".preip";
  else if (kind != 0)
    text += fmt::format(".{}", kind);
  text += '{';
  const char* separator = "";
  const uint8_t* o = option + 4;
  for (; o + size <= end; o += size) {
    if (o == pointer) {
      if (kind != 3) break;
      separator = "^";
    }
    text += separator;
    if (addresses) append_address(text, o);
    if (kind != 3 || o < pointer) {
      if (addresses) text += '=';
      const uint32_t value = word_at(o + size - 4);
      if (value & 0x80000000u) text += '!';
      text += std::to_string(value & 0x7fffffffu);
    }
    separator = ",";
  }
  if (o == end && o == pointer) text += '^';
  text += '}';
  if (kind != 3 && o == pointer && o + size <= end) text += fmt::format("+{}", (end - o) / size);
  if (option[3] & 0xf0) text += fmt::format("++{}", option[3] >> 4);
}

void append_unknown(std::string& text, const uint8_t* option) {
  text += std::to_string(option[0]);
  for (int i = 2; i < option[1]; ++i) text += fmt::format("{}{}", i == 2 ? '=' : ':', option[i]);
}

/// Reads the text of options from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  /// Takes any one of these characters.
  bool take_any(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at_digit(size_t offset = 0) const {
    return rest_.size() > offset && std::isdigit(static_cast<unsigned char>(rest_[offset]));
  }
  bool at(char c, size_t offset = 0) const { return rest_.size() > offset && rest_[offset] == c; }
  bool number(uint64_t max, uint32_t& value) {
    if (!at_digit()) return false;
    uint64_t n = 0;
    while (at_digit()) {
      n = n * 10 + static_cast<uint64_t>(rest_[0] - '0');
      if (n > max) return false;
      rest_.remove_prefix(1);
    }
    value = static_cast<uint32_t>(n);
    return true;
  }
  bool address(std::string& bytes) {
    for (int i = 0; i < 4; ++i) {
      uint32_t byte;
      if ((i > 0 && !take(".")) || !number(255, byte)) return false;
      bytes += static_cast<char>(byte);
    }
    return true;
  }
  /// True if an address stands here, not just a number.
  bool at_address() const {
    size_t i = 0;
    while (at_digit(i)) ++i;
    return i > 0 && at('.', i);
  }
  bool separator() { return take_any(",;"); }

 private:
  std::string_view rest_;
};

/// Writes the length of the option that began at `start`.
bool close_option(std::string& bytes, size_t start) {
  const size_t length = bytes.size() - start;
  if (length > 255) return false;
  bytes[start + 1] = static_cast<char>(length);
  return true;
}

bool read_route(Reader& in, uint8_t type, std::string& bytes) {
  const size_t start = bytes.size();
  bytes += static_cast<char>(type);
  bytes.append(2, '\0');
  size_t pointer = 0;
  for (;;) {
    if (pointer == 0 && in.take("^")) pointer = bytes.size() - start + 1;
    if (!in.at_digit()) break;
    if (!in.address(bytes)) return false;
    in.take(",");
  }
  if (!in.take("}")) return false;
  bytes[start + 2] = static_cast<char>(pointer ? pointer : bytes.size() - start + 1);
  if (in.at('+') && in.at_digit(1)) {
    uint32_t room;
    in.take("+");
    if (!in.number(63, room)) return false;
    bytes.append(room * 4, '\0');
  }
  return close_option(bytes, start);
}

bool read_ip_timestamps(Reader& in, std::string& bytes) {
  const size_t start = bytes.size();
  bytes += static_cast<char>(kIpTimestamp);
  bytes.append(3, '\0');
  uint32_t kind = 0;
  bool guess = false;
  if (in.take(".ip{"))
    kind = 1;
  else if (in.take(".preip{"))
    kind = 3;
  else if (in.take("{"))
    guess = true;
  else if (!in.take(".") || !in.number(15, kind) || !in.take("{"))
    return false;
  size_t pointer = 0;
  bool first = true;
  for (;;) {
    if (pointer == 0 && in.take("^")) pointer = bytes.size() - start + 1;
    if (!in.at_digit() && !in.at('!')) break;
    // "ts{1.0.0.1=5}" has addresses although it does not say so.
    if (guess && first && in.at_address()) kind = 1;
    first = false;
    bool value = true;
    if (kind == 1 || kind == 3) {
      if (!in.address(bytes)) return false;
      if (pointer && guess) kind = 3;
      value = in.take("=");
      if (!value && pointer == 0) return false;
      if (value && pointer && in.take("?")) value = false;
    }
    uint32_t time = 0;
    if (value) {
      const uint32_t nonstandard = in.take("!") ? 0x80000000u : 0;
      if (!in.number(UINT32_MAX, time)) return false;
      time |= nonstandard;
    }
    append_word(bytes, time);
    in.take(",");
  }
  if (!in.take("}")) return false;
  bytes[start + 2] = static_cast<char>(pointer ? pointer : bytes.size() - start + 1);
  uint32_t n = 0;
  if (in.at('+') && in.at_digit(1)) {
    in.take("+");
    if (!in.number(63, n)) return false;
    bytes.append(n * (kind == 1 || kind == 3 ? 8 : 4), '\0');
  }
  uint32_t overflow = 0;
  if (in.at('+') && in.at('+', 1)) {
    in.take("++");
    if (!in.number(15, overflow)) return false;
  }
  bytes[start + 3] = static_cast<char>(overflow << 4 | kind);
  return close_option(bytes, start);
}

bool read_unknown(Reader& in, std::string& bytes) {
  uint32_t value;
  if (!in.number(255, value)) return false;
  const size_t start = bytes.size();
  bytes += static_cast<char>(value);
  if (!in.at('=') || !in.at_digit(1)) return true;
  in.take("=");
  bytes += '\0';
  do {
    if (!in.number(255, value)) return false;
    bytes += static_cast<char>(value);
  } while (in.at(':') && in.at_digit(1) && in.take(":"));
  return close_option(bytes, start);
}

bool append_byte(std::string& bytes, uint8_t byte) {
  bytes += static_cast<char>(byte);
  return true;
}

bool finish_bytes(std::string& bytes) {
  // Leading padding that would not fit is not worth an error.
  while (bytes.size() > kMaxOptions && bytes[0] == kNop) bytes.erase(0, 1);
  return bytes.size() <= kMaxOptions;
}

bool wanted(uint8_t type, TcpOptions which) {
  switch (which) {
    case TcpOptions::kAll:
      return true;
    case TcpOptions::kNoTimestamp:
      return type != kTcpTimestamp;
    default:
      return type == kSack || type == kSackPermitted;
  }
}

/// Whether an option's length fits its kind.
bool well_formed_tcp(const uint8_t* option) {
  switch (option[0]) {
    case kMss:
      return option[1] == 4;
    case kWindowScale:
      return option[1] == 3;
    case kSackPermitted:
      return option[1] == 2;
    case kSack:
      return option[1] % 8 == 2;
    case kTcpTimestamp:
      return option[1] == 10;
    default:
      return true;
  }
}

bool read_tcp_option(Reader& in, TcpOptions which, std::string& bytes) {
  uint32_t a = 0, b = 0;
  if (which != TcpOptions::kSack) {
    if (in.take("mss")) {
      if (!in.number(65535, a)) return false;
      bytes += {kMss, 4, static_cast<char>(a >> 8), static_cast<char>(a)};
      return true;
    }
    if (in.take("wscale")) {
      if (!in.number(255, a)) return false;
      bytes += {kWindowScale, 3, static_cast<char>(a)};
      return true;
    }
  }
  if (in.take("sackok")) {
    bytes += {kSackPermitted, 2};
    return true;
  }
  if (in.take("sack")) {
    const size_t start = bytes.size();
    bytes += {kSack, 0};
    // Blocks that stand next to each other, separated by commas, form one option.
    do {
      if (!in.number(UINT32_MAX, a) || !in.take_any(":-") || !in.number(UINT32_MAX, b)) return false;
      append_word(bytes, a);
      append_word(bytes, b);
    } while (in.take(",sack"));
    return close_option(bytes, start);
  }
  if (which == TcpOptions::kAll && in.take("ts")) {
    if (!in.number(UINT32_MAX, a) || !in.take(":") || !in.number(UINT32_MAX, b)) return false;
    // Alone or in front it is aligned, as hosts do it.
    if (bytes.empty()) bytes.append(2, static_cast<char>(kNop));
    bytes += {kTcpTimestamp, 10};
    append_word(bytes, a);
    append_word(bytes, b);
    return true;
  }
  if (which == TcpOptions::kSack) return false;
  if (which == TcpOptions::kAll && in.take("nop")) return append_byte(bytes, kNop);
  if (which == TcpOptions::kAll && in.take("eol")) return append_byte(bytes, kEol);
  return read_unknown(in, bytes);
}

}  // namespace

void append_ip_options(const uint8_t* begin, const uint8_t* end, std::string& text) {
  Pieces pieces(text);
  for (const uint8_t* o = begin; o < end && *o != kEol;) {
    if (*o == kNop) {
      ++o;
      continue;
    }
    if (end - o < 2 || o[1] < 2 || o[1] > end - o) return pieces.fail();
    switch (*o) {
      case kRecordRoute:
      case kLooseRoute:
      case kStrictRoute:
        if (o[1] < 3 || o[2] < 4) return pieces.fail();
        append_route(pieces.next(), *o == kRecordRoute ? "rr" : *o == kLooseRoute ? "lsrr" : "ssrr", o);
        break;
      case kIpTimestamp:
        if (o[1] < 4 || o[2] < 5) return pieces.fail();
        append_ip_timestamps(pieces.next(), o);
        break;
      default:
        append_unknown(pieces.next(), o);
    }
    o += o[1];
  }
  pieces.finish();
}

void append_tcp_options(const uint8_t* begin, const uint8_t* end, TcpOptions which, std::string& text) {
  Pieces pieces(text);
  for (const uint8_t* o = begin; o < end && *o != kEol;) {
    if (*o == kNop) {
      ++o;
      continue;
    }
    if (end - o < 2 || o[1] < 2 || o[1] > end - o || !well_formed_tcp(o)) return pieces.fail();
    const uint8_t* next = o + o[1];
    if (wanted(*o, which)) switch (*o) {
        case kMss:
          pieces.next() += fmt::format("mss{}", o[2] << 8 | o[3]);
          break;
        case kWindowScale:
          pieces.next() += fmt::format("wscale{}", o[2]);
          break;
        case kSackPermitted:
          pieces.next() += "sackok";
          break;
        case kSack:
          for (const uint8_t* block = o + 2; block < next; block += 8)
            pieces.next() += fmt::format("sack{}-{}", word_at(block), word_at(block + 4));
          break;
        case kTcpTimestamp:
          pieces.next() += fmt::format("ts{}:{}", word_at(o + 2), word_at(o + 6));
          break;
        default:
          append_unknown(pieces.next(), o);
      }
    o = next;
  }
  pieces.finish();
}

bool parse_ip_options(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.empty() || text == ".") return true;
  Reader in(text);
  do {
    bool good;
    if (in.take("rr{"))
      good = read_route(in, kRecordRoute, bytes);
    else if (in.take("ssrr{"))
      good = read_route(in, kStrictRoute, bytes);
    else if (in.take("lsrr{"))
      good = read_route(in, kLooseRoute, bytes);
    else if (in.take("ts"))
      good = read_ip_timestamps(in, bytes);
    else if (in.take("nop"))
      good = append_byte(bytes, kNop);
    else if (in.take("eol"))
      good = append_byte(bytes, kEol);
    else
      good = read_unknown(in, bytes);
    if (!good) return false;
    if (in.at_end()) return finish_bytes(bytes);
  } while (in.separator());
  return false;
}

bool parse_tcp_options(std::string_view text, TcpOptions which, std::string& bytes) {
  bytes.clear();
  if (text.empty() || text == ".") return true;
  Reader in(text);
  do {
    if (!read_tcp_option(in, which, bytes)) return false;
    if (in.at_end()) return finish_bytes(bytes);
  } while (in.separator());
  return false;
}

std::string select_tcp_options(const uint8_t* begin, const uint8_t* end, TcpOptions which) {
  if (which == TcpOptions::kAll) return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
  std::string bytes;
  for (const uint8_t* o = begin; o < end && *o != kEol;) {
    if (*o == kNop) {
      ++o;
      continue;
    }
    if (end - o < 2 || o[1] < 2 || o[1] > end - o) break;
    if (wanted(*o, which)) bytes.append(reinterpret_cast<const char*>(o), o[1]);
    o += o[1];
  }
  return bytes;
}

}  // namespace headrace
