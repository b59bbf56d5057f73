/// Fuzzes the standard IP router: whatever arrives, every packet that leaves is right, and no buffer is lost.
///
/// An input is a sequence of frames: a byte of flags, the length in two bytes (little endian), then the frame. Frames
/// that follow each other arrive as one batch. The graph is built once, because its routing table takes a while; behind
/// each input time goes on and tables are cleared, so that inputs do not depend on each other. The empty input takes
/// the graph down.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
AddressInfo(if0 10.0.0.1/24 02:00:00:00:00:01, if1 10.0.1.1/24 02:00:00:00:00:02);

elementclass Input { $if, $paint |
  input -> HostEtherFilter($if)
    -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  kind[0] -> ARPResponder($if, 10.0.7.0/24 02:00:00:00:00:01) -> [0] output;
  kind[1] -> [1] output;
  kind[2] -> Paint($paint) -> Strip(14) -> [2] output;
  kind[3] -> IPPrint(other, CONTENTS HEX, OUTFILE /dev/null) -> Discard;
}

elementclass Output { $if, $paint, $mtu |
  input[0] -> DropBroadcasts
    -> redirect :: PaintTee($paint)
    -> options :: IPGWOptions($if, 10.0.0.1 10.0.1.1)
    -> FixIPSrc($if)
    -> ttl :: DecIPTTL
    -> fragmenter :: IPFragmenter($mtu)
    -> [0] arpq :: ARPQuerier($if, CAPACITY 40, ENTRY_CAPACITY 20, WAIT 5s);
  redirect[1] -> ICMPError($if, redirect, host) -> [1] output;
  options[1] -> ICMPError($if, parameterproblem) -> [1] output;
  ttl[1] -> ICMPError($if, timeexceeded) -> [1] output;
  fragmenter[1] -> ICMPError($if, unreachable, needfrag, PMTU $mtu) -> [1] output;
  input[1] -> [1] arpq;
  arpq[0], arpq[1] -> [0] output;
  arpq[2] -> ICMPError($if, unreachable, host) -> [1] output;
}

elementclass Wire {
  input -> Queue(500) -> Unqueue(BURST 8) -> arp :: Classifier(12/0806, -);
  arp[0] -> Discard;
  arp[1] -> sink :: TrafficSink(CHECK true);
}

Idle -> in0 :: Input(if0, 1);
Idle -> in1 :: Input(if1, 2);
out0 :: Output(if0, 1, 68);
out1 :: Output(if1, 2, 576);
wire0 :: Wire;
wire1 :: Wire;
in0[0], out0 -> wire0;
in1[0], out1 -> wire1;
in0[1] -> [1] out0;
in1[1] -> [1] out1;

in0[2], in1[2]
  -> check :: CheckIPHeader(INTERFACES if0:ipnet if1:ipnet, DETAILS true)
  -> ToIPSummaryDump(/dev/null, FIELDS ip_src ip_dst ip_opt ip_frag ip_fragoff ip_len sport dport tcp_flags tcp_opt tcp_sack
       udp_len icmp_type icmp_code_name icmp_flowid icmp_nextmtu payload_md5_hex)
  -> IPFilter(deny src port 7 or dst port 7, deny icmp type redirect, deny ip vers 6, allow all)
  -> rt :: StaticIPLookup(10.0.0.1/32 2, 10.0.0.255/32 2, 10.0.1.1/32 2, 10.0.1.255/32 2, 255.255.255.255/32 2,
       10.0.0.0/24 0, 10.0.1.0/24 1, 20.0.0.0/8 10.0.1.2 1, 30.0.0.0/8 10.0.0.2 0, 0.0.0.0/0 10.0.1.3 1);

// What has a bad header is looked at as if it had none.
check[1] -> MarkIPHeader
  -> ToIPSummaryDump(/dev/null, BAD_PACKETS true, FIELDS ip_src ip_opt ip_hl sport tcp_opt payload)
  -> bad_tcp :: CheckTCPHeader;
bad_tcp[1] -> bad_udp :: CheckUDPHeader;
bad_udp[1] -> bad_icmp :: CheckICMPHeader;
bad_icmp[1] -> StripIPHeader -> bad :: Discard;
bad_tcp, bad_udp, bad_icmp -> bad;

rt[0] -> out0;
rt[1] -> out1;
out0[1], out1[1] -> rt;
rt[2] -> reassembler :: IPReassembler(HIMEM 16384)
  -> local :: IPClassifier(icmp type echo, icmp, tcp, udp, -);
reassembler[1] -> ICMPError(10.0.0.1, timeexceeded, reassembly) -> rt;
local[0] -> CheckICMPHeader -> ICMPPingResponder -> rt;
local[1] -> CheckICMPHeader -> IPPrint(icmp, CONTENTS ASCII, OUTFILE /dev/null) -> Discard;
local[2] -> tcp :: CheckTCPHeader -> IPPrint(tcp, PAYLOAD HEX, OUTFILE /dev/null) -> Discard;
tcp[1] -> SetTCPChecksum -> Discard;
local[3] -> udp :: CheckUDPHeader -> StripIPHeader -> UnstripIPHeader -> ICMPError(10.0.0.1, unreachable, port) -> rt;
udp[1] -> SetUDPChecksum -> SetIPChecksum -> Discard;
local[4] -> ICMPError(10.0.0.1, unreachable, protocol) -> rt;
)";

enum Flag : uint8_t {
  kSecondInterface = 1,
  kKeepChecksum = 2,  // else that of the IP header is made right, as few random ones are
  kKeepLength = 4,    // the same for the total length
  kSecondBatch = 8,   // the frame begins a new batch
  kRunTasks = 16,     // before the frame: what waits in queues leaves
  kWait = 32          // before the frame: so many seconds pass
};
constexpr int64_t kWaitSeconds = 11;
constexpr int64_t kRestSeconds = 120;  // longer than any fragment is kept
constexpr int kMaxSteps = 10000;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "fuzz_router: %s\n", why.c_str());
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
    inputs_[0] = first_element("in0/HostEtherFilter@");
    inputs_[1] = first_element("in1/HostEtherFilter@");
    rest();
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
    push_batch();
    run_tasks();
    rest();
    check();
  }

 private:
  Element* first_element(std::string_view prefix) {
    for (const auto& e : router_->elements())
      if (std::string_view(e->name()).starts_with(prefix)) return e.get();
    fail("no element " + std::string(prefix));
  }

  void receive(uint8_t flags, const uint8_t* frame, uint32_t length) {
    const int interface = flags & kSecondInterface ? 1 : 0;
    if (interface != interface_ || flags & (kSecondBatch | kRunTasks | kWait) || batch_.full()) push_batch();
    if (flags & kRunTasks) run_tasks();
    if (flags & kWait) wait(kWaitSeconds);
    interface_ = interface;
    Packet* p = Packet::make(frame, length);
    if (!p) fail("no buffer");
    p->set_mac_header();
    p->set_timestamp(clock::now());
    repair(p->data(), length, flags);
    batch_.push_back(p);
  }

  static void repair(uint8_t* frame, uint32_t length, uint8_t flags) {
    if (length < 34 || frame[12] != 8 || frame[13] != 0) return;
    uint8_t* ip = frame + 14;
    const uint32_t header = (ip[0] & 15) * 4u;
    if (!(flags & kKeepLength)) {
      ip[2] = static_cast<uint8_t>((length - 14) >> 8);
      ip[3] = static_cast<uint8_t>(length - 14);
    }
    if (flags & kKeepChecksum || header < 20 || header > length - 14) return;
    ip[10] = ip[11] = 0;
    const Net16 sum(internet_checksum(ip, header));
    std::memcpy(ip + 10, &sum, sizeof sum);
  }

  void push_batch() {
    if (!batch_.empty()) inputs_[interface_]->push(0, batch_);
    batch_.clear();
  }

  void run_tasks() {
    Worker& worker = router_->worker(0);
    for (int i = 0; i < kMaxSteps; ++i)
      if (!worker.step() && !worker.has_runnable()) return;
    fail("the tasks never come to an end");
  }

  static void wait(int64_t seconds) { clock::jump_steady(clock::steady() + Timestamp::from_sec(seconds)); }

  /// Brings the router to a state that does not depend on what it has seen.
  void rest() {
    wait(kRestSeconds);
    // A fragment: with it the reassembler gives up older ones, among them the one of last time.
    constexpr uint8_t kFragment[] = {2, 0, 0,  0, 0, 1,  2, 0, 0, 0,  1, 1, 8, 0, 0x45, 0, 0, 0, 0, 1, 0x20,
                                     0, 9, 17, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1, 0, 1,    2, 3, 4, 5, 6, 7};
    receive(0, kFragment, sizeof kFragment);
    push_batch();
    run_tasks();
    write("out0/arpq.clear");
    write("out1/arpq.clear");
    run_tasks();
  }

  void check() {
    for (const char* sink : {"wire0/sink", "wire1/sink"})
      if (read(std::string(sink) + ".bad") != "0")
        fail("bad packets sent: " + read(std::string(sink) + ".bad_details"));
    if (const uint32_t used = PacketPool::instance().in_use(); used != baseline_)
      fail("buffers in use: " + std::to_string(used) + ", before " + std::to_string(baseline_));
  }

  std::string read(const std::string& name) {
    Element* element = nullptr;
    Errors errors;
    std::string value;
    const Handler* h = router_->find_handler(name, nullptr, element, errors);
    if (!h || !router_->call_read(*h, "", value, errors)) fail(errors.str());
    return value;
  }

  void write(const std::string& name) {
    Element* element = nullptr;
    Errors errors;
    const Handler* h = router_->find_handler(name, nullptr, element, errors);
    if (!h || !router_->call_write(*h, "", errors)) fail(errors.str());
  }

  Runtime runtime_;
  std::unique_ptr<Router> router_;
  Element* inputs_[2] = {};
  Batch batch_;
  int interface_ = 0;
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
