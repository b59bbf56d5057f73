#include "support/element_test.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

/// A UDP packet in Ethernet with this payload.
std::string packet(const std::string& payload) {
  std::string bytes =
      from_hex("020000000001 020000000002 0800 4500 0000 00010000 4011 0000 0a000001 0a000002 00350035 0000 0000") +
      payload;
  const size_t ip = bytes.size() - 14, udp = ip - 20;
  bytes[16] = static_cast<char>(ip >> 8);
  bytes[17] = static_cast<char>(ip);
  bytes[38] = static_cast<char>(udp >> 8);
  bytes[39] = static_cast<char>(udp);
  return bytes;
}

uint32_t pattern_of(TestRouter& r, size_t i, std::string_view name = "hit") {
  return capture(r, name).seen()[i].packet->anno_u32(40);
}

TEST(StringMatchers, BothClassesAnswerAlike) {
  for (const char* matcher : {"StringMatcher", "AhoCorasick"}) {
    SCOPED_TRACE(matcher);
    TestRouter r("Idle -> m :: " + std::string(matcher) +
                 "(i:cmd.exe, xyz, 'yz') -> miss :: Capture; m[1] -> hit :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    for (const char* payload : {"GET CMD.EXE", "wxyz", "GET cmdexe", "_yz_", ""}) r.push("m", packet(payload));
    EXPECT_EQ(captured(r, "miss"), std::vector({to_hex(packet("GET cmdexe")), to_hex(packet(""))}));
    ASSERT_EQ(captured(r, "hit").size(), 3u);
    EXPECT_EQ(pattern_of(r, 0), 0u);
    EXPECT_EQ(pattern_of(r, 1), 1u);  // both end there; the lower number wins
    EXPECT_EQ(pattern_of(r, 2), 2u);
    EXPECT_EQ(r.read("m.matches"), "3");
  }
}

TEST(RegexMatcher, ExactExpressions) {
  TestRouter r(R"(Idle -> m :: RegexMatcher('/cmd\.exe/i', '/^GET [^\r\n]{5,}/', 'a+b$') -> miss :: Capture;
                  m[1] -> hit :: Capture;)");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", packet("CMD.EXE"));
  r.push("m", packet("GET /index.html CMD.exe"));
  r.push("m", packet(" GET /index.html"));
  r.push("m", packet("xxaaab\n"));
  r.push("m", packet("xxaaabx"));
  r.push("m", packet(""));
  r.push("m", "cmd.exe");  // too short for anything
  EXPECT_EQ(captured(r, "miss").size(), 4u);
  ASSERT_EQ(captured(r, "hit").size(), 3u);
  EXPECT_EQ(pattern_of(r, 0), 0u);
  EXPECT_EQ(pattern_of(r, 1), 1u);  // it ends first
  EXPECT_EQ(pattern_of(r, 2), 2u);
  EXPECT_EQ(r.read("m.matches"), "3");
  EXPECT_EQ(r.read("m.counts"), "0\t1\n1\t1\n2\t1\n");
  EXPECT_EQ(r.read("m.confirmed"), "0");
  EXPECT_NE(r.read("m.patterns").find("1\t/^GET [^\\r\\n]{5,}/\tautomaton, "), std::string::npos);
  EXPECT_TRUE(r.write("m.reset"));
  EXPECT_EQ(r.read("m.matches"), "0");
}

TEST(RegexMatcher, CandidatesAreConfirmedOnTheHost) {
  TestRouter r(R"(Idle -> m :: RegexMatcher('/(\w)=\1;/', '/user(?!name)/', plain) -> miss :: Capture;
                  m[1] -> hit :: Capture;)");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", packet("a=a;"));
  r.push("m", packet("a=b;"));
  r.push("m", packet("username"));
  r.push("m", packet("username user"));
  r.push("m", packet("a=b; plain user"));
  r.push("m", packet("nothing"));
  EXPECT_EQ(captured(r, "miss").size(), 3u);
  ASSERT_EQ(captured(r, "hit").size(), 3u);
  EXPECT_EQ(pattern_of(r, 0), 0u);
  EXPECT_EQ(pattern_of(r, 1), 1u);
  EXPECT_EQ(pattern_of(r, 2), 2u);
  EXPECT_EQ(r.read("m.confirmed"), "5");
  EXPECT_EQ(r.read("m.cut"), "0");
}

TEST(RegexMatcher, BacktrackingIsCut) {
  TestRouter r(R"(Idle -> m :: RegexMatcher('/(a|aa)+\1$/') -> miss :: Capture; m[1] -> hit :: Capture;)");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", packet(std::string(1400, 'a') + "!"));
  r.push("m", packet("aaaa"));
  EXPECT_EQ(captured(r, "miss").size(), 1u);
  EXPECT_EQ(captured(r, "hit").size(), 1u);
  EXPECT_EQ(r.read("m.cut"), "1");
}

TEST(RegexMatcher, OneOutput) {
  TestRouter r("Idle -> m :: RegexMatcher(abc, ANNO 20) -> hit :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", packet("xabcx"));
  r.push("m", packet("x"));
  ASSERT_EQ(captured(r, "hit").size(), 2u);
  EXPECT_EQ(capture(r, "hit").seen()[0].packet->anno_u32(20), 0u);
  EXPECT_EQ(r.read("m.matches"), "1");
}

TEST(RegexMatcher, FilesOfExpressions) {
  const TemporaryFile file("# a comment\n\n/one/i\n(two\nthree\n/x/q\n");
  const std::string elements = " -> Discard; Idle -> m; m[1] -> hit :: Capture;";
  TestRouter r("Idle -> m :: RegexMatcher(zero, FILE " + file.path() + ")" + elements);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find(":4: missing closing parenthesis"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find(":6: unknown flags 'q'"), std::string::npos) << r.errors();
  r.push("m", packet("ONE"));
  r.push("m", packet("three zero"));
  ASSERT_EQ(captured(r, "hit").size(), 2u);
  EXPECT_EQ(pattern_of(r, 0), 1u);
  EXPECT_EQ(pattern_of(r, 1), 2u);

  TestRouter strict("Idle -> m :: RegexMatcher(FILE " + file.path() + ", STRICT true)" + elements);
  EXPECT_FALSE(strict.ok());
}

TEST(RegexMatcher, Errors) {
  const auto errors = [](const std::string& arguments) {
    return TestRouter("Idle -> RegexMatcher(" + arguments + ") -> Discard;").errors();
  };
  EXPECT_NE(errors("").find("expected an expression or FILE"), std::string::npos);
  EXPECT_NE(errors("'a(b'").find("EXPR0: missing closing parenthesis (at offset 3)"), std::string::npos);
  EXPECT_NE(errors("a, '/b/g'").find("EXPR1: unknown flags 'g'"), std::string::npos);
  EXPECT_NE(errors("a, FILE /nowhere/at/all").find("/nowhere/at/all"), std::string::npos);
  EXPECT_NE(errors("a, STATES 0").find("STATES: out of range"), std::string::npos);
  EXPECT_NE(errors("a, ANNO 46").find("ANNO: "), std::string::npos);
}

/// What does not fit is still searched for.
TEST(RegexMatcher, FewStates) {
  TestRouter r(R"(Idle -> m :: RegexMatcher('/a.{12}b/s', '/key=[0-9]{30}/', abc, STATES 20) -> miss :: Capture;
                  m[1] -> hit :: Capture;)");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.read("m.patterns").find("0\t/a.{12}b/s\tPCRE2, every packet"), std::string::npos) << r.read("m.patterns");
  EXPECT_NE(r.read("m.patterns").find("1\t/key=[0-9]{30}/\tautomaton, then PCRE2"), std::string::npos)
      << r.read("m.patterns");
  r.push("m", packet("a123456789012b"));
  r.push("m", packet("key=123456789012345678901234567890"));
  r.push("m", packet("key=12345678901234567890123456789x"));
  r.push("m", packet("abc"));
  EXPECT_EQ(captured(r, "miss").size(), 1u);
  ASSERT_EQ(captured(r, "hit").size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(pattern_of(r, i), i);
}

}  // namespace
}  // namespace headrace::testing
