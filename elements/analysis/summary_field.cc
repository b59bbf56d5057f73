#include "elements/analysis/summary_field.hh"

#include <algorithm>
#include <array>
#include <map>

namespace headrace::summary {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kSynonyms{{
    {"utimestamp", "timestamp"},
    {"ts", "timestamp"},
    {"sec", "ts_sec"},
    {"usec", "ts_usec"},
    {"usec1", "ts_usec1"},
    {"first_utimestamp", "first_timestamp"},
    {"first_ts", "first_timestamp"},
    {"pkt_count", "count"},
    {"packet_count", "count"},
    {"agg", "aggregate"},
    {"wire_length", "wire_len"},
    {"ether_src", "eth_src"},
    {"ether_dst", "eth_dst"},
    {"ether_type", "eth_type"},
    {"length", "ip_len"},
    {"ip_p", "ip_proto"},
    {"tcp_seqno", "tcp_seq"},
    {"tcp_ackno", "tcp_ack"},
    {"tcp_win", "tcp_window"},
    {"payload_length", "payload_len"},
}};

const std::map<std::string_view, const Field*>& fields_by_name() {
  static const auto fields = [] {
    std::map<std::string_view, const Field*> all;
    for (const auto* group : {&annotation_fields(), &ip_fields(), &transport_fields()})
      for (const Field& f : *group) all[f.name] = &f;
    return all;
  }();
  return fields;
}

void append_big_endian(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

uint64_t take_big_endian(std::string_view& in, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(in[static_cast<size_t>(i)]);
  in.remove_prefix(static_cast<size_t>(bytes));
  return value;
}

int size_of(Form form) {
  switch (form) {
    case Form::kByte:
      return 1;
    case Form::kShort:
      return 2;
    case Form::kWord:
      return 4;
    case Form::kLong:
    case Form::kMicroTime:
    case Form::kNanoTime:
      return 8;
    case Form::kEthernet:
      return 6;
    case Form::kDigest:
      return 16;
    default:
      return 0;
  }
}

}  // namespace

const Field* find_field(std::string_view name) {
  for (const auto& [synonym, real] : kSynonyms)
    if (synonym == name) {
      name = real;
      break;
    }
  const auto& fields = fields_by_name();
  if (const auto it = fields.find(name); it != fields.end()) return it->second;
  std::string other(name);
  if (const size_t blank = other.find(' '); blank != std::string::npos) {
    other[blank] = '_';
    return find_field(other);
  }
  return other.find('_') == std::string::npos ? find_field("ip_" + other) : nullptr;
}

void print_field(const Field& field, const View& view, const Value& value, std::string& text) {
  if (field.print)
    field.print(view, value, text);
  else
    text += std::to_string(value.n);
}

bool parse_field(const Field& field, Builder& builder, std::string_view text, Value& value) {
  if (field.parse) return field.parse(builder, text, value);
  if (!parse_argument(text, value.n, ArgContext())) return false;
  const int bytes = size_of(field.form);
  return bytes >= 8 || value.n >> (8 * bytes) == 0;
}

void write_binary(const Field& field, bool ok, const Value& value, std::string& out) {
  switch (field.form) {
    case Form::kMicroTime:
    case Form::kNanoTime: {
      const Timestamp t = Timestamp::from_ns(static_cast<int64_t>(value.n));
      append_big_endian(out, static_cast<uint64_t>(t.sec()), 4);
      append_big_endian(out, static_cast<uint64_t>(field.form == Form::kMicroTime ? t.nsec() / 1000 : t.nsec()), 4);
      break;
    }
    case Form::kOptions:
      append_big_endian(out, ok ? value.bytes.size() : 0, 1);
      if (ok) out += value.bytes;
      break;
    case Form::kEthernet:
    case Form::kDigest: {
      std::string bytes = ok ? value.bytes : std::string();
      bytes.resize(static_cast<size_t>(size_of(field.form)));
      out += bytes;
      break;
    }
    default:
      append_big_endian(out, ok ? value.n : 0, size_of(field.form));
  }
}

bool read_binary(const Field& field, std::string_view& in, Value& value) {
  if (field.form == Form::kTextOnly) return false;
  if (field.form == Form::kOptions) {
    if (in.empty()) return false;
    const size_t n = static_cast<uint8_t>(in[0]);
    if (in.size() < n + 1) return false;
    value.bytes = in.substr(1, n);
    in.remove_prefix(n + 1);
    return true;
  }
  const int size = size_of(field.form);
  if (in.size() < static_cast<size_t>(size)) return false;
  switch (field.form) {
    case Form::kMicroTime:
    case Form::kNanoTime: {
      const uint64_t sec = take_big_endian(in, 4);
      const uint64_t fraction = take_big_endian(in, 4);
      value.n = sec * 1000000000 + (field.form == Form::kMicroTime ? fraction * 1000 : fraction);
      break;
    }
    case Form::kEthernet:
    case Form::kDigest:
      value.bytes = in.substr(0, static_cast<size_t>(size));
      in.remove_prefix(static_cast<size_t>(size));
      break;
    default:
      value.n = take_big_endian(in, size);
  }
  return true;
}

// --- View

View::View(const Packet& p, const Options& options)
    : p_(p), options_(options), extra_(p.anno_u32(anno_offset::kExtraLength)) {}

void View::complain(const std::string& text) const {
  if (options_.complaint && options_.complaint->empty()) *options_.complaint = "!bad " + text + "\n";
}

void View::find_headers() {
  if (searched_) return;
  searched_ = true;
  if (!p_.has_network_header()) return;
  ip_ = p_.network_header();
  const int have = p_.network_length();
  const auto reject = [this](const uint8_t*& header, const std::string& text) {
    header = nullptr;
    complain(text);
  };
  if (have < 4) {
    reject(ip_, "truncated IP header");
  } else if (ip_[0] >> 4 != 4) {
    reject(ip_, "IP version " + std::to_string(ip_[0] >> 4));
  } else if ((ip_[0] & 15) < 5) {
    reject(ip_, "IP header length " + std::to_string(ip_[0] & 15));
  } else if (ip_length() < ip_header_length()) {
    reject(ip_, "IP length " + std::to_string(ip_length()));
  } else if (have > ip_length()) {
    padding_ = have - ip_length();
    extra_ += static_cast<uint32_t>(padding_);
  } else if (options_.careful_truncation && static_cast<uint32_t>(have) + extra_ < static_cast<uint32_t>(ip_length())) {
    complain("truncated IP missing " + std::to_string(static_cast<uint32_t>(ip_length() - have) - extra_));
  }
  if (!ip_) return;

  if (p_.has_transport_header() && network_length() > ip_header_length() && network_length() > 9 && first_fragment()) {
    const uint8_t* transport = p_.transport_header();
    const int protocol = ip_[9];
    if (protocol == kTcp) {
      tcp_ = transport;
      if (transport_length() > 12 && tcp_[12] >> 4 < 5)
        reject(tcp_, "TCP header length " + std::to_string(tcp_[12] >> 4));
    } else if (protocol == kUdp) {
      udp_ = transport;
    } else if (protocol == kIcmp) {
      icmp_ = transport;
    }
  }
  // Lengths come from the IP header, so the annotation counts only where that cannot hold them.
  if (extra_ > 0) {
    const uint32_t full = static_cast<uint32_t>(network_length()) + extra_;
    extra_ = ip_length() == 0xffff && full > 0xffff ? full - 0xffff : 0;
  }
}

void View::payload(int& offset, uint32_t& length) const {
  if (!ip_) {
    offset = 0;
    length = static_cast<uint32_t>(this->length());
    return;
  }
  offset = p_.has_transport_header() ? p_.transport_header_offset() : p_.network_header_offset() + ip_header_length();
  if (network_length() > 9 && first_fragment()) {
    const int protocol = ip_[9];
    if (protocol == kTcp)
      offset +=
          transport_length() >= 13 && p_.transport_header()[12] >> 4 >= 5 ? (p_.transport_header()[12] >> 4) * 4 : 20;
    else if (protocol == kUdp || protocol == kUdpLite)
      offset += 8;
  }
  const int headers = offset - p_.network_header_offset();
  length = ip_length() > headers ? static_cast<uint32_t>(ip_length() - headers) : 0;
}

bool View::missing(int protocol, int length) const {
  if (!options_.complaint || !options_.complaint->empty()) return false;
  const char* name = protocol == kTcp ? "TCP" : protocol == kUdp ? "UDP" : protocol == kIcmp ? "ICMP" : "TCP/UDP";
  if (protocol == -1) {
    complain("Ethernet header");
  } else if (!ip_) {
    complain("no IP header");
  } else if (protocol == 0) {
    complain("truncated IP header capture");
  } else if (network_length() > 9 &&
             ((protocol > 0 && ip_[9] != protocol) || (protocol == -2 && ip_[9] != kTcp && ip_[9] != kUdp))) {
    // Another protocol is no fault.
  } else if (!first_fragment()) {
    complain(std::string("fragmented ") + name + " header");
  } else {
    const bool captured =
        static_cast<uint32_t>(std::max(transport_length(), 0)) + extra_ >= static_cast<uint32_t>(length);
    complain(std::string("truncated ") + name + " header" + (captured ? " capture" : ""));
  }
  return false;
}

}  // namespace headrace::summary
