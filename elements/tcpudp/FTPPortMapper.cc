#include "elements/tcpudp/FTPPortMapper.hh"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace headrace {

namespace {

/// The argument of a PORT command: where it is, and what it says.
struct PortCommand {
  size_t begin = 0, end = 0;
  IpAddress address;
  uint16_t port = 0;
};

bool parse(std::string_view text, PortCommand& command) {
  constexpr std::string_view kName = "PORT ";
  if (text.size() < kName.size() || !std::equal(kName.begin(), kName.end(), text.begin(), [](char a, char b) {
        return a == std::toupper(static_cast<unsigned char>(b));
      }))
    return false;
  size_t at = std::min(text.find_first_not_of(' ', kName.size()), text.size());
  command.begin = at;
  std::array<unsigned, 6> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (at == text.size() || text[at++] != ',')) return false;
    const size_t digits = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && at < digits + 3)
      numbers[i] = numbers[i] * 10 + static_cast<unsigned>(text[at++] - '0');
    if (at == digits || numbers[i] > 255) return false;
  }
  command.end = at;
  if (at == text.size() || (text[at] != '\r' && text[at] != '\n')) return false;
  const auto octet = [&](size_t i) { return static_cast<uint8_t>(numbers[i]); };
  command.address = IpAddress::from_octets(octet(0), octet(1), octet(2), octet(3));
  command.port = static_cast<uint16_t>(numbers[4] << 8 | numbers[5]);
  return true;
}

}  // namespace

Status FTPPortMapper::configure(Args& args) {
  PortRewriter* control = nullptr;
  RewriterBase* data = nullptr;
  int input = 0;
  if (!args.read_mp("CONTROL_REWRITER", control)
           .read_mp("DATA_REWRITER", data)
           .read_mp("DATA_REWRITER_INPUT", input)
           .complete())
    return Status::failed();
  if (input < 0 || input >= data->ninputs()) return args.errors().error("DATA_REWRITER_INPUT out of range");
  control_ = control;
  data_ = data;
  data_input_ = input;
  return {};
}

Packet* FTPPortMapper::act(Packet* p, Emitter&) {
  const Ip4Header* ip = ip4_header(*p);
  if (!ip || ip->protocol != ip_protocol::kTcp || !ip->is_first_fragment()) return p;
  const int transport = p->network_header_offset() + ip->header_length();
  const int length = std::min<int>(p->network_length(), ip->total_length) - ip->header_length();
  if (length < 20) return p;
  const auto* tcp = reinterpret_cast<const TcpHeader*>(p->data() + transport);
  const int header = tcp->header_length();
  if (header < 20 || header > length) return p;
  const int payload = transport + header;
  const std::string_view text(reinterpret_cast<const char*>(p->data() + payload), static_cast<size_t>(length - header));
  PortCommand command;
  if (!parse(text, command)) return p;

  FlowEntry* connection =
      control_->find_flow(ip_protocol::kTcp, {ip->src, ip->dst, tcp->src_port, tcp->dst_port}, -1, 0);
  if (!connection) return p;
  const FlowId announced{command.address, ip->dst, command.port, static_cast<uint16_t>(tcp->dst_port - 1)};
  const FlowEntry* data = data_->find_flow(ip_protocol::kTcp, announced, data_input_, connection->flow().reply_anno());
  if (!data) return p;

  const FlowId outside = data->rewritten();
  const uint32_t address = outside.src.host_order();
  const std::string argument = fmt::format("{},{},{},{},{},{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                                           address & 255, outside.sport >> 8, outside.sport & 255);
  const auto old_length = static_cast<int>(command.end - command.begin);
  const int added = static_cast<int>(argument.size()) - old_length;
  const uint32_t next = tcp->sequence + static_cast<uint32_t>(text.size());
  if (!replace(*p, payload + static_cast<int>(command.begin), old_length, argument)) return p;
  {
    FlowTable::Change change(control_->table());
    change.shift_sequence(connection->flow(), connection->is_reply(), next, added);
  }
  Ip4Header* changed = ip4_header(*p);
  changed->total_length = static_cast<uint16_t>(changed->total_length + added);
  set_ip_checksum(*changed);
  auto* segment = reinterpret_cast<TcpHeader*>(changed->bytes() + changed->header_length());
  segment->checksum = 0;
  segment->checksum = transport_checksum(*changed, segment, static_cast<size_t>(length + added));
  return p;
}

bool FTPPortMapper::replace(Packet& p, int at, int length, const std::string& text) {
  const auto old_end = static_cast<size_t>(at + length);
  const size_t behind = p.length() - old_end;
  const auto size = static_cast<uint32_t>(text.size());
  const auto old_size = static_cast<uint32_t>(length);
  if (size > old_size && !p.put(size - old_size)) return false;
  std::memmove(p.data() + at + size, p.data() + old_end, behind);
  std::memcpy(p.data() + at, text.data(), size);
  if (size < old_size) p.take(old_size - size);
  return true;
}

}  // namespace headrace
