/// Targets as ovs-vsctl(8) writes them.

#include "control/openflow/channel/target.hh"

#include <gtest/gtest.h>

namespace headrace::openflow {
namespace {

using Kind = Target::Kind;

TEST(OpenFlowTarget, Forms) {
  const struct {
    const char* text;
    Target target;
    const char* written;
  } cases[] = {
      {"tcp:192.0.2.1", {Kind::kTcp, false, "192.0.2.1", 6653, ""}, "tcp:192.0.2.1:6653"},
      {"tcp:192.0.2.1:6633", {Kind::kTcp, false, "192.0.2.1", 6633, ""}, "tcp:192.0.2.1:6633"},
      {"ssl:controller.example:1", {Kind::kSsl, false, "controller.example", 1, ""}, "ssl:controller.example:1"},
      {"tcp:[2001:db8::1]:7", {Kind::kTcp, false, "2001:db8::1", 7, ""}, "tcp:[2001:db8::1]:7"},
      {"tcp:[::1]", {Kind::kTcp, false, "::1", 6653, ""}, "tcp:[::1]:6653"},
      {"tcp:::1", {Kind::kTcp, false, "::1", 6653, ""}, "tcp:[::1]:6653"},
      {"ssl:[fe80::1%eth0]:2", {Kind::kSsl, false, "fe80::1%eth0", 2, ""}, "ssl:[fe80::1%eth0]:2"},
      {"unix:/run/c.sock", {Kind::kUnix, false, "", 0, "/run/c.sock"}, "unix:/run/c.sock"},
      {"unix:a:b", {Kind::kUnix, false, "", 0, "a:b"}, "unix:a:b"},
      {"ptcp:", {Kind::kTcp, true, "", 6653, ""}, "ptcp:6653"},
      {"ptcp:6634", {Kind::kTcp, true, "", 6634, ""}, "ptcp:6634"},
      {"ptcp:0:127.0.0.1", {Kind::kTcp, true, "127.0.0.1", 0, ""}, "ptcp:0:127.0.0.1"},
      {"pssl::127.0.0.1", {Kind::kSsl, true, "127.0.0.1", 6653, ""}, "pssl:6653:127.0.0.1"},
      {"pssl:1:[::]", {Kind::kSsl, true, "::", 1, ""}, "pssl:1:[::]"},
      {"punix:/run/s", {Kind::kUnix, true, "", 0, "/run/s"}, "punix:/run/s"},
  };
  for (const auto& c : cases) {
    Target target;
    std::string error;
    EXPECT_TRUE(parse_target(c.text, target, error)) << c.text << ": " << error;
    EXPECT_EQ(target, c.target) << c.text << " became " << to_string(target);
    EXPECT_EQ(to_string(target), c.written);
    Target again;
    EXPECT_TRUE(parse_target(c.written, again, error));
    EXPECT_EQ(again, target);
  }
}

TEST(OpenFlowTarget, OthersSayWhatIsExpected) {
  const std::string too_long = "unix:" + std::string(200, 'x');
  for (const char* text :
       {"", "tcp", "tcp:", "tcp:host:", "tcp:host:0", "tcp:host:65536", "tcp:host:6653x", "tcp:[::1", "tcp:[::1]x",
        "tcp:[]:1", "udp:host", "unix:", "punix:", "ptcp:x", "ptcp:1:", "ptcp:1:a:1", "ptcp:-1", too_long.c_str()}) {
    Target target;
    std::string error;
    EXPECT_FALSE(parse_target(text, target, error)) << text;
    EXPECT_TRUE(error.starts_with("'" + std::string(text) + "': expected ")) << error;
  }
}

}  // namespace
}  // namespace headrace::openflow
