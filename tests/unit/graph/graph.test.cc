#include "graph/graph.hh"

#include <gtest/gtest.h>

namespace headrace::graph {
namespace {

Node node(const char* name, const char* ports, const char* processing, const char* flow = "x/x") {
  return {name, ports, processing, flow, {"f", 1}};
}

TEST(CountPorts, GrantsWhatTheTextAllows) {
  int in, out;
  ASSERT_TRUE(count_ports("1/1-2", 1, 2, in, out));
  EXPECT_EQ(in, 1);
  EXPECT_EQ(out, 2);
  ASSERT_TRUE(count_ports("1/1-2", 0, 0, in, out));
  EXPECT_EQ(in, 1);
  EXPECT_EQ(out, 1);
  ASSERT_TRUE(count_ports("-/-", 3, 0, in, out));
  EXPECT_EQ(in, 3);
  EXPECT_EQ(out, 0);
  ASSERT_TRUE(count_ports("1-/=", 4, 4, in, out));
  EXPECT_EQ(out, 4);
  ASSERT_TRUE(count_ports("1-/=+", 4, 4, in, out));
  EXPECT_EQ(out, 5);
  ASSERT_TRUE(count_ports("1", 1, 1, in, out));
  EXPECT_EQ(out, 1);
  EXPECT_FALSE(count_ports("one/two", 1, 1, in, out));
  EXPECT_FALSE(count_ports("1/1/1", 1, 1, in, out));
  EXPECT_FALSE(count_ports("", 1, 1, in, out));
}

TEST(Flows, FollowsFlowCodes) {
  EXPECT_TRUE(flows("x/x", 3, 5));
  EXPECT_FALSE(flows("x/y", 0, 0));
  EXPECT_TRUE(flows("xy/xy", 1, 1));
  EXPECT_FALSE(flows("xy/xy", 0, 1));
  EXPECT_TRUE(flows("#/#", 2, 2));
  EXPECT_FALSE(flows("#/#", 2, 1));
  EXPECT_TRUE(flows("#/[^#]", 2, 1));
  EXPECT_FALSE(flows("#/[^#]", 2, 2));
  EXPECT_TRUE(flows("xy/[xy]x", 0, 1));
  EXPECT_TRUE(flows("xy/[xy]x", 1, 0));
  EXPECT_FALSE(flows("xy/[xy]x", 1, 1));
  EXPECT_TRUE(flows("x/[^y]", 0, 0));
  EXPECT_FALSE(flows("x/[^yx]", 0, 0));
}

TEST(Resolve, GivesAgnosticPortsTheModeOfTheirNeighbors) {
  const std::vector<Node> nodes{node("s", "0/1", "h/h"), node("n", "1/1", "a/a"), node("q", "1/1", "h/l"),
                                node("m", "1/1", "a/a"), node("d", "1/0", "a/a")};
  const std::vector<Edge> edges{{{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}, {{2, 0}, {3, 0}}, {{3, 0}, {4, 0}}};
  Resolved r;
  Errors errors;
  ASSERT_TRUE(resolve(nodes, edges, r, errors).ok()) << errors.str();
  EXPECT_EQ(r.nodes[1].outputs[0], Mode::kPush);
  EXPECT_EQ(r.nodes[3].inputs[0], Mode::kPull);
  EXPECT_EQ(r.nodes[4].inputs[0], Mode::kPull);
  EXPECT_TRUE(r.back_edges.empty());
}

TEST(Resolve, NamesPushConnectedToPull) {
  const std::vector<Node> nodes{node("s :: S", "0/1", "h/h"), node("u :: U", "1/0", "l/l")};
  Resolved r;
  Errors errors;
  EXPECT_FALSE(resolve(nodes, {{{0, 0}, {1, 0}}}, r, errors).ok());
  EXPECT_EQ(errors.str(), "'s :: S' push output 0 connected to 'u :: U' pull input 0\n");
}

TEST(Resolve, NamesAgnosticElementsInMixedContext) {
  const std::vector<Node> nodes{node("q :: Q", "1/1", "h/l"), node("n :: N", "1/1", "a/a"),
                                node("p :: P", "1/0", "h/h"), node("s :: S", "0/1", "h/h")};
  Resolved r;
  Errors errors;
  EXPECT_FALSE(resolve(nodes, {{{3, 0}, {0, 0}}, {{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}}, r, errors).ok());
  EXPECT_EQ(errors.error_count(), 1);
  EXPECT_NE(errors.str().find("'n :: N'"), std::string::npos) << errors.str();
}

TEST(Resolve, ReportsReuseAndUnusedPortsAtTheElement) {
  const std::vector<Node> nodes{node("s :: S", "0/1", "h/h"), node("a :: A", "1/0", "h/h"),
                                node("b :: B", "1/0", "h/h"), node("c :: C", "1/1", "h/h")};
  Resolved r;
  Errors errors;
  EXPECT_FALSE(resolve(nodes, {{{0, 0}, {1, 0}}, {{0, 0}, {2, 0}}}, r, errors).ok());
  EXPECT_EQ(errors.str(),
            "f:1: illegal reuse of 's :: S' push output 0\n"
            "f:1: 'c :: C' input 0 unused\n"
            "f:1: 'c :: C' output 0 unused\n");
}

TEST(Resolve, ReportsPortsThatDoNotExist) {
  const std::vector<Node> nodes{node("s :: S", "0/1", "h/h"), node("a :: A", "1/0", "h/h")};
  Resolved r;
  Errors errors;
  EXPECT_FALSE(resolve(nodes, {{{0, 1}, {1, 2}}}, r, errors).ok());
  EXPECT_NE(errors.str().find("f:1: 'a :: A' has no input 2\n"), std::string::npos) << errors.str();
  EXPECT_NE(errors.str().find("f:1: 's :: S' has no output 1\n"), std::string::npos) << errors.str();
}

TEST(Resolve, CutsPushCyclesAtOneEdge) {
  // s -> a -> b -> a: one back edge, b -> a. A queue in between would break the cycle.
  const std::vector<Node> nodes{node("s", "0/1", "h/h"), node("a", "1/1", "a/a"), node("b", "1/1-2", "a/ah")};
  Resolved r;
  Errors errors;
  const std::vector<Edge> edges{{{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}, {{2, 0}, {1, 0}}};
  ASSERT_TRUE(resolve(nodes, edges, r, errors).ok()) << errors.str();
  EXPECT_EQ(r.back_edges, std::vector<int>{2});
}

TEST(Resolve, AQueueInACycleNeedsNoGuard) {
  const std::vector<Node> nodes{node("s", "0/1", "h/h"), node("q", "1/1", "h/l"), node("u", "1/1", "l/h")};
  Resolved r;
  Errors errors;
  const std::vector<Edge> edges{{{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}, {{2, 0}, {1, 0}}};
  ASSERT_TRUE(resolve(nodes, edges, r, errors).ok()) << errors.str();
  EXPECT_TRUE(r.back_edges.empty());
}

}  // namespace
}  // namespace headrace::graph
