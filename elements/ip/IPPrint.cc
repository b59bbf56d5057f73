#include "elements/ip/IPPrint.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "elements/ip/icmp_names.hh"
#include "headrace/chatter.hh"
#include "headrace/headers.hh"

namespace headrace {

namespace {

uint32_t get16(const uint8_t* p) { return static_cast<uint32_t>(p[0] << 8 | p[1]); }
uint32_t get32(const uint8_t* p) { return get16(p) << 16 | get16(p + 2); }
bool first_fragment(const uint8_t* ip) { return (get16(ip + 6) & 0x1fff) == 0; }

std::string address(const uint8_t* p) { return fmt::format("{}.{}.{}.{}", p[0], p[1], p[2], p[3]); }
std::string addresses(const uint8_t* ip) { return address(ip + 12) + " > " + address(ip + 16); }

std::string protocol_name(int protocol, const char* prefix) {
  switch (protocol) {
    case ip_protocol::kIcmp:
      return "icmp";
    case ip_protocol::kIgmp:
      return "igmp";
    case ip_protocol::kIpIp:
      return "ipip";
    case ip_protocol::kTcp:
      return "tcp";
    case ip_protocol::kUdp:
      return "udp";
    case ip_protocol::kDccp:
      return "dccp";
    default:
      return prefix + std::to_string(protocol);
  }
}

/// "1.0.0.1.10 > 1.0.0.2.20: ", or false with what there is to say instead.
bool append_ports(const uint8_t* ip, const uint8_t* transport, int length, const char* name, std::string& line) {
  if (length < 4 || !first_fragment(ip)) {
    line += fmt::format("{}: {}{}", addresses(ip), first_fragment(ip) ? "truncated-" : "", name);
    return false;
  }
  line += fmt::format("{}.{} > {}.{}: ", address(ip + 12), get16(transport), address(ip + 16), get16(transport + 2));
  return true;
}

void append_tcp(const Packet& p, int length, std::string& line) {
  const uint8_t* ip = p.network_header();
  const uint8_t* tcp = p.transport_header();
  if (!append_ports(ip, tcp, length, "tcp", line)) return;
  if (length < 14) {
    line += "truncated-tcp";
    return;
  }
  enum Flag { kFin = 1, kSyn = 2, kRst = 4, kPush = 8, kAck = 16 };
  const int flags = tcp[13];
  const int ip_length = static_cast<int>(get16(ip + 2));
  int octets = ip_length - (ip[0] & 15) * 4 - (tcp[12] >> 4) * 4;
  // SYN and FIN take a place in the sequence.
  octets += ((flags & kSyn) != 0) + ((flags & kFin) != 0);
  if (flags & kSyn) line += 'S';
  if (flags & kFin) line += 'F';
  if (flags & kRst) line += 'R';
  if (flags & kPush) line += 'P';
  if (!(flags & (kSyn | kFin | kRst | kPush))) line += '.';
  const uint32_t sequence = get32(tcp + 4);
  line += fmt::format(" {}:{}({},{},{})", sequence, sequence + static_cast<uint32_t>(octets), octets, p.length(),
                      ip_length);
  if (flags & kAck) line += fmt::format(" ack {}", get32(tcp + 8));
  line += length < 16 ? "truncated-tcp" : fmt::format(" win {}", get16(tcp + 14));
}

void append_udp(const Packet& p, int length, std::string& line) {
  const uint8_t* udp = p.transport_header();
  if (!append_ports(p.network_header(), udp, length, "udp", line)) return;
  line += length < 8 ? "truncated-udp" : fmt::format("udp {}", get16(udp + 4));
}

/// What an ICMP "unreachable" message says of the packet that it answers.
void append_unreachable(const uint8_t* icmp, int length, std::string& line) {
  const int code = icmp[1];
  const std::string_view name = icmp_code_name(3, code);
  const std::string reason = name.empty() ? fmt::format("code {}", code) : std::string(name);
  const uint8_t* ip = icmp + 8;
  const int ip_bytes = length - 8;
  if (ip_bytes < 20) {
    line += fmt::format("icmp unreachable {} truncated-icmp", reason);
    return;
  }
  line += fmt::format("icmp {} unreachable {}", address(ip + 16), reason);
  const int header = (ip[0] & 15) * 4;
  constexpr int kProtocol = 2, kPort = 3, kNeedFragment = 4;
  if (code == kProtocol) {
    line += ' ' + protocol_name(ip[9], "");
  } else if (code == kPort) {
    line += ' ' + protocol_name(ip[9], "protocol ");
    line += ip_bytes - header < 4 ? "truncated-icmp" : fmt::format("/{}", get16(ip + header + 2));
  } else if (code == kNeedFragment && get16(icmp + 6) != 0) {
    line += fmt::format(" (mtu {})", get16(icmp + 6));
  }
}

}  // namespace

bool IPPrint::parse_contents(const std::string& word, Contents& contents) {
  bool on;
  std::string upper = word;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (parse_argument(word, on, ArgContext()))
    contents = on ? Contents::kHex : Contents::kNone;
  else if (upper == "NONE" || upper == "NO")
    contents = Contents::kNone;
  else if (upper == "HEX" || upper == "YES")
    contents = Contents::kHex;
  else if (upper == "ASCII")
    contents = Contents::kAscii;
  else
    return false;
  return true;
}

Status IPPrint::configure(Args& args) {
  std::string contents = "NONE", payload = "NONE";
  args.read_p("LABEL", label_).read("CONTENTS", contents, WordArg{}).read("PAYLOAD", payload, WordArg{});
  args.read("NBYTES", max_length_).read("MAXLENGTH", max_length_).read("ID", id_).read("TIMESTAMP", timestamp_);
  args.read("PAINT", paint_).read("TOS", tos_).read("TTL", ttl_).read("SWAP", swap_).read("LENGTH", length_);
  args.read("AGGREGATE", aggregate_).read("ACTIVE", active_).read("OUTFILE", file_name_, FileName{});
  if (!args.complete()) return Status::failed();
  if (!parse_contents(contents, contents_))
    return args.errors().error("bad contents value '{}'; should be 'NONE', 'HEX', or 'ASCII'", contents);
  Contents payload_contents;
  if (!parse_contents(payload, payload_contents))
    return args.errors().error("bad payload value '{}'; should be 'false', 'hex', or 'ascii'", payload);
  if (payload_contents == Contents::kNone) return {};
  if (contents_ != Contents::kNone) return args.errors().error("specify at most one of PAYLOAD and CONTENTS");
  contents_ = payload_contents;
  payload_only_ = true;
  return {};
}

Status IPPrint::initialize(Errors& errors) {
  if (file_name_.empty()) return {};
  const int error = file_.open(file_name_, name());
  return error == 0 ? Status() : errors.error("{}: {}", file_name_, std::strerror(error));
}

void IPPrint::append_icmp(const Packet& p, int length, std::string& line) const {
  const uint8_t* icmp = p.transport_header();
  line += addresses(p.network_header()) + ": ";
  if (!first_fragment(p.network_header())) {
    line += "icmp";
    return;
  }
  if (length < 2) {
    line += "truncated-icmp";
    return;
  }
  const int type = icmp[0], code = icmp[1];
  const std::string_view type_name = icmp_type_name(type), code_name = icmp_code_name(type, code);
  if (type == 0 || type == 8) {
    line += fmt::format("icmp {} ", type_name);
    const auto number = [&](int offset) {
      return swap_ ? get16(icmp + offset) : icmp[offset] | static_cast<uint32_t>(icmp[offset + 1] << 8);
    };
    line += length < 8 ? "truncated-icmp" : fmt::format("({}, {})", number(4), number(6));
  } else if (type == 3) {
    append_unreachable(icmp, length, line);
  } else {
    line += "icmp ";
    line += type_name.empty() ? fmt::format("type {}", type) : std::string(type_name);
    if (!code_name.empty())
      line += fmt::format(" {}", code_name);
    else if (code != 0)
      line += fmt::format(" code {}", code);
  }
}

void IPPrint::append_contents(const Packet& p, std::string& line) const {
  const uint8_t* bytes = p.data();
  if (payload_only_) {
    const uint8_t* ip = p.network_header();
    bytes = p.transport_header();
    if (first_fragment(ip) && ip[9] == ip_protocol::kTcp && p.transport_length() > 12)
      bytes += (bytes[12] >> 4) * 4;
    else if (first_fragment(ip) && ip[9] == ip_protocol::kUdp)
      bytes += 8;
  }
  int n = static_cast<int>(std::max<ptrdiff_t>(p.end_data() - bytes, 0));
  if (max_length_ >= 0) n = std::min(n, max_length_);
  const bool hex = contents_ == Contents::kHex;
  const int per_line = hex ? 24 : 48, per_group = hex ? 4 : 8;
  for (int i = 0; i < n; ++i) {
    if (i % per_line == 0)
      line += "\n  ";
    else if (i % per_group == 0)
      line += ' ';
    if (hex)
      line += fmt::format("{:02x}", bytes[i]);
    else
      line += bytes[i] < 32 || bytes[i] > 126 ? '.' : static_cast<char>(bytes[i]);
  }
}

void IPPrint::append_packet(const Packet& p, std::string& line) const {
  if (p.network_length() < 20) {
    line += "truncated-ip";
    return;
  }
  const uint8_t* ip = p.network_header();
  const int ip_length = static_cast<int>(get16(ip + 2));
  const int payload = ip_length - (ip[0] & 15) * 4;
  const int length = std::min(p.transport_length(), payload);
  if (id_) line += fmt::format("id {} ", get16(ip + 4));
  if (ttl_) line += fmt::format("ttl {} ", ip[8]);
  if (tos_) line += fmt::format("tos {} ", ip[1]);
  if (length_) line += fmt::format("length {} ", ip_length);
  if (ip[9] == ip_protocol::kTcp)
    append_tcp(p, length, line);
  else if (ip[9] == ip_protocol::kUdp)
    append_udp(p, length, line);
  else if (ip[9] == ip_protocol::kIcmp)
    append_icmp(p, length, line);
  else
    line += fmt::format("{}: ip-proto-{}", addresses(ip), ip[9]);
  const uint32_t fragment = get16(ip + 6);
  if (fragment & 0x3fff)
    line += fmt::format(" (frag {}:{}@{}{})", get16(ip + 4), payload, (fragment & 0x1fff) * 8,
                        fragment & 0x2000 ? "+" : "");
  if (contents_ != Contents::kNone) append_contents(p, line);
}

std::string IPPrint::describe(const Packet& p) const {
  std::string line;
  if (!label_.empty()) line += label_ + ": ";
  if (timestamp_) line += p.timestamp().unparse() + ": ";
  if (aggregate_) line += fmt::format("#{}", p.anno_u32(anno_offset::kAggregate));
  if (paint_) line += fmt::format("{}{}", aggregate_ ? "." : "paint ", p.anno_u8(anno_offset::kPaint));
  if (aggregate_ || paint_) line += ": ";
  append_packet(p, line);
  return line;
}

Packet* IPPrint::act(Packet* p, Emitter&) {
  if (!active_ || !p->has_network_header()) return p;
  std::string line = describe(*p);
  if (file_.is_open()) {
    line += '\n';
    file_.add(line);
  } else {
    chatter_line(std::move(line));
  }
  return p;
}

std::vector<RegionInfo> IPPrint::annotations() const {
  std::vector<RegionInfo> all;
  if (aggregate_) all.push_back(declared(Read{anno::aggregate})[0]);
  if (paint_) all.push_back(declared(Read{anno::paint})[0]);
  return all;
}

void IPPrint::add_handlers(Handlers& handlers) {
  handlers.value("active", active_, {}, Handler::kCalm);
  handlers.read("lost", [this] { return std::to_string(file_.lost()); });
}

}  // namespace headrace
