#include <optional>

#include "headrace/checksum.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"
#include "support/element_test.hh"
#include "support/ipsec_test.hh"

namespace headrace {
namespace {

using namespace testing;

/// Two gateways back to back: inside -- a -- (wire) -- b -- inside. What comes in by Nulls ends in Captures.
std::string pair_of_gateways(const TemporaryFile& a, const TemporaryFile& b, const std::string& options = {}) {
  return "Idle -> in_a :: Null -> [1] a :: IPsecGateway(CONFIG " + a.path() +
         ", PORT unprotected 02:00:00:00:0a:00 192.0.2.1/24 2001:db8::1/64, PORT protected 02:00:00:00:0a:01 "
         "10.1.0.1/16 2001:db8:a::1/48" +
         options +
         ");"
         "a[0] -> wire :: Tee(2) -> [0] b :: IPsecGateway(CONFIG " +
         b.path() +
         ", PORT unprotected 02:00:00:00:0b:00 192.0.2.2/24 2001:db8::2/64, PORT protected 02:00:00:00:0b:01 "
         "10.2.0.1/16 2001:db8:b::1/48);"
         "wire[1] -> on_wire :: Capture; b[0] -> [0] a; Idle -> wire_in :: Null -> [0] b;"
         "a[1] -> out_a :: Capture; b[1] -> out_b :: Capture; Idle -> in_b :: Null -> [1] b;";
}

std::string gateway_file(char side, uint32_t spi, int key) {
  const bool a = side == 'a';
  const auto line = [&](const char* direction, uint32_t number, const char* from, const char* to) {
    return fmt::format("sa {} {} {} mode ipv4-tunnel src {} dst {}\n", direction, number, ctr_sha1(key + (number & 1)),
                       from, to);
  };
  const char *own = a ? "192.0.2.1" : "192.0.2.2", *peer = a ? "192.0.2.2" : "192.0.2.1";
  const uint32_t out = a ? spi : spi + 1, in = a ? spi + 1 : spi;
  const char peer_letter = a ? 'b' : 'a';
  const int here = a ? 1 : 2, there = a ? 2 : 1;
  return line("out", out, own, peer) + line("in", in, peer, own) +
         fmt::format(
             "sp ipv4 out esp protect {} pri 1 dst 10.{}.0.0/16\nsp ipv4 in esp protect {} pri 1 dst 10.{}.0.0/16\n",
             out, there, in, here) +
         fmt::format(
             "sp ipv6 out esp protect {} pri 1 dst 2001:db8:{}::/48\n"
             "sp ipv6 in esp protect {} pri 1 dst 2001:db8:{}::/48\n",
             out, peer_letter, in, side) +
         fmt::format("rt ipv4 dst {}/32 port 0\nrt ipv4 dst 10.{}.0.0/16 port 1\nrt ipv6 dst 2001:db8:{}::/48 port 1\n",
                     peer, here, side) +
         fmt::format("neigh port 0 02:00:00:00:0{}:00\nneigh port 1 02:00:00:00:ff:0{}\n", peer_letter, side);
}

const std::string kToA = plain_hex("02000000 0a01 020000000001"), kToB = plain_hex("02000000 0b00 020000000001");

/// An IPv4 packet with the right header checksum.
std::string with_checksum(const std::string& hex) {
  std::string bytes = from_hex(hex);
  set_ip_checksum(*reinterpret_cast<Ip4Header*>(bytes.data()));
  return to_hex(bytes);
}
/// UDP from 10.1.0.2.
std::string udp4(const std::string& ttl = "40", const std::string& destination = "0a020002") {
  return with_checksum("45000024 00010000" + ttl + "110000 0a010002" + destination +
                       "0001 0002 0010 0000 7061796c6f616421");
}
std::string udp6(const std::string& hop_limit = "40", size_t bytes = 8,
                 const std::string& destination = "20010db8000b00000000000000000002") {
  std::string payload;
  for (size_t i = 0; i < bytes; ++i) payload += "78";
  return plain_hex("60000000") + fmt::format("{:04x}", 8 + bytes) + "11" + hop_limit +
         "20010db8000a00000000000000000002" + destination + "00010002" + fmt::format("{:04x}", 8 + bytes) + "0000" +
         payload;
}

struct Gateways : ::testing::Test {
  /// Keys and numbers are kept for the whole process, so each test has its own.
  void start(uint32_t spi, const std::string& options = {}) {
    a_.emplace(gateway_file('a', spi, static_cast<int>(spi % 90)));
    b_.emplace(gateway_file('b', spi, static_cast<int>(spi % 90)));
    r_.emplace(pair_of_gateways(*a_, *b_, options));
    ASSERT_TRUE(r_->ok()) << r_->errors();
  }
  void send(const std::string& to, const std::string& hex) { r_->push(to, from_hex(hex)); }
  std::vector<std::string> at(const char* name) { return captured(*r_, name); }

  std::optional<TemporaryFile> a_, b_;
  std::optional<TestRouter> r_;
};

TEST_F(Gateways, BothFamiliesCrossTheTunnel) {
  start(40000);
  send("in_a", kToA + "0800" + udp4());
  send("in_a", kToA + "86dd" + udp6());
  ASSERT_EQ(at("on_wire").size(), 2u);
  for (const std::string& frame : at("on_wire")) {
    EXPECT_EQ(frame.substr(0, 28),
              "02000000"
              "0b00"
              "02000000"
              "0a00"
              "0800");
    EXPECT_EQ(frame.substr(46, 2), "32") << "ESP";
    EXPECT_EQ(frame.find("7061796c6f616421"), std::string::npos);
  }
  const std::string header =
      "02000000"
      "ff0b"
      "02000000"
      "0b01";
  ASSERT_EQ(at("out_b").size(), 2u);
  // Both gateways have taken one of the time to live.
  EXPECT_EQ(at("out_b")[0], header + "0800" + udp4("3e"));
  EXPECT_EQ(at("out_b")[1], header + "86dd" + udp6("3e"));
}

TEST_F(Gateways, WhatIsTooLongForTheTunnel) {
  start(40010, ", TUNNEL_MTU 1400");
  send("in_a", kToA + "86dd" + udp6("40", 1353));
  ASSERT_EQ(at("out_a").size(), 1u);
  const std::string error = at("out_a")[0];
  // Packet too big, 1400 bytes; from the inside address, to the sender.
  EXPECT_EQ(error.substr(28 + 16, 64),
            "20010db8000a00000000000000000001"
            "20010db8000a00000000000000000002");
  EXPECT_EQ(error.substr(28 + 80, 4), "0200");
  EXPECT_EQ(error.substr(28 + 88, 8), "00000578");
  send("in_a", kToA + "86dd" + udp6("40", 1352));
  EXPECT_EQ(at("on_wire").size(), 1u);
}

TEST_F(Gateways, TheEndOfTheTimeToLiveIsToldInsideAndThroughTheTunnel) {
  start(40020);
  send("in_a", kToA + "86dd" + udp6("01"));
  ASSERT_EQ(at("out_a").size(), 1u);
  EXPECT_EQ(at("out_a")[0].substr(28 + 16, 32), "20010db8000a00000000000000000001");
  EXPECT_EQ(at("out_a")[0].substr(28 + 80, 4), "0300");
  send("in_a", kToA + "86dd" + udp6("02"));
  ASSERT_EQ(at("out_a").size(), 2u);
  EXPECT_EQ(at("out_a")[1].substr(28 + 16, 32), "20010db8000b00000000000000000001")
      << "the far gateway's inside address";
  EXPECT_EQ(at("out_b").size(), 0u);
}

TEST_F(Gateways, WhatShouldHaveBeenProtectedDoesNotEnter) {
  start(40030);
  send("wire_in", kToB + "0800" + udp4());
  send("wire_in", kToB + "86dd" + udp6());
  EXPECT_EQ(at("out_b").size(), 0u);
  EXPECT_EQ(r_->read("b/in4.drop_reasons"), "1\tshould have been protected\n");
  EXPECT_EQ(r_->read("b/in6.drop_reasons"), "1\tshould have been protected\n");
  // Not even for the gateway's inside address.
  send("wire_in", kToB + "0800" + udp4("40", "0a020001"));
  EXPECT_EQ(r_->read("b/in4.drop_reasons"), "2\tshould have been protected\n");
}

TEST_F(Gateways, AddressesOfTheLinkAndGroupsAreNotForwarded) {
  start(40040);
  send("in_a", kToA + "86dd" + udp6("40", 8, "ff020000000000000000000000000002"));
  send("in_a", kToA + "86dd" + udp6("40", 8, "fe800000000000000000000000000002"));
  send("in_a", kToA + "0800" + udp4("40", "e0000005"));
  send("in_a", kToA + "0800" + udp4("40", "ffffffff"));
  EXPECT_EQ(at("on_wire").size(), 0u);
  EXPECT_EQ(r_->read("a/out4.drop_reasons") + r_->read("a/out6.drop_reasons"), "");
}

TEST_F(Gateways, OwnAddressesAreAnswered) {
  start(40050);
  // ARP for the address of the protected port.
  send("in_a",
       plain_hex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a010002 000000000000 0a010001"));
  ASSERT_EQ(at("out_a").size(), 1u);
  EXPECT_EQ(at("out_a")[0].substr(40, 24),
            "0002"
            "020000000a01"
            "0a010001");
  // Pings: of the near gateway, and of the far one through the tunnel. Echo with a right checksum.
  const auto echo = [](const char* destination) {
    return with_checksum("4500001c 00010000 40010000 0a010002" + std::string(destination) + "0800f7fe 00000001");
  };
  send("in_a", kToA + "0800" + echo("0a010001"));
  send("in_a", kToA + "0800" + echo("0a020001"));
  ASSERT_EQ(at("out_a").size(), 3u);
  for (size_t i : {1, 2}) EXPECT_EQ(at("out_a")[i].substr(28 + 40, 16), "0000fffe00000001") << i;
  EXPECT_EQ(at("on_wire").size(), 1u) << "the second one in ESP";

  // The same of IPv6: the solicitation for the near address, and pings. The messages are Scapy's.
  send("in_a",
       "3333ff00000102000000000186dd6000000000203aff20010db8000a00000000000000000002"
       "ff0200000000000000000001ff00000187001c140000000020010db8000a000000000000000000010101020000000001");
  ASSERT_EQ(at("out_a").size(), 4u);
  EXPECT_EQ(at("out_a")[3].substr(28 + 80, 2), "88");
  for (const char* ping :
       {"6000000000083a4020010db8000a0000000000000000000220010db8000a000000000000000000018000243100010002",
        "6000000000083a4020010db8000a0000000000000000000220010db8000b000000000000000000018000243000010002"})
    send("in_a", kToA + "86dd" + ping);
  ASSERT_EQ(at("out_a").size(), 6u);
  for (size_t i : {4, 5}) EXPECT_EQ(at("out_a")[i].substr(28 + 80, 4), "8100") << i;
  EXPECT_EQ(at("on_wire").size(), 2u) << "one more in ESP";
}

TEST(IPsecGateway, IsNoElementOfItsOwn) {
  const TemporaryFile file("");
  lang::Configuration configuration;
  Errors errors;
  ASSERT_TRUE(lang::parse("Idle -> g :: IPsecGateway -> Discard", "config", {}, configuration, errors).ok());
  Runtime runtime(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false});
  EXPECT_EQ(Router::create(configuration, runtime, errors, {}), nullptr);
  EXPECT_NE(errors.str().find("config:1: 'g :: IPsecGateway' is a compound element, and nothing has expanded it"),
            std::string::npos)
      << errors.str();
}

}  // namespace
}  // namespace headrace
