#include "elements/tcpudp/WebGen.hh"

#include <fmt/format.h>

#include <set>

#include "headrace/checksum.hh"
#include "headrace/router.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr uint8_t kF = 1, kS = 2, kR = 4, kP = 8, kA = 16;

/// A TCP segment and its addresses.
struct Segment {
  IpAddress src, dst;
  uint16_t src_port = 0, dst_port = 0;
  uint32_t sequence = 0, acknowledgment = 0;
  uint8_t flags = 0;
  std::string data;
};

std::string bytes_of(const Segment& s) {
  std::string bytes(40, '\0');
  bytes += s.data;
  auto& ip = *reinterpret_cast<Ip4Header*>(bytes.data());
  ip.version_ihl = 0x45;
  ip.total_length = static_cast<uint16_t>(bytes.size());
  ip.ttl = 64;
  ip.protocol = 6;
  ip.src = s.src;
  ip.dst = s.dst;
  set_ip_checksum(ip);
  auto& tcp = *reinterpret_cast<TcpHeader*>(bytes.data() + 20);
  tcp.src_port = s.src_port;
  tcp.dst_port = s.dst_port;
  tcp.sequence = s.sequence;
  tcp.acknowledgment = s.acknowledgment;
  tcp.data_offset = 5 << 4;
  tcp.flags = s.flags;
  tcp.window = 10000;
  tcp.checksum = transport_checksum(ip, &tcp, bytes.size() - 20);
  return bytes;
}

/// Reads a packet of WebGen and checks what all of them have in common.
Segment segment_of(const Packet& p) {
  Segment s;
  EXPECT_GE(p.length(), 40u);
  const auto& ip = *reinterpret_cast<const Ip4Header*>(p.data());
  const auto& tcp = *reinterpret_cast<const TcpHeader*>(p.data() + 20);
  EXPECT_EQ(ip.version_ihl, 0x45);
  EXPECT_EQ(ip.total_length, p.length());
  EXPECT_EQ(ip.protocol, 6);
  EXPECT_EQ(tcp.data_offset, 5 << 4);
  EXPECT_EQ(internet_checksum(&ip, 20), 0);
  EXPECT_EQ(transport_checksum(ip, &tcp, p.length() - 20), 0);
  EXPECT_EQ(p.network_header_offset(), 0);
  EXPECT_EQ(p.transport_header_offset(), 20);
  s = {ip.src, ip.dst, tcp.src_port, tcp.dst_port, tcp.sequence, tcp.acknowledgment, tcp.flags, {}};
  EXPECT_EQ(IpAddress::from_bytes(p.anno() + anno_offset::kDstIp), s.dst);
  s.data.assign(reinterpret_cast<const char*>(p.data()) + 40, p.length() - 40);
  return s;
}

constexpr const char* kServer = "1.0.0.1";

std::string web_gen(const std::string& more, const std::string& wait = "10ms") {
  return "Idle -> w :: WebGen(7.1.0.0/16, " + std::string(kServer) + ", " + more +
         ", REPORT 0) -> c :: Capture; Script(wait " + wait + ", write stop, loop);";
}

/// The server's end of the only connection.
class Server {
 public:
  /// Runs the router until WebGen has asked.
  explicit Server(TestRouter& r) : r_(r) {
    r_.run();
    const auto& seen = capture(r_, "c").seen();
    EXPECT_EQ(seen.size(), 1u);
    syn_ = segment_of(*seen[0].packet);
    known_ = 1;
  }
  const Segment& syn() const { return syn_; }
  uint32_t request_at() const { return syn_.sequence + 1; }
  uint32_t end() const { return request_at() + 31; }

  /// Sends a segment whose numbers count from the beginning of the server's stream, and returns the answers.
  std::vector<Segment> send(uint8_t flags, uint32_t at, const std::string& data = "", int64_t acknowledged = -1) {
    Segment s{syn_.dst, syn_.src, syn_.dst_port, syn_.src_port, kFirst + at, 0, flags, data};
    s.acknowledgment = acknowledged < 0 ? end() : static_cast<uint32_t>(acknowledged);
    r_.push("w", bytes_of(s));
    return news();
  }
  /// Sends SYN and ACK; returns the request.
  std::vector<Segment> accept() { return send(kS | kA, 0, "", request_at()); }
  /// What was sent since this was last asked.
  std::vector<Segment> news() {
    std::vector<Segment> news;
    const auto& seen = capture(r_, "c").seen();
    for (; known_ < seen.size(); ++known_) news.push_back(segment_of(*seen[known_].packet));
    return news;
  }
  /// What an acknowledgment of all up to `at` looks like.
  bool acknowledges(const std::vector<Segment>& answers, uint32_t at) const {
    return answers.size() == 1 && answers[0].flags == kA && answers[0].data.empty() && answers[0].sequence == end() &&
           answers[0].acknowledgment == kFirst + at && answers[0].src == syn_.src && answers[0].dst == syn_.dst &&
           answers[0].src_port == syn_.src_port && answers[0].dst_port == 80;
  }

  static constexpr uint32_t kFirst = 0xfffffff0;  // numbers wrap

 private:
  TestRouter& r_;
  Segment syn_;
  size_t known_ = 0;
};

std::string counts_of(TestRouter& r) {
  return r.read("w.initiated") + " " + r.read("w.completed") + " " + r.read("w.timeouts") + " " + r.read("w.resets") +
         " " + r.read("w.skipped");
}

TEST(WebGen, FetchesAPage) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  const Segment& syn = server.syn();
  EXPECT_EQ(syn.src & IpAddress::prefix_mask(16), IpAddress::from_octets(7, 1, 0, 0));
  EXPECT_EQ(syn.dst.unparse(), kServer);
  EXPECT_EQ(syn.dst_port, 80);
  EXPECT_GE(syn.src_port, 1024);
  EXPECT_EQ(syn.flags, kS);
  EXPECT_EQ(syn.acknowledgment, 0u);
  EXPECT_EQ(syn.data, "");

  const std::vector<Segment> request = server.accept();
  ASSERT_EQ(request.size(), 1u);
  EXPECT_EQ(request[0].flags, kA | kP | kF);
  EXPECT_EQ(request[0].sequence, syn.sequence + 1);
  EXPECT_EQ(request[0].acknowledgment, Server::kFirst + 1);
  int directory = -1, again = -1, group = -1, file = -1;
  char rest[16] = {};
  ASSERT_EQ(
      std::sscanf(request[0].data.c_str(), "GET /spec/%1d/%1d-%1d-%1d %8s", &directory, &again, &group, &file, rest), 5)
      << request[0].data;
  EXPECT_EQ(directory, again);
  EXPECT_LT(group, 3);
  EXPECT_LT(file, 9);
  EXPECT_EQ(request[0].data.substr(17), " HTTP/1.0\r\n\r\n");
  EXPECT_EQ(request[0].data.size(), 30u);

  EXPECT_TRUE(server.send(kA, 1).empty()) << "nothing to acknowledge";
  EXPECT_TRUE(server.acknowledges(server.send(kA, 1, std::string(500, 'x')), 501)) << "over the wrap";
  EXPECT_TRUE(server.acknowledges(server.send(kA | kP, 501, "end"), 504));
  EXPECT_EQ(counts_of(r), "1 0 0 0 0");
  EXPECT_TRUE(server.acknowledges(server.send(kA | kF, 504), 505));
  EXPECT_EQ(counts_of(r), "1 1 0 0 0");
  EXPECT_EQ(r.read("w.drop_reasons"), "");
  // The connection is gone.
  const std::vector<Segment> reset = server.send(kA | kF, 504);
  ASSERT_EQ(reset.size(), 1u);
  EXPECT_EQ(reset[0].flags, kR);
  EXPECT_EQ(reset[0].sequence, server.end());
  ASSERT_TRUE(r.write("w.reset_counts"));
  EXPECT_EQ(counts_of(r), "0 0 0 0 0");
}

TEST(WebGen, DataAndTheEndInOneSegment) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  server.accept();
  EXPECT_TRUE(server.acknowledges(server.send(kA | kP | kF, 1, "page"), 6));
  EXPECT_EQ(counts_of(r), "1 1 0 0 0");
}

TEST(WebGen, TheServerMayEndBeforeItHasAllOfTheRequest) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  server.accept();
  EXPECT_TRUE(server.acknowledges(server.send(kA | kF, 1, "page", server.request_at()), 6));
  EXPECT_EQ(counts_of(r), "1 0 0 0 0") << "the request may still be under way";
  EXPECT_TRUE(server.acknowledges(server.send(kA, 6), 6));
  EXPECT_EQ(counts_of(r), "1 1 0 0 0");
}

TEST(WebGen, WhatIsOutOfOrderWaits) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  server.accept();
  EXPECT_TRUE(server.acknowledges(server.send(kA | kF, 11, "later"), 1)) << "behind a hole";
  EXPECT_TRUE(server.acknowledges(server.send(kA, 1, "1234567"), 8));
  EXPECT_TRUE(server.acknowledges(server.send(kA, 1, "1234567"), 8)) << "again";
  EXPECT_TRUE(server.acknowledges(server.send(kA, 5, "567890"), 11)) << "overlapping";
  EXPECT_TRUE(server.acknowledges(server.send(kA, 0), 11)) << "an old number";
  EXPECT_TRUE(server.acknowledges(server.send(kS | kA, 0, "", server.request_at()), 11)) << "an old SYN";
  EXPECT_TRUE(server.acknowledges(server.send(kA, 11, "x", int64_t{server.end() + 1} & 0xffffffff), 11))
      << "what was not sent cannot be acknowledged";
  EXPECT_TRUE(server.send(kP, 11, "no ACK").empty());
  EXPECT_EQ(counts_of(r), "1 0 0 0 0");
  EXPECT_TRUE(server.acknowledges(server.send(kA | kF, 11, "later"), 17));
  EXPECT_EQ(counts_of(r), "1 1 0 0 0");
}

TEST(WebGen, Resets) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  {
    Server server(r);
    EXPECT_TRUE(server.send(kR, 0).empty()) << "without an acknowledgment anybody may have sent it";
    EXPECT_TRUE(server.send(kR | kA, 0, "", server.end()).empty());
    const std::vector<Segment> reset = server.send(kS | kA, 0, "", server.end());
    ASSERT_EQ(reset.size(), 1u) << "it acknowledges another SYN";
    EXPECT_EQ(reset[0].flags, kR);
    EXPECT_EQ(reset[0].sequence, server.end());
    EXPECT_TRUE(server.send(kS, 0).empty());
    server.accept();
    EXPECT_TRUE(server.acknowledges(server.send(kR, 100), 1)) << "in the window, but not exact";
    EXPECT_TRUE(server.send(kR, 0).empty());
    EXPECT_TRUE(server.send(kR, 70000).empty());
    EXPECT_EQ(counts_of(r), "1 0 0 0 0");
    EXPECT_TRUE(server.send(kR, 1).empty());
    EXPECT_EQ(counts_of(r), "1 0 0 1 0");
    EXPECT_TRUE(server.send(kR, 1).empty()) << "no reset for a reset";
  }
  TestRouter refused(web_gen("1"));
  Server server(refused);
  EXPECT_TRUE(server.send(kR | kA, 0, "", server.request_at()).empty());
  EXPECT_EQ(counts_of(refused), "1 0 0 1 0");
}

TEST(WebGen, UnknownConnectionsAreReset) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  Segment s = {server.syn().dst, IpAddress::from_octets(7, 1, 2, 3), 80, 999, 5, 77, kA, "data"};
  r.push("w", bytes_of(s));
  s.flags = kS | kF;
  r.push("w", bytes_of(s));
  // The known one's addresses, but another port or host.
  s = {server.syn().dst, server.syn().src, 81, server.syn().src_port, 5, 77, kA, ""};
  r.push("w", bytes_of(s));
  s = {IpAddress::from_octets(1, 0, 0, 2), server.syn().src, 80, server.syn().src_port, 5, 77, kA, ""};
  r.push("w", bytes_of(s));
  const std::vector<Segment> resets = server.news();
  ASSERT_EQ(resets.size(), 4u);
  EXPECT_EQ(resets[0].flags, kR);
  EXPECT_EQ(resets[0].sequence, 77u);
  EXPECT_EQ(resets[0].src.unparse() + " " + resets[0].dst.unparse(), "7.1.2.3 1.0.0.1");
  EXPECT_EQ(resets[0].src_port * 1000 + resets[0].dst_port, 999080);
  EXPECT_EQ(resets[1].flags, kR | kA);
  EXPECT_EQ(resets[1].sequence, 0u);
  EXPECT_EQ(resets[1].acknowledgment, 5u + 4 + 2) << "the data, SYN and FIN";
  EXPECT_EQ(resets[2].dst_port, 81);
  EXPECT_EQ(resets[3].dst.unparse(), "1.0.0.2");
  EXPECT_EQ(counts_of(r), "1 0 0 0 0");
}

TEST(WebGen, OtherPacketsAreDropped) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  const Segment s = {server.syn().dst, server.syn().src, 80, server.syn().src_port, 5, 77, kR, "some data"};
  const std::string good = bytes_of(s);
  int bad = 0;
  const auto refuse = [&](const std::string& packet) {
    r.push("w", packet);
    ++bad;
  };
  for (size_t n = 0; n < good.size(); ++n) refuse(good.substr(0, n));
  // Version, header length (too short, longer than the packet), length, more fragments, protocol, TCP header length.
  const std::pair<size_t, char> kChanges[] = {{0, 0x65}, {0, 0x44}, {0, 0x4f}, {2, 1},       {3, 39},
                                              {6, 0x20}, {7, 1},    {9, 17},   {32, '\x40'}, {32, '\xf0'}};
  for (const auto& [at, byte] : kChanges) {
    std::string packet = good;
    packet[at] = byte;
    refuse(packet);
  }
  EXPECT_EQ(r.read("w.drop_reasons"), std::to_string(bad) + "\tnot a TCP segment\n");
  Segment other = s;
  other.dst = IpAddress::from_octets(7, 2, 0, 1);
  r.push("w", bytes_of(other));
  EXPECT_EQ(r.read("w.drop_reasons"), std::to_string(bad) + "\tnot a TCP segment\n1\tnot for an address in PREFIX\n");
  // Whole ones with padding of the link, and with options.
  r.push("w", good + "pad");
  std::string options = good;
  options[32] = '\x70';
  r.push("w", options);
  EXPECT_TRUE(server.news().empty());
  EXPECT_EQ(counts_of(r), "1 0 0 0 0");
}

TEST(WebGen, AnyBytesAreSafe) {
  TestRouter r(web_gen("1"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  server.accept();
  const std::string good = bytes_of({server.syn().dst, server.syn().src, 80, server.syn().src_port, Server::kFirst + 1,
                                     server.end(), kA, "some data that is not much"});
  uint64_t seed = 7;
  const auto random = [&] {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>(seed >> 33);
  };
  for (int n = 0; n < 20000; ++n) {
    std::string packet = good;
    for (uint32_t changes = random() % 4; changes > 0; --changes)
      packet[random() % packet.size()] = static_cast<char>(random());
    r.push("w", packet.substr(0, 1 + random() % packet.size()));
  }
  EXPECT_EQ(r.read("w.initiated"), "1");
}

TEST(WebGen, RepeatsWhatWasNotAcknowledgedAndGivesUp) {
  // The first SYN is sent at 0, then one each second; the connection is given up at 6 s. Others begin meanwhile.
  TestRouter r(web_gen("1", "500ms"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  const auto of_this = [&](const std::vector<Segment>& segments) {
    std::vector<uint8_t> flags;
    for (const Segment& s : segments)
      if (s.src == server.syn().src && s.src_port == server.syn().src_port) flags.push_back(s.flags);
    return flags;
  };
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) r.run();
  };
  run(2);  // until 1.5 s
  EXPECT_EQ(of_this(server.news()), (std::vector<uint8_t>{kS}));
  run(8);  // until 5.5 s
  EXPECT_EQ(of_this(server.news()), (std::vector<uint8_t>{kS, kS, kS, kS}));
  EXPECT_EQ(r.read("w.timeouts"), "0");
  run(2);
  EXPECT_EQ(of_this(server.news()), (std::vector<uint8_t>{}));
  EXPECT_EQ(r.read("w.timeouts"), "1");
}

TEST(WebGen, RepeatsTheRequest) {
  TestRouter r(web_gen("1", "600ms"));
  ASSERT_TRUE(r.ok()) << r.errors();
  Server server(r);
  const Segment request = server.accept().at(0);
  const auto requests = [&] {
    size_t n = 0;
    for (const Segment& s : server.news()) {
      if (s.src != request.src || s.src_port != request.src_port) continue;
      EXPECT_EQ(s.flags, request.flags);
      EXPECT_EQ(s.data, request.data);
      EXPECT_EQ(s.sequence, request.sequence);
      ++n;
    }
    return n;
  };
  // Looked after once per second: at 2 s it has been silent since 0.6 s.
  for (int i = 0; i < 3; ++i) r.run();
  EXPECT_EQ(requests(), 1u);
  server.send(kA, 1);
  for (int i = 0; i < 4; ++i) r.run();
  EXPECT_EQ(requests(), 0u) << "the server has it";
  EXPECT_EQ(r.read("w.timeouts"), "0");
  for (int i = 0; i < 8; ++i) r.run();
  EXPECT_EQ(r.read("w.timeouts"), "4") << "but says nothing: it ends at 9 s, others that began after it at 7, 8, 9 s";
}

TEST(WebGen, Rate) {
  TestRouter r(web_gen("500", "2s"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("w.initiated")), 1000, 2);
  std::set<uint64_t> ends;
  size_t syns = 0;
  for (const auto& seen : capture(r, "c").seen()) {
    const Segment s = segment_of(*seen.packet);
    EXPECT_EQ(s.flags, kS);
    ends.insert(uint64_t{s.src.host_order()} << 16 | s.src_port);
    ++syns;
  }
  EXPECT_EQ(std::to_string(ends.size()), r.read("w.initiated"));
  EXPECT_NEAR(static_cast<double>(syns), 1500, 5) << "half of them once again";
}

TEST(WebGen, ConnectionsComeAndGo) {
  // Nobody answers for twenty seconds: places of connections that were given up are used again.
  TestRouter r("Idle -> w :: WebGen(7.1.0.1/32, 1.0.0.1, 200, REPORT 0) -> d :: Discard; Script(wait 20s, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stoi(r.read("w.initiated")), 4000, 2);
  EXPECT_NEAR(std::stoi(r.read("w.timeouts")), 2800, 5);
  EXPECT_EQ(r.read("w.skipped"), "0");
}

TEST(WebGen, Reports) {
  ::testing::internal::CaptureStderr();
  {
    TestRouter r("Idle -> w :: WebGen(7.1.0.1/32, 1.0.0.1, 1, REPORT 3.5s) -> Discard; Script(wait 4s, stop);");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "w :: WebGen: 4 initiated, 0 completed, 0 timed out, 0 reset\n");
}

/// A web server: answers SYNs, and requests with a page and the end of the connection.
class PageServer final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};
  Packet* act(Packet* p, Emitter&) override {
    const Segment in = segment_of(*p);
    p->kill();
    Segment out{in.dst, in.src, in.dst_port, in.src_port, 1000, in.sequence + 1, kS | kA, ""};
    if (in.flags != kS) {
      if (in.data.empty()) return nullptr;
      out.sequence = 1001;
      out.acknowledgment = in.sequence + static_cast<uint32_t>(in.data.size()) + 1;
      out.flags = kA | kP | kF;
      out.data = std::string(300, 'p');
    }
    const std::string bytes = bytes_of(out);
    return Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  }
};
HEADRACE_ELEMENT(PageServer)

TEST(WebGen, SeveralThreads) {
  // In real time: the timer runs on one thread, segments arrive on two others.
  Runtime runtime(Runtime::Options{.threads = 3, .cpus = {}, .control_thread = false});
  lang::Configuration configuration;
  Errors errors;
  ASSERT_TRUE(
      lang::parse("w :: WebGen(7.1.0.0/16, 1.0.0.1, 5000, REPORT 0) -> hs :: HashSwitch(12, 4);"
                  "hs[0] -> q0 :: Queue(10000) -> u0 :: Unqueue -> PageServer -> w;"
                  "hs[1] -> q1 :: Queue(10000) -> u1 :: Unqueue -> PageServer -> w;"
                  "StaticThreadSched(w 0, u0 1, u1 2); Script(wait 1.5s, stop);",
                  "config", {}, configuration, errors));
  std::unique_ptr<Router> router =
      Router::create(configuration, runtime, errors, RouterOptions{.profile = false, .offload = {}});
  ASSERT_TRUE(router) << errors.str();
  runtime.run(router);
  const auto read = [&](const char* handler) {
    Element* element = nullptr;
    std::string value;
    const Handler* h = router->find_handler(handler, nullptr, element, errors);
    if (h) (void)router->call_read(*h, "", value, errors);
    return value;
  };
  EXPECT_GT(std::stoi(read("w.completed")), 0);
  EXPECT_LE(std::stoi(read("w.completed")), std::stoi(read("w.initiated")));
  EXPECT_EQ(read("w.resets") + read("w.drop_reasons"), "0");
  EXPECT_EQ(errors.str(), "");
}

TEST(WebGen, Arguments) {
  const std::pair<const char*, const char*> kWrong[] = {{"7.1.0.0/16, 1.0.0.1", "RATE: required argument missing"},
                                                        {"7.1.0.0/16, 1.0.0.1, 0", "RATE: out of range"},
                                                        {"7.1.0.0/16, 1.0.0.1, 2000000", "RATE: out of range"},
                                                        {"7.1.0.0, 1.0.0.1, 5", "PREFIX"},
                                                        {"7.1.0.0/16, house, 5", "DST"},
                                                        {"7.1.0.0/16, 1.0.0.1, 5, REPORT x", "REPORT"}};
  for (const auto& [arguments, message] : kWrong)
    EXPECT_NE(TestRouter("Idle -> WebGen(" + std::string(arguments) + ") -> Discard;").errors().find(message),
              std::string::npos)
        << arguments;
}

}  // namespace
}  // namespace headrace::testing
