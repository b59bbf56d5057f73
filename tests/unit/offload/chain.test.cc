// What comes out of a chain is what the CPU makes of it, to the last byte, annotation and count.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "offload_fixture.hh"
#include "packets.hh"
#include "support/temporary_file.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

class OffloadChain : public OffloadTest {
 protected:
  /// Runs the same packets through `text` on the CPU, one by one, and on the carrier, in jobs. Of these, the host has to
  /// finish at most the share `most_resumed_`.
  void compare(const std::string& text, const std::string& entry, uint64_t seed, int n, int job = 256,
               std::vector<Packet*> (RandomPackets::*packets_of)(int) = &RandomPackets::make) {
    Outcome expected;
    {
      OffloadOptions cpu;
      cpu.mode = OffloadOptions::Mode::kCpu;
      cpu.backend = "reference";
      TestRouter r(text, RouterOptions{.profile = false, .offload = cpu});
      ASSERT_TRUE(r.ok()) << r.errors();
      RandomPackets random(seed);
      for (Packet* p : (random.*packets_of)(n)) inject(r, entry, {p});
      expected = outcome_of(r);
    }
    OffloadOptions o = options();
    o.job = job;
    const auto r = make(text, o);
    ASSERT_TRUE(r->ok());
    RandomPackets again(seed);
    const std::vector<Packet*> packets = (again.*packets_of)(n);
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (size_t i = 0; i < packets.size();) {
      const size_t k = std::min<size_t>(packets.size() - i, 1 + random() % 300);
      inject(*r, entry, {packets.begin() + static_cast<ptrdiff_t>(i), packets.begin() + static_cast<ptrdiff_t>(i + k)});
      i += k;
      if (random() % 3 == 0) poll(*r);
    }
    r->router().drain();
    Outcome is = outcome_of(*r);
    if (!in_order_) forget_order(is), forget_order(expected);
    expect_same(is, expected);
    if (!on_cpu()) {
      if (trips_ == 1) {
        EXPECT_EQ(event(*r, offload::kJobPackets), static_cast<uint64_t>(n));
        EXPECT_EQ(event(*r, offload::kCpuPackets), 0u);
      } else {
        EXPECT_GE(static_cast<double>(event(*r, offload::kJobPackets)), trips_ * n);
      }
      EXPECT_LE(static_cast<double>(event(*r, offload::kResumed)), most_resumed_ * n) << "the device did nothing";
    }
  }

  /// Packets of one flow that leave a batch by different outputs and meet again have no order among each other, not on
  /// the CPU either.
  static void forget_order(Outcome& o) {
    std::sort(o.arrivals.begin(), o.arrivals.end(), [](const Arrival& a, const Arrival& b) {
      return std::tie(a.where, a.flow, a.what) < std::tie(b.where, b.flow, b.what);
    });
  }

  bool in_order_ = true;
  double most_resumed_ = 0.25;
  double trips_ = 1;  // to a device, for each packet; if not 1, at least so many, and the CPU may do some of the rest
};
HEADRACE_OFFLOAD_CARRIERS(OffloadChain);

/// One interface's way out, as in the routers of Click's papers.
constexpr const char* kOutput = R"(
elementclass Output { $router, $paint, $mtu |
  input -> DropBroadcasts -> redirect :: PaintTee($paint) -> options :: IPGWOptions($router, 10.0.2.1)
    -> FixIPSrc($router) -> ttl :: DecIPTTL -> fragmenter :: IPFragmenter($mtu)
    -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:01:01) -> output;
  redirect[1] -> ICMPError($router, redirect, host) -> [1] output;
  options[1] -> ICMPError($router, parameterproblem) -> [1] output;
  ttl[1] -> ICMPError($router, timeexceeded) -> [1] output;
  fragmenter[1] -> ICMPError($router, unreachable, needfrag) -> [1] output;
}
)";

TEST_P(OffloadChain, Payloads) {
  // Behind whole frames, tags and all; behind headers that the chain itself marks, checks and strips; and two of them
  // behind one classifier, in one chain with the lookup.
  const std::string text = R"(
Idle -> first :: OffloadScan(0x41) -> c :: Classifier(12/0800, 12/86dd, -);
cap :: Capture;
first[1] -> cap; Idle -> [1] cap;
c[0] -> Strip(14) -> check :: CheckIPHeader -> b :: Classifier(9/11, -);
c[1] -> Strip(14) -> CheckIP6Header -> six :: OffloadScan(7) -> [2] cap; six[1] -> [3] cap;
c[2] -> other :: OffloadScan(3) -> [4] cap; other[1] -> [5] cap;
b[0] -> udp :: OffloadScan(1) -> rt :: DirectIPLookup(0.0.0.0/0 0) -> DecIPTTL -> [6] cap; udp[1] -> [7] cap;
b[1] -> tcp :: OffloadScan(2) -> ttl :: DecIPTTL -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> last :: OffloadScan(9)
  -> [8] cap; tcp[1] -> [9] cap; ttl[1] -> [10] cap; last[1] -> [11] cap;
check[1] -> [12] cap;
)";
  compare(text, "first", 31, 3000);
  compare(text, "first", 32, 700, 16);
  compare(text, "first", 33, 800, 256, &RandomPackets::make_ip6);
}

/// A header that the chain has pushed is not in the packet's memory yet.
TEST_P(OffloadChain, PayloadBehindAPushedHeader) {
  const std::string text = R"(
Idle -> first :: Strip(14) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> s :: OffloadScan(0x11) -> cap :: Capture;
s[1] -> [1] cap;
)";
  compare(text, "first", 34, 500);
}

/// Packets are rewritten, lengthened and shortened, once and twice, with headers that other shaders strip, change and
/// push before and after, and with scans of what was made of them.
TEST_P(OffloadChain, RewrittenPackets) {
  most_resumed_ = 0.6;  // packets with no headroom
  for (const char* chain :
       {"OffloadEcho(0x5a) -> cap", "Strip(14) -> OffloadEcho(0x11, 8, 16) -> cap",
        "Strip(14) -> CheckIPHeader -> DecIPTTL -> OffloadEcho(7, 0, 5) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)"
        " -> Paint(3) -> cap",
        "Strip(14) -> CheckIPHeader -> DecIPTTL -> e :: OffloadEcho(9, 24) -> Strip(3) -> OffloadEcho(1, 0, 700)"
        " -> Unstrip(3) -> s :: OffloadScan(0x21) -> cap; s[1] -> [1] cap; e[1] -> [2] cap",
        "OffloadEcho(3, 4, 4) -> Strip(2) -> a :: OffloadFan -> OffloadEcho(5, 1, 900) -> cap; a[1] -> [1] cap;"
        " a[2] -> OffloadEcho(6, 2, 3) -> [2] cap",
        "Paint(7) -> OffloadHash(3) -> cap",
        "Paint(7) -> OffloadEcho(5, 1, 2) -> OffloadHash -> e :: OffloadEcho(6, 2) ->"
        " OffloadHash -> cap; e[1] -> [1] cap",
        "Strip(14) -> CheckIPHeader -> DecIPTTL -> OffloadHash -> Unstrip(3) -> OffloadHash -> s :: OffloadScan(0x21)"
        " -> cap; s[1] -> [1] cap"}) {
    const std::string text = fmt::format("cap :: Capture; Idle -> first :: Null -> {};", chain);
    compare(text, "first", 51, 1500);
    compare(text, "first", 52, 500, 16);
    if (HasFailure()) FAIL() << text;
  }
}

/// ESP of all algorithms: the library of the CPU, and the scalar code of devices. What fails to be verified is only counted.
TEST_P(OffloadChain, ESP) {
  most_resumed_ = 0.6;  // packets with no headroom
  trips_ = 0.55;        // the rest is CBC mode's, or no ESP
  const auto bytes = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += fmt::format("{}{:02x}", i == 0 ? "" : ":", (i * 37 + n) & 0xff);
    return text;
  };
  const std::string tunnel = "mode ipv4-tunnel src 192.0.2.2 dst 192.0.2.1";
  const std::string sha1 = "auth_algo sha1-hmac auth_key " + bytes(20),
                    sha256 = "auth_algo sha256-hmac auth_key " + bytes(32);
  const TemporaryFile config(
      fmt::format("sa in 1 cipher_algo aes-128-ctr cipher_key {0} {4} {6}\n"
                  "sa in 2 cipher_algo aes-256-ctr cipher_key {1} {5} {6} esn 1\n"
                  "sa in 3 cipher_algo aes-128-cbc cipher_key {2} {4} {6}\n"
                  "sa in 4 cipher_algo null {5} {6}\n"
                  "sa in 5 aead_algo aes-128-gcm aead_key {0} {6}\n"
                  "sa in 6 aead_algo aes-256-gcm aead_key {1} {6} esn 1\n"
                  "sa in 7 cipher_algo aes-128-ctr cipher_key {3} {4} {6}\n"
                  "sa in 8 aead_algo aes-128-gcm aead_key {0} {6} udp-encap\n"
                  "sa in 9 cipher_algo aes-256-cbc cipher_key {7} {4} {6}\n"
                  "sa in 10 cipher_algo 3des-cbc cipher_key {8} {4} {6}\n",
                  bytes(20), bytes(36), bytes(16), bytes(20), sha1, sha256, tunnel, bytes(32), bytes(24)));
  for (const char* chain :
       {"IPsecAES(db, true) -> IPsecAuthHMACSHA1(db, false)", "IPsecAuthHMACSHA1(db, false) -> IPsecAES(db, false)",
        "IPsecAES(db, true) -> auth :: IPsecAuthHMACSHA1(db, false) -> IPsecAuthHMACSHA1(db, true)"
        " -> IPsecAES(db, false)",
        "v :: IPsecAuthHMACSHA1(db, true) -> a :: IPsecAES(db, false) -> forget; v[1], a[1] -> forget"}) {
    const std::string all = fmt::format(
        "db :: IPsecDatabase(CONFIG {}); forget :: OffloadForget -> cap :: Capture; lookup :: IPsecESPLookup(db);"
        " Idle -> first :: Strip(14) -> CheckIPHeader -> lookup; lookup -> {}{};",
        config.path(), chain, std::string_view(chain).find(';') == std::string_view::npos ? " -> forget" : "");
    compare(all, "first", 61, 1500, 256, &RandomPackets::make_esp);
    compare(all, "first", 62, 500, 16, &RandomPackets::make_esp);
    if (HasFailure()) FAIL() << all;
  }
}

/// The host goes on with what a device has made of a packet, also where an element takes back what another stripped.
TEST_P(OffloadChain, ResumedBehindARewrittenPacket) {
  most_resumed_ = 1;
  compare("Idle -> first :: Strip(14) -> OffloadEcho(1, 3) -> Unstrip(9) -> OffloadEcho(2, 0, 5) -> cap :: Capture;",
          "first", 54, 1000);
  compare(
      "Idle -> first :: CheckLength(100) -> cap :: Capture; first[1] -> OffloadEcho(0x5a, 2, 2) -> OffloadFar(40)"
      " -> OffloadEcho(1) -> [1] cap;",
      "first", 53, 1000);
}

TEST_P(OffloadChain, TheStandardRouter) {
  const std::string text = std::string(kOutput) + R"(
Idle -> c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
cap :: Capture;
c0[0] -> ARPResponder(10.0.0.1 02:00:00:00:00:01) -> cap;
c0[1] -> [1] cap;
c0[3] -> [2] cap;
c0[2] -> Paint(1) -> Strip(14)
  -> check :: CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24 10.0.2.1/24 10.0.3.1/24)
  -> rt :: DirectIPLookup(1.0.0.0/8 0, 4.0.0.0/6 10.0.1.9 1, 16.0.0.0/4 2, 10.0.0.0/8 1, 192.168.0.0/16 0, 32.0.0.0/3 3);
check[1] -> [3] cap;
rt[0] -> p0 :: Output(10.0.0.1, 1, 1500) -> [4] cap;
rt[1] -> p1 :: Output(10.0.1.1, 2, 1500) -> [5] cap;
rt[2] -> p2 :: Output(10.0.2.1, 3, 576) -> [6] cap;
rt[3] -> p3 :: Output(10.0.3.1, 4, 100) -> [7] cap;
p0[1], p1[1], p2[1], p3[1] -> rt;
)";
  compare(text, "c0", 1, 4000);
  compare(text, "c0", 2, 2000, 32);
  const auto r = make(text);
  if (on_cpu() || !r->ok()) return;
  // All of it is one chain.
  EXPECT_EQ(r->router().engine()->plans().size(), 1u) << r->router().engine()->describe();
}

/// ICMP errors come back to the rewriter in front of the lookup. The lookup is offloaded all the same.
TEST_P(OffloadChain, NatWithIcmpFeedback) {
  const std::string text = R"(
Idle -> first :: Strip(14) -> check :: CheckIPHeader -> nat :: IPAddrRewriter(pattern 9.0.0.1-9.255.255.254# - 0 1, pass 0, drop);
check[1] -> Discard; nat[1] -> Discard; Idle -> [2] nat;
nat[0] -> rt :: DirectIPLookup(0.0.0.0/1 0, 128.0.0.0/1 1); cap :: Capture;
rt[0] -> ttl0 :: DecIPTTL -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> cap;
rt[1] -> ttl1 :: DecIPTTL -> EtherEncap(0x0800, 1:1:1:1:1:1, 3:2:2:2:2:2) -> [1] cap;
ttl0[1], ttl1[1] -> icmp :: ICMPError(10.0.0.1, timeexceeded) -> [1] nat;
)";
  trips_ = 1.5;
  most_resumed_ = 0.5;  // in either chain
  compare(text, "first", 41, 3000);
  const auto r = make(text);
  if (on_cpu() || !r->ok()) return;
  const std::string about = r->router().engine()->describe();
  EXPECT_EQ(r->router().engine()->plans().size(), 2u) << about;
  EXPECT_NE(about.find("on the CPU: nat, icmp (host element)"), std::string::npos) << about;
  EXPECT_EQ(about.find("come back"), std::string::npos) << about;
}

/// As an encryption behind a lookup, with the encapsulation that other packets need, too: two chains share it.
TEST_P(OffloadChain, ASharedOutputBehindAHostElement) {
  const std::string text = R"(
Idle -> first :: Strip(14) -> check :: CheckIPHeader -> rt :: DirectIPLookup(0.0.0.0/0 0, 32.0.0.0/3 1);
check[1] -> Discard; cap :: Capture;
rt[0] -> ttl :: DecIPTTL -> out :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> sent :: Counter -> cap;
rt[1] -> tunnel :: Tee(1) -> cipher :: SetIPDSCP(46) -> ttl;
ttl[1] -> icmp :: ICMPError(10.0.0.1, timeexceeded) -> rt;
)";
  in_order_ = false;
  trips_ = 1.3;
  most_resumed_ = 0.5;
  compare(text, "first", 42, 900);  // below the limit of ICMP errors
  const auto r = make(text);
  if (on_cpu() || !r->ok()) return;
  const std::string about = r->router().engine()->describe();
  ASSERT_EQ(r->router().engine()->plans().size(), 2u) << about;
  EXPECT_EQ(r->router().engine()->plans()[1].steps().front().element->name(), "cipher") << about;
  EXPECT_NE(about.find("on the CPU: packets from icmp to rt (they come back"), std::string::npos) << about;
}

/// What a shader says about each packet comes to its hook, wherever the packet went.
/// Some packets are thrown away by one hook, some by another behind it; no shader sees a packet that a hook in front of it
/// has thrown away.
TEST_P(OffloadChain, HooksThatThrowPacketsAway) {
  most_resumed_ = 1;
  trips_ = 1.2;
  compare(R"(
Idle -> in :: OffloadLedger -> a :: OffloadBouncer(14, 3) -> fan :: OffloadFan; cap :: Capture;
fan[0] -> b :: OffloadBouncer(15, 2) -> cap; fan[1] -> Paint(9) -> c :: OffloadBouncer(16, 1) -> cap; fan[2] -> cap;
)",
          "in", 11, 2000);
  trips_ = 1;
  compare("Idle -> a :: OffloadBouncer(0, 1) -> cap :: Capture;", "a", 12, 500);
}

TEST_P(OffloadChain, Results) {
  const std::string text = R"(
Idle -> first :: Strip(1) -> a :: OffloadLedger -> fan :: OffloadFan; cap :: Capture;
fan[0] -> b0 :: OffloadLedger(1) -> Strip(1) -> all :: OffloadLedger(2) -> cap;
fan[1] -> Paint(9) -> b1 :: OffloadLedger(3) -> all; fan[2] -> all;
)";
  const auto packets = [] {
    std::mt19937 random(6);
    static constexpr char kWays[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, '\xff', '\xfe', 7};
    std::vector<Packet*> all;
    for (uint32_t i = 0; i < 3000; ++i) {
      std::string bytes;
      for (uint32_t k = 0; k < 12 + i % 50; ++k) bytes += kWays[random() % 12];
      all.push_back(marked(bytes, 1 + random() % 50, i));
    }
    return all;
  };
  OffloadOptions cpu;
  cpu.mode = OffloadOptions::Mode::kCpu;
  cpu.backend = "reference";
  TestRouter plain(text, RouterOptions{.profile = false, .offload = cpu});
  inject(plain, "first", packets());
  const auto r = make(text);
  inject(*r, "first", packets());
  r->router().drain();
  EXPECT_EQ(r->read("a.ledger").substr(r->read("a.ledger").find("disorder")), "disorder 0");
  for (const char* name : {"a", "b0", "b1", "all"}) {
    // Behind the fan, packets of a flow may change places, on the CPU too.
    const std::string handler = std::string(name) + ".ledger";
    const auto entries = [](const std::string& ledger) { return ledger.substr(0, ledger.find("disorder")); };
    EXPECT_EQ(entries(r->read(handler)), entries(plain.read(handler))) << name;
    EXPECT_NE(entries(r->read(handler)), "0/0 0/0 0/0 0/0 ") << name;
  }
  EXPECT_LE(event(*r, offload::kResumed), 300u);
}

/// A packet that goes around by way of a device is dropped after the same number of turns as on the CPU.
TEST_P(OffloadChain, PacketsThatGoAroundEndSometime) {
  const std::string text = R"(
Idle -> first :: Strip(1) -> around :: Tee(1) -> a :: OffloadFan; cap :: Capture;
a[0] -> again :: Tee(1) -> around; a[1] -> cap; a[2] -> [1] cap;
)";
  const auto r = make(text);
  std::vector<Packet*> packets;
  for (uint32_t i = 0; i < 300; ++i)
    packets.push_back(marked(std::string("\0", 1) + static_cast<char>(i % 3), 1 + i % 7, i));
  inject(*r, "first", packets);
  r->router().drain();
  EXPECT_EQ(dynamic_cast<const Capture&>(*r->router().find("cap")).seen().size(), 200u);
  const auto drops = r->router().drops();
  ASSERT_EQ(drops.size(), 1u);
  EXPECT_EQ(drops[0].reason, "loop");
  EXPECT_EQ(drops[0].packets, 100u);
  const auto& fan = dynamic_cast<const ShaderElementBase&>(*r->router().find("a"));
  EXPECT_EQ(fan.counter(0), 200u + 100u * 33) << "turns";
}

TEST_P(OffloadChain, RegularPacketsNeedNoHost) {
  const auto r = make(R"(
Idle -> first :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 0)
  -> DropBroadcasts -> IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1) -> DecIPTTL -> IPFragmenter(1500)
  -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> cap :: Capture;
first[1] -> Discard;
)");
  ASSERT_TRUE(r->ok());
  std::vector<Packet*> packets;
  for (uint32_t i = 0; i < 500; ++i) packets.push_back(marked(udp_frame(i, 0x01000000 + i), 1 + i % 7, i));
  inject(*r, "first", packets);
  r->router().drain();
  EXPECT_EQ(dynamic_cast<const Capture&>(*r->router().find("cap")).seen().size(), 500u);
  EXPECT_EQ(event(*r, offload::kResumed), 0u);
  EXPECT_EQ(event(*r, offload::kEscaped), 0u);
  EXPECT_EQ(event(*r, offload::kJobPackets), on_cpu() ? 0u : 500u);
}

TEST_P(OffloadChain, ARouterLikeThoseOfMakeIpConf) {
  for (int interfaces = 2; interfaces <= 4; interfaces += 2) {
    std::string text = kOutput;
    text +=
        "cap :: Capture;\nip :: Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24) -> rt :: "
        "StaticIPLookup(";
    for (int i = 0; i < interfaces; ++i)
      text += fmt::format("10.0.{}.1/32 {}, 10.0.{}.0/24 {}, {}.0.0.0/4 {}, ", i, interfaces, i, i, 16 * i, i);
    text += fmt::format("0.0.0.0/0 10.0.1.9 1);\nrt[{}] -> local :: IPClassifier(icmp type echo, -);\n", interfaces);
    text += "local[0] -> [100] cap; local[1] -> [101] cap;\n";
    for (int i = 0; i < interfaces; ++i) {
      text += fmt::format(R"(
Idle -> c{0} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
c{0}[0] -> ARPResponder(10.0.{0}.1 02:00:00:00:00:0{0}) -> [{1}] cap;
c{0}[1] -> [{2}] cap;
c{0}[2] -> Paint({3}) -> ip;
c{0}[3] -> [{4}] cap;
rt[{0}] -> out{0} :: Output(10.0.{0}.1, {3}, 1500) -> [{5}] cap;
out{0}[1] -> rt;
)",
                          i, 5 * i, 5 * i + 1, i + 1, 5 * i + 2, 5 * i + 3);
    }
    std::string wide;  // connect what is left of the ports
    for (int port = 0; port < 102; ++port)
      if (text.find(fmt::format("[{}] cap", port)) == std::string::npos) wide += fmt::format("Idle -> [{}] cap;", port);
    compare(text + wide, fmt::format("c{}", interfaces - 1), 10 + static_cast<uint64_t>(interfaces), 2000);
    const auto r = make(text + wide);
    if (!on_cpu() && r->ok()) {
      EXPECT_EQ(r->router().engine()->plans().size(), 1u) << r->router().engine()->describe();
    }
  }
}

TEST_P(OffloadChain, HeadersThatMove) {
  // Each comes, with good and bad lengths, at headrooms from 0 to far into the buffer.
  for (const char* chain :
       {"Strip(14) -> EtherEncap(0x0801, 1:1:1:1:1:1, 2:2:2:2:2:2)",
        "EtherEncap(0x0801, 1:1:1:1:1:1, 2:2:2:2:2:2) -> EtherEncap(0x0802, 3:1:1:1:1:1, 4:2:2:2:2:2)",
        "Strip(3) -> Unstrip(5) -> Unstrip(7) -> Strip(1)", "Strip(60) -> Unstrip(60) -> Paint(3)",
        "MarkIPHeader(14) -> GetIPAddress(IP src) -> SetIPAddress(1.2.3.4, ANNO 4)",
        "MarkMACHeader -> Strip(14) -> MarkIPHeader -> DecIPTTL",
        "Strip(14) -> CheckIPHeader -> IPFilter(allow src 192.168.0.0/27 and not udp, deny all)",
        "CheckIPHeader(18) -> DecIPTTL -> Strip(18) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)",
        "Strip(14) -> CheckIPHeader(CHECKSUM false) -> n :: Counter -> StoreIPAddress(16)"})
    compare(fmt::format("Idle -> first :: Null -> {} -> cap :: Capture;", chain), "first", 3, 700);
}

TEST_P(OffloadChain, Ip6) {
  const std::string text = R"(
rt :: LookupIP6Route(2001:0000::/24 0, 2001:0100::/24 2001:db8::9 1, 2001:0200::/24 2, 2001:0200:003d::/48 1, ::/0 3);
Idle -> c :: Classifier(12/86dd, 12/8100 16/86dd, -); cap :: Capture; c[2] -> cap;
c[0] -> Strip(14) -> check :: CheckIP6Header -> rt;
c[1] -> Strip(18) -> check2 :: CheckIP6Header -> rt;
check[1] -> [1] cap; check2[1] -> [2] cap;
rt[0] -> hlim :: DecIP6HLIM -> EtherEncap(0x86dd, 1:1:1:1:1:1, 2:2:2:2:2:2) -> [3] cap; hlim[1] -> [4] cap;
rt[1] -> Counter -> DecIP6HLIM -> [5] cap;
rt[2] -> Paint(4) -> EtherEncap(0x86dd, 1:1:1:1:1:1, 3:2:2:2:2:2) -> [6] cap;
rt[3] -> [7] cap;
)";
  compare(text, "c", 21, 3000, 200, &RandomPackets::make_ip6);
  // So many gateways that the table's answers are words.
  std::string routes;
  for (int i = 0; i < 300; ++i) routes += fmt::format("2001:{:x}::/30 2001:db8::{:x} {}, ", i * 4, i + 1, i % 2);
  compare(fmt::format("Idle -> first :: Strip(14) -> check :: CheckIP6Header -> rt :: LookupIP6Route({}::/0 2);"
                      "cap :: Capture; rt[0] -> cap; rt[1] -> [1] cap; rt[2] -> [2] cap; check[1] -> [3] cap;",
                      routes),
          "first", 22, 3000, 200, &RandomPackets::make_ip6);
}

TEST_P(OffloadChain, BranchesAndManyExits) {
  const std::string text = R"(
Idle -> a :: OffloadFan; cap :: Capture;
a[0] -> Strip(1) -> b :: OffloadFan; a[1] -> Paint(9) -> d :: Strip(2); a[2] -> d;
d -> e :: OffloadFan -> cap; e[1] -> [1] cap; e[2] -> f :: Counter -> [2] cap;
b[0] -> [3] cap; b[1] -> f; b[2] -> e;
)";
  const auto packets = [] {
    std::mt19937 random(5);
    static constexpr char kWays[] = {0, 1, 2, 0, 1, 2, '\xfd', '\xfe', '\xfe', 7};
    std::vector<Packet*> all;
    for (uint32_t i = 0; i < 3000; ++i) {
      std::string bytes;
      for (int k = 0; k < 12; ++k) bytes += kWays[random() % 10];
      all.push_back(marked(bytes, 1 + random() % 50, i));
    }
    return all;
  };
  OffloadOptions cpu;
  cpu.mode = OffloadOptions::Mode::kCpu;
  cpu.backend = "reference";
  TestRouter plain(text, RouterOptions{.profile = false, .offload = cpu});
  inject(plain, "a", packets());
  const auto r = make(text);
  inject(*r, "a", packets());
  r->router().drain();
  Outcome is = outcome_of(*r), should = outcome_of(plain);
  forget_order(is);
  forget_order(should);
  expect_same(is, should);
  if (!on_cpu()) {
    EXPECT_GT(event(*r, offload::kEscaped), 0u);
  }
}

TEST_P(OffloadChain, BytesThatDidNotTravelAreLookedAtByTheHost) {
  const std::string text = "Idle -> first :: Paint(0) -> OffloadFar(200) -> Paint(1, 18) -> cap :: Capture;";
  const auto packets = [] {
    std::vector<Packet*> all;
    for (uint32_t i = 0; i < 300; ++i) {
      std::string bytes(300, static_cast<char>(i));
      bytes[203] = static_cast<char>(3 * i);
      all.push_back(marked(bytes, 1, i));
    }
    return all;
  };
  const auto r = make(text);
  inject(*r, "first", packets());
  r->router().drain();
  const auto& cap = dynamic_cast<const Capture&>(*r->router().find("cap"));
  ASSERT_EQ(cap.seen().size(), 300u);
  for (uint32_t i = 0; i < 300; ++i) {
    const Packet& p = *cap.seen()[i].packet;
    EXPECT_EQ(p.anno_u32(kNumberAnno), i);
    EXPECT_EQ(p.anno_u8(anno_offset::kPaint), static_cast<uint8_t>(3 * i ^ i));
    EXPECT_EQ(p.anno_u8(18), 1);
  }
  if (!on_cpu()) {
    EXPECT_EQ(event(*r, offload::kResumed), 300u);
  }
}

/// What the host does for some packets of a flow does not make the others overtake them.
TEST_P(OffloadChain, PacketsForTheHostKeepTheirPlace) {
  const std::string text = R"(
cap :: Capture;
Idle -> first :: Strip(14) -> CheckIPHeader -> tee :: PaintTee(4) -> fragmenter :: IPFragmenter(100)
  -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> cap;
tee[1] -> [1] cap;
)";
  const auto r = make(text);
  std::vector<Packet*> packets;
  std::mt19937 random(11);
  for (uint32_t i = 0; i < 1000; ++i) {
    std::string bytes = udp_frame(0x01020304, 0x05060708, 64, random() % 10 == 0 ? 180 : 64);
    if (random() % 10 == 0) {
      bytes.insert(34, std::string(8, '\1'));
      bytes[14] = 0x47;
      bytes[17] = static_cast<char>(bytes.size() - 14);
      fix_checksum(bytes, 14);
    }
    Packet* p = marked(bytes, 1, i);
    p->set_anno_u8(anno_offset::kPaint, random() % 10 == 0 ? 4 : 0);
    packets.push_back(p);
  }
  inject(*r, "first", packets);
  r->router().drain();
  int64_t last[2] = {-1, -1};
  int seen[2] = {0, 0};
  for (const auto& s : dynamic_cast<const Capture&>(*r->router().find("cap")).seen()) {
    const auto number = static_cast<int64_t>(s.packet->anno_u32(kNumberAnno));
    EXPECT_GE(number, last[s.port]) << "at port " << s.port;  // fragments have the same number
    last[s.port] = number;
    ++seen[s.port];
  }
  EXPECT_GT(seen[0], 1000);
  EXPECT_GT(seen[1], 50);
}

}  // namespace
}  // namespace headrace::testing
