#include "elements/ipsec/IPsecRoute.hh"

#include <algorithm>
#include <atomic>
#include <thread>

#include "headrace/rcu.hh"
#include "support/element_test.hh"
#include "support/ipsec_test.hh"

namespace headrace {
namespace {

using namespace testing;

const std::string kRouteLines =
    "rt ipv4 dst 10.0.0.0/8 port 0\n"
    "rt ipv4 dst 10.1.0.0/16 port 1\n"
    "rt ipv4 dst 10.1.2.3/32 port 0\n"
    "rt ipv6 dst 2001:db8::/32 port 1\n"
    "rt ipv6 dst 2001:db8:1::/48 port 0\n"
    "neigh port 0 02:00:00:00:01:00\n"
    "neigh port 1 02:00:00:00:01:01\n";

std::string routed(const TemporaryFile& file) {
  return "db :: IPsecDatabase(CONFIG " + file.path() +
         "); Idle -> m :: MarkIPHeader -> r :: IPsecRoute(db, 02:00:00:00:00:10, 02:00:00:00:00:11);"
         "Idle -> m6 :: MarkIP6Header -> r; r[0] -> c0 :: Capture; r[1] -> c1 :: Capture;";
}

std::string to4(const std::string& destination) {
  return plain_hex("45000014 00000000 403b0000 c0000201" + destination);
}
std::string to6(const std::string& destination) {
  return plain_hex("6000000000003b40 20010db8000000000000000000000001" + destination);
}

TEST(IPsecRoute, TheLongestPrefixGivesPortAndHeader) {
  const TemporaryFile file(kRouteLines);
  TestRouter r(routed(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string six = "20010db8", rest(16, '0');
  for (const char* destination : {"0a020304", "0a010304", "0a010203"}) r.push("m", from_hex(to4(destination)));
  for (const char* network : {"00020000", "00010000"}) r.push("m6", from_hex(to6(six + network + rest)));
  const std::string front0 = "020000000100020000000010", front1 = "020000000101020000000011";
  EXPECT_EQ(captured(r, "c0"), (std::vector{front0 + "0800" + to4("0a020304"), front0 + "0800" + to4("0a010203"),
                                            front0 + "86dd" + to6(six + "00010000" + rest)}));
  EXPECT_EQ(captured(r, "c1"),
            (std::vector{front1 + "0800" + to4("0a010304"), front1 + "86dd" + to6(six + "00020000" + rest)}));
  EXPECT_EQ(r.read("r.table"),
            "10.0.0.0/8 port 0 02-00-00-00-01-00\n10.1.0.0/16 port 1 02-00-00-00-01-01\n"
            "10.1.2.3/32 port 0 02-00-00-00-01-00\n2001:db8::/32 port 1 02-00-00-00-01-01\n"
            "2001:db8:1::/48 port 0 02-00-00-00-01-00\n");
}

TEST(IPsecRoute, BothFamiliesInOneBatchKeepTheirOrder) {
  const TemporaryFile file(kRouteLines);
  TestRouter r(routed(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  Batch batch;
  std::vector<std::string> sent;
  for (int i = 0; i < 64; ++i) {
    const std::string last = fmt::format("{:02x}", i);
    const std::string bytes =
        from_hex(i % 3 == 0 ? to6("20010db8000100000000000000000000").substr(0, 78) + last : to4("0a0203" + last));
    sent.push_back(to_hex(bytes));
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_network_header(0, i % 3 == 0 ? 40 : 20);
    batch.push_back(p);
  }
  r.router().find("r")->push(0, batch);
  std::vector<std::string> came = captured(r, "c0");
  for (std::string& frame : came) frame = frame.substr(28);
  EXPECT_EQ(came, sent);
}

TEST(IPsecRoute, DropsAreCountedByReason) {
  const TemporaryFile file(kRouteLines);
  TestRouter r(routed(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(to4("0b000001")));
  r.push("m6", from_hex(to6("20010db9000000000000000000000000")));
  r.push("m", from_hex("55000014000000000000000000000000000000000a020304"));
  r.push("m6", from_hex(to6("20010db8000100000000000000000000").substr(0, 78)));
  Packet* p = Packet::make("", 0);
  r.push("r", p);
  EXPECT_EQ(captured(r, "c0").size() + captured(r, "c1").size(), 0u);
  EXPECT_EQ(r.read("r.drop_reasons"), "2\tno route\n3\tnot IP\n");
}

TEST(IPsecRoute, ErrorsNameLineAndWord) {
  const auto errors = [](const std::string& text) {
    const TemporaryFile file(text);
    TestRouter r(routed(file));
    std::string all = r.errors();
    for (size_t at; (at = all.find(file.path())) != std::string::npos;) all.erase(at, file.path().size());
    return all;
  };
  const std::string neighbors = "neigh port 0 02:00:00:00:01:00\n";
  EXPECT_EQ(errors(kRouteLines), "");
  EXPECT_EQ(errors(neighbors + "rt ipv4 dst 10.0.0.0/8 port 1\nrt ipv6 dst ::/0 port 2\n"),
            ":2: '1': port 1 lacks a line 'neigh port 1 ADDRESS'\n"
            ":3: '2': expected a port from 0 to 1, those that are connected\n"
            "Router could not be initialized!\n");
  EXPECT_EQ(errors(neighbors + neighbors + "neigh port 2 02:00:00:00:01:02\n"),
            ":2: '0': line 1 has a neighbor of this port already\n"
            ":3: '2': expected a port from 0 to 1, those that are connected\n"
            "Router could not be initialized!\n");
  EXPECT_EQ(errors(neighbors + "rt ipv4 dst 10.0.0.0/8\nrt ipv4 dst 10.1.1.1/8\n"),
            ":3: '10.0.0.0/8': line 2 has a route of this prefix already\nRouter could not be initialized!\n");
}

TEST(IPsecRoute, RoutesAndNeighborsChange) {
  const TemporaryFile file(kRouteLines);
  TestRouter r(routed(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  size_t seen[2] = {0, 0};
  const auto port_of = [&](const std::string& destination) {
    const bool v4 = destination.size() == 8;
    r.push(v4 ? "m" : "m6", from_hex(v4 ? to4(destination) : to6(destination)));
    for (int i = 0; i < 2; ++i) {
      const std::string capture = fmt::format("c{}", i);
      const std::vector<std::string> frames = captured(r, capture);
      if (frames.size() == seen[i]) continue;
      seen[i] = frames.size();
      return capture + " " + frames.back().substr(0, 12);
    }
    return std::string("none");
  };
  const std::string six = "20010db9000000000000000000000001";
  EXPECT_EQ(port_of("c0000201"), "none");
  ASSERT_TRUE(r.write("r.add", "rt ipv4 dst 192.0.2.0/24 port 1\nrt ipv6 dst 2001:db9::/32\n")) << r.errors();
  EXPECT_EQ(port_of("c0000201"), "c1 020000000101");
  EXPECT_EQ(port_of(six), "c0 020000000100");
  ASSERT_TRUE(r.write("r.set", "rt ipv4 dst 192.0.2.0/24 port 0\nneigh port 0 02:00:00:00:09:00")) << r.errors();
  EXPECT_EQ(port_of("c0000201"), "c0 020000000900");
  EXPECT_EQ(port_of(six), "c0 020000000900");
  ASSERT_TRUE(r.write("r.remove", "rt ipv6 dst 2001:db9::/32\nrt ipv4 dst 10.1.0.0/16")) << r.errors();
  EXPECT_EQ(port_of(six), "none");
  EXPECT_EQ(port_of("0a010304"), "c0 020000000900");
  EXPECT_EQ(r.read("r.table"),
            "10.0.0.0/8 port 0 02-00-00-00-09-00\n10.1.2.3/32 port 0 02-00-00-00-09-00\n"
            "192.0.2.0/24 port 0 02-00-00-00-09-00\n2001:db8::/32 port 1 02-00-00-00-01-01\n"
            "2001:db8:1::/48 port 0 02-00-00-00-09-00\n");
  // Without routes to it a port may lose its neighbor, and get another.
  ASSERT_TRUE(r.write("r.remove", "neigh port 1 02:00:00:00:01:01\nrt ipv6 dst 2001:db8::/32")) << r.errors();
  ASSERT_TRUE(r.write("r.add", "rt ipv4 dst 0.0.0.0/0 port 1\nneigh port 1 02:00:00:00:09:01")) << r.errors();
  EXPECT_EQ(port_of("c1000201"), "c1 020000000901");
}

TEST(IPsecRoute, TrafficGoesOnWhileRoutesAndNeighborsChange) {
  const TemporaryFile file(kRouteLines);
  TestRouter r("db :: IPsecDatabase(CONFIG " + file.path() +
               "); Idle -> r :: IPsecRoute(db, 02:00:00:00:00:10, 02:00:00:00:00:11);"
               "r[0] -> c0 :: Capture; r[1] -> c1 :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Element& route = *r.router().find("r");
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> sent{0};
  constexpr uint64_t kMost = 20'000;  // packets: captured ones keep their buffers
  std::thread traffic([&] {
    rcu::Reader reader;
    const std::string bytes = from_hex(to4("0a010304"));
    while (!stop && sent < kMost) {
      Batch batch;
      for (int i = 0; i < 32; ++i) {
        Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
        p->set_network_header(0, 20);
        batch.push_back(p);
      }
      route.push(0, batch);
      sent += 32;
      reader.quiescent();
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 300; ++i) {
    const int port = i % 2;
    EXPECT_TRUE(r.write(
        "r.set", fmt::format("neigh port {0} 02:00:00:00:{1:02x}:00\nrt ipv4 dst 10.1.0.0/16 port {0}", port, i % 256)))
        << r.errors();
    if (i % 10 == 0) {
      EXPECT_TRUE(r.write("r.remove", "rt ipv4 dst 10.1.0.0/16")) << r.errors();
    }
    for (const uint64_t seen = sent; i % 25 == 0 && sent < std::min<uint64_t>(seen + 64, kMost);)
      std::this_thread::yield();
  }
  stop = true;
  traffic.join();
  EXPECT_EQ(r.read("r.drop_reasons"), "");
  uint64_t came = 0;
  for (const char* capture : {"c0", "c1"}) {
    const std::vector<std::string> frames = captured(r, capture);
    EXPECT_FALSE(frames.empty()) << capture;
    came += frames.size();
  }
  EXPECT_EQ(came, sent);
}

TEST(IPsecRoute, WrongLinesChangeNothing) {
  const TemporaryFile file(kRouteLines);
  TestRouter r(routed(file));
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string table = r.read("r.table");
  const auto errors = [&](const std::string& handler, const std::string& text) {
    const size_t before = r.errors().size();
    EXPECT_FALSE(r.write(handler, text));
    EXPECT_EQ(r.read("r.table"), table);
    return r.errors().substr(before);
  };
  EXPECT_EQ(errors("r.add", "rt ipv4 dst 192.0.2.0/24\nrt ipv4 dst 10.0.0.0/8 port 1\nrt ipv4 dst 11.0.0.0/8 port 2\n"),
            "add:2: '10.0.0.0/8': " + file.path() + ":1 has a route of this prefix already\n" +
                "add:3: '2': expected a port from 0 to 1, those that are connected\n");
  EXPECT_EQ(errors("r.add", "neigh port 1 02:00:00:00:00:07"),
            "add:1: '1': " + file.path() + ":7 has a neighbor of this port already\n");
  EXPECT_EQ(errors("r.set", "rt ipv4 dst 192.0.2.0/24 port 1\nneigh port 7 02:00:00:00:00:07"),
            "set:2: '7': expected a port from 0 to 1, those that are connected\n");
  EXPECT_EQ(
      errors("r.remove", "rt ipv4 dst 10.0.0.0/9\nneigh port 1 02:00:00:00:01:01\nneigh port 0 02:00:00:00:07:00"),
      "remove:1: '10.0.0.0/9': there is no route of this prefix\n"
      "remove:2: '1': the route of 10.1.0.0/16 leads to this port\n"
      "remove:3: '02-00-00-00-07-00': port 0 has no such neighbor\n");
  EXPECT_EQ(errors("r.add", "sp ipv4 out esp bypass dst 10.0.0.0/8"),
            "add:1: 'sp': policies are added by the handler 'add' of the database\n");
  EXPECT_NE(errors("r.set", "rt ipv4 dst 10.0.0.0").find("set:1: '10.0.0.0'"), std::string::npos);
}

TEST(IPsecRoute, Arguments) {
  const TemporaryFile file("");
  const std::string db = "db :: IPsecDatabase(CONFIG " + file.path() + "); Idle -> r :: IPsecRoute(db";
  TestRouter missing(db + ") -> Discard;");
  EXPECT_NE(missing.errors().find("expected an Ethernet address for each output, 1 in all, got 0"), std::string::npos)
      << missing.errors();
  TestRouter wrong(db + ", 1.2.3.4, 02:00:00:00:00:01, x) -> Discard;");
  EXPECT_NE(wrong.errors().find("ETH0: expected an Ethernet address"), std::string::npos) << wrong.errors();
  EXPECT_NE(wrong.errors().find("ETH2: expected an Ethernet address"), std::string::npos) << wrong.errors();
  TestRouter good(db + ", 02:00:00:00:00:01) -> Discard;");
  ASSERT_TRUE(good.ok()) << good.errors();
  EXPECT_FALSE(good.write("db.add", "rt ipv4 dst 10.0.0.0/8 port 0"));
  EXPECT_NE(good.errors().find("'rt': routes are added by the handler 'add' of IPsecRoute"), std::string::npos);
  EXPECT_FALSE(good.write("db.add", "neigh port 0 02:00:00:00:00:01"));
}

}  // namespace
}  // namespace headrace
