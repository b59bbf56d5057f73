#include "tables/rules/rule_reader.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "support/source_dir.hh"
#include "support/temporary_file.hh"

namespace headrace::rules {
namespace {

RuleSet read(const std::string& text, RuleReader::Options options = {}) {
  RuleReader reader(std::move(options));
  reader.read_text(text, "t.rules");
  return reader.finish();
}

/// The only rule of a set without refused ones.
Rule one(const std::string& text, RuleReader::Options options = {}) {
  RuleSet set = read(text, std::move(options));
  for (const RefusedRule& r : set.refused) ADD_FAILURE() << r.text();
  EXPECT_EQ(set.rules.size(), 1u) << text;
  return set.rules.empty() ? Rule() : set.rules[0];
}

Rule with_options(const std::string& options) { return one("alert tcp any any -> any any (sid:1; " + options + ")"); }

TEST(RuleReader, ReadsAWholeRule) {
  const Rule r =
      one("alert tcp 10.0.0.0/8 1024: <> [192.168.1.1,2001:db8::/32] ![80,443] (msg:\"A \\\"quoted\\\" text\\; more\";"
          " flow:established,to_server; content:\"GET |2f 41|\"; nocase; offset:1; depth:40; content:!\"x\\;y\"; "
          "distance:-2;"
          " within:10; pcre:\"/a+b\\/c/iR\"; isdataat:!4,relative; dsize:10<>20; classtype:web; reference:url,x.y;"
          " metadata:a b, c d; priority:2; sid:77; gid:3; rev:9;)");
  EXPECT_EQ(r.protocol, Protocol::kTcp);
  EXPECT_TRUE(r.both_ways && r.established && r.flow_ignored);
  EXPECT_TRUE(r.src->v4.contains(0x0a123456) && !r.src->v4.contains(0x0b000000) && r.src->v6.empty());
  EXPECT_TRUE(r.dst->v4.contains(0xc0a80101) && !r.dst->v4.contains(0xc0a80102));
  EXPECT_TRUE(r.dst->v6.contains(Address6{0x20010db8} << 96 | 5) && !r.dst->v6.contains(5));
  EXPECT_TRUE(r.sports->contains(1024) && r.sports->contains(65535) && !r.sports->contains(1023));
  EXPECT_TRUE(r.dports->contains(0) && r.dports->contains(81) && !r.dports->contains(80) && !r.dports->contains(443));
  EXPECT_EQ(r.msg, "A \"quoted\" text; more");
  EXPECT_EQ(r.classtype, "web");
  EXPECT_EQ((std::vector<uint32_t>{r.sid, r.gid, r.rev, r.priority}), (std::vector<uint32_t>{77, 3, 9, 2}));
  ASSERT_EQ(r.steps.size(), 4u);
  const auto& first = std::get<Content>(r.steps[0]);
  EXPECT_EQ(first.bytes, "get /a");
  EXPECT_TRUE(first.nocase && !first.negated && !first.relative);
  EXPECT_EQ(first.from, 1);
  EXPECT_EQ(first.room, 40);
  const auto& second = std::get<Content>(r.steps[1]);
  EXPECT_EQ(second.bytes, "x;y");
  EXPECT_TRUE(second.negated && second.relative);
  EXPECT_EQ(second.from, -2);
  EXPECT_EQ(second.room, 10);
  const auto& regex = std::get<Regex>(r.steps[2]);
  EXPECT_TRUE(regex.relative && !regex.negated);
  PcreExpression::Found found;
  EXPECT_EQ(regex.expression.search("xxAAB/c", 0, {}, found), PcreExpression::Result::kYes);
  EXPECT_EQ(found.begin, 2u);
  EXPECT_EQ(found.end, 7u);
  const auto& at = std::get<DataAt>(r.steps[3]);
  EXPECT_TRUE(at.negated && at.relative && at.offset == 4);
  ASSERT_EQ(r.tests.size(), 1u);
  EXPECT_TRUE(r.tests[0].holds(11) && r.tests[0].holds(19) && !r.tests[0].holds(10) && !r.tests[0].holds(20));
  EXPECT_EQ(r.line, 1);
}

TEST(RuleReader, BothSpellingsOfModifiersMeanTheSame) {
  const Rule a = with_options("content:\"abc\"; content:\"xyz\"; nocase; distance:4; within:10; fast_pattern;");
  const Rule b = with_options("content:\"abc\"; content:\"xyz\",nocase, distance 4,within 10,fast_pattern;");
  for (const Rule& r : {a, b}) {
    const auto& c = std::get<Content>(r.steps[1]);
    EXPECT_TRUE(c.nocase && c.relative && c.from == 4 && c.room == 10);
    EXPECT_EQ(r.fast_step, 1);
  }
  const Rule d = with_options("content:\"abcdefgh\",fast_pattern,fast_pattern_offset 2,fast_pattern_length 3;");
  EXPECT_EQ(d.fast_literal(), "cde");
  EXPECT_EQ(with_options("content:\"abcdefgh\"; fast_pattern:2,3;").fast_literal(), "cde");
}

TEST(RuleReader, ChoosesTheFastPattern) {
  EXPECT_EQ(with_options("content:\"abc\"; content:\"longest\"; content:!\"negated text\";").fast_literal(), "longest");
  EXPECT_EQ(with_options("content:\"abc\"; fast_pattern; content:\"longest\";").fast_literal(), "abc");
  EXPECT_EQ(with_options("content:\"|00 00 00|\"; content:\"{%}\"; content:\"aaa\";").fast_literal(), "{%}");
  EXPECT_EQ(with_options("content:!\"negated text\"; dsize:5;").fast_step, -1);
  EXPECT_TRUE(with_options("content:\"abc\";").fast_is_all);
  EXPECT_TRUE(with_options("content:\"abc\"; nocase;").fast_is_all);
  EXPECT_TRUE(with_options("content:\"abc\"; fast_pattern:only;").fast_is_all);
  EXPECT_FALSE(with_options("content:\"abc\"; depth:3;").fast_is_all);
  EXPECT_FALSE(with_options("content:\"abc\"; endswith;").fast_is_all);
  EXPECT_FALSE(with_options("content:\"abc\"; fast_pattern:0,2;").fast_is_all);
  EXPECT_FALSE(with_options("content:\"abc\"; pcre:\"/d/\";").fast_is_all);
}

TEST(RuleReader, ExpressionsMayHoldQuotationMarks) {
  const auto expression = [](const std::string& options) {
    const Rule r = with_options(options);
    return r.steps.empty() ? "" : std::get<Regex>(r.steps[0]).text;
  };
  // From Emerging Threats: one quotation mark, two, and one behind a quoted semicolon.
  EXPECT_EQ(expression("pcre:\"/name=[\\x22']u\"/Rsi\"; msg:\"a\";"), "/name=[\\x22']u\"/Rsi");
  EXPECT_EQ(expression("pcre:\"/=\\s*[\"']?(['\"])((?!\\1).|['\"]){2}/Ri\"; dsize:5;"),
            "/=\\s*[\"']?(['\"])((?!\\1).|['\"]){2}/Ri");
  EXPECT_EQ(expression("pcre:\"/a\\;\"b/\" ; msg:\"c;d\";"), "/a\\;\"b/");
}

TEST(RuleReader, FieldOptions) {
  const auto holds = [](const std::string& option, uint32_t v) {
    const Rule r = with_options(option + ";");
    return r.tests.size() == 1 && r.tests[0].holds(v);
  };
  EXPECT_TRUE(holds("dsize:>5", 6) && !holds("dsize:>5", 5));
  EXPECT_TRUE(holds("dsize:<5", 4) && !holds("dsize:<5", 5));
  EXPECT_TRUE(holds("dsize:>=5", 5) && !holds("dsize:>=5", 4));
  EXPECT_TRUE(holds("dsize:<= 5", 5) && !holds("dsize:<=5", 6));
  EXPECT_TRUE(holds("dsize:!5", 4) && !holds("dsize:!5", 5));
  EXPECT_TRUE(holds("dsize:5<=>7", 5) && holds("dsize:5<=>7", 7) && !holds("dsize:5<=>7", 8));
  EXPECT_TRUE(holds("ttl:5-7", 5) && !holds("ttl:5-7", 8));
  EXPECT_TRUE(holds("id:0x1f", 31));
  EXPECT_TRUE(holds("tos:!x10", 15) && !holds("tos:!x10", 16));
  // F 1, S 2, R 4, P 8, A 16, U 32, E 64, C 128
  EXPECT_TRUE(holds("flags:S", 2) && !holds("flags:S", 0x12) && !holds("flags:S", 0xc2));
  EXPECT_TRUE(holds("flags:S,12", 2) && holds("flags:S,12", 0xc2) && !holds("flags:S,12", 0x12));
  EXPECT_TRUE(holds("flags:S,CE", 0xc2));
  EXPECT_TRUE(holds("flags:A+", 0x12) && holds("flags:+A", 0x10) && !holds("flags:A+", 2));
  EXPECT_TRUE(holds("flags:*FS", 1) && holds("flags:FS*", 2) && !holds("flags:*FS", 4));
  EXPECT_TRUE(holds("flags:!A,12", 2) && !holds("flags:!A,12", 0x50));
  EXPECT_TRUE(holds("flags:0", 0) && !holds("flags:0", 1) && holds("flags:0,12", 0xc0) && holds("flags:!0", 1));
  EXPECT_TRUE(holds("flags:SF12", 0xc3) && !holds("flags:SF12", 3));
  EXPECT_TRUE(holds("fragbits:M", 1) && !holds("fragbits:M", 3) && holds("fragbits:M+", 3) && !holds("fragbits:!D", 2));
  EXPECT_TRUE(holds("fragoffset:>0", 1) && !holds("fragoffset:>0", 0));
  EXPECT_TRUE(holds("ip_proto:tcp", 6) && holds("ip_proto:!6", 7) && !holds("ip_proto:!tcp", 6) &&
              holds("ip_proto:>134", 135));
  EXPECT_TRUE(holds("ipopts:lsrr", kOptionLooseRoute) && holds("ipopts:any", kOptionNop) && !holds("ipopts:rr", 0));
  EXPECT_TRUE(holds("sameip", 1) && !holds("sameip", 0));
  EXPECT_TRUE(holds("seq:4294967295", 4294967295u) && holds("window:!0", 1) && holds("icmp_id:666", 666));
}

TEST(RuleReader, Variables) {
  const RuleReader::Options options{{{"HOME_NET", "[10.0.0.0/8,!10.1.0.0/16]"},
                                     {"EXTERNAL_NET", "!$HOME_NET"},
                                     {"PORTS", "[$HTTP_PORTS,8000:8010]"}}};
  const Rule r = one("alert tcp $EXTERNAL_NET any -> [$HOME_NET,1.2.3.4] [$PORTS,![8005]] (sid:1;)", options);
  EXPECT_TRUE(r.src->v4.contains(0x0b000000) && !r.src->v4.contains(0x0a000001) && r.src->v4.contains(0x0a010001));
  EXPECT_TRUE(r.src->v6.is_all());
  EXPECT_TRUE(r.dst->v4.contains(0x01020304) && r.dst->v4.contains(0x0a020001) && !r.dst->v4.contains(0x0a010001));
  EXPECT_TRUE(r.dports->contains(80) && r.dports->contains(8004) && !r.dports->contains(8005) &&
              !r.dports->contains(81));
  EXPECT_TRUE(one("alert ip $HOME_NET any -> any any (sid:1;)").src->is_all());
}

TEST(RuleReader, LinesAndComments) {
  const std::string text =
      "# alert people when something happens\n\n"
      "alert ip any any -> any any (sid:1;) \r\n"
      "#alert ip any any -> any any (sid:2;)\n"
      "alert ip any any -> any \\\n  any (msg:\"two lines\"; \\\n sid:3;)\n"
      "## alert ip any any -> any any (sid:4;)\n"
      "alert ip any any -> any any (sid:5;) \\";
  RuleSet set = read(text);
  EXPECT_EQ(set.rules.size(), 3u);
  EXPECT_EQ(set.disabled, 2u);
  EXPECT_EQ(set.read, 3u);
  EXPECT_TRUE(set.refused.empty());
  EXPECT_EQ(set.rules[1].line, 5);
  EXPECT_EQ(set.rules[1].msg, "two lines");
  set = read(text, {{}, true});
  EXPECT_EQ(set.rules.size(), 5u);
  EXPECT_EQ(set.disabled, 0u);
}

TEST(RuleReader, EveryBadLineIsNamed) {
  struct Case {
    const char* line;
    const char* reason;
  };
  const Case cases[] = {
      {"warn tcp any any -> any any (sid:1;)", "unknown action 'warn', expected alert, log, pass, drop or reject"},
      {"alert tpc any any -> any any (sid:1;)", "unknown protocol 'tpc'"},
      {"alert tcp any any any any (sid:1;)", "expected 'action protocol address ports -> address ports (options)'"},
      {"alert tcp any any <- any any (sid:1;)", "bad direction '<-', expected '->' or '<>'"},
      {"alert tcp any any -> any any more (sid:1;)", "expected '(' before 'more'"},
      {"alert tcp 1.2.3 any -> any any (sid:1;)", "bad address '1.2.3'"},
      {"alert tcp 1.2.3.4/33 any -> any any (sid:1;)", "bad address '1.2.3.4/33'"},
      {"alert tcp 1.2.3.4/255.0.255.0 any -> any any (sid:1;)", "bad address '1.2.3.4/255.0.255.0'"},
      {"alert tcp 9.0.0.0-8.0.0.0 any -> any any (sid:1;)", "bad address '9.0.0.0-8.0.0.0'"},
      {"alert tcp [1.2.3.4 any -> any any (sid:1;)",
       "expected 'action protocol address ports -> address ports (options)'"},
      {"alert tcp [1.2.3.4,] any -> any any (sid:1;)", "empty element in the list '1.2.3.4,'"},
      {"alert tcp !any any -> any any (sid:1;)", "no address matches '!any'"},
      {"alert tcp $HOEM_NET any -> any any (sid:1;)", "undefined variable '$HOEM_NET'"},
      {"alert tcp any 65536 -> any any (sid:1;)", "bad port '65536'"},
      {"alert tcp any 9:8 -> any any (sid:1;)", "bad port '9:8'"},
      {"alert tcp any [80,!80] -> any any (sid:1;)", "no port matches '[80,!80]'"},
      {"alert tcp any any -> any any", "expected '(' and options"},
      {"alert tcp any any -> any any (sid:1;", "the closing ')' is missing"},
      {"alert tcp any any -> any any (sid:1)", "';' is missing behind 'sid:1'"},
      {"alert tcp any any -> any any (msg:\"x; sid:1;)", "a quotation mark is missing"},
      {"alert tcp any any -> any any (msg:x; sid:1;)", "msg: expected a text in quotation marks"},
      {"alert tcp any any -> any any (msg:\"x\";)", "no sid"},
      {"alert tcp any any -> any any (sid:abc;)", "sid: bad number 'abc'"},
      {"alert tcp any any -> any any (sid:1; priority:0;)", "priority: bad number '0'"},
      {"alert tcp any any -> any any (sid:1; contents:\"x\";)", "unknown option 'contents'"},
      {"alert tcp any any -> any any (sid:1; content:\"\";)", "content: no bytes"},
      {"alert tcp any any -> any any (sid:1; content:\"|0|\";)", "content: an odd number of hexadecimal digits"},
      {"alert tcp any any -> any any (sid:1; content:\"|0g|\";)", "content: 'g' is no hexadecimal digit"},
      {"alert tcp any any -> any any (sid:1; content:\"|00\";)", "content: the closing '|' is missing"},
      {"alert tcp any any -> any any (sid:1; content:\"a\" b;)", "content: 'b' behind the text"},
      {"alert tcp any any -> any any (sid:1; content:\"a\",dept 4;)", "content: unknown modifier 'dept'"},
      {"alert tcp any any -> any any (sid:1; nocase;)", "nocase: no content before it"},
      {"alert tcp any any -> any any (sid:1; content:\"a\"; nocase:yes;)", "nocase: takes no value"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; depth:2;)",
       "depth: 2 is less than the 3 bytes of the content"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; offset:-2;)", "offset: bad number '-2'"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; offset:2; offset:3;)",
       "offset: given twice for one content"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; offset:2; within:3;)",
       "content: offset, depth and startswith do not go together with distance and within"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; startswith; depth:3;)",
       "content: startswith does not go together with offset and depth"},
      {"alert tcp any any -> any any (sid:1; content:!\"abc\"; fast_pattern:only;)",
       "fast_pattern: a negated content cannot have 'only'"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; fast_pattern:2,2;)",
       "fast_pattern: offset and length do not lie within the content"},
      {"alert tcp any any -> any any (sid:1; content:\"abc\"; fast_pattern:best;)", "fast_pattern: bad value 'best'"},
      {"alert tcp any any -> any any (sid:1; pcre:\"abc\";)", "pcre: expected \"/expression/flags\""},
      {"alert tcp any any -> any any (sid:1; pcre:\"/abc\";)", "pcre: the closing '/' is missing"},
      {"alert tcp any any -> any any (sid:1; pcre:/abc/i\"; msg:\"a\";)", "pcre: expected a text in quotation marks"},
      {"alert tcp any any -> any any (sid:1; pcre:\"/abc/j\";)", "pcre: unknown flag 'j'"},
      {"alert tcp any any -> any any (sid:1; pcre:\"/a(b/\";)", "pcre: missing closing parenthesis (at offset 3)"},
      {"alert tcp any any -> any any (sid:1; isdataat:x y;)", nullptr},
      {"alert tcp any any -> any any (sid:1; isdataat:;)", "isdataat: bad value ''"},
      {"alert tcp any any -> any any (sid:1; isdataat:4,raltive;)", "isdataat: bad value '4,raltive'"},
      {"alert tcp any any -> any any (sid:1; dsize:20<>10;)", "dsize: bad value '20<>10'"},
      {"alert tcp any any -> any any (sid:1; flags:SX;)", "flags: bad value 'SX'"},
      {"alert tcp any any -> any any (sid:1; ttl:256;)", "ttl: bad value '256'"},
      {"alert tcp any any -> any any (sid:1; ipopts:xyz;)", "ipopts: bad value 'xyz'"},
      {"alert tcp any any -> any any (sid:1; ip_proto:nosuch;)", "ip_proto: bad value 'nosuch'"},
      {"alert tcp any any -> any any (sid:1; flow:esablished;)", "flow: unknown value 'esablished'"},
      {"config classification: a,b", "expected 'config classification: name,description,priority'"},
  };
  std::string text;
  for (const Case& c : cases) text += std::string(c.line) + "\n";
  const std::string good = "alert tcp any any -> any any (sid:2;)\n";
  const RuleSet set = read(text + good);
  EXPECT_EQ(set.rules.size(), 1u);  // the good one runs
  size_t next = 0;
  for (size_t i = 0; i < std::size(cases); ++i) {
    ASSERT_LT(next, set.refused.size());
    const RefusedRule& r = set.refused[next++];
    EXPECT_EQ(r.line, static_cast<int>(i) + 1);
    if (!cases[i].reason) continue;
    EXPECT_EQ(r.text(), "t.rules:" + std::to_string(i + 1) + ": " + cases[i].reason) << cases[i].line;
    EXPECT_FALSE(r.unsupported);
  }
  EXPECT_EQ(next, set.refused.size());
}

TEST(RuleReader, WhatIsNotSupportedIsNamed) {
  const RuleSet set = read(
      "alert tcp any any -> any any (content:\"a\"; http_uri; flowbits:set,x; byte_test:1,>,2,3; sid:1;)\n"
      "alert http any any -> any any (http.uri; content:\"a\"; pcre:\"/b/U\"; sid:2;)\n"
      "alert http (msg:\"of Snort 3\"; sid:3;)\n"
      "sdrop tcp any any -> any any (sid:4;)\n"
      "alert tcp any any -> any any (content:\"a\"; depth:len; sid:5;)\n"
      "alert tcp any any -> any any (content:\"a\", http_uri; uricontent:\"b\"; nocase; sid:6;)\n");
  ASSERT_EQ(set.refused.size(), 6u);
  EXPECT_TRUE(set.rules.empty());
  const char* reasons[] = {"http_uri, flowbits, byte_test",
                           "protocol http, http.uri, pcre /U",
                           "protocol http",
                           "action sdrop",
                           "depth of a variable",
                           "http_uri, uricontent"};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(set.refused[i].reason, std::string("not supported: ") + reasons[i]);
    EXPECT_TRUE(set.refused[i].unsupported);
    EXPECT_EQ(set.refused[i].sid, i + 1);
  }
  EXPECT_EQ(set.unsupported.at("http_uri"), 2u);
  EXPECT_EQ(set.summary(1), "6 rules: 0 run, 6 ask for what is not supported (http_uri 2, ...)");
  // An application's rules without its buffers may run on what carries it.
  const Rule dns = one("alert dns any any -> any 53 (content:\"a\"; sid:1;)", {{}, false, true});
  EXPECT_EQ(dns.protocol, Protocol::kTcpOrUdp);
}

TEST(RuleReader, OfRulesWithTheSameSidTheNewestRuns) {
  const RuleSet set = read(
      "alert tcp any any -> any any (sid:1; rev:2; msg:\"two\";)\n"
      "alert tcp any any -> any any (sid:1; rev:3; msg:\"three\";)\n"
      "alert tcp any any -> any any (sid:1; rev:1; msg:\"one\";)\n"
      "alert tcp any any -> any any (sid:1; gid:2; msg:\"other generator\";)\n");
  ASSERT_EQ(set.rules.size(), 2u);
  EXPECT_EQ(set.rules[0].msg, "three");
  ASSERT_EQ(set.refused.size(), 2u);
  EXPECT_EQ(set.refused[0].text(), "t.rules:1: replaced by rev 3 of sid 1: t.rules:2");
  EXPECT_EQ(set.refused[1].text(), "t.rules:3: sid 1 is there already: t.rules:2, rev 3");
}

TEST(RuleReader, Classification) {
  const testing::TemporaryFile file(
      "# comment\n\nconfig classification: web,A web attack, with a comma,1\nconfig classification: odd\nother\n");
  RuleReader reader({});
  reader.read_text(
      "alert tcp any any -> any any (sid:1; classtype:web;)\nalert tcp any any -> any any (sid:2; classtype:web; "
      "priority:4;)\n"
      "alert tcp any any -> any any (sid:3; classtype:none;)\n",
      "t.rules");
  EXPECT_EQ(reader.read_classification(file.path()), "");
  EXPECT_EQ(reader.read_classification("/no/such"), "No such file or directory");
  EXPECT_EQ(reader.read_rules("/no/such"), "No such file or directory");
  const RuleSet set = reader.finish();
  ASSERT_EQ(set.rules.size(), 3u);
  EXPECT_EQ(set.rules[0].category, "A web attack, with a comma");
  EXPECT_EQ(set.rules[0].priority, 1u);
  EXPECT_EQ(set.rules[1].priority, 4u);
  EXPECT_EQ(set.rules[2].category, "none");
  EXPECT_EQ(set.rules[2].priority, 3u);
  ASSERT_EQ(set.refused.size(), 2u);
  EXPECT_EQ(set.refused[0].line, 4);
  EXPECT_EQ(set.refused[1].line, 5);
}

TEST(RuleReader, LongLines) {
  const std::string address = "10.0.0.1,";
  std::string list = "[";
  for (int i = 0; i < 6000; ++i) list += address;
  const std::string good = "alert tcp " + list + "10.0.0.2] any -> any any (sid:1;)\n";
  EXPECT_TRUE(one(good).src->v4.contains(0x0a000002));
  const testing::TemporaryFile file("alert tcp any any -> any any (msg:\"" +
                                    std::string(RuleReader::kLongestLine, 'x') + "\"; sid:1;)\n" + good);
  RuleReader reader({});
  EXPECT_EQ(reader.read_rules(file.path()), "");
  const RuleSet set = reader.finish();
  EXPECT_EQ(set.rules.size(), 1u);
  ASSERT_EQ(set.refused.size(), 1u);
  EXPECT_EQ(set.refused[0].reason, "longer than 65536 bytes");
}

/// The files of an archive of ../shared/data/rules, unpacked into a folder of its own.
class Archive {
 public:
  explicit Archive(const std::string& name) {
    const std::filesystem::path archive = std::filesystem::path(kSourceDir) / "../shared/data/rules" / name;
    if (!std::filesystem::exists(archive)) return;
    folder_ = std::filesystem::temp_directory_path() / ("headrace-rules-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    if (std::system(("tar -xJf '" + archive.string() + "' -C '" + folder_.string() + "'").c_str()) != 0) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.path().extension() == ".rules") files_.push_back(entry.path());
    std::sort(files_.begin(), files_.end());
  }
  ~Archive() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  const std::vector<std::string>& files() const { return files_; }
  std::string folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> files_;
};

RuleSet read_all(const Archive& archive, const RuleReader::Options& options) {
  RuleReader reader(options);
  for (const std::string& file : archive.files()) EXPECT_EQ(reader.read_rules(file), "");
  RuleSet set = reader.finish();
  std::printf("%s\n", set.summary().c_str());
  EXPECT_EQ(set.rules.size() + set.refused.size(), set.read);
  return set;
}

TEST(RuleReader, SnortCommunityRules) {
  const Archive archive("snort-community-2022-02.tar.xz");
  if (archive.files().empty()) GTEST_SKIP() << "../shared/data/rules/snort-community-2022-02.tar.xz is not there";
  const RuleSet all = read_all(archive, {{}, true});
  EXPECT_EQ(all.read, 4005u);
  EXPECT_EQ(all.refused_unsupported(), all.refused.size());  // none is wrong
  EXPECT_GE(all.rules.size(), 1300u);
  EXPECT_LE(all.rules.size(), 1400u);
  EXPECT_LE(all.without_fast_pattern(), 120u);
  const RuleSet enabled = read_all(archive, {});
  EXPECT_EQ(enabled.read + enabled.disabled, 4005u);
  EXPECT_GE(enabled.rules.size(), 50u);
}

TEST(RuleReader, EmergingThreatsRules) {
  const Archive archive("et-open-2019-04.tar.xz");
  if (archive.files().empty()) GTEST_SKIP() << "../shared/data/rules/et-open-2019-04.tar.xz is not there";
  const RuleSet all = read_all(archive, {{}, true, true});
  EXPECT_EQ(all.read, 25772u);
  EXPECT_GE(all.rules.size(), 6700u);
  EXPECT_LE(all.rules.size(), 7300u);
  EXPECT_LE(all.refused.size() - all.refused_unsupported(), 30u);  // those are wrong
  const RuleSet strict = read_all(archive, {{}, true, false});
  EXPECT_GE(strict.rules.size(), 4700u);
  EXPECT_LT(strict.rules.size(), all.rules.size());
}

}  // namespace
}  // namespace headrace::rules
