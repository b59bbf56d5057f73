#include "graph/annotations.hh"

#include <gtest/gtest.h>

#include "headrace/element.hh"

namespace headrace::graph {
namespace {

/// Nodes in a row, each connected to the next, with the annotations that they use.
struct Row {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::vector<RegionInfo>> annotations;

  Row& then(std::vector<RegionInfo> uses, const char* flow = "x/x") {
    const int n = static_cast<int>(nodes.size());
    nodes.push_back({"n" + std::to_string(n), "-/-", "a/a", flow, {}});
    annotations.push_back(std::move(uses));
    if (n > 0) edges.push_back({{n - 1, 0}, {n, 0}});
    return *this;
  }
  /// "writer>reader written read", each on a line.
  std::string clashes() const {
    std::string text;
    for (const AnnotationClash& c : find_annotation_clashes(nodes, edges, annotations))
      text += nodes[static_cast<size_t>(c.writer)].declaration + ">" +
              nodes[static_cast<size_t>(c.reader)].declaration + " " + annotation_text(c.written) + " " +
              annotation_text(c.read) + "\n";
    return text;
  }
};

const std::vector<RegionInfo> kNothing;

// Where the candidates of IDSMatcher were once.
const RegionInfo kOldCandidates{Anchor::kAnno, 32, 8, false, true, "CANDIDATES"};

TEST(Annotations, AnotherNameForTheSameBytesIsFound) {
  const Row row = Row()
                      .then(declared(Write{anno::first_timestamp}))
                      .then(kNothing)
                      .then({kOldCandidates})
                      .then(kNothing)
                      .then(declared(Read{anno::first_timestamp}));
  EXPECT_EQ(row.clashes(), "n2>n4 CANDIDATES (bytes 32 to 39) FIRST_TIMESTAMP (bytes 32 to 39)\n");
}

TEST(Annotations, ThoseOfTodayDoNotClash) {
  EXPECT_EQ(Row()
                .then(declared(Write{anno::first_timestamp}))
                .then(declared(Write{anno::candidates}, Write{anno::pattern}))
                .then(declared(Read{anno::first_timestamp}, Read{anno::rx_hash}))
                .clashes(),
            "");
}

TEST(Annotations, WhatIsWrittenLaterHidesWhatWasWrittenBefore) {
  EXPECT_EQ(Row()
                .then(declared(Write{anno::dst_ip}))
                .then(declared(Write{anno::dst_ip6}))
                .then(declared(Read{anno::dst_ip6}))
                .clashes(),
            "");
  EXPECT_EQ(Row()
                .then(declared(Write{anno::dst_ip6}))
                .then(declared(Write{anno::dst_ip}))
                .then(declared(Read{anno::dst_ip6}))
                .clashes(),
            "n1>n2 DST_IP (bytes 0 to 3) DST_IP6 (bytes 0 to 15)\n");
}

TEST(Annotations, BytesChosenByAnArgument) {
  const auto bytes = [](int offset, int size, bool write) {
    return std::vector<RegionInfo>{{Anchor::kAnno, offset, size, !write, write}};
  };
  // A reader that chose bytes wants what is there.
  EXPECT_EQ(Row().then(declared(Write{anno::aggregate})).then(bytes(23, 1, false)).clashes(), "");
  EXPECT_EQ(Row().then(bytes(16, 1, true)).then(declared(Read{anno::paint})).clashes(), "");
  EXPECT_EQ(Row().then(bytes(33, 1, true)).then(declared(Read{anno::first_timestamp})).clashes(),
            "n0>n1 byte 33 FIRST_TIMESTAMP (bytes 32 to 39)\n");
}

TEST(Annotations, OnlyAlongPathsOfPackets) {
  // An element that makes packets of its own ends the path, and a loop ends the search.
  EXPECT_EQ(Row().then({kOldCandidates}).then(kNothing, "x/y").then(declared(Read{anno::first_timestamp})).clashes(),
            "");
  Row loop;
  loop.then(kNothing).then({kOldCandidates}).then(declared(Read{anno::first_timestamp}));
  loop.edges.push_back({{2, 0}, {0, 0}});
  EXPECT_EQ(loop.clashes(), "n1>n2 CANDIDATES (bytes 32 to 39) FIRST_TIMESTAMP (bytes 32 to 39)\n");
  Row beside;
  beside.then({kOldCandidates}).then(kNothing).then(declared(Read{anno::first_timestamp}));
  beside.edges = {{{0, 0}, {1, 0}}};
  EXPECT_EQ(beside.clashes(), "");
}

// --- Liveness

TEST(LiveAnnotations, UntilSomethingElseIsWritten) {
  // 0 -> 1 -> 2 -> 3; 1[1] -> 4: 1 sets bytes 0 to 3 for output 0, 2 may write them, 3 and 4 read them.
  const std::vector<Edge> edges{{{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}, {{2, 0}, {3, 0}}, {{1, 1}, {4, 0}}};
  RegionInfo sets{Anchor::kAnno, 0, 4, false, true}, writes = sets;
  sets.sets = true;
  const RegionInfo reads{Anchor::kAnno, 0, 4, true, false}, reads_one{Anchor::kAnno, 2, 1, true, false};
  const std::vector<uint64_t> live = live_annotations(edges, {{}, {sets}, {writes}, {reads}, {reads_one}});
  EXPECT_EQ(live, (std::vector<uint64_t>{4, 4, 15, 15, 4}));
}

TEST(LiveAnnotations, AroundALoopAndNotBehindThoseOfClick) {
  const std::vector<Edge> edges{{{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}, {{2, 0}, {1, 0}}, {{2, 1}, {3, 0}}};
  const RegionInfo reads{Anchor::kAnno, 16, 1, true, false}, own{Anchor::kAnno, 44, 12, true, false};
  const std::vector<uint64_t> live = live_annotations(edges, {{}, {}, {reads}, {own}});
  const uint64_t paint = uint64_t{1} << 16, hash = uint64_t{0xf} << 44;
  EXPECT_EQ(live, (std::vector<uint64_t>{paint | hash, paint | hash, paint | hash, hash}));
}

}  // namespace
}  // namespace headrace::graph
