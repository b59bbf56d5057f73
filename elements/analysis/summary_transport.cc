#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "elements/analysis/md5.hh"
#include "elements/analysis/option_text.hh"
#include "elements/analysis/summary_field.hh"
#include "elements/ip/icmp_names.hh"
#include "src/base/argument_text.hh"

namespace headrace::summary {

namespace {

uint64_t load(const uint8_t* p, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | p[i];
  return value;
}
void store(uint8_t* p, int bytes, uint64_t value) {
  for (int i = bytes; i-- > 0; value >>= 8) p[i] = static_cast<uint8_t>(value);
}

/// True if the TCP header is there up to byte `end`.
bool have_tcp(View& view, int end) {
  view.find_headers();
  return (view.tcp() && view.transport_length() >= end) || view.missing(kTcp, end);
}
bool have_icmp(View& view, int end) {
  view.find_headers();
  return (view.icmp() && view.transport_length() >= end) || view.missing(kIcmp, end);
}

// --- TCP

template <int kOffset, int kBytes>
bool extract_tcp(View& view, Value& v) {
  if (!have_tcp(view, kOffset + kBytes)) return false;
  v.n = load(view.tcp() + kOffset, kBytes);
  return true;
}
bool make_tcp(Builder& b, int end) { return b.make_ip(kTcp) && b.make_transport() && b.transport_length() >= end; }
template <int kOffset, int kBytes>
void inject_tcp(Builder& b, const Value& v) {
  if (make_tcp(b, kOffset + kBytes)) store(b.transport() + kOffset, kBytes, v.n);
}

// From bit 0 on; the ninth is the nonce sum of RFC 3540.
constexpr std::string_view kFlagLetters = "FSRPAUECN";

void print_flags(const View&, const Value& v, std::string& text) {
  if (v.n == 0) text += '.';
  for (size_t i = 0; i < kFlagLetters.size(); ++i)
    if (v.n >> i & 1) text += kFlagLetters[i];
}
bool parse_flags(Builder&, std::string_view text, Value& v) {
  v.n = 0;
  if (text.empty() || text == ".") return !text.empty();
  if (std::isdigit(static_cast<unsigned char>(text[0]))) return parse_argument(text, v.n, ArgContext()) && v.n < 0x1000;
  for (char c : text) {
    // Other letters of the two bits of RFC 3168, found in old dumps.
    if (c == 'X') c = 'E';
    if (c == 'Y' || c == 'W') c = 'C';
    const size_t bit = kFlagLetters.find(c);
    if (bit == std::string_view::npos) return false;
    v.n |= uint64_t{1} << bit;
  }
  return true;
}

bool extract_tcp_options(View& view, Value& v) {
  view.find_headers();
  const uint8_t* h = view.tcp();
  const int have = view.transport_length();
  const int end = h && have >= 13 ? (h[12] >> 4) * 4 : 0;
  if (end == 0 || (end > 20 && have < end)) return view.missing(kTcp, have + 1);
  v.bytes.assign(reinterpret_cast<const char*>(h) + 20, static_cast<size_t>(std::max(end - 20, 0)));
  return true;
}
template <TcpOptions kWhich>
bool extract_some_tcp_options(View& view, Value& v) {
  view.find_headers();
  const uint8_t* h = view.tcp();
  // The usual header with nothing but a timestamp needs no look at bytes that may not have been captured.
  constexpr uint8_t kOnlyTimestamp[4] = {1, 1, 8, 10};
  if (h && view.transport_length() >= 24 && h[12] >> 4 == 8 && std::memcmp(h + 20, kOnlyTimestamp, 4) == 0) return true;
  if (!extract_tcp_options(view, v)) return false;
  const auto* bytes = reinterpret_cast<const uint8_t*>(v.bytes.data());
  std::string text;
  append_tcp_options(bytes, bytes + v.bytes.size(), kWhich, text);
  // Those that make no sense stay, so that the text says so.
  if (text != "?") v.bytes = select_tcp_options(bytes, bytes + v.bytes.size(), kWhich);
  return true;
}
template <TcpOptions kWhich>
void print_tcp_options(const View&, const Value& v, std::string& text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(v.bytes.data());
  append_tcp_options(bytes, bytes + v.bytes.size(), kWhich, text);
}
template <TcpOptions kWhich>
bool parse_tcp_option_field(Builder&, std::string_view text, Value& v) {
  return parse_tcp_options(text, kWhich, v.bytes);
}
void inject_tcp_options(Builder& b, const Value& v) {
  if (!b.make_ip(kTcp) || !b.make_transport()) return;
  b.have_tcp_header_length = true;
  if (v.bytes.empty()) return;
  const int end = (20 + static_cast<int>(v.bytes.size()) + 3) & ~3;
  b.need_transport(end);
  if (end > (b.transport()[12] >> 4) * 4) b.transport()[12] = static_cast<uint8_t>(end / 4 << 4);
  b.write(b.transport_offset() + 20, v.bytes);
}

// --- ICMP

/// Types whose header has an identifier and a sequence number.
bool is_sequenced(int type) { return type == 0 || type == 8 || (type >= 13 && type <= 16); }

template <int kOffset>
bool extract_icmp_byte(View& view, Value& v) {
  if (!have_icmp(view, kOffset + 1)) return false;
  v.n = view.icmp()[kOffset];
  return true;
}
bool make_icmp(Builder& b) {
  if (!b.make_ip(kIcmp) || !b.make_transport()) return false;
  b.need_transport(8);
  return true;
}
bool parse_icmp_type(Builder&, std::string_view text, Value& v) {
  if (const auto type = find_icmp_type(text)) {
    v.n = static_cast<uint64_t>(*type);
    return true;
  }
  return parse_argument(text, v.n, ArgContext()) && v.n < 256;
}
void inject_icmp_type(Builder& b, const Value& v) {
  if (!make_icmp(b)) return;
  b.transport()[0] = static_cast<uint8_t>(v.n);
  b.have_icmp_type = true;
  if (v.n == 13 || v.n == 14) b.need_transport(20);
}
bool parse_icmp_code(Builder& b, std::string_view text, Value& v) {
  if (b.have_icmp_type)
    if (const auto code = find_icmp_code(b.transport()[0], text)) {
      v.n = static_cast<uint64_t>(*code);
      return true;
    }
  return parse_argument(text, v.n, ArgContext()) && v.n < 256;
}
void inject_icmp_code(Builder& b, const Value& v) {
  if (!make_icmp(b)) return;
  b.transport()[1] = static_cast<uint8_t>(v.n);
  b.have_icmp_code = true;
}

template <int kOffset>
bool extract_icmp_sequenced(View& view, Value& v) {
  if (!have_icmp(view, 1) || !is_sequenced(view.icmp()[0]) || !have_icmp(view, kOffset + 2)) return false;
  v.n = load(view.icmp() + kOffset, 2);
  return true;
}
template <int kOffset>
void inject_icmp_sequenced(Builder& b, const Value& v) {
  if (make_icmp(b) && (!b.have_icmp_type || is_sequenced(b.transport()[0]))) store(b.transport() + kOffset, 2, v.n);
}

bool extract_next_mtu(View& view, Value& v) {
  if (!have_icmp(view, 2) || view.icmp()[0] != 3 || view.icmp()[1] != 4 || !have_icmp(view, 8)) return false;
  v.n = load(view.icmp() + 6, 2);
  return true;
}
void inject_next_mtu(Builder& b, const Value& v) {
  if (make_icmp(b) && (!b.have_icmp_type || b.transport()[0] == 3) && (!b.have_icmp_code || b.transport()[1] == 4))
    store(b.transport() + 6, 2, v.n);
}

// --- Payload

/// The payload that the packet has, cut at its end.
std::string_view payload(const View& view) {
  int offset;
  uint32_t length;
  view.payload(offset, length);
  if (offset >= view.length()) return {};
  length = std::min(length, static_cast<uint32_t>(view.length() - offset));
  return {reinterpret_cast<const char*>(view.packet().data()) + offset, length};
}
bool extract_payload(View& view, Value& v) {
  view.find_headers();
  int offset;
  uint32_t length;
  view.payload(offset, length);
  if (length > 0 && offset >= static_cast<int>(view.packet().length())) return false;
  v.bytes = payload(view);
  return true;
}
bool extract_digest(View& view, Value& v) {
  if (!extract_payload(view, v)) return false;
  const auto digest = md5(reinterpret_cast<const uint8_t*>(v.bytes.data()), v.bytes.size());
  v.bytes.assign(reinterpret_cast<const char*>(digest.data()), digest.size());
  return true;
}
std::array<uint8_t, 16> digest_of(const Value& v) {
  std::array<uint8_t, 16> digest;
  std::memcpy(digest.data(), v.bytes.data(), digest.size());
  return digest;
}

/// Makes the headers that belong before a payload, as far as they are known, and returns where they end.
int begin_payload(Builder& b) {
  if (b.make_ip()) (void)b.make_transport();
  return b.payload_offset();
}

}  // namespace

const std::vector<Field>& transport_fields() {
  static const std::vector<Field> fields{
      {"tcp_seq", Form::kWord, extract_tcp<4, 4>, nullptr, kTransport, nullptr, inject_tcp<4, 4>},
      {"tcp_ack", Form::kWord, extract_tcp<8, 4>, nullptr, kTransport, nullptr, inject_tcp<8, 4>},
      {"tcp_off", Form::kByte,
       [](View& view, Value& v) {
         if (!have_tcp(view, 13)) return false;
         v.n = static_cast<uint64_t>((view.tcp()[12] >> 4) * 4);
         return true;
       },
       nullptr, kTransport - 1, nullptr,
       [](Builder& b, const Value& v) {
         if (!make_tcp(b, 13)) return;
         const int end = std::min(static_cast<int>(v.n + 3) & ~3, 60);
         if (end > (b.transport()[12] >> 4) * 4) b.need_transport(end);
         b.transport()[12] = static_cast<uint8_t>((b.transport()[12] & 15) | end / 4 << 4);
       }},
      {"tcp_flags", Form::kByte,
       [](View& view, Value& v) {
         if (!have_tcp(view, 14)) return false;
         v.n = load(view.tcp() + 12, 2) & 0xfff;
         return true;
       },
       print_flags, kTransport, parse_flags,
       [](Builder& b, const Value& v) {
         if (make_tcp(b, 14)) store(b.transport() + 12, 2, (load(b.transport() + 12, 2) & 0xf000) | (v.n & 0xfff));
       }},
      {"tcp_window", Form::kShort, extract_tcp<14, 2>, nullptr, kTransport, nullptr, inject_tcp<14, 2>},
      {"tcp_urp", Form::kShort, extract_tcp<18, 2>, nullptr, kTransport, nullptr, inject_tcp<18, 2>},
      {"tcp_opt", Form::kOptions, extract_tcp_options, print_tcp_options<TcpOptions::kAll>, kTransport + 3,
       parse_tcp_option_field<TcpOptions::kAll>, inject_tcp_options},
      {"tcp_ntopt", Form::kOptions, extract_some_tcp_options<TcpOptions::kNoTimestamp>,
       print_tcp_options<TcpOptions::kNoTimestamp>, kTransport + 2, parse_tcp_option_field<TcpOptions::kNoTimestamp>,
       inject_tcp_options},
      {"tcp_sack", Form::kOptions, extract_some_tcp_options<TcpOptions::kSack>, print_tcp_options<TcpOptions::kSack>,
       kTransport + 1, parse_tcp_option_field<TcpOptions::kSack>, inject_tcp_options},

      {"udp_len", Form::kWord,
       [](View& view, Value& v) {
         view.find_headers();
         if (!view.udp() || view.transport_length() < 6) return view.missing(kUdp, 6);
         v.n = load(view.udp() + 4, 2);
         return true;
       },
       nullptr, kTransport, nullptr,
       [](Builder& b, const Value& v) {
         if (!b.make_ip() || !b.make_transport()) return;
         const int protocol = b.ip()[9];
         if (protocol && protocol != kUdp && protocol != kUdpLite) return;
         b.need_transport(8);
         store(b.transport() + 4, 2, v.n);
       }},

      {"icmp_type", Form::kByte, extract_icmp_byte<0>, nullptr, kTransport, parse_icmp_type, inject_icmp_type},
      {"icmp_code", Form::kByte, extract_icmp_byte<1>, nullptr, kTransport + 1, parse_icmp_code, inject_icmp_code},
      {"icmp_type_name", Form::kByte, extract_icmp_byte<0>,
       [](const View&, const Value& v, std::string& text) {
         const auto name = icmp_type_name(static_cast<int>(v.n));
         text += name.empty() ? std::to_string(v.n) : std::string(name);
       },
       kTransport, parse_icmp_type, inject_icmp_type},
      {"icmp_code_name", Form::kByte, extract_icmp_byte<1>,
       [](const View& view, const Value& v, std::string& text) {
         const auto name = icmp_code_name(view.icmp()[0], static_cast<int>(v.n));
         text += name.empty() ? std::to_string(v.n) : std::string(name);
       },
       kTransport + 1, parse_icmp_code, inject_icmp_code},
      {"icmp_flowid", Form::kShort, extract_icmp_sequenced<4>, nullptr, kTransport + 2, nullptr,
       inject_icmp_sequenced<4>},
      {"icmp_seq", Form::kShort, extract_icmp_sequenced<6>, nullptr, kTransport + 2, nullptr, inject_icmp_sequenced<6>},
      {"icmp_nextmtu", Form::kShort, extract_next_mtu, nullptr, kTransport + 2, nullptr, inject_next_mtu},

      {"payload", Form::kTextOnly, extract_payload,
       [](const View&, const Value& v, std::string& text) { text += lang::quote(v.bytes); }, kPayload,
       [](Builder&, std::string_view text, Value& v) { return parse_argument(text, v.bytes, ArgContext()); },
       [](Builder& b, const Value& v) {
         if (v.bytes.empty()) return;
         int offset = begin_payload(b);
         b.account_payload(offset, static_cast<uint32_t>(v.bytes.size()));
         b.write(offset, v.bytes);
       }},
      {"payload_len", Form::kWord,
       [](View& view, Value& v) {
         view.find_headers();
         int offset;
         uint32_t length;
         view.payload(offset, length);
         v.n = length + uint64_t{view.ip() ? view.extra_length() : view.packet().anno_u32(anno_offset::kExtraLength)};
         return true;
       },
       nullptr, kPayload + 1, nullptr,
       [](Builder& b, const Value& v) {
         int offset = begin_payload(b);
         b.account_payload(offset, static_cast<uint32_t>(v.n));
       }},
      {"payload_md5", Form::kDigest, extract_digest,
       [](const View&, const Value& v, std::string& text) { text += md5_text(digest_of(v)); }, kPayload, nullptr,
       nullptr},
      {"payload_md5_hex", Form::kDigest, extract_digest,
       [](const View&, const Value& v, std::string& text) { text += md5_hex(digest_of(v)); }, kPayload, nullptr,
       nullptr},
  };
  return fields;
}

}  // namespace headrace::summary
