/// Fuzzes the rewriters: a packet whose checksums are right has right ones when it leaves, and no buffer is lost.
///
/// An input is a sequence of IP packets: a byte of flags, the length in two bytes (little endian), then the packet. The
/// empty input takes the graph down; behind each other input the tables are cleared.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/checksum.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace {

using namespace headrace;

constexpr std::string_view kGraph = R"(
// What is right leaves by output 0, the rest by output 1.
elementclass Check {
  input -> ip :: CheckIPHeader -> kind :: IPClassifier(ip frag, tcp, udp, icmp, -);
  kind[0] -> output;
  kind[1] -> tcp :: CheckTCPHeader -> output;
  kind[2] -> udp :: CheckUDPHeader -> output;
  kind[3] -> icmp :: CheckICMPHeader -> output;
  kind[4] -> output;
  ip[1], tcp[1], udp[1], icmp[1] -> [1] output;
}

// Inputs: from inside, from outside, ICMP errors.
elementclass Nat {
  rw :: IPRewriter(pattern 1.0.0.1 1024-1039# - - 0 1, drop, MAPPING_CAPACITY 12, REPLY_ANNO PAINT);
  tcp :: TCPRewriter(pattern 1.0.0.2 1024-1030 - - 0 1, keep 0 1, MAPPING_CAPACITY rw);
  ping :: ICMPPingRewriter(pattern 1.0.0.1 - 5-9# 0 1, pass 1, MAPPING_CAPACITY rw);
  addr :: IPAddrRewriter(pattern 3.0.0.1-3.0.0.4# - 0 1, drop, MAPPING_CAPACITY 3);
  pair :: IPAddrPairRewriter(pattern 4.0.0.1-4.0.0.4 - 0 1, keep 0 1, MAPPING_CAPACITY 3);
  input[0] -> inside :: IPClassifier(tcp port 21, tcp or udp, icmp type echo, dst net 20.0.0.0/8, -);
  inside[0] -> FTPPortMapper(tcp, rw, 0) -> tcp;
  inside[1] -> rw; inside[2] -> ping; inside[3] -> addr; inside[4] -> pair;
  input[1] -> outside :: IPClassifier(tcp port 21, tcp or udp, icmp type echo-reply, src net 20.0.0.0/8, -);
  outside[0] -> FTPPortMapper(tcp, rw, 0) -> [1] tcp;
  outside[1] -> [1] rw; outside[2] -> [1] ping; outside[3] -> [1] addr; outside[4] -> [1] pair;
  input[2] -> ICMPRewriter(rw tcp ping addr pair) -> output;
  rw[0], rw[1], tcp[0], tcp[1], ping[0], ping[1], addr[0], addr[1], pair[0], pair[1] -> output;
}

right :: Nat -> after :: Check -> Discard;
after[1] -> bad :: Counter -> Discard;
raw :: Nat -> Discard;
Idle -> in0 :: Check -> [0] right; in0[1] -> Discard;
Idle -> in1 :: Check -> [1] right; in1[1] -> Discard;
Idle -> in2 :: Check -> [2] right; in2[1] -> Discard;
Idle -> raw0 :: MarkIPHeader -> [0] raw;
Idle -> raw1 :: MarkIPHeader -> [1] raw;
Idle -> raw2 :: MarkIPHeader -> [2] raw;
)";

enum Flag : uint8_t {
  kInput = 3,   // 0 to 2: see Nat
  kRaw = 4,     // without checks in front
  kRepair = 8,  // checksums are made right first, as few random ones are
  kWait = 16    // before the packet: six seconds pass
};
constexpr const char* kRewriters[] = {"right/rw", "right/addr", "right/pair", "raw/rw", "raw/addr", "raw/pair"};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "fuzz_rewriter: %s\n", why.c_str());
  std::abort();
}

/// The graph and all that it needs.
class Fixture {
 public:
  Fixture() : runtime_(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false}) {
    clock::set_warp(clock::Warp::kSimulation);
    clock::set_simulated_now(Timestamp::from_sec(1000000000), Timestamp::from_sec(1000));
    lang::Configuration configuration;
    Errors errors;
    if (lang::parse(kGraph, "graph", {}, configuration, errors))
      router_ = Router::create(configuration, runtime_, errors);
    if (!router_) fail(errors.str());
    for (int i = 0; i < 3; ++i) {
      inputs_[0][i] = find("in" + std::to_string(i) + "/ip");
      inputs_[1][i] = find("raw" + std::to_string(i));
    }
    baseline_ = PacketPool::instance().in_use();
  }
  ~Fixture() {
    router_.reset();
    clock::set_warp(clock::Warp::kNone);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void run(const uint8_t* data, size_t size) {
    const uint8_t* end = data + size;
    while (end - data >= 3) {
      const uint8_t flags = data[0];
      const size_t length = std::min<size_t>(data[1] | data[2] << 8, static_cast<size_t>(end - data - 3));
      receive(flags, data + 3, static_cast<uint32_t>(length));
      data += 3 + length;
    }
    if (call("bad.count") != "0") fail("a packet that was right is not any more");
    if (std::stoul(call("right/rw.size")) > 12) fail("more flows than there is room for");
    for (const char* name : kRewriters) call(std::string(name) + ".clear");
    if (const uint32_t used = PacketPool::instance().in_use(); used != baseline_)
      fail("buffers in use: " + std::to_string(used) + ", before " + std::to_string(baseline_));
  }

 private:
  Element* find(const std::string& name) {
    Element* element = router_->find(name);
    if (!element) fail("no element " + name);
    return element;
  }

  void receive(uint8_t flags, const uint8_t* bytes, uint32_t length) {
    if (flags & kWait) clock::jump_steady(clock::steady() + Timestamp::from_sec(6));
    Packet* p = Packet::make(bytes, length);
    if (!p) fail("no buffer");
    if (flags & kRepair) repair(*p);
    inputs_[flags & kRaw ? 1 : 0][std::min(flags & kInput, 2)]->push(0, batch_of(p));
  }

  Batch& batch_of(Packet* p) {
    batch_.clear();
    batch_.push_back(p);
    return batch_;
  }

  static void repair(Packet& p) {
    if (p.length() < 20) return;
    auto& ip = *reinterpret_cast<Ip4Header*>(p.data());
    const auto header = static_cast<uint32_t>(ip.header_length());
    if (header < 20 || header > p.length()) return;
    ip.total_length = static_cast<uint16_t>(p.length());
    set_ip_checksum(ip);
    uint8_t* segment = p.data() + header;
    const uint32_t size = p.length() - header;
    if (ip.protocol == ip_protocol::kTcp && size >= 20) {
      auto& tcp = *reinterpret_cast<TcpHeader*>(segment);
      tcp.checksum = 0;
      tcp.checksum = transport_checksum(ip, segment, size);
    } else if (ip.protocol == ip_protocol::kUdp && size >= 8) {
      auto& udp = *reinterpret_cast<UdpHeader*>(segment);
      udp.length = static_cast<uint16_t>(size);
      udp.checksum = 0;
      const uint16_t sum = transport_checksum(ip, segment, size);
      udp.checksum = sum ? sum : 0xffff;
    } else if (ip.protocol == ip_protocol::kIcmp && size >= 8) {
      auto& icmp = *reinterpret_cast<IcmpHeader*>(segment);
      icmp.checksum = 0;
      icmp.checksum = internet_checksum(segment, size);
    }
  }

  std::string call(const std::string& name) {
    Element* element = nullptr;
    Errors errors;
    std::string value;
    const Handler* h = router_->find_handler(name, nullptr, element, errors);
    const bool done = h && (h->read ? router_->call_read(*h, "", value, errors) : router_->call_write(*h, "", errors));
    if (!done) fail(errors.str());
    return value;
  }

  Runtime runtime_;
  std::unique_ptr<Router> router_;
  Element* inputs_[2][3] = {};
  Batch batch_;
  uint32_t baseline_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Not destroyed when the process exits: what it needs might be gone by then.
  static Fixture* fixture = nullptr;
  if (size == 0) {
    delete fixture;
    fixture = nullptr;
    return 0;
  }
  if (!fixture) fixture = new Fixture;
  fixture->run(data, size);
  return 0;
}
