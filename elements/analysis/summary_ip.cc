#include <fmt/format.h>

#include <cstring>

#include "elements/analysis/option_text.hh"
#include "elements/analysis/summary_field.hh"

namespace headrace::summary {

namespace {

constexpr uint32_t kDontFragment = 0x4000, kMoreFragments = 0x2000, kOffsetMask = 0x1fff;

/// True if the IP header is there up to byte `end`.
bool have_ip(View& view, int end) {
  view.find_headers();
  return (view.ip() && view.network_length() >= end) || view.missing(0, end);
}

/// An integer of the IP header.
template <int kOffset, int kBytes>
bool extract_ip(View& view, Value& v) {
  if (!have_ip(view, kOffset + kBytes)) return false;
  v.n = 0;
  for (int i = 0; i < kBytes; ++i) v.n = v.n << 8 | view.ip()[kOffset + i];
  return true;
}
template <int kOffset, int kBytes>
void inject_ip(Builder& b, const Value& v) {
  if (!b.make_ip()) return;
  for (int i = 0; i < kBytes; ++i) b.ip()[kOffset + i] = static_cast<uint8_t>(v.n >> (8 * (kBytes - 1 - i)));
}

void print_address(const View&, const Value& v, std::string& text) {
  text += fmt::format("{}.{}.{}.{}", v.n >> 24 & 255, v.n >> 16 & 255, v.n >> 8 & 255, v.n & 255);
}
bool parse_address(Builder& b, std::string_view text, Value& v) {
  IpAddress address;
  if (!parse_argument(text, address, ArgContext(b.names()))) return false;
  v.n = address.host_order();
  return true;
}

void print_fragment(const View& view, const Value& v, std::string& text) {
  if (view.is_fragment())
    text += view.first_fragment() ? 'F' : 'f';
  else
    text += v.n & kDontFragment ? '!' : '.';
}
void print_fragment_offset(const View&, const Value& v, std::string& text) {
  text += std::to_string((v.n & kOffsetMask) * 8);
  if (v.n & kMoreFragments) text += '+';
  if (v.n & kDontFragment) text += '!';
}
bool parse_fragment(Builder& b, std::string_view text, Value& v) {
  if (text == "." || text == "!" || text == "F" || text == "f") {
    // 'f' does not say where the fragment lies: some offset that is not 0.
    v.n = text == "." ? 0 : text == "!" ? kDontFragment : text == "F" ? kMoreFragments : 100;
    return true;
  }
  uint32_t flags = 0;
  while (!text.empty() && (text.back() == '!' || text.back() == '+')) {
    flags |= text.back() == '!' ? kDontFragment : kMoreFragments;
    text.remove_suffix(1);
  }
  if (!parse_argument(text, v.n, ArgContext())) return false;
  // Version 1.0 counted in units of eight bytes.
  if (b.minor_version > 0) v.n >>= 3;
  if (v.n > kOffsetMask) return false;
  v.n |= flags;
  return true;
}

void print_protocol(const View&, const Value& v, std::string& text) {
  if (v.n == kTcp)
    text += 'T';
  else if (v.n == kUdp)
    text += 'U';
  else if (v.n == kIcmp)
    text += 'I';
  else
    text += std::to_string(v.n);
}
bool parse_protocol(Builder&, std::string_view text, Value& v) {
  if (text == "T")
    v.n = kTcp;
  else if (text == "U")
    v.n = kUdp;
  else if (text == "I")
    v.n = kIcmp;
  else
    return parse_argument(text, v.n, ArgContext()) && v.n < 256;
  return true;
}

constexpr std::string_view kEcnNames[4] = {"no", "ect1", "ect2", "ce"};

bool parse_ecn(Builder&, std::string_view text, Value& v) {
  constexpr std::string_view kOtherNames[4] = {"-", "ECT(1)", "ECT(0)", "CE"};
  for (unsigned i = 0; i < 4; ++i)
    if (text == kEcnNames[i] || text == kOtherNames[i] || (text.size() == 1 && text[0] == static_cast<char>('0' + i))) {
      v.n = i;
      return true;
    }
  return false;
}

bool extract_options(View& view, Value& v) {
  view.find_headers();
  if (!view.ip()) return view.missing(0, 20);
  const int end = view.ip_header_length();
  if (end > 20 && view.network_length() < end) return view.missing(0, end);
  v.bytes.assign(reinterpret_cast<const char*>(view.ip()) + 20, static_cast<size_t>(end - 20));
  return true;
}
void inject_options(Builder& b, const Value& v) {
  if (!b.make_ip()) return;
  b.have_ip_header_length = true;
  if (v.bytes.empty()) return;
  const int n = (20 + static_cast<int>(v.bytes.size()) + 3) & ~3;
  if (n > (b.ip()[0] & 15) * 4) b.set_ip_header_length(n);
  b.write(b.network_offset() + 20, v.bytes);
}

bool has_ports(int protocol) {
  return protocol == kTcp || protocol == kUdp || protocol == kDccp || protocol == kUdpLite;
}

template <int kOffset>
bool extract_port(View& view, Value& v) {
  view.find_headers();
  const uint8_t* h = view.ip();
  if (h && view.packet().has_transport_header() && view.network_length() > view.ip_header_length() &&
      view.network_length() > 9 && view.first_fragment() && has_ports(h[9]) && view.transport_length() >= kOffset + 2) {
    const uint8_t* t = view.packet().transport_header();
    v.n = static_cast<uint64_t>(t[kOffset] << 8 | t[kOffset + 1]);
    return true;
  }
  return view.missing(-2, kOffset + 2);
}
template <int kOffset>
void inject_port(Builder& b, const Value& v) {
  if (!b.make_ip() || !b.make_transport()) return;
  const int protocol = b.ip()[9];
  if ((protocol && !has_ports(protocol)) || b.transport_length() < kOffset + 2) return;
  b.transport()[kOffset] = static_cast<uint8_t>(v.n >> 8);
  b.transport()[kOffset + 1] = static_cast<uint8_t>(v.n);
}

}  // namespace

const std::vector<Field>& ip_fields() {
  static const std::vector<Field> fields{
      {"ip_src", Form::kWord, extract_ip<12, 4>, print_address, kNetwork, parse_address, inject_ip<12, 4>},
      {"ip_dst", Form::kWord, extract_ip<16, 4>, print_address, kNetwork, parse_address, inject_ip<16, 4>},
      {"ip_tos", Form::kByte, extract_ip<1, 1>, nullptr, kNetwork, nullptr, inject_ip<1, 1>},
      {"ip_dscp", Form::kByte,
       [](View& view, Value& v) {
         if (!have_ip(view, 2)) return false;
         v.n = view.ip()[1] >> 2;
         return true;
       },
       nullptr, kNetwork, nullptr,
       [](Builder& b, const Value& v) {
         if (b.make_ip()) b.ip()[1] = static_cast<uint8_t>((b.ip()[1] & 3) | v.n << 2);
       }},
      {"ip_ecn", Form::kByte,
       [](View& view, Value& v) {
         if (!have_ip(view, 2)) return false;
         v.n = view.ip()[1] & 3;
         return true;
       },
       [](const View&, const Value& v, std::string& text) { text += kEcnNames[v.n & 3]; }, kNetwork, parse_ecn,
       [](Builder& b, const Value& v) {
         if (b.make_ip()) b.ip()[1] = static_cast<uint8_t>((b.ip()[1] & ~3) | (v.n & 3));
       }},
      {"ip_ttl", Form::kByte, extract_ip<8, 1>, nullptr, kNetwork, nullptr, inject_ip<8, 1>},
      {"ip_frag", Form::kByte,
       [](View& view, Value& v) {
         if (!extract_ip<6, 2>(view, v)) return false;
         std::string letter;
         print_fragment(view, v, letter);
         v.n = static_cast<uint8_t>(letter[0]);
         return true;
       },
       [](const View&, const Value& v, std::string& text) { text += static_cast<char>(v.n); }, kNetwork - 2,
       parse_fragment, inject_ip<6, 2>},
      {"ip_fragoff", Form::kShort, extract_ip<6, 2>, print_fragment_offset, kNetwork - 1, parse_fragment,
       inject_ip<6, 2>},
      {"ip_id", Form::kShort, extract_ip<4, 2>, nullptr, kNetwork, nullptr, inject_ip<4, 2>},
      {"ip_sum", Form::kShort, extract_ip<10, 2>, nullptr, kNetwork + 2, nullptr, inject_ip<10, 2>},
      {"ip_proto", Form::kByte, extract_ip<9, 1>, print_protocol, kNetwork, parse_protocol, inject_ip<9, 1>},
      {"ip_hl", Form::kByte,
       [](View& view, Value& v) {
         if (!have_ip(view, 1)) return false;
         v.n = static_cast<uint64_t>(view.ip_header_length());
         return true;
       },
       nullptr, kNetwork - 1, nullptr,
       [](Builder& b, const Value& v) {
         if (!b.make_ip()) return;
         b.have_ip_header_length = true;
         const int n = std::min(static_cast<int>(v.n + 3) & ~3, 60);
         b.set_ip_header_length(n);
       }},
      {"ip_len", Form::kWord,
       [](View& view, Value& v) {
         view.find_headers();
         v.n = static_cast<uint64_t>(view.ip() ? view.ip_length() : view.length()) + view.extra_length();
         return true;
       },
       nullptr, kNetwork + 1, nullptr,
       [](Builder& b, const Value& v) {
         if (b.make_ip()) b.wanted_length = static_cast<uint32_t>(b.network_offset()) + static_cast<uint32_t>(v.n);
       }},
      {"ip_capture_len", Form::kWord,
       [](View& view, Value& v) {
         view.find_headers();
         const int have = view.ip() ? view.network_length() : view.length();
         v.n = static_cast<uint64_t>(view.ip() ? std::min(view.ip_length(), have) : have);
         return true;
       },
       // How much was captured does not change the packet that is made.
       nullptr, kPayload + 2, nullptr, [](Builder& b, const Value&) { (void)b.make_ip(); }},
      {"ip_opt", Form::kOptions, extract_options,
       [](const View&, const Value& v, std::string& text) {
         const auto* bytes = reinterpret_cast<const uint8_t*>(v.bytes.data());
         append_ip_options(bytes, bytes + v.bytes.size(), text);
       },
       kNetwork, [](Builder&, std::string_view text, Value& v) { return parse_ip_options(text, v.bytes); },
       inject_options},
      {"sport", Form::kShort, extract_port<0>, nullptr, kTransport, nullptr, inject_port<0>},
      {"dport", Form::kShort, extract_port<2>, nullptr, kTransport, nullptr, inject_port<2>},
  };
  return fields;
}

}  // namespace headrace::summary
