#include <fmt/format.h>

#include "elements/analysis/summary_field.hh"

namespace headrace::summary {

namespace {

using anno_offset::kAggregate;
using anno_offset::kExtraPackets;
using anno_offset::kFirstTimestamp;
using anno_offset::kPaint;

void print_time(const View&, const Value& v, std::string& text) {
  text += Timestamp::from_ns(static_cast<int64_t>(v.n)).unparse();
}

bool parse_time(Builder&, std::string_view text, Value& v) {
  Timestamp t;
  if (!parse_argument(text, t, ArgContext())) return false;
  v.n = static_cast<uint64_t>(t.ns);
  return true;
}

bool extract_time(View& view, Value& v) {
  v.n = static_cast<uint64_t>(view.packet().timestamp().ns);
  return true;
}
void inject_time(Builder& b, const Value& v) { b.timestamp = Timestamp::from_ns(static_cast<int64_t>(v.n)); }

bool extract_first_time(View& view, Value& v) {
  v.n = view.packet().anno_u64(kFirstTimestamp);
  return true;
}
void inject_first_time(Builder& b, const Value& v) { b.set_anno<uint64_t>(kFirstTimestamp, v.n); }

bool extract_paint(View& view, Value& v) {
  v.n = view.packet().anno_u8(kPaint);
  return true;
}
void inject_paint(Builder& b, const Value& v) { b.set_anno<uint8_t>(kPaint, static_cast<uint8_t>(v.n)); }

void print_direction(const View&, const Value& v, std::string& text) {
  if (v.n > 1)
    text += std::to_string(v.n);
  else
    text += v.n == 0 ? '>' : '<';
}

bool parse_direction(Builder&, std::string_view text, Value& v) {
  if (text == ">" || text == "L") {
    v.n = 0;
  } else if (text == "<" || text == "R" || text == "X") {
    v.n = 1;
  } else {
    return parse_argument(text, v.n, ArgContext()) && v.n < 256;
  }
  return true;
}

/// The Ethernet header, if it stands right before the network header.
const uint8_t* ethernet(View& view) {
  const Packet& p = view.packet();
  const uint8_t* mac = nullptr;
  if (p.has_mac_header())
    mac = p.mac_header();
  else if (!p.has_network_header() || p.network_header_offset() > 0)
    mac = p.data();
  const uint8_t* network = p.has_network_header() ? p.network_header() : p.end_data();
  if (mac && network - mac == 14) return mac;
  view.missing(-1, 0);
  return nullptr;
}

template <int kOffset>
bool extract_ethernet_address(View& view, Value& v) {
  const uint8_t* mac = ethernet(view);
  if (mac) v.bytes.assign(reinterpret_cast<const char*>(mac) + kOffset, 6);
  return mac != nullptr;
}

bool extract_ethernet_type(View& view, Value& v) {
  const uint8_t* mac = ethernet(view);
  if (mac) v.n = static_cast<uint64_t>(mac[12] << 8 | mac[13]);
  return mac != nullptr;
}

void print_ethernet_address(const View&, const Value& v, std::string& text) {
  for (size_t i = 0; i < 6; ++i) text += fmt::format("{}{:02X}", i ? "-" : "", static_cast<uint8_t>(v.bytes[i]));
}

bool parse_ethernet_address(Builder& b, std::string_view text, Value& v) {
  EtherAddress address;
  if (!parse_argument(text, address, ArgContext(b.names()))) return false;
  v.bytes.assign(reinterpret_cast<const char*>(address.data()), 6);
  return true;
}

template <int kOffset>
void inject_ethernet_address(Builder& b, const Value& v) {
  b.make_ethernet();
  b.write(kOffset, v.bytes);
}

}  // namespace

const std::vector<Field>& annotation_fields() {
  static const std::vector<Field> fields{
      {"none", Form::kByte, [](View&, Value&) { return false; }, nullptr, kAnnotation, nullptr, nullptr},
      {"timestamp", Form::kMicroTime, extract_time, print_time, kAnnotation, parse_time, inject_time},
      {"ntimestamp", Form::kNanoTime, extract_time, print_time, kAnnotation, parse_time, inject_time},
      {"ts_sec", Form::kWord,
       [](View& view, Value& v) {
         v.n = static_cast<uint64_t>(view.packet().timestamp().sec());
         return true;
       },
       nullptr, kAnnotation, nullptr,
       [](Builder& b, const Value& v) {
         const Timestamp old = b.timestamp.value_or(Timestamp{});
         b.timestamp = Timestamp::from_sec(static_cast<int64_t>(v.n)) + Timestamp::from_ns(old.nsec());
       }},
      {"ts_usec", Form::kWord,
       [](View& view, Value& v) {
         v.n = static_cast<uint64_t>(view.packet().timestamp().nsec() / 1000);
         return true;
       },
       nullptr, kAnnotation, nullptr,
       [](Builder& b, const Value& v) {
         const Timestamp old = b.timestamp.value_or(Timestamp{});
         b.timestamp = Timestamp::from_sec(old.sec()) + Timestamp::from_us(static_cast<int64_t>(v.n));
       }},
      {"ts_usec1", Form::kLong,
       [](View& view, Value& v) {
         v.n = static_cast<uint64_t>(view.packet().timestamp().ns / 1000);
         return true;
       },
       nullptr, kAnnotation, nullptr,
       [](Builder& b, const Value& v) { b.timestamp = Timestamp::from_us(static_cast<int64_t>(v.n)); }},
      {"first_timestamp", Form::kMicroTime, extract_first_time, print_time, kAnnotation, parse_time, inject_first_time},
      {"first_ntimestamp", Form::kNanoTime, extract_first_time, print_time, kAnnotation, parse_time, inject_first_time},
      {"count", Form::kWord,
       [](View& view, Value& v) {
         v.n = 1 + uint64_t{view.packet().anno_u32(kExtraPackets)};
         return true;
       },
       nullptr, kAnnotation, nullptr,
       [](Builder& b, const Value& v) {
         b.set_anno<uint32_t>(kExtraPackets, v.n ? static_cast<uint32_t>(v.n - 1) : 0);
       }},
      {"link", Form::kByte, extract_paint, nullptr, kAnnotation, parse_direction, inject_paint},
      {"paint", Form::kByte, extract_paint, nullptr, kAnnotation, parse_direction, inject_paint},
      {"direction", Form::kByte, extract_paint, print_direction, kAnnotation, parse_direction, inject_paint},
      {"aggregate", Form::kWord,
       [](View& view, Value& v) {
         v.n = view.packet().anno_u32(kAggregate);
         return true;
       },
       nullptr, kAnnotation, nullptr,
       [](Builder& b, const Value& v) { b.set_anno<uint32_t>(kAggregate, static_cast<uint32_t>(v.n)); }},
      {"wire_len", Form::kWord,
       [](View& view, Value& v) {
         v.n = view.packet().length();
         return true;
       },
       nullptr, kAnnotation, nullptr, [](Builder& b, const Value& v) { b.wanted_length = static_cast<uint32_t>(v.n); }},
      {"eth_src", Form::kEthernet, extract_ethernet_address<6>, print_ethernet_address, kLink, parse_ethernet_address,
       inject_ethernet_address<6>},
      {"eth_dst", Form::kEthernet, extract_ethernet_address<0>, print_ethernet_address, kLink, parse_ethernet_address,
       inject_ethernet_address<0>},
      {"eth_type", Form::kShort, extract_ethernet_type,
       [](const View&, const Value& v, std::string& text) { text += fmt::format("{:04X}", v.n); }, kLink,
       [](Builder&, std::string_view text, Value& v) {
         return IntegerBase{16}.parse(text, v.n, ArgContext()) && v.n < 65536;
       },
       [](Builder& b, const Value& v) {
         b.make_ethernet();
         b.write(12, std::string{static_cast<char>(v.n >> 8), static_cast<char>(v.n)});
         if (v.n != 0x0800 && v.n != 0x86dd) b.is_ip = false;
       }},
  };
  return fields;
}

}  // namespace headrace::summary
