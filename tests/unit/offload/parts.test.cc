// The parts of the engine by themselves: buckets, histograms, changed pages, parameter blocks, and what they report.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "backend/devices.hh"
#include "backend/reference/reference_backend.hh"
#include "headrace/flow_hash.hh"
#include "headrace/histogram.hh"
#include "headrace/mirror.hh"
#include "offload/chain_plans.hh"
#include "offload/parameters.hh"
#include "offload_fixture.hh"
#include "packets.hh"
#include "runtime/router_graph.hh"
#include "support/element_test.hh"
#include "support/temporary_file.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

// --- Buckets

struct Bucket {
  uint32_t operator()(const std::string& bytes, uint32_t hash = 0) const {
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_rx_hash(hash);
    const uint32_t bucket = flow_bucket(*p);
    p->kill();
    return bucket;
  }
};

/// An IPv4 frame with `tags` VLAN tags.
std::string frame4(int protocol, const char* ports, uint32_t source, bool fragment = false, int tags = 0,
                   int options = 0) {
  std::string bytes = udp_frame(source, 0x02020202);
  bytes[23] = static_cast<char>(protocol);
  const std::string port_bytes = from_hex(ports);
  bytes.replace(34, 4, port_bytes);
  if (fragment) bytes[21] = 5;
  if (options) {
    bytes[14] = static_cast<char>(0x45 + options);
    bytes.insert(34, static_cast<size_t>(4 * options), '\1');
  }
  for (int i = 0; i < tags; ++i) bytes.insert(12, from_hex(fmt::format("8100 {:04x}", 7 + i)));
  return bytes;
}

TEST(FlowBucket, PortsAndAddressesTellFlowsApart) {
  const Bucket bucket;
  EXPECT_EQ(bucket(frame4(17, "10000035", 1)), bucket(frame4(17, "10000035", 1)));
  EXPECT_NE(bucket(frame4(17, "10000035", 1)), bucket(frame4(17, "10010035", 1)));
  EXPECT_NE(bucket(frame4(6, "10000035", 1)), bucket(frame4(6, "10000036", 1)));
  EXPECT_NE(bucket(frame4(17, "10000035", 1)), bucket(frame4(17, "10000035", 2)));
  // Behind options and tags too.
  EXPECT_NE(bucket(frame4(17, "10000035", 1, false, 0, 3)), bucket(frame4(17, "10010035", 1, false, 0, 3)));
  EXPECT_EQ(bucket(frame4(17, "10000035", 1, false, 1)), bucket(frame4(17, "10000035", 1, false, 2)));
  EXPECT_EQ(bucket(frame4(17, "10000035", 1, false, 2)), bucket(frame4(17, "10000035", 1)));
}

TEST(FlowBucket, FragmentsOfAPacketStayTogether) {
  const Bucket bucket;
  EXPECT_EQ(bucket(frame4(17, "10000035", 1, true)), bucket(frame4(17, "abcdef01", 1, true)));
  std::string first = frame4(17, "10000035", 1);
  first[20] = 0x20;  // more fragments: it has the ports, the others do not
  EXPECT_EQ(bucket(first), bucket(frame4(17, "abcdef01", 1, true)));
  std::string whole = frame4(17, "10000035", 1);
  whole[20] = 0x40;  // only do not fragment
  EXPECT_EQ(bucket(whole), bucket(frame4(17, "10000035", 1)));
}

TEST(FlowBucket, SecurityParametersIndexAndOtherProtocols) {
  const Bucket bucket;
  EXPECT_NE(bucket(frame4(50, "00000101", 1)), bucket(frame4(50, "00000102", 1)));
  EXPECT_EQ(bucket(frame4(1, "08000102", 1)), bucket(frame4(1, "00000304", 1)));
}

TEST(FlowBucket, Ip6AndTheRest) {
  const Bucket bucket;
  const auto ip6 = [](int next, const std::string& ports, int last) {
    return from_hex(fmt::format("020000000001 020000000101 86dd 60000000 0010 {:02x} 40", next)) +
           std::string(31, 'a') + static_cast<char>(last) + from_hex(ports) + std::string(12, 'x');
  };
  EXPECT_EQ(bucket(ip6(17, "10000035", 1)), bucket(ip6(17, "10000035", 1)));
  EXPECT_NE(bucket(ip6(17, "10000035", 1)), bucket(ip6(17, "10000036", 1)));
  EXPECT_NE(bucket(ip6(17, "10000035", 1)), bucket(ip6(17, "10000035", 2)));
  EXPECT_EQ(bucket(from_hex("020000000001 020000000101 0806 0001")), 0u);
  EXPECT_EQ(bucket("short"), 0u);
  EXPECT_EQ(bucket(udp_frame(1, 2).substr(0, 30)), 0u) << "half an IP header";
  EXPECT_EQ(bucket("short", 77), 77u) << "a card's hash comes first";
}

// --- Histogram

TEST(Histogram, QuantilesWithinAClass) {
  Histogram h;
  EXPECT_EQ(h.quantile(0.5), 0u);
  for (uint64_t v = 1; v <= 100000; ++v) h.add(v);
  EXPECT_EQ(h.count(), 100000u);
  EXPECT_EQ(h.max(), 100000u);
  for (const double q : {0.01, 0.5, 0.9, 0.99, 0.999})
    EXPECT_NEAR(static_cast<double>(h.quantile(q)), q * 100000, 0.07 * q * 100000 + 1) << q;
  EXPECT_EQ(h.quantile(1), 100000u);
  Histogram other;
  other.add(1 << 30, 5);
  other.add(h);
  EXPECT_EQ(other.count(), 100005u);
  EXPECT_EQ(other.max(), uint64_t{1} << 30);
  other.clear();
  EXPECT_EQ(other.count(), 0u);
  EXPECT_EQ(other.max(), 0u);
}

TEST(Histogram, CountsWhatIsAbove) {
  Histogram h;
  for (const uint64_t value : {0, 5, 15, 100, 1000, 100'000, 200'000}) h.add(value);
  EXPECT_EQ(h.above(0), 6u);
  EXPECT_EQ(h.above(5), 5u);
  EXPECT_EQ(h.above(500), 3u);
  EXPECT_EQ(h.above(150'000), 1u);
  EXPECT_EQ(h.above(UINT64_MAX), 0u);
}

TEST(Histogram, LeavesWhatWasAddedSinceACopy) {
  Histogram h;
  h.add(5, 10);
  h.add(1000, 3);
  const Histogram before = h;
  h.add(5);
  h.add(70, 4);
  h.subtract(before);
  EXPECT_EQ(h.count(), 5u);
  EXPECT_EQ(h.quantile(0), 5u);
  EXPECT_NEAR(static_cast<double>(h.quantile(0.5)), 70, 4);
  // A copy that is not older is no reason for huge counts.
  Histogram empty;
  empty.subtract(before);
  EXPECT_EQ(empty.count(), 0u);
}

TEST(Histogram, SmallAndHugeValues) {
  Histogram h;
  for (uint64_t v = 0; v < 16; ++v) h.add(v);
  EXPECT_EQ(h.quantile(0), 0u);
  EXPECT_EQ(h.quantile(0.5), 7u);
  h.add(UINT64_MAX);
  EXPECT_EQ(h.max(), UINT64_MAX);
  EXPECT_EQ(h.quantile(1), UINT64_MAX);
}

// --- Changed pages

std::vector<std::pair<size_t, size_t>> since(const ChangedPages& pages, uint64_t moment) {
  std::vector<std::pair<size_t, size_t>> runs;
  pages.each_since(moment, [&](size_t begin, size_t end) { runs.emplace_back(begin, end); });
  return runs;
}

TEST(ChangedPages, TellEachFollowerWhatItLacks) {
  using Runs = std::vector<std::pair<size_t, size_t>>;
  constexpr size_t kPage = ChangedPages::kPage;
  ChangedPages pages(10 * kPage + 1);
  EXPECT_EQ(since(pages, 0), Runs());
  pages.mark(5, 6);
  pages.mark(kPage, kPage + 1);
  pages.mark(4 * kPage - 1, 4 * kPage + 1);
  pages.mark(7, 7);
  EXPECT_EQ(since(pages, 0), (Runs{{0, 2 * kPage}, {3 * kPage, 5 * kPage}}));
  const uint64_t first = pages.advance();
  EXPECT_EQ(since(pages, first), Runs());
  pages.mark(10 * kPage, 10 * kPage + 1);
  EXPECT_EQ(since(pages, first), (Runs{{10 * kPage, 11 * kPage}}));
  const uint64_t second = pages.advance();
  pages.mark(0, 1);
  EXPECT_EQ(since(pages, first), (Runs{{0, kPage}, {10 * kPage, 11 * kPage}}));
  EXPECT_EQ(since(pages, second), (Runs{{0, kPage}}));
  EXPECT_NE(ChangedPages(1).id(), ChangedPages(1).id());
}

TEST(ChangedPages, AreFoundAmongMany) {
  constexpr size_t kPage = ChangedPages::kPage, kMost = 5000;
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    ChangedPages pages(kMost * kPage - 5);
    std::vector<bool> marked(kMost);
    pages.mark(0, kMost * kPage - 5);
    const uint64_t before = pages.advance();
    for (size_t n = random() % 6; n > 0; --n) {
      const size_t first = random() % kMost, last = std::min<size_t>(kMost - 1, first + random() % 200);
      pages.mark(first * kPage + random() % 100, std::min(last * kPage + 101 + random() % 100, kMost * kPage - 5));
      std::fill(marked.begin() + static_cast<ptrdiff_t>(first), marked.begin() + static_cast<ptrdiff_t>(last) + 1,
                true);
    }
    std::vector<bool> told(kMost);
    size_t end_before = 0;
    for (const auto& [begin, end] : since(pages, before)) {
      EXPECT_TRUE(begin == 0 || begin > end_before) << "two runs that are one";
      end_before = end;
      for (size_t page = begin / kPage; page < end / kPage; ++page) told[page] = true;
    }
    EXPECT_EQ(told, marked);
    EXPECT_EQ(pages.any_since(before), std::find(marked.begin(), marked.end(), true) != marked.end());
  }
}

TEST(ChangedPages, SeveralFollowersAtATime) {
  ChangedPages pages(1);
  constexpr int kAdvances = 1'000'000;
  const auto follow = [&] {
    for (int i = 0; i < kAdvances; ++i) pages.advance();
  };
  std::thread other(follow);
  follow();
  other.join();
  EXPECT_EQ(pages.advance(), 2u * kAdvances + 1) << "a moment was handed out twice";
  static_assert(sizeof(pages.advance()) == 8, "thousands of updates a second, on several devices, for years");
}

// --- Parameters

class OffloadParameters : public ::testing::Test {
 protected:
  void make(const std::string& text, size_t limit = 0) {
    OffloadOptions cpu;
    cpu.mode = OffloadOptions::Mode::kCpu;
    router_ = std::make_unique<TestRouter>(text, RouterOptions{.profile = false, .offload = cpu});
    ASSERT_TRUE(router_->ok()) << router_->errors();
    const Router::Graph& graph = router_->router().graph();
    offload::ChainPlans chains = offload::plan_chains(graph.nodes(router_->router()), graph.edges, graph.resolved);
    plans_ = std::move(chains.plans);
    images_ = chains.images;
    memory_ = std::make_unique<offload::ReferenceMemory>(limit);
    parameters_ = std::make_unique<offload::Parameters>(*memory_, plans_, images_, 2);
  }
  /// An update, with `settle` asked until it is done.
  template <typename Settle>
  Status update(Settle&& settle) {
    offload::Parameters::Update update;
    for (;;)
      if (const std::optional<Status> status = parameters_->go_on(update, errors_, settle)) return *status;
  }
  Status update() {
    return update([](int) {
      ADD_FAILURE() << "nobody uses it";
      return offload::Parameters::Settled::kNever;
    });
  }
  /// The color that jobs of a generation paint.
  int color(int generation) const {
    const offload::Step& step = plans_.at(0).steps().at(0);
    Paint_ paint;
    std::memcpy(&paint, reinterpret_cast<const uint8_t*>(parameters_->address(generation)) + step.image, sizeof paint);
    return paint.color;
  }
  struct Paint_ {
    uint8_t color;
  };

  Errors errors_;
  std::unique_ptr<TestRouter> router_;
  std::vector<offload::Plan> plans_;
  size_t images_ = 0;
  std::unique_ptr<offload::ReferenceMemory> memory_;
  std::unique_ptr<offload::Parameters> parameters_;
};

/// The rows of a chain's plan.
class OffloadRows : public OffloadParameters {
 protected:
  const RowLayout& rows_of(const std::string& text) {
    make(text);
    EXPECT_EQ(plans_.size(), 1u);
    return plans_.at(0).row();
  }
};

constexpr int32_t kDstIp = 1, kPaint = 1 << 4;

TEST_F(OffloadRows, WhatIsWrittenBeforeItIsReadDoesNotGo) {
  // Also not where the chain's packets go to somebody who reads it.
  const RowLayout row = rows_of("Idle -> CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 0) -> cap :: Capture;");
  EXPECT_EQ(row.annotations_back | row.annotations_both, kDstIp);
  EXPECT_EQ(row.annotations_there, 0);
  EXPECT_EQ(rows_of("Idle -> rt :: RadixIPLookup(0.0.0.0/0 0) -> cap :: Capture;").annotations_both, kDstIp);
}

TEST_F(OffloadRows, WhatNobodyReadsDoesNotComeBack) {
  const std::string router =
      "Idle -> CheckIPHeader -> Paint(1) -> rt :: RadixIPLookup(0.0.0.0/0 0) -> CheckPaint(1) -> ";
  const RowLayout dead = rows_of(router + "EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;");
  EXPECT_EQ(dead.annotations_back | dead.annotations_both, 0);
  EXPECT_EQ(dead.annotations_stay, kDstIp | kPaint) << "the chain alone writes and reads them";
  const RowLayout live =
      rows_of(router + "q :: Queue -> Unqueue -> arp :: ARPQuerier(1.0.0.1, 1:1:1:1:1:1) -> Discard; Idle -> [1] arp;");
  EXPECT_EQ(live.annotations_back | live.annotations_both, kDstIp);
  // Only by way of an output for exceptions: then the row comes back whole.
  const RowLayout error =
      rows_of(router + "ttl :: DecIPTTL -> Discard; ttl[1] -> ICMPError(1.0.0.1, redirect, host) -> Discard;");
  EXPECT_EQ(error.annotations_back | error.annotations_both, 0);
  const offload::Plan& plan = plans_.at(0);
  bool some = false;
  for (size_t i = 0; i < plan.exits().size(); ++i) {
    const offload::Exit& exit = plan.exits()[i];
    const std::string& name = plan.steps()[exit.step].element->name();
    if (exit.kind != offload::Exit::Kind::kPort || name != "ttl") continue;
    EXPECT_EQ(exit.whole, exit.port == 1);
    some |= exit.whole;
  }
  EXPECT_TRUE(some);
}

TEST_F(OffloadRows, BytesThatNobodyWritesDoNotComeBack) {
  const RowLayout row =
      rows_of("Idle -> Strip(14) -> CheckIP6Header -> DecIP6HLIM -> LookupIP6Route(::/0 0) -> Discard;");
  EXPECT_EQ(row.window_begin, 14);
  EXPECT_EQ(row.window_size, 48);
  EXPECT_EQ(row.written, 16) << "the hop limit is byte 21";
  EXPECT_EQ(row.there, 64);
  EXPECT_EQ(row.back, 32);
  EXPECT_EQ(row.in_place, 0);
  const RowLayout read_only = rows_of("Idle -> c :: Classifier(12/0800, -) -> Discard; c[1] -> Discard;");
  EXPECT_EQ(read_only.in_place, 1) << "16 bytes more cost less than a place of their own";
  // Each piece begins behind the one before.
  EXPECT_EQ(row.window(), row.both_annotations() + 4 * RowLayout::ones(static_cast<uint32_t>(row.annotations_both)));
  EXPECT_LE(row.end(), row.stride);
}

TEST_F(OffloadRows, FramesThatNoEntryChangesDoNotComeBack) {
  const auto rows = [this](int number, const std::string& entries, const std::string& edits = {}) {
    const TemporaryFile flows(entries);
    return rows_of(
        fmt::format("sw :: OpenFlowSwitch({}, FLOWS {}, BYTES 48, ROOM 0{}); Idle -> [0] sw; Idle -> [1] sw; "
                    "sw[0] -> Discard; sw[1] -> Discard;",
                    number, flows.path(), edits));
  };
  const RowLayout as_they_came = rows(901, "in_port=1,actions=output:2\n");
  EXPECT_EQ(as_they_came.there, 64);
  EXPECT_EQ(as_they_came.written, 0);
  EXPECT_EQ(as_they_came.header, 32) << "what the packet met, and its paint";
  EXPECT_EQ(as_they_came.in_place, 1);
  EXPECT_EQ(as_they_came.back, 64);
  EXPECT_EQ(rows(902, "in_port=1,actions=output:2\n", ", EDITS true").written, 48);
  EXPECT_EQ(rows(903, "ip,in_port=1,actions=mod_nw_tos:4,output:2\n").written, 48);
  EXPECT_EQ(rows(904, "ip,in_port=1,actions=mod_nw_tos:4,output:2\n", ", EDITS false").written, 0);
  EXPECT_EQ(rows(905, "").written, 48) << "controllers may do anything";
}

TEST_F(OffloadRows, ResultsComeBackToWhereTheRowsWere) {
  const RowLayout row = rows_of(
      "Idle -> Strip(14) -> CheckIPHeader -> f :: FlowClassifier(FIELDS ip) -> EtherEncap(0x0800, 1:1:1:1:1:1, "
      "2:2:2:2:2:2) -> Discard;");
  EXPECT_EQ(row.results, 1);
  EXPECT_EQ(row.header, 16) << "a result lies in front";
  EXPECT_EQ(row.there, 64);
  EXPECT_EQ(row.in_place, 1);
  EXPECT_EQ(row.back, 64) << "rows are as far apart as they were";
  EXPECT_GE(row.window() + row.written, 16 + 16 + 14);
  EXPECT_LE(row.back, row.stride);
}

TEST_F(OffloadParameters, AJobKeepsItsGeneration) {
  make("Idle -> p :: Paint(1) -> cap :: Capture;");
  ASSERT_TRUE(update().ok());
  const int job = parameters_->enter(0);
  EXPECT_EQ(color(job), 1);
  ASSERT_TRUE(router_->write("p.color", "2"));
  ASSERT_TRUE(update().ok());
  EXPECT_EQ(color(job), 1) << "what the job sees has changed";
  const int later = parameters_->enter(1);
  EXPECT_NE(later, job);
  EXPECT_EQ(color(later), 2);
  // The next update finds both generations in use and makes the third.
  const size_t usual = parameters_->bytes();
  ASSERT_TRUE(router_->write("p.color", "3"));
  int asked = 0;
  const auto count_and_say = [&asked](offload::Parameters::Settled settled) {
    return [&asked, settled](int) {
      ++asked;
      return settled;
    };
  };
  EXPECT_TRUE(update(count_and_say(offload::Parameters::Settled::kNever)).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_GT(parameters_->bytes(), usual);
  const int last = parameters_->enter(1);
  EXPECT_EQ(color(job), 1);
  EXPECT_EQ(color(later), 2);
  EXPECT_EQ(color(last), 3);
  // There is no fourth.
  ASSERT_TRUE(router_->write("p.color", "4"));
  EXPECT_FALSE(update(count_and_say(offload::Parameters::Settled::kNever)).ok());
  EXPECT_EQ(asked, 3);
  EXPECT_NE(errors_.str().find("the device does not finish its jobs"), std::string::npos) << errors_.str();
  EXPECT_EQ(color(job), 1);
  EXPECT_EQ(color(later), 2);
  // Waits until one is left, or until the device is known to be done with it.
  asked = 0;
  const auto leave_later = [&](int generation) {
    if (++asked == 5) parameters_->leave(generation == job ? 0 : 1, generation);
    return offload::Parameters::Settled::kWait;
  };
  EXPECT_TRUE(update(leave_later).ok());
  EXPECT_GE(asked, 5);
  EXPECT_EQ(color(parameters_->enter(0)), 4);
  EXPECT_EQ(color(last), 3);
  ASSERT_TRUE(router_->write("p.color", "5"));
  EXPECT_TRUE(update(count_and_say(offload::Parameters::Settled::kNow)).ok());
  EXPECT_EQ(parameters_->updates(), 5u);
  // The third goes when its jobs are done.
  parameters_->leave(1, last);
  ASSERT_TRUE(router_->write("p.color", "6"));
  EXPECT_TRUE(update(count_and_say(offload::Parameters::Settled::kNow)).ok());
  EXPECT_EQ(parameters_->bytes(), usual);
}

TEST_F(OffloadParameters, OnlyChangesAreAnUpdate) {
  make("Idle -> p :: Paint(1) -> c :: Counter -> rt :: RadixIPLookup(0.0.0.0/0 1.2.3.4 0) -> q :: Queue -> Idle;");
  EXPECT_TRUE(parameters_->behind());
  ASSERT_TRUE(update().ok());
  EXPECT_FALSE(parameters_->behind());
  ASSERT_TRUE(router_->write("q.capacity", "7"));
  ASSERT_TRUE(router_->write("c.reset", ""));
  ASSERT_TRUE(router_->write("p.color", "1"));
  EXPECT_FALSE(parameters_->behind());
  ASSERT_TRUE(update().ok());
  EXPECT_EQ(parameters_->updates(), 1u);
  for (const char* route : {"10.0.0.0/8 1.2.3.4 0", "10.1.2.0/25 1.2.3.4 0", "10.0.0.0/16 4.3.2.1 0"}) {
    ASSERT_TRUE(router_->write("rt.add", route)) << router_->errors();
    EXPECT_TRUE(parameters_->behind()) << route;
    ASSERT_TRUE(update().ok());
    EXPECT_FALSE(parameters_->behind());
  }
  EXPECT_EQ(parameters_->updates(), 4u);
}

TEST_F(OffloadParameters, WhatIsReplacedIsForgotten) {
  make("Idle -> c :: Classifier(12/0800, -) -> cap :: Capture; c[1] -> [1] cap;");
  ASSERT_TRUE(update().ok());
  ASSERT_TRUE(update().ok());
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    std::string pattern;
    for (int k = 0; k < 30; ++k) pattern += fmt::format("{}/{:02x} ", k + 14, (i + k) % 256);
    ASSERT_TRUE(router_->write("c.config", pattern + ", -")) << router_->errors();
    ASSERT_TRUE(update().ok()) << errors_.str();
    if (i == 10) most = parameters_->bytes();
  }
  EXPECT_LE(parameters_->bytes(), 2 * most);
}

TEST_F(OffloadParameters, NotEnoughMemoryIsAnErrorWithFigures) {
  make("Idle -> rt :: RadixIPLookup(0.0.0.0/0 0) -> cap :: Capture;", size_t{1} << 20);
  EXPECT_FALSE(update().ok());
  EXPECT_NE(errors_.str().find("device memory does not suffice"), std::string::npos) << errors_.str();
  EXPECT_NE(errors_.str().find("of 1 MB free"), std::string::npos) << errors_.str();
}

TEST(OffloadStart, NotEnoughMemoryKeepsTheRouterFromStarting) {
  TestDevices small(1, Carrier::kReference, size_t{1} << 20);
  OffloadOptions o;
  o.mode = OffloadOptions::Mode::kDevice;
  o.backend = "reference";
  TestRouter r("Idle -> rt :: RadixIPLookup(0.0.0.0/0 0) -> cap :: Capture;",
               RouterOptions{.profile = false, .offload = o});
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("device memory does not suffice"), std::string::npos) << r.errors();
}

TEST(OffloadStart, WithoutADeviceTheCpuDoesIt) {
  offload::replace_devices([](const OffloadOptions&, std::string& why_not) {
    why_not = "all sold out";
    return std::vector<std::unique_ptr<offload::Backend>>();
  });
  OffloadOptions o;
  o.mode = OffloadOptions::Mode::kDevice;
  o.backend = "reference";
  TestRouter r("Idle -> o :: Offload(MODE device) -> p :: Paint(7) -> cap :: Capture;",
               RouterOptions{.profile = false, .offload = o});
  offload::replace_devices({});
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.router().engine(), nullptr);
  EXPECT_NE(r.errors().find("all sold out"), std::string::npos) << r.errors();
  r.push("o", "x");
  ASSERT_EQ(capture(r, "cap").seen().size(), 1u);
  EXPECT_EQ(capture(r, "cap").seen()[0].packet->anno_u8(anno_offset::kPaint), 7);
}

TEST(OffloadStart, AnyNumberOfElementsWithObjects) {
  TestDevices devices;
  OffloadOptions o;
  o.mode = OffloadOptions::Mode::kDevice;
  o.backend = "reference";
  std::string text = "Idle -> first :: Paint(0)";
  for (int i = 0; i < 300; ++i) text += fmt::format(" -> t{} :: OffloadTwins", i);
  TestRouter r(text + " -> cap :: Capture;", RouterOptions{.profile = false, .offload = o});
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(r.write(fmt::format("t{}.set", 299), std::to_string(7 + round))) << r.errors();
    inject(r, "first", {marked("x", 1, 0)});
    r.router().drain();
    ASSERT_EQ(capture(r, "cap").seen().size(), static_cast<size_t>(round) + 1);
    EXPECT_EQ(capture(r, "cap").seen().back().packet->anno_u8(anno_offset::kPaint), 7 + round);
  }
  EXPECT_EQ(event(r, offload::kJobPackets), 3u);
}

// --- The Offload element

TEST(Offload, ConfigurationErrors) {
  const auto errors_of = [](const std::string& text) {
    TestRouter r(text);
    EXPECT_FALSE(r.ok()) << text;
    return r.errors();
  };
  const auto one = [&](const std::string& arguments) {
    return errors_of("Idle -> Offload(" + arguments + ") -> Paint(1) -> Capture;");
  };
  EXPECT_NE(one("MODE gpu").find("MODE: expected auto, cpu, device or fixed, got 'gpu'"), std::string::npos);
  EXPECT_NE(one("FRACTION 1.5").find("FRACTION: expected a number from 0 to 1"), std::string::npos);
  EXPECT_NE(one("MODE fixed, FRACTION -0.1").find("FRACTION"), std::string::npos);
  EXPECT_NE(one("JOB 0").find("JOB: expected 1 to 65536"), std::string::npos);
  EXPECT_NE(one("MAXWAIT 2s").find("MAXWAIT: expected at most a second"), std::string::npos);
  EXPECT_NE(one("RUN fast").find("RUN: expected auto, resident or stream, got 'fast'"), std::string::npos);
  // All of them at once.
  const std::string all = one("MODE gpu, FRACTION 2, JOB 0");
  for (const char* word : {"MODE:", "FRACTION:", "JOB:"}) EXPECT_NE(all.find(word), std::string::npos) << all;
  EXPECT_NE(errors_of("Idle -> Offload -> Capture;").find("is not a shader"), std::string::npos);
  const std::string pull = errors_of("Idle -> Queue -> Offload -> Paint(1) -> Discard;");
  EXPECT_NE(pull.find("pull"), std::string::npos) << pull;
}

TEST(Offload, ModesByHandler) {
  TestDevices devices;
  OffloadOptions o;
  o.mode = OffloadOptions::Mode::kCpu;
  o.backend = "reference";
  {
    TestRouter r("Idle -> o :: Offload(MODE fixed, FRACTION 0.25) -> Paint(1) -> Capture;",
                 RouterOptions{.profile = false, .offload = o});
    ASSERT_TRUE(r.ok()) << r.errors();
    EXPECT_EQ(r.read("o.mode"), "fixed=0.25");
    EXPECT_TRUE(r.write("o.mode", "device"));
    EXPECT_EQ(r.read("o.mode"), "device");
    EXPECT_FALSE(r.write("o.mode", "often"));
    EXPECT_EQ(r.read("o.mode"), "device");
  }
  TestRouter r("Idle -> o :: Offload(MODE cpu) -> Paint(1) -> Capture;", RouterOptions{.profile = false, .offload = o});
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("o.mode"), "cpu");
  EXPECT_FALSE(r.write("o.mode", "device")) << "there is no device to go to";
  EXPECT_EQ(r.read("o.mode"), "cpu");
}

}  // namespace
}  // namespace headrace::testing
