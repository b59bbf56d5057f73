#include "elements/tcpudp/FTPPortMapper.hh"

#include "support/element_test.hh"
#include "support/ip_packets.hh"

namespace headrace::testing {
namespace {

constexpr const char* kFtp =
    "Idle -> m :: MarkIPHeader -> f :: FTPPortMapper(rw, data, 0)"
    " -> rw :: TCPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0) -> out :: Capture;"
    "data :: IPRewriter(pattern 1.0.0.1 9000-9999# - - 0 1, drop); Idle -> data -> Idle; Idle -> d :: MarkIPHeader -> "
    "[1] data;"
    "data[1] -> in :: Capture;";

const Ends kThere{"10.0.0.9", 2000, "20.0.0.1", 21}, kBack{"20.0.0.1", 21, "1.0.0.1", 1024};
const Ends kOutside{"1.0.0.1", 1024, "20.0.0.1", 21}, kInside{"20.0.0.1", 21, "10.0.0.9", 2000};

std::string last(TestRouter& r, const char* name) {
  const Capture& c = capture(r, name);
  return c.seen().empty() ? "none" : c.bytes(c.seen().size() - 1);
}

TEST(FTPPortMapper, RewritesCommandsAndShiftsTheConnection) {
  TestRouter r(kFtp);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", tcp_packet(kThere, "x", {.sequence = 100}));
  r.push("m", tcp_packet(kThere, "PORT 10,0,0,9,7,209\r\n", {.sequence = 101}));
  const std::string command = tcp_packet(kOutside, "PORT 1,0,0,1,35,40\r\n", {.sequence = 101});
  EXPECT_EQ(to_hex(last(r, "out")), to_hex(command));
  // 21 bytes became 20.
  r.push("m", tcp_packet(kThere, "LIST\r\n", {.sequence = 122}));
  EXPECT_EQ(to_hex(last(r, "out")), to_hex(tcp_packet(kOutside, "LIST\r\n", {.sequence = 121})));
  r.push("m", tcp_packet(kBack, "ok", {.acknowledgment = 121}));
  EXPECT_EQ(to_hex(last(r, "out")), to_hex(tcp_packet(kInside, "ok", {.acknowledgment = 122})));
  r.push("m", tcp_packet(kBack, "ok", {.acknowledgment = 101}));
  EXPECT_EQ(to_hex(last(r, "out")), to_hex(tcp_packet(kInside, "ok", {.acknowledgment = 101})));
  // Selective acknowledgements, at an odd offset too.
  r.push("m", tcp_packet(kBack, "",
                         {.acknowledgment = 101, .options = from_hex("01050a 00000079 00000083 01 01 01 01 01")}));
  EXPECT_EQ(to_hex(last(r, "out")),
            to_hex(tcp_packet(
                kInside, "", {.acknowledgment = 101, .options = from_hex("01050a 0000007a 00000084 01 01 01 01 01")})));
  r.push("m", tcp_packet(kBack, "", {.acknowledgment = 101, .options = from_hex("0101050a 00000079 00000083")}));
  EXPECT_EQ(
      to_hex(last(r, "out")),
      to_hex(tcp_packet(kInside, "", {.acknowledgment = 101, .options = from_hex("0101050a 0000007a 00000084")})));
  EXPECT_NE(r.read("rw.table").find("(10.0.0.9, 2000, 20.0.0.1, 21) => (1.0.0.1, 1024, 20.0.0.1, 21) seq -1 [*0 0]"),
            std::string::npos)
      << r.read("rw.table");
  // The same again, as a retransmission.
  r.push("m", tcp_packet(kThere, "PORT 10,0,0,9,7,209\r\n", {.sequence = 101}));
  EXPECT_EQ(to_hex(last(r, "out")), to_hex(command));
  r.push("m", tcp_packet(kThere, "", {.sequence = 122}));
  EXPECT_EQ(to_hex(last(r, "out")), to_hex(tcp_packet(kOutside, "", {.sequence = 121})));
  // The server opens the data connection.
  r.push("d", tcp_packet({"20.0.0.1", 20, "1.0.0.1", 9000}, "", {.flags = 2}));
  EXPECT_EQ(ends_of(last(r, "in")), "20.0.0.1 20 > 10.0.0.9 2001");
}

TEST(FTPPortMapper, OtherPacketsPassUnchanged) {
  TestRouter r(kFtp);
  const char* texts[] = {"PORT 10,0,0,9,7,209",
                         "PORT 10,0,0,9,7\r\n",
                         "PORT 10,0,0,9,7,256\r\n",
                         "PORT 10,0,0,9,7,\r\n",
                         "PORT ,0,0,9,7,2\r\n",
                         "PORT",
                         "PASV\r\n",
                         "",
                         "PORT 1111111111,0,0,9,7,1\r\n"};
  r.push("m", tcp_packet(kThere, "x"));
  for (const char* text : texts) {
    r.push("m", tcp_packet(kThere, text));
    EXPECT_EQ(to_hex(last(r, "out")), to_hex(tcp_packet(kOutside, text))) << text;
  }
  // A connection that nobody knows.
  r.push("m", tcp_packet({"10.0.0.9", 2222, "20.0.0.1", 21}, "PORT 10,0,0,9,7,209\r\n"));
  EXPECT_EQ(last(r, "out").substr(40), "PORT 10,0,0,9,7,209\r\n");
  EXPECT_EQ(r.read("data.table_size"), "0");
}

TEST(FTPPortMapper, Errors) {
  for (const auto& [arguments, error] :
       {std::pair{"i, rw, 0", "CONTROL_REWRITER: element type mismatch, expected PortRewriter"},
        {"rw, i, 0", "DATA_REWRITER: element type mismatch, expected RewriterBase"},
        {"rw, rw, 1", "DATA_REWRITER_INPUT out of range"}}) {
    TestRouter r(fmt::format("i :: Idle -> FTPPortMapper({}) -> rw :: TCPRewriter(drop) -> Idle;", arguments));
    EXPECT_FALSE(r.ok());
    EXPECT_NE(r.errors().find(error), std::string::npos) << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
