#include <algorithm>
#include <map>

#include "elements/devices/due_time.hh"
#include "elements/devices/flow_sequence.hh"
#include "headrace/flow_hash.hh"
#include "support/element_test.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"

namespace headrace::testing {
namespace {

const uint8_t* frame_of(TestRouter& r, size_t i) { return capture(r, "c").seen()[i].packet->data(); }
uint32_t length_of(TestRouter& r, size_t i) { return capture(r, "c").seen()[i].packet->length(); }

TEST(TrafficSource, HandlersTellAndCheckWhatIsSent) {
  TestRouter r(
      "s :: TrafficSource(LENGTH 100, PAYLOAD text) -> Discard; i :: TrafficSource(imix, SEQUENCE true) -> Discard");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.rate"), "0");
  EXPECT_EQ(r.read("s.length"), "100");
  EXPECT_EQ(r.read("s.payload"), "text");
  EXPECT_EQ(r.read("i.length"), "0");
  EXPECT_TRUE(r.write("s.rate", "2500000.5"));
  EXPECT_TRUE(r.write("s.length", "1514"));
  EXPECT_TRUE(r.write("s.payload", "random"));
  EXPECT_EQ(r.read("s.rate"), "2500000.5");
  EXPECT_EQ(r.read("s.length"), "1514");
  EXPECT_EQ(r.read("s.payload"), "random");
  const std::string before = r.errors();
  for (const char* rate : {"-1", "nan", "1e13", "", "fast"}) EXPECT_FALSE(r.write("s.rate", rate)) << rate;
  for (const char* length : {"59", "1515", "", "-64", "64.5"}) EXPECT_FALSE(r.write("s.length", length)) << length;
  for (const char* payload : {"any", "", "texts"}) EXPECT_FALSE(r.write("s.payload", payload)) << payload;
  EXPECT_NE(r.errors().find("expected a number from 0 to 1e12"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("expected a number from 60 to 1514"), std::string::npos);
  EXPECT_NE(r.errors().find("expected text or random"), std::string::npos);
  EXPECT_EQ(r.read("s.length"), "1514");
}

TEST(TrafficSource, AFileOfFramesKeepsItsFrames) {
  TestRouter r("s :: TrafficSource(" + kSourceDir + "/tests/data/capture/little_micro.pcap) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_FALSE(r.write("s.length", "100"));
  EXPECT_FALSE(r.write("s.payload", "text"));
  EXPECT_TRUE(r.write("s.rate", "100"));
}

TEST(TrafficSource, AllFramesHaveAChangedLength) {
  for (const char* kind : {"uniform", "imix", "zipf"}) {
    TestRouter r(std::string("s :: TrafficSource(") + kind + ", FLOWS 50, LIMIT 300, STOP true) -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    ASSERT_TRUE(r.write("s.length", "333"));
    r.run();
    ASSERT_EQ(capture(r, "c").seen().size(), 300u);
    for (size_t i = 0; i < 300; ++i) {
      ASSERT_EQ(length_of(r, i), 333u) << kind << i;
      const uint8_t* ip = frame_of(r, i) + 14;
      EXPECT_EQ(ip[2] << 8 | ip[3], 333 - 14);
      uint32_t sum = 0;
      for (int at = 0; at < 20; at += 2) sum += static_cast<uint32_t>(ip[at] << 8 | ip[at + 1]);
      EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
      EXPECT_EQ(ip[24] << 8 | ip[25], 333 - 34);
    }
    EXPECT_EQ(r.read("s.byte_count"), std::to_string(300 * 333));
  }
}

TEST(TrafficSource, AllBuffersHaveAChangedPayload) {
  const auto readable = [](TestRouter& r, size_t i) {
    const uint8_t* frame = frame_of(r, i);
    return std::count_if(frame + 42, frame + 1000,
                         [](uint8_t c) { return c == '\n' || c == '\r' || (c >= 32 && c < 127); });
  };
  TestRouter r("s :: TrafficSource(LENGTH 1000, FLOWS 64, LIMIT 2000, STOP true, PAYLOAD random) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_TRUE(r.write("s.payload", "text"));
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 2000u);
  for (size_t i = 0; i < 2000; ++i) ASSERT_EQ(readable(r, i), 958) << i;
  EXPECT_NE(std::memcmp(frame_of(r, 0) + 42, frame_of(r, 1) + 42, 900), 0) << "all the same";
}

TEST(TrafficSource, WeightsDivideTheFrames) {
  TestRouter r("s :: TrafficSource(FLOWS 65536, LIMIT 13000, STOP true, WEIGHTS 10) -> c :: Capture;", 4);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  std::map<int, int> frames;
  for (const Capture::Seen& seen : capture(r, "c").seen()) ++frames[rss_worker(seen.packet->rx_hash(), 4)];
  EXPECT_NEAR(frames[0], 10000, 200);
  for (int w = 1; w < 4; ++w) EXPECT_NEAR(frames[w], 1000, 50);
  TestRouter wrong("s :: TrafficSource(WEIGHTS 1 0) -> Discard;");
  EXPECT_FALSE(wrong.ok());
  EXPECT_NE(wrong.errors().find("WEIGHTS: expected numbers from more than 0 to 1000000, got '0'"), std::string::npos)
      << wrong.errors();
}

TEST(TrafficSource, SequencesNumberTheFramesOfEachFlow) {
  for (const char* kind : {"uniform, FLOWS 10", "imix, FLOWS 10, STAMP true", "zipf, FLOWS 10, SKEW 2"}) {
    TestRouter r(std::string("s :: TrafficSource(") + kind +
                 ", LENGTH 70, SEQUENCE true, LIMIT 1000, STOP true) -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    ASSERT_EQ(capture(r, "c").seen().size(), 1000u);
    std::map<uint32_t, uint64_t> next;
    std::map<uint32_t, std::string> addresses;
    for (size_t i = 0; i < 1000; ++i) {
      FrameSequence s;
      ASSERT_TRUE(s.read(frame_of(r, i), length_of(r, i))) << kind << ", frame " << i;
      EXPECT_EQ(s.source, 0u);
      EXPECT_LT(s.flow, 10u);
      ASSERT_EQ(s.number, next[s.flow]++) << kind;
      const std::string where = capture(r, "c").bytes(i).substr(26, 10);
      EXPECT_EQ(addresses.emplace(s.flow, where).first->second, where) << "two flows";
    }
  }
}

TEST(TrafficSource, FramesOfRulesAreInsideThem) {
  const TemporaryFile rules("tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=drop\nipv6,nw_proto=17 actions=drop\n");
  for (const char* more : {"", ", LENGTH 200, PAYLOAD text", ", STAMP true, SEQUENCE true", ", CHECKSUM false"}) {
    TestRouter r("TrafficSource(RULES " + rules.path() + ", FLOWS 300, LIMIT 300, STOP true" + more +
                 ") -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    r.run();
    int tcp = 0;
    for (size_t i = 0; i < 300; ++i) {
      const uint8_t* f = frame_of(r, i);
      const bool ip6 = f[12] == 0x86;
      tcp += !ip6;
      ASSERT_EQ(f[ip6 ? 20 : 23], ip6 ? 17 : 6);
      if (ip6) {
        ASSERT_EQ(f[18] << 8 | f[19], static_cast<int>(length_of(r, i)) - 54);
        continue;
      }
      ASSERT_TRUE(f[30] == 10 && f[36] == 0 && f[37] == 80);
      ASSERT_EQ(f[16] << 8 | f[17], static_cast<int>(length_of(r, i)) - 14);
    }
    EXPECT_NEAR(tcp, 150, 50);
  }
}

TEST(TrafficSource, NamesMistakesAboutRules) {
  const TemporaryFile rules("tcp actions=drop\nnonsense\n"), all("tcp actions=drop\nudp actions=drop\n");
  const auto error_of = [](const std::string& arguments) {
    TestRouter r("TrafficSource(" + arguments + ") -> Discard;");
    return r.errors();
  };
  EXPECT_NE(
      error_of("RULES " + rules.path()).find("warning: RULES: " + rules.path() + ":2: expected a ClassBench rule"),
      std::string::npos);
  EXPECT_NE(error_of("MISS 0.1").find("MISS: there are no RULES"), std::string::npos);
  EXPECT_NE(error_of("PROTOCOL icmp").find("PROTOCOL: expected tcp or udp"), std::string::npos);
  EXPECT_NE(error_of("RULES " + all.path() + ", MISS 2").find("MISS: out of range"), std::string::npos);
  EXPECT_NE(error_of("RULES " + all.path() + ", MISS 0.5").find("MISS: no frame is outside of the rules"),
            std::string::npos);
  EXPECT_NE(error_of("RULES /nonexistent").find("/nonexistent: No such file"), std::string::npos);
}

TEST(TrafficSource, SequencesNeedRoom) {
  const auto error_of = [](const std::string& arguments) {
    TestRouter r("TrafficSource(" + arguments + ") -> Discard;");
    return r.errors();
  };
  EXPECT_EQ(error_of("LENGTH 60, SEQUENCE true"), "");
  EXPECT_EQ(error_of("LENGTH 60, STAMP true"), "");
  EXPECT_NE(error_of("LENGTH 69, STAMP true, SEQUENCE true").find("LENGTH: out of range, bound 70"), std::string::npos);
  EXPECT_EQ(error_of("LENGTH 70, STAMP true, SEQUENCE true"), "");
  TestRouter r("s :: TrafficSource(LENGTH 70, STAMP true, SEQUENCE true) -> Discard;");
  EXPECT_FALSE(r.write("s.length", "69"));
  EXPECT_TRUE(r.write("s.length", "70"));
}

// --- TrafficSink

/// 40 frames of four flows, which take turns, and a sink to push them to.
class Numbered {
 public:
  Numbered()
      : router_(
            "TrafficSource(FLOWS 4, LIMIT 40, STOP true, SEQUENCE true) -> c :: Capture;"
            "Idle -> a :: TrafficSink(SEQUENCE true); Idle -> b :: TrafficSink(SEQUENCE true);") {
    router_.run();
  }
  void push(size_t i, const char* sink = "a") { router_.push(sink, capture(router_, "c").bytes(i)); }
  /// Checked, lost, doubled, reordered.
  std::string counts() {
    std::string all;
    for (const char* name : {"checked", "lost", "doubled", "reordered"})
      all += router_.read(std::string("b.sequence_") + name) + " ";
    return all;
  }
  TestRouter& router() { return router_; }

 private:
  TestRouter router_;
};

TEST(TrafficSink, SequencesAreWhole) {
  Numbered n;
  for (size_t i = 0; i < 40; ++i) n.push(i, i % 3 ? "a" : "b");
  EXPECT_EQ(n.counts(), "40 0 0 0 ");
}

TEST(TrafficSink, CountsWhatIsLost) {
  Numbered n;
  for (size_t i = 0; i < 40; ++i)
    if (i != 0 && i != 9 && i != 13 && i != 39) n.push(i);
  // Nothing tells that the last one of its flow was sent.
  EXPECT_EQ(n.counts(), "36 3 0 0 ");
}

TEST(TrafficSink, CountsWhatIsDoubled) {
  Numbered n;
  for (size_t i = 0; i < 40; ++i) {
    n.push(i);
    if (i % 10 == 0) n.push(i, "b");
  }
  n.push(3);
  EXPECT_EQ(n.counts(), "45 0 5 0 ");
}

TEST(TrafficSink, CountsWhatIsReordered) {
  Numbered n;
  for (size_t i = 0; i < 40; ++i)
    if (i != 5) n.push(i);
  EXPECT_EQ(n.counts(), "39 1 0 0 ");
  n.push(5);
  EXPECT_EQ(n.counts(), "40 0 0 1 ");
  n.push(5);
  EXPECT_EQ(n.counts(), "41 0 1 1 ");
}

TEST(TrafficSink, CountsFromZeroAfterAReset) {
  Numbered n;
  for (size_t i = 0; i < 20; ++i)
    if (i != 5) n.push(i);
  EXPECT_EQ(n.counts(), "19 1 0 0 ");
  ASSERT_TRUE(n.router().write("a.reset_counts"));
  EXPECT_EQ(n.counts(), "0 0 0 0 ");
  // It was lost before.
  n.push(5);
  for (size_t i = 20; i < 40; ++i) n.push(i);
  EXPECT_EQ(n.counts(), "21 0 0 1 ");
}

TEST(TrafficSink, IgnoresFramesWithoutNumbers) {
  Numbered n;
  n.router().push("a", std::string(64, 'x'));
  n.router().push("a", "short");
  std::string other = capture(n.router(), "c").bytes(0);
  other[42 + 3] = 7;  // another source
  n.router().push("a", other);
  other[42 + 3] = 0;
  other[42 + 4] = 9;  // another flow
  n.router().push("a", other);
  EXPECT_EQ(n.counts(), "0 0 0 0 ");
}

TEST(TrafficSink, SequencesNeedASource) {
  TestRouter r("TrafficSource -> TrafficSink(SEQUENCE true);");
  EXPECT_NE(r.errors().find("SEQUENCE: no TrafficSource of this router has SEQUENCE"), std::string::npos) << r.errors();
}

TEST(TrafficSink, TellsSourcesApart) {
  TestRouter r(
      "TrafficSource(FLOWS 4, LIMIT 40, STOP false, SEQUENCE true) -> sink :: TrafficSink(SEQUENCE true);"
      "TrafficSource(FLOWS 8, LIMIT 40, STOP true, SEQUENCE true, SEED 2) -> sink;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("sink.sequence_checked"), r.read("sink.count"));
  EXPECT_EQ(r.read("sink.sequence_lost"), "0");
  EXPECT_EQ(r.read("sink.sequence_doubled"), "0");
  EXPECT_EQ(r.read("sink.sequence_reordered"), "0");
}

TEST(TrafficSink, ComparesTimesOfOneSourceOnly) {
  const char* const sources = "TrafficSource(LIMIT 0) -> sink :: TrafficSink(LATENCY true);";
  TestRouter r(std::string(sources) + "TrafficSource(LIMIT 0) -> sink; TrafficSource(LIMIT 0) -> sink;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const DueTime due(3);
  const auto arrive = [&](size_t source, uint64_t ns, uint32_t flow) {
    Packet* const p = Packet::make(64);
    ASSERT_NE(p, nullptr);
    p->set_anno_u64(anno_offset::kFirstTimestamp, due.make(ns, source));
    p->set_rx_hash(flow << 7);
    r.push("sink", p);
  };
  for (size_t source = 0; source < 3; ++source) {
    arrive(source, 9000 - 1000 * source, 1);
    arrive(source, 9100 - 1000 * source, 1);
    arrive(source, 5000, 2);
  }
  EXPECT_EQ(r.read("sink.reordered"), "0");
  for (size_t source = 0; source < 3; ++source) {
    arrive(source, 7000 - 1000 * source, 1);
    arrive(source, 6000, 2);
    EXPECT_EQ(r.read("sink.reordered"), std::to_string(source + 1));
  }
}

}  // namespace
}  // namespace headrace::testing
