#include "graph/chains.hh"

#include <gtest/gtest.h>

#include <string>

namespace headrace::graph {
namespace {

/// A graph in which lower-case nodes are shaders and upper-case ones are not: S a source, H a host element, Q a queue,
/// P an element that pulls and pushes. "ab" connects a's next free output to b. Chains end behind the letters `ending`.
struct Example {
  explicit Example(const std::string& letters, const std::vector<std::string>& connections,
                   const std::string& ending = "") {
    std::vector<Node> nodes;
    std::vector<int> outputs(letters.size(), 0);
    const auto index = [&](char c) { return static_cast<int>(letters.find(c)); };
    for (const std::string& c : connections)
      edges.push_back({{index(c[0]), outputs[static_cast<size_t>(index(c[0]))]++}, {index(c[1]), 0}});
    for (const char c : letters) {
      const bool is_shader = c >= 'a' && c <= 'z';
      shader.push_back(is_shader);
      ends.push_back(ending.find(c) != std::string::npos);
      const int n = outputs[nodes.size()];
      const char* processing = c == 'S' ? "h/h" : c == 'Q' ? "h/l" : c == 'P' ? "l/h" : is_shader ? "a/ah" : "a/a";
      nodes.push_back({std::string(1, c),
                       std::string(c == 'S' || c == 'T' ? "0" : "1") + "/" + std::to_string(n),
                       processing,
                       "x/x",
                       {"f", 1}});
    }
    Errors errors;
    EXPECT_TRUE(resolve(nodes, edges, resolved, errors).ok()) << errors.str();
    const Chains found = find_chains(shader, ends, edges, resolved);
    for (const Bypass& b : found.bypasses)
      bypasses.push_back(connections[static_cast<size_t>(b.edge)] +
                         (b.reason == Bypass::Reason::kComesBack ? " comes back" : " closes a cycle"));
    for (const Chain& chain : found.chains) {
      std::string text;
      for (const int node : chain.nodes) text += letters[static_cast<size_t>(node)];
      text += '<';
      for (const int e : chain.entries)
        text += connections[static_cast<size_t>(e)] + (e == chain.entries.back() ? "" : " ");
      chains.push_back(text);
    }
  }
  std::vector<bool> shader, ends;
  std::vector<Edge> edges;
  Resolved resolved;
  std::vector<std::string> chains, bypasses;
};

using Texts = std::vector<std::string>;

TEST(FindChains, ALine) {
  EXPECT_EQ(Example("SabcH", {"Sa", "ab", "bc", "cH"}).chains, Texts{"abc<Sa"});
  EXPECT_EQ(Example("ScbaH", {"Sa", "ab", "bc", "cH"}).chains, Texts{"abc<Sa"});
}

TEST(FindChains, ChainsEndBehindAShaderThatTakesPackets) {
  EXPECT_EQ(Example("SabcH", {"Sa", "ab", "bc", "cH"}, "b").chains, (Texts{"ab<Sa", "c<bc"}));
  EXPECT_EQ(Example("SabcH", {"Sa", "ab", "bc", "cH"}, "ac").chains, (Texts{"a<Sa", "bc<ab"}));
  // Another way leads around it.
  const Example around("SabcH", {"Sa", "ab", "ac", "bc", "cH"}, "b");
  EXPECT_EQ(around.chains, (Texts{"abc<Sa", "c<bc"}));
  EXPECT_EQ(around.bypasses, Texts{});
}

TEST(FindChains, BranchesJoinInOneChainInTopologicalOrder) {
  EXPECT_EQ(Example("SdcbaH", {"Sa", "ab", "ac", "cd", "bd", "dH"}).chains, Texts{"abcd<Sa"});
}

TEST(FindChains, SeveralSourcesOfOneChain) {
  // The second source comes in by another element; the chain is one because its paths meet.
  Example e("SaTbcH", {"Sa", "Tb", "ac", "bc", "cH"});
  ASSERT_EQ(e.chains.size(), 1u);
  EXPECT_TRUE(e.chains[0] == "abc<Sa Tb" || e.chains[0] == "bac<Sa Tb") << e.chains[0];
}

TEST(FindChains, HostElementsPartChains) {
  EXPECT_EQ(Example("SaHbG", {"Sa", "aH", "Hb", "bG"}).chains, (Texts{"a<Sa", "b<Hb"}));
}

TEST(FindChains, PullPathsHaveNone) {
  EXPECT_EQ(Example("SaQbPcG", {"Sa", "aQ", "Qb", "bP", "Pc", "cG"}).chains, (Texts{"a<Sa", "c<Pc"}));
}

TEST(FindChains, AnErrorOutputOfAPulledShaderBeginsAChain) {
  // b is pulled from; its second output pushes to c.
  EXPECT_EQ(Example("SaQbPcdGH", {"Sa", "aQ", "Qb", "bP", "bc", "cd", "dG", "PH"}).chains, (Texts{"a<Sa", "cd<bc"}));
}

TEST(FindChains, WhatComesBackFromTheChainIsNoEntry) {
  // As ICMP errors do: b's second output goes through a host element to a lookup inside the chain.
  Example e("SabHG", {"Sa", "ab", "bG", "bH", "Ha"});
  EXPECT_EQ(e.chains, Texts{"ab<Sa"});
  EXPECT_EQ(e.bypasses, Texts{"Ha comes back"});
}

TEST(FindChains, ACycleIsCutAtItsBackEdge) {
  Example e("SabG", {"Sa", "ab", "bG", "ba"});
  EXPECT_EQ(e.chains, Texts{"ab<Sa"});
  EXPECT_EQ(e.bypasses, Texts{"ba closes a cycle"});
  EXPECT_EQ(e.resolved.back_edges, std::vector<int>{3});
}

TEST(FindChains, AnElementThatOthersComeBackToIsAnEntry) {
  // A rewriter H in front of a lookup: ICMP errors E of the chain go through it, too.
  for (const char* letters : {"SHabEG", "abEHSG", "EbaHGS"}) {
    Example e(letters, {"SH", "Ha", "ab", "bG", "bE", "EH"});
    EXPECT_EQ(e.chains, Texts{"ab<Ha"}) << letters;
    EXPECT_TRUE(e.bypasses.empty()) << letters;
  }
}

TEST(FindChains, PacketsThatComeAgainAlsoComeDirectly) {
  // H gets packets from the chain and from a second source.
  Example e("STabHG", {"Sa", "ab", "bG", "bH", "TH", "Ha"});
  EXPECT_EQ(e.chains, Texts{"ab<Sa Ha"});
  EXPECT_TRUE(e.bypasses.empty());
}

TEST(FindChains, ASharedOutputIsInBothChains) {
  // An encryption b behind a lookup a, by way of a host element, with the same encapsulation c.
  Example e("SaHbcG", {"Sa", "ac", "aH", "Hb", "bc", "cG"});
  EXPECT_EQ(e.chains, (Texts{"ac<Sa", "bc<Hb"}));
  EXPECT_TRUE(e.bypasses.empty());
}

TEST(FindChains, HostElementsOneAfterTheOtherBeforeASharedOutput) {
  Example e("SaHbIcdG", {"Sa", "ad", "aH", "Hb", "bd", "bI", "Ic", "cd", "dG"});
  EXPECT_EQ(e.chains, (Texts{"ad<Sa", "bd<Hb", "cd<Ic"}));
  EXPECT_TRUE(e.bypasses.empty());
}

TEST(FindChains, ASharedOutputWithErrorsThatComeBack) {
  // The encapsulation c sends errors to the lookup.
  Example e("SaHbcEG", {"Sa", "ac", "aH", "Hb", "bc", "cG", "cE", "Ea"});
  EXPECT_EQ(e.chains, (Texts{"ac<Sa", "bc<Hb"}));
  EXPECT_EQ(e.bypasses, Texts{"Ea comes back"});
}

TEST(FindChains, TwoHostElementsBeforeOneSharedOutput) {
  // One job takes packets of both.
  Example e("SaHbIcdG", {"Sa", "ad", "aH", "aI", "Hb", "bd", "Ic", "cd", "dG"});
  EXPECT_EQ(e.chains, (Texts{"ad<Sa", "bcd<Hb Ic"}));
}

TEST(FindChains, ACycleIsCutBehindTheElementThatIsReachedFirst) {
  // Whatever the order in which elements are declared.
  for (const char* letters : {"SabG", "baSG", "GbaS"})
    EXPECT_EQ(Example(letters, {"Sa", "ab", "bG", "ba"}).chains, Texts{"ab<Sa"}) << letters;
}

TEST(FindChains, WithoutAnEntryThereIsNone) { EXPECT_TRUE(Example("SHG", {"SH", "HG"}).chains.empty()); }

}  // namespace
}  // namespace headrace::graph
