#include "elements/openflow/OpenFlowSwitch.hh"

#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

std::string errors_of(const std::string& arguments) {
  TestRouter r("Idle -> sw :: OpenFlowSwitch(" + arguments + ") -> Discard;");
  return r.ok() ? "none" : r.errors();
}

/// The lines of a message behind the one that says where it is.
std::string message_of(const std::string& arguments) {
  const std::string text = errors_of(arguments);
  const size_t begin = text.find('\n');
  return begin == std::string::npos ? text : text.substr(begin + 3, text.find('\n', begin + 1) - begin - 3);
}

TEST(OpenFlowSwitch, Errors) {
  EXPECT_EQ(errors_of("1"), "none");
  EXPECT_EQ(errors_of("0x00000000000000ff, FAIL secure, VERSIONS 1.0 1.3, PACKET_IN_RATE 0"), "none");
  EXPECT_EQ(message_of("xyz"), "DPID: expected up to 16 hexadecimal digits");
  EXPECT_EQ(message_of("11112222333344445"), "DPID: expected up to 16 hexadecimal digits");
  EXPECT_EQ(message_of("1, LOCAL true"), "LOCAL: expected a port beside LOCAL");
  EXPECT_EQ(message_of("1, FAIL open"), "FAIL: expected secure or standalone");
  EXPECT_EQ(message_of("1, FAIL standalone"), "FAIL: standalone is for switches with a CONTROLLER");
  EXPECT_EQ(message_of("1, VERSIONS 1.1"), "VERSIONS: expected 1.0, 1.3, or both");
  EXPECT_EQ(message_of("1, CONTROLLER ptcp:"), "CONTROLLER: 'ptcp:': expected tcp:, ssl: or unix:");
  EXPECT_EQ(message_of("1, LISTEN tcp:h"), "LISTEN: 'tcp:h': expected ptcp:, pssl: or punix:");
  EXPECT_EQ(message_of("1, BUFFERS 0"), "BUFFERS: out of range, bound 1");
  EXPECT_EQ(message_of("1, LISTEN pssl:0"), "ssl: and pssl: need a private key, a certificate and a CA certificate");
  EXPECT_NE(errors_of("1, WRONG 2").find("WRONG"), std::string::npos);
  TestRouter twice("Idle -> a :: OpenFlowSwitch(7) -> Discard; Idle -> b :: OpenFlowSwitch(7) -> Discard;");
  EXPECT_NE(twice.errors().find("DPID: 'a/control' has this one already"), std::string::npos) << twice.errors();
  EXPECT_NE(TestRouter("Idle -> t :: OpenFlowTables(nobody) -> Discard;").errors().find("no OpenFlow switch 'nobody'"),
            std::string::npos);
}

TEST(OpenFlowSwitch, NamesLinesOfFlows) {
  const TemporaryFile flows("# one\nin_port=1 actions=drop\nin_port=1 actions=fly\nactions=output:7x\n");
  const std::string text = errors_of("2, FLOWS " + flows.path());
  EXPECT_NE(text.find(flows.path() + ":3: unknown action 'fly'\n"), std::string::npos) << text;
  EXPECT_NE(text.find(flows.path() + ":4: bad port '7x'\n"), std::string::npos) << text;
  const TemporaryFile ports("in_port=1 actions=output:2\nin_port=1 actions=group:3\n");
  const std::string more = errors_of("2, FLOWS " + ports.path());
  EXPECT_NE(more.find(ports.path() + ":1: BAD_ACTION/BAD_OUT_PORT\n"), std::string::npos) << more;
  EXPECT_NE(more.find(ports.path() + ":2: BAD_ACTION/BAD_OUT_GROUP\n"), std::string::npos) << more;
}

/// From one port to the others, by the entries of a file, and to LOCAL.
TEST(OpenFlowSwitch, MovesFrames) {
  const TemporaryFile flows(
      "in_port=1 actions=output:2\nin_port=2 actions=output:1,LOCAL\nin_port=LOCAL actions=push_vlan:0x8100,output:2\n");
  TestRouter r("sw :: OpenFlowSwitch(3, LOCAL true, FLOWS " + flows.path() +
               "); a, b, c :: Null; a -> [0] sw; b -> [1] sw; c -> [2] sw; Idle -> a; Idle -> b; Idle -> c;"
               "sw[0] -> one :: Capture; sw[1] -> two :: Capture; sw[2] -> local :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string frame = from_hex("020000000001 020000000002 0806 0001") + std::string(40, '\0');
  r.push("a", frame);
  r.push("b", frame);
  r.push("c", frame);
  r.push("a", frame.substr(0, 13));  // no frame
  EXPECT_EQ(captured(r, "one"), std::vector<std::string>{to_hex(frame)});
  EXPECT_EQ(captured(r, "local"), std::vector<std::string>{to_hex(frame)});
  const std::vector<std::string> two = captured(r, "two");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0], to_hex(frame));
  EXPECT_EQ(two[1].substr(24, 12), "810000000806");
  const std::string text = r.read("sw/control.flows");
  EXPECT_NE(text.find("n_packets=1, n_bytes=56, priority=32768,in_port=2 actions=output:1,LOCAL\n"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace headrace::testing
