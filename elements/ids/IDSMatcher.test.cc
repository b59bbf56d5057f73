#include "elements/ids/IDSMatcher.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "elements/ids/ids_rules.hh"
#include "support/element_test.hh"
#include "support/ip_packets.hh"
#include "support/temporary_file.hh"

namespace headrace {
namespace {

using testing::capture;
using testing::ip_packet;
using testing::TemporaryFile;
using testing::TestRouter;

std::string udp(std::string_view data, uint16_t dport = 2000) {
  return testing::udp_packet({"10.0.0.1", 1000, "10.0.0.2", dport}, data);
}

/// An IDSMatcher with two outputs that are captured, and a file for its alerts.
class Matcher {
 public:
  explicit Matcher(const std::string& rules, const std::string& arguments = "", RouterOptions options = {})
      : rules_(rules, ".rules"),
        router_(fmt::format("Idle -> in :: MarkIPHeader -> m :: IDSMatcher(RULES {}, ALERTS {}{}{});\n"
                            "m[0] -> clean :: Capture; m[1] -> alerted :: Capture;",
                            rules_.path(), alerts_.path(), arguments.empty() ? "" : ", ", arguments),
                options) {}

  TestRouter& router() { return router_; }
  Matcher& push(const std::string& bytes) {
    router_.push("in", bytes);
    return *this;
  }
  size_t clean() { return capture(router_, "clean").seen().size(); }
  size_t alerted() { return capture(router_, "alerted").seen().size(); }
  std::string read(const std::string& handler) { return router_.read("m." + handler); }
  std::string written() {
    EXPECT_TRUE(router_.write("m.flush"));
    return alerts_.content();
  }
  std::string path() const { return rules_.path(); }

 private:
  TemporaryFile rules_;
  TemporaryFile alerts_;
  TestRouter router_;
};

size_t lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

constexpr const char* kRules =
    "alert udp any any -> any 2000 (msg:\"one\"; content:\"needle\"; sid:1; rev:3; classtype:web;)\n"
    "alert udp any any -> any any (msg:\"near\"; content:\"hay\"; content:\"stack\"; within:6; sid:2;)\n"
    "alert udp any any -> any any (msg:\"no content\"; dsize:3; sid:3;)\n"
    "pass udp any any -> any any (content:\"friend\"; sid:4;)\n";

// TrafficSource leaves there when a frame was due, and TrafficSink reads it.
TEST(IDSMatcher, LeavesOtherAnnotationsAlone) {
  Matcher m(kRules);
  ASSERT_TRUE(m.router().ok()) << m.router().errors();
  std::string before(Packet::kAnnoSize, 'x');
  for (const char* data : {"a needle", "abc", "nothing"}) {
    const std::string bytes = udp(data);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    std::memcpy(p->anno(), before.data(), before.size());
    m.router().push("in", p);
  }
  ASSERT_EQ(m.alerted() + m.clean(), 3u);
  for (const char* where : {"clean", "alerted"})
    for (const auto& seen : capture(m.router(), where).seen())
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(seen.packet->anno()), before.size()), before) << where;
}

TEST(IDSMatcher, ConfirmsCountsAndSorts) {
  Matcher m(kRules);
  ASSERT_TRUE(m.router().ok()) << m.router().errors();
  m.push(udp("a needle in a hay stack"));                     // 1 and 2
  m.push(udp("a needle", 2001));                              // not its port
  m.push(udp("a hay, no stack"));                             // too far
  m.push(udp("a needle of a friend"));                        // passed
  m.push(udp("abc"));                                         // 3
  m.push(udp("nothing"));                                     //
  m.push(ip_packet("10.0.0.1", "10.0.0.2", 47, "a needle"));  // not UDP
  EXPECT_EQ(m.alerted(), 2u);
  EXPECT_EQ(m.clean(), 5u);
  EXPECT_EQ(m.read("alerts"), "1 1 one\n2 1 near\n3 1 no content\n");
  EXPECT_EQ(m.read("candidates"), "3");  // where protocol and port are right
  EXPECT_EQ(m.read("confirmed"), "2");
  EXPECT_EQ(m.read("passed"), "1");
  EXPECT_EQ(m.read("cut"), "0");
  const std::string json = m.written();
  EXPECT_EQ(lines(json), 3u);
  EXPECT_EQ(m.read("written"), "3");
  EXPECT_NE(json.find("\"event_type\":\"alert\",\"src_ip\":\"10.0.0.1\",\"src_port\":1000,\"dest_ip\":\"10.0.0.2\","
                      "\"dest_port\":2000,"
                      "\"proto\":\"UDP\",\"alert\":{\"action\":\"allowed\",\"gid\":1,\"signature_id\":1,\"rev\":3,"
                      "\"signature\":\"one\","
                      "\"category\":\"web\",\"severity\":3},\"pkt_len\":51}\n"),
            std::string::npos)
      << json;
  EXPECT_TRUE(m.router().write("m.reset"));
  EXPECT_EQ(m.read("alerts") + m.read("top"), "");
  for (const char* count : {"candidates", "confirmed", "passed", "written"}) EXPECT_EQ(m.read(count), "0") << count;
}

TEST(IDSMatcher, TopSortsByCount) {
  Matcher m(
      "alert udp any any -> any any (msg:\"a\"; content:\"aaa\"; sid:1;)\nalert udp any any -> any any (msg:\"b\"; "
      "content:\"bbb\"; sid:2;)");
  m.push(udp("aaa")).push(udp("bbb")).push(udp("bbb"));
  EXPECT_EQ(m.read("top"), "2 2 b\n1 1 a\n");
  EXPECT_EQ(m.read("alerts"), "1 1 a\n2 2 b\n");
}

TEST(IDSMatcher, MoreCandidatesThanFitAreAllConfirmed) {
  std::string rules, payload;
  for (int i = 0; i < 40; ++i) {
    rules += fmt::format("alert udp any any -> any any (content:\"word{:02}\"; sid:{};)\n", i, i + 1);
    if (i % 3 != 0) payload += fmt::format("word{:02} ", i);
  }
  Matcher m(rules);
  m.push(udp(payload)).push(udp(payload));
  EXPECT_EQ(m.alerted(), 2u);
  EXPECT_EQ(lines(m.read("alerts")), 26u);
}

TEST(IDSMatcher, AtMost64AlertsForAPacket) {
  for (const int matching : {64, 65, 80}) {
    std::string rules, payload;
    for (int i = 0; i < matching; ++i) {
      rules += fmt::format("alert udp any any -> any any (content:\"word{:02}\"; sid:{};)\n", i, i + 1);
      payload += fmt::format("word{:02} ", i);
    }
    Matcher m(rules, "RATE 0");
    ASSERT_TRUE(m.router().ok()) << m.router().errors();
    m.push(udp(payload));
    EXPECT_EQ(m.alerted(), 1u);
    EXPECT_EQ(lines(m.read("alerts")), 64u) << matching;
    EXPECT_EQ(lines(m.written()), 64u) << matching;
    EXPECT_EQ(m.read("cut"), matching > 64 ? "1" : "0") << matching;
  }
}

// A pass rule counts wherever it stands, also behind 64 alerts.
TEST(IDSMatcher, PassCountsBehind64Alerts) {
  std::string rules, payload;
  for (int i = 0; i < 70; ++i) {
    rules += fmt::format("alert udp any any -> any any (content:\"word{:02}\"; sid:{};)\n", i, i + 1);
    payload += fmt::format("word{:02} ", i);
  }
  Matcher m(rules + "pass udp any any -> any any (content:\"friend\"; sid:100;)\n");
  ASSERT_TRUE(m.router().ok()) << m.router().errors();
  m.push(udp(payload + "friend"));
  EXPECT_EQ(m.alerted(), 0u);
  EXPECT_EQ(m.read("passed"), "1");
}

TEST(IDSMatcher, OneOutputTakesAll) {
  const TemporaryFile rules("alert udp any any -> any any (content:\"x\"; sid:1;)"), alerts;
  TestRouter r("Idle -> in :: MarkIPHeader -> m :: IDSMatcher(RULES " + rules.path() + ", ALERTS " + alerts.path() +
               ") -> all :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("in", udp("x"));
  r.push("in", udp("y"));
  EXPECT_EQ(capture(r, "all").seen().size(), 2u);
  EXPECT_EQ(r.read("m.confirmed"), "1");
}

TEST(IDSMatcher, FindsEthernetAndTags) {
  const TemporaryFile rules(
      "alert udp any any -> any any (content:\"x\"; sid:1;)\nalert udp any any -> any any (dsize:1; sid:2;)"),
      alerts;
  TestRouter r("Idle -> m :: IDSMatcher(RULES " + rules.path() + ", ALERTS " + alerts.path() + ") -> all :: Capture;");
  const std::string addresses = testing::from_hex("020000000001020000000002");
  r.push("m", addresses + testing::from_hex("0800") + udp("x"));
  r.push("m", addresses + testing::from_hex("810000010800") + udp("x") + std::string(18, 'x'));  // padded
  r.push("m", addresses + testing::from_hex("0806") + udp("x"));
  EXPECT_EQ(r.read("m.alerts"), "1 2 \n2 2 \n");
}

TEST(IDSMatcher, RulesWithoutALiteralAreTriedWhereTheyBelong) {
  Matcher m(
      "alert tcp any any -> any any (flags:SF; sid:1;)\n"
      "alert icmp any any -> any any (itype:8; sid:2;)\n"
      "alert udp any any -> any 99 (pcre:\"/^a/\"; sid:3;)\n"
      "alert udp any 1000 -> any any (content:!\"b\"; dsize:>5; sid:4;)\n"
      "alert ip any any -> any any (ip_proto:47; sid:5;)\n"
      "alert ip any any -> any any (fragoffset:>0; sid:6;)\n");
  const auto tcp = [](uint8_t flags) {
    return ip_packet(
        "10.0.0.1", "10.0.0.2", 6,
        testing::from_hex("0001 0002 00000000 00000000 50") + static_cast<char>(flags) + std::string(6, '\0'));
  };
  m.push(tcp(3)).push(tcp(2));
  m.push(ip_packet("10.0.0.1", "10.0.0.2", 1, testing::from_hex("0800 0000 0000 0000")));
  m.push(ip_packet("10.0.0.1", "10.0.0.2", 1, testing::from_hex("0000 0000 0000 0000")));
  m.push(udp("abb", 99)).push(udp("bbb", 99)).push(udp("abb", 98));
  m.push(udp("aaaaaa", 98)).push(udp("aaaaab", 98));
  m.push(ip_packet("10.0.0.1", "10.0.0.2", 47, "gre"));
  m.push(ip_packet("10.0.0.1", "10.0.0.2", 6, "later", 0x2003));
  EXPECT_EQ(m.read("alerts"), "1 1 \n2 1 \n3 1 \n4 1 \n5 1 \n6 1 \n");
  EXPECT_NE(m.read("rules").find("tried without a search: 6\n"), std::string::npos);
}

TEST(IDSMatcher, ShortLiteralsAreNotSearchedFor) {
  Matcher m(
      "alert udp any any -> any 99 (content:\"a\"; sid:1;)\nalert ip any any -> any any (content:\"b\"; sid:2;)\n"
      "alert udp any [7,8] -> any any (content:\"ab\"; offset:1; sid:3;)\nalert udp any any -> any any "
      "(content:\"cd\"; sid:4;)\n");
  m.push(udp("a", 99)).push(udp("a", 98)).push(udp("b", 99)).push(udp("c", 99)).push(udp("cd"));
  m.push(testing::udp_packet({"10.0.0.1", 8, "10.0.0.2", 1}, "xab"));
  m.push(testing::udp_packet({"10.0.0.1", 9, "10.0.0.2", 1}, "xab"));
  m.push(ip_packet("10.0.0.1", "10.0.0.2", 6, "ab", 0x2003));
  EXPECT_EQ(m.read("alerts"), "1 1 \n2 4 \n3 1 \n4 1 \n");
  EXPECT_EQ(m.read("candidates"), "1");
  EXPECT_NE(m.read("rules").find("tried without a search: 3\n"), std::string::npos);
}

TEST(IDSMatcher, DevicesFindTheSame) {
  std::string rules = kRules;
  for (int i = 0; i < 300; ++i)
    rules += fmt::format("alert udp any any -> any any (content:\"w{:03}\"; nocase; offset:{}; sid:{};)\n", i, i % 9,
                         i + 10);
  std::string expected;
  for (const char* engine : {"auto", "dfa", "compressed", "prefilter"})
    for (const bool device : {false, true}) {
      OffloadOptions offload;
      offload.mode = device ? OffloadOptions::Mode::kDevice : OffloadOptions::Mode::kCpu;
      offload.backend = "reference";
      Matcher m(rules, std::string("ENGINE ") + engine, RouterOptions{.profile = false, .offload = offload});
      ASSERT_TRUE(m.router().ok()) << m.router().errors();
      for (int i = 0; i < 200; ++i) {
        std::string payload = fmt::format("{}w{:03}..W{:03}{}", std::string(static_cast<size_t>(i % 7), '.'), i,
                                          (i * 7) % 300, i % 5 == 0 ? "needle" : "");
        if (i % 11 == 0) payload += " w001 w002 w003 w004 w005 w006 w007";
        m.push(udp(i % 13 == 0 ? "abc" : payload));
      }
      m.router().router().drain();
      const std::string found = fmt::format("{}{} {}\n", m.read("alerts"), m.alerted(), m.clean());
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << engine << device;
      EXPECT_EQ(m.alerted() + m.clean(), 200u);
    }
  EXPECT_GT(lines(expected), 50u);
}

TEST(IDSMatcher, LinesAreLimitedByRuleNotAlerts) {
  Matcher m(
      "alert udp any any -> any any (content:\"x\"; sid:1;)\nalert udp any any -> any any (content:\"y\"; sid:2;)",
      "RATE 3");
  const auto at = [&](int64_t ms, const std::string& payload) {
    const std::string bytes = udp(payload);
    Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_timestamp(Timestamp::from_ms(1000000 + ms));
    m.router().push("in", p);
  };
  for (int i = 0; i < 10; ++i) at(i, "x");  // 3 of them
  at(11, "y");                              // of its own
  at(500, "x");                             // 1: half a second is worth one
  at(501, "x");
  at(-900000, "x");  // a capture that is replayed again
  EXPECT_EQ(m.read("alerts"), "1 13 \n2 1 \n");
  EXPECT_EQ(lines(m.written()), 6u);
  EXPECT_EQ(m.read("suppressed"), "8");
}

TEST(IDSMatcher, AFullQueueLosesLinesNotPackets) {
  Matcher m("alert udp any any -> any any (content:\"x\"; sid:1;)", "RATE 0, QUEUE 2");
  Batch batch;
  const std::string bytes = udp("x");
  for (int i = 0; i < 256; ++i) batch.push_back(Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size())));
  m.router().router().find("in")->push(0, batch);
  EXPECT_EQ(m.alerted(), 256u);
  EXPECT_EQ(m.read("alerts"), "1 256 \n");
  const size_t written = lines(m.written());
  EXPECT_GE(written, 2u);
  EXPECT_GT(std::stoul(m.read("lost_alerts")), 0u);
  EXPECT_EQ(written + std::stoul(m.read("lost_alerts")), 256u);
}

TEST(IDSMatcher, TooMuchWorkIsCut) {
  std::string deep = "content:\"a\"; ";
  for (int i = 0; i < 30; ++i) deep += "content:\"a\"; within:40; ";
  std::string costly;
  for (int i = 0; i < 6; ++i)
    costly +=
        fmt::format("alert udp any any -> any any ({}content:\"z\"; within:40; fast_pattern; sid:{};)\n", deep, 10 + i);
  Matcher m(costly +
            "alert udp any any -> any any (content:\"c\"; pcre:\"/(a+)+[^abd]{2}/\"; sid:4;)\n"
            "alert udp any any -> any any (content:\"ddd\"; sid:5;)\n");
  ASSERT_TRUE(m.router().ok()) << m.router().errors();
  m.push(udp("nothing"));
  EXPECT_EQ(m.read("cut"), "0");
  // An expression that gives up does not hide what other rules find.
  m.push(udp("c" + std::string(1400, 'a') + "ddd"));
  EXPECT_EQ(m.read("cut"), "1");
  EXPECT_EQ(m.read("alerts"), "5 1 \n");
  // Several rules that cost too much do; but each only so much.
  m.push(udp("z" + std::string(1400, 'a') + "ddd"));
  EXPECT_EQ(m.read("cut"), "2");
  EXPECT_EQ(m.read("alerts"), "5 1 \n");
}

TEST(IDSMatcher, AlertsAreJsonWhateverTheRuleSays) {
  Matcher m("alert udp any any -> any any (msg:\"a\\\\b \xc3\xa9 \xff\"; content:\"x\"; sid:1;)");
  m.push(udp("x"));
  EXPECT_NE(m.written().find("\"signature\":\"a\\\\b \xc3\xa9 \xef\xbf\xbd\""), std::string::npos) << m.written();
}

TEST(IDSMatcher, AlertsHaveThePacketsTime) {
  const auto alerts = [] {
    Matcher m("alert udp any any -> any any (content:\"x\"; sid:1;)");
    const std::string bytes = udp("x");
    for (const int64_t ms : {1500, 1500, 2750}) {
      Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
      p->set_timestamp(Timestamp::from_ms(ms));
      m.router().push("in", p);
    }
    return m.written();
  };
  const std::string first = alerts();
  EXPECT_EQ(alerts(), first);
  EXPECT_EQ(lines(first), 3u);
  EXPECT_NE(first.find("\n{\"timestamp\":\"1970-01-01T00:00:02.750000+0000\""), std::string::npos) << first;
}

// The reader of a FIFO goes away and another one comes.
TEST(IDSMatcher, AlertsWithoutAReaderAreLost) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const TemporaryFile rules("alert udp any any -> any any (content:\"x\"; sid:1;)"), place;
  const std::string fifo = place.path() + ".fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  {
    TestRouter r("Idle -> in :: MarkIPHeader -> m :: IDSMatcher(RULES " + rules.path() + ", RATE 0, ALERTS " + fifo +
                 ") -> Discard;");
    const auto push = [&](int n) {
      for (int i = 0; i < n; ++i) r.push("in", udp("x"));
      EXPECT_TRUE(r.write("m.flush"));
    };
    const auto receive = [&] {
      char buffer[65536];
      const ssize_t n = read(reader, buffer, sizeof buffer);
      return std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0);
    };
    ASSERT_TRUE(r.ok()) << r.errors();
    push(1);
    EXPECT_EQ(lines(receive()), 1u);
    close(reader);
    ::testing::internal::CaptureStderr();
    push(100);
    EXPECT_NE(::testing::internal::GetCapturedStderr().find(": Broken pipe"), std::string::npos);
    reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
    push(2);
    const std::string again = receive();
    EXPECT_EQ(lines(again), 2u);
    EXPECT_TRUE(again.starts_with("{\"timestamp\":")) << again;
    EXPECT_EQ(r.read("m.written"), "3");
    EXPECT_EQ(r.read("m.lost_alerts"), "100");
  }
  close(reader);
  unlink(fifo.c_str());
  std::signal(SIGPIPE, before);
}

TEST(IDSMatcher, Errors) {
  const TemporaryFile bad(
      "alert udp any any -> any any (content:\"x\"; sid:1;)\nalert udp any any -> any any (content:\"\"; sid:2;)\n"
      "alert udp any any -> any any (http_uri; sid:3;)\n");
  const auto errors = [&](const std::string& arguments) {
    return TestRouter("Idle -> m :: IDSMatcher(" + arguments + ") -> Discard;").errors();
  };
  const std::string where = "config:1: While configuring 'm :: IDSMatcher':\n  ";
  EXPECT_EQ(errors("ALERTS x"), where + "RULES: required argument missing\nRouter could not be initialized!\n");
  EXPECT_EQ(errors("RULES /no/such.rules"),
            where + "/no/such.rules: No such file or directory\nRouter could not be initialized!\n");
  EXPECT_EQ(errors("RULES " + bad.path() + ", STRICT true"),
            where + bad.path() + ":2: content: no bytes\n  " + bad.path() +
                ":3: not supported: http_uri\nRouter could not be initialized!\n");
  EXPECT_NE(errors("RULES " + bad.path() + ", VAR X").find("VAR: expected a name and a value"), std::string::npos);
  EXPECT_NE(errors("RULES " + bad.path() + ", HOME_NET 10.0.0/8").find("HOME_NET: bad address '10.0.0/8'"),
            std::string::npos);
  EXPECT_NE(errors("RULES " + bad.path() + ", ENGINE FAST").find("ENGINE: expected auto, dfa, prefilter or compressed"),
            std::string::npos);
  EXPECT_NE(errors("RULES " + bad.path() + ", ALERTS /no/such/folder/eve.json")
                .find("/no/such/folder/eve.json: No such file or directory"),
            std::string::npos);
  // Without STRICT the good ones run; what is wrong is told at once, the rest on demand.
  const TemporaryFile alerts;
  TestRouter r("Idle -> m :: IDSMatcher(RULES " + bad.path() + ", ALERTS " + alerts.path() + ") -> Discard;");
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r.errors(),
            "config:1: While configuring 'm :: IDSMatcher':\n  warning: " + bad.path() + ":2: content: no bytes\n");
  EXPECT_EQ(r.read("m.refused"), bad.path() + ":2: content: no bytes\n" + bad.path() + ":3: not supported: http_uri\n");
  EXPECT_EQ(r.router().find("m")->note(), "3 rules: 1 run, 1 ask for what is not supported (http_uri 1), 1 are wrong");
}

TEST(IDSMatcher, VariablesAndClasses) {
  const TemporaryFile classes("config classification: web,About the web,1\n");
  Matcher m(
      "alert udp $HOME_NET any -> $EXTERNAL_NET $MY_PORTS (content:\"x\"; classtype:web; sid:1;)\n#alert udp any any "
      "-> any any (content:\"z\"; sid:2;)",
      "HOME_NET \"[10.0.0.0/24,!10.0.0.9]\", EXTERNAL_NET \"!10.0.1.0/24\", VAR MY_PORTS \"[2000,3000:3010]\", "
      "DISABLED true, CLASSIFICATION " +
          classes.path());
  ASSERT_TRUE(m.router().ok()) << m.router().errors();
  m.push(udp("x", 3005)).push(udp("x", 4000)).push(udp("z"));
  m.push(testing::udp_packet({"10.0.0.9", 1, "10.0.0.2", 2000}, "x"))
      .push(testing::udp_packet({"10.0.0.1", 1, "10.0.1.2", 2000}, "x"));
  EXPECT_EQ(m.read("alerts"), "1 1 \n2 1 \n");
  EXPECT_NE(m.written().find("\"category\":\"About the web\",\"severity\":1}"), std::string::npos);
}

}  // namespace
}  // namespace headrace
