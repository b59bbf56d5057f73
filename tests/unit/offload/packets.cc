#include "packets.hh"

#include <algorithm>

#include "headrace/checksum.hh"
#include "offload_fixture.hh"

namespace headrace::testing {

namespace {

std::string be16(uint32_t v) { return {static_cast<char>(v >> 8), static_cast<char>(v)}; }
std::string be32(uint32_t v) { return be16(v >> 16) + be16(v & 0xffff); }

constexpr uint32_t kFlows = 61;

}  // namespace

void fix_checksum(std::string& bytes, size_t at) {
  const size_t length = static_cast<size_t>(bytes.at(at) & 15) * 4;
  if (bytes.size() < at + length || length < 20) return;
  bytes[at + 10] = bytes[at + 11] = 0;
  const uint16_t sum = internet_checksum(bytes.data() + at, length);
  bytes[at + 10] = static_cast<char>(sum >> 8);
  bytes[at + 11] = static_cast<char>(sum);
}

std::string udp_frame(uint32_t source, uint32_t destination, uint8_t ttl, uint32_t length) {
  std::string ip = std::string("\x45\0", 2) + be16(length - 14) + be32(0) + static_cast<char>(ttl) + '\x11' + be16(0) +
                   be32(source) + be32(destination);
  fix_checksum(ip, 0);
  std::string bytes = std::string("\2\0\0\0\0\1\2\0\0\0\1\1", 12) + be16(0x0800) + ip + be16(1234) + be16(53) +
                      be16(length - 34) + be16(0);
  bytes.resize(length, 'x');
  return bytes;
}

Packet* marked(const std::string& bytes, uint32_t flow, uint32_t number, uint32_t headroom) {
  Packet* p = Packet::make(static_cast<uint32_t>(bytes.size()), headroom);
  // What lies around the data is the same in every run.
  std::memset(p->buffer(), 0xa5, p->capacity());
  std::memcpy(p->data(), bytes.data(), bytes.size());
  p->set_anno_u32(kFlowAnno, flow);
  p->set_anno_u32(kNumberAnno, number);
  return p;
}

std::string RandomPackets::ip4(uint32_t flow) {
  const uint32_t options = chance(20) ? 4 * (1 + below(10)) : 0;
  uint32_t payload = chance(10) ? below(8) : 8 + below(200);
  if (chance(5)) payload = 1400 + below(200);
  const uint32_t length = 20 + options + payload;
  static constexpr uint8_t kTtl[] = {64, 64, 64, 64, 255, 2, 1, 0};
  static constexpr uint8_t kProtocols[] = {17, 17, 6, 1, 50, 99};
  uint32_t destination = 0x01000000 + flow * 0x01010101;
  if (chance(3)) destination = 0xe0000001 + below(9);
  if (chance(3)) destination = 0x0a000000 + below(4) * 256 + 1;
  uint32_t source = 0xc0a80000 + flow;
  if (chance(3)) source = chance(50) ? 0xffffffff : 0x0a0000ff;
  uint32_t fragment = chance(10) ? 0x4000 : 0;
  if (chance(6)) fragment = chance(50) ? 0x2000 : 1 + below(100);
  std::string ip;
  ip += static_cast<char>(0x45 + options / 4);
  ip += static_cast<char>(below(256));
  ip += be16(length) + be16(number_ & 0xffff) + be16(fragment) + static_cast<char>(kTtl[below(8)]) +
        static_cast<char>(kProtocols[flow % 6]) + be16(0) + be32(source) + be32(destination);
  if (options > 0) {
    std::string o(options, '\1');  // no-operation
    if (chance(50)) {              // record route, with some room
      o[0] = 7;
      o[1] = static_cast<char>(options - (options - 3) % 4);
      o[2] = static_cast<char>(4 + 4 * below(3));
    } else if (chance(40)) {
      for (char& c : o) c = static_cast<char>(below(256));
    }
    ip += o;
  }
  if (chance(4)) ip[0] = static_cast<char>(chance(50) ? 0x65 : 0x43);
  if (chance(4)) ip[3] = static_cast<char>(below(256));
  fix_checksum(ip, 0);
  if (chance(4)) ip[10] = static_cast<char>(ip[10] ^ 1);
  for (uint32_t i = 0; i < payload; ++i) ip += static_cast<char>(below(256));
  return ip;
}

std::string RandomPackets::frame(uint32_t flow) {
  std::string head("\2\0\0\0\0\1\2\0\0\0\1", 11);
  head += static_cast<char>(flow);
  const auto tag = [this] { return be16(chance(80) ? 0x8100 : 0x88a8) + be16(below(4096)); };
  if (chance(10)) head += tag();
  if (chance(2)) head += tag();
  std::string rest;
  if (chance(6)) {
    // ARP requests and replies, some for the router.
    rest = be16(0x0806) + be16(1) + be16(0x0800) + "\6\4" + be16(1 + below(2)) + head.substr(6, 6) + be32(0x0a000063) +
           std::string(6, '\0') + be32(chance(70) ? 0x0a000001 : 0x0a000002);
  } else if (chance(4)) {
    rest = be16(0x86dd) + std::string("\x60\0\0\0", 4) + be16(16) + "\x11\x40";
    for (int i = 0; i < 48; ++i) rest += static_cast<char>(below(256));
  } else if (chance(4)) {
    rest = be16(below(65536));
    for (uint32_t i = below(100); i > 0; --i) rest += static_cast<char>(below(256));
  } else {
    rest = be16(0x0800) + ip4(flow);
  }
  std::string bytes = head + rest;
  if (chance(5)) bytes.resize(below(static_cast<uint32_t>(bytes.size()) + 1));
  if (chance(10)) bytes.append(below(40), '\0');
  return bytes;
}

std::string RandomPackets::ip6_frame(uint32_t flow) {
  std::string bytes("\2\0\0\0\0\1\2\0\0\0\1", 11);
  bytes += static_cast<char>(flow);
  if (flow % 6 == 0) bytes += be16(0x8100) + be16(below(4096));  // a flow goes one way
  std::string body;
  int next = 17;
  for (int headers = chance(30) ? 1 + static_cast<int>(below(3)) : 0; headers > 0; --headers) {
    // Hop-by-hop options, routing, destination options: type of the next, length, padding.
    static constexpr uint8_t kTypes[] = {0, 43, 60};
    const uint32_t units = below(3);
    body = std::string(1, static_cast<char>(next)) + static_cast<char>(units) + std::string(6 + 8 * units, '\0') + body;
    next = kTypes[below(3)];
  }
  body += be16(1000 + flow) + be16(53) + be16(16) + be16(0) + "12345678";
  static constexpr uint8_t kLimits[] = {64, 64, 64, 255, 2, 1, 0};
  const uint32_t length = static_cast<uint32_t>(body.size()) + (chance(4) ? below(40) : 0);
  std::string ip = be16(chance(3) ? 0x4000 : 0x6000) + be16(flow) + be16(length) + static_cast<char>(next) +
                   static_cast<char>(kLimits[below(7)]);
  const std::string host = be32(0x20010db8) + be32(flow) + be32(0) + be32(flow);
  ip += chance(3) ? std::string(16, chance(50) ? '\0' : '\xff') : host;
  ip += be32(0x20010000 | flow % 4 << 8) + be32(flow << 16) + be32(below(4)) + be32(flow);
  bytes += be16(0x86dd) + ip + body;
  if (chance(4)) bytes.resize(below(static_cast<uint32_t>(bytes.size()) + 1));
  if (chance(10)) bytes.append(below(20), '\0');
  return bytes;
}

std::vector<Packet*> RandomPackets::make_ip6(int n) {
  std::vector<Packet*> packets;
  for (int i = 0; i < n; ++i) {
    const uint32_t flow = 1 + below(kFlows);
    packets.push_back(marked(ip6_frame(flow), flow, ++number_, chance(80) ? 128 : below(200)));
  }
  return packets;
}

std::vector<Packet*> RandomPackets::make(int n) {
  static constexpr uint32_t kHeadrooms[] = {128, 128, 128, 0, 2, 13, 14, 17, 200, 600, 1000, 1023, 1024, 1025, 1100};
  static constexpr PacketType kTypes[] = {PacketType::kHost,      PacketType::kHost,      PacketType::kHost,
                                          PacketType::kBroadcast, PacketType::kMulticast, PacketType::kOtherHost};
  std::vector<Packet*> packets;
  for (int i = 0; i < n; ++i) {
    const uint32_t flow = 1 + below(kFlows);
    Packet* p = marked(frame(flow), flow, ++number_, chance(50) ? 128 : kHeadrooms[below(15)]);
    p->set_packet_type(kTypes[below(6)]);
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(below(6)));
    if (flow % 3 == 0) p->set_rx_hash(flow * 0x9e3779b1u);
    if (chance(3)) p->set_mac_header(0);
    packets.push_back(p);
  }
  return packets;
}

std::vector<Packet*> RandomPackets::make_esp(int n) {
  std::vector<Packet*> packets;
  for (int i = 0; i < n; ++i) {
    const uint32_t spi = 1 + below(10);
    // Association 8 is encapsulated in UDP.
    const bool udp = spi == 8;
    const uint32_t esp = chance(3) ? below(40) : 36 + (chance(30) ? 16 * below(80) : below(1440));
    const uint32_t length = 20 + (udp ? 8 : 0) + esp;
    std::string ip = std::string("\x45\0", 2) + be16(length) + be32(0) + '\x40' + (udp ? '\x11' : '\x32') + be16(0) +
                     be32(0xc0000202) + be32(0xc0000201);
    fix_checksum(ip, 0);
    std::string bytes = std::string("\2\0\0\0\0\1\2\0\0\0\1\1", 12) + be16(0x0800) + ip;
    if (udp) bytes += be16(4500) + be16(4500) + be16(8 + esp) + be16(0);
    std::string packet = be32(spi) + be32(number_ + 1);
    while (packet.size() < esp) packet += static_cast<char>(random_());
    bytes += packet.substr(0, esp);
    const uint32_t headroom = chance(10) ? below(40) : 64 + below(128);
    packets.push_back(marked(bytes, spi, number_++, headroom));
  }
  return packets;
}

}  // namespace headrace::testing
