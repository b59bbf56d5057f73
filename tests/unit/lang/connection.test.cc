// Chains, lists, ports and groups.

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

/// The connections of a configuration, one a line, by the names a to h that are declared in front.
std::string connections(std::string_view text) {
  const Parsed parsed = parse_text("a, b, c, d, e, f, g, h :: Idle; " + std::string(text));
  EXPECT_EQ(parsed.messages, "") << text;
  std::string out;
  for (const Connection& connection : parsed.configuration.connections) {
    const auto end = [&](const PortRef& port) {
      return parsed.configuration.elements[static_cast<size_t>(port.element)].name + std::to_string(port.port);
    };
    out += (out.empty() ? "" : " ") + end(connection.from) + ">" + end(connection.to);
  }
  return out;
}

TEST(LangChain, ConnectsNeighbors) {
  EXPECT_EQ(connections("a -> b -> c"), "a0>b0 b0>c0");
  EXPECT_EQ(connections("a [1] -> [2] b [3] -> [0x10] c; d[010]->e"), "a1>b2 b3>c16 d8>e0");
}

TEST(LangChain, RepetitionIsNoError) { EXPECT_EQ(connections("a -> b; a -> b; a[0] -> [0]b"), "a0>b0"); }

TEST(LangChain, ConnectsListsToOneAndOneToLists) {
  EXPECT_EQ(connections("a, b[1] -> c"), "a0>c0 b1>c0");
  EXPECT_EQ(connections("a -> b, [2] c"), "a0>b0 a0>c2");
  EXPECT_EQ(connections("a, b, -> c"), "a0>c0 b0>c0") << "a comma too many does no harm";
  EXPECT_EQ(connections("a[0,1] -> b"), "a0>b0 a1>b0");
  EXPECT_EQ(connections("a -> b[0,1] -> c"), "a0>b0 b0>c0 b1>c0");
}

TEST(LangChain, ConnectsManyToMany) {
  EXPECT_EQ(connections("a, b => c, d"), "a0>c0 b0>d0");
  EXPECT_EQ(connections("a [0,1,2] => b, c, d"), "a0>b0 a1>c0 a2>d0");
  EXPECT_EQ(connections("a [0-2] => b, c, [5] d"), "a0>b0 a1>c0 a2>d5");
  EXPECT_EQ(connections("a [4-5,1] => [3-5] b"), "a4>b3 a5>b4 a1>b5");
  EXPECT_EQ(connections("a => b, c, [0,1] d"), "a0>b0 a1>c0 a2>d0 a3>d1");
  EXPECT_EQ(connections("a, b => c"), "a0>c0 b0>c1");
  EXPECT_EQ(connections("a => b"), "a0>b0");
}

TEST(LangChain, OpenListsTakeWhatIsLeft) {
  EXPECT_EQ(connections("a [1,] => b, c, d"), "a1>b0 a2>c0 a3>d0");
  EXPECT_EQ(connections("a [] => b, c"), "a0>b0 a1>c0");
  EXPECT_EQ(connections("a [1,3,] => b, c, d, e"), "a1>b0 a3>c0 a4>d0 a5>e0");
  EXPECT_EQ(connections("a [0,1,2] => b, [1,] c"), "a0>b0 a1>c1 a2>c2");
  EXPECT_EQ(connections("a [0,1,2] => [1,] c, b"), "a2>b0 a0>c1 a1>c2");
  EXPECT_EQ(connections("a [1,] => [3] b"), "a1>b3");
}

TEST(LangChain, CountsMustAgree) {
  const auto errors = [](const std::string& text) { return faults("a, b, c, d :: Idle;\n" + text); };
  EXPECT_EQ(errors("a [0,1] => [0,1,2] b"), "c:2: connection mismatch: 2 outputs connected to 3 inputs\n");
  EXPECT_EQ(errors("a [0,1,2,] => [0,1] b"), "c:2: connection mismatch: 3 or more outputs connected to 2 inputs\n");
  EXPECT_EQ(errors("a [0,1] => [0,1,2,] b"), "c:2: connection mismatch: 2 outputs connected to 3 or more inputs\n");
  EXPECT_EQ(errors("a [] => [] b"), "c:2: at most one expandable port allowed per connection\n");
  EXPECT_EQ(errors("a [0,1,2] -> [0,1,2] b"), "c:2: syntax error: many-to-many connections require '=>'\n");
}

TEST(LangChain, PortsAtItsEndsAreUseless) {
  EXPECT_EQ(faults("a :: Idle; [1] a -> a [2];"),
            "c:1: input ports ignored at start of chain\nc:1: output ports ignored at end of chain\n");
}

TEST(LangPorts, MustBeNumbers) {
  const auto errors = [](const std::string& text) { return faults("a :: Idle; " + text); };
  EXPECT_EQ(errors("a [x] -> a"), "c:1: syntax error: port number should be integer\n");
  EXPECT_EQ(errors("a [9z] -> a"), "c:1: syntax error: port number should be integer\n");
  EXPECT_EQ(errors("a [99999999999] -> a"), "c:1: syntax error: port number should be integer\n");
  EXPECT_EQ(errors("a [65536] -> a"), "c:1: port number 65536 too large\n");
  EXPECT_EQ(errors("a [1 2] -> a"), "c:1: syntax error: expected ','\n");
  EXPECT_EQ(errors("a [1"),
            "c:1: syntax error: expected ','\nc:1: syntax error: expected port number\n"
            "c:1: output ports ignored at end of chain\n");
  EXPECT_EQ(errors("a [; a -> a"), "c:1: syntax error: expected port number\n");
}

TEST(LangPorts, AreBounded) {
  Options options = known_classes();
  options.limits.connections = 100;
  EXPECT_EQ(faults("a :: Idle; a [0-60] -> a; a [0-60] -> a", options), "c:1: too many ports: more than 100\n");
}

TEST(LangGroup, StandsForItsContents) {
  EXPECT_EQ(connections("a -> ( input -> output ) -> b"), "a0>b0");
  EXPECT_EQ(connections("a -> ( [0] -> [0] ) -> b"), "a0>b0");
  EXPECT_EQ(connections("a -> (->) -> b"), "a0>b0");
  EXPECT_EQ(connections("a -> (input -> c; d -> output) -> b"), "d0>b0 a0>c0");
  EXPECT_EQ(connections("( a -> b )"), "a0>b0");
}

TEST(LangGroup, ImpliesItsPorts) {
  EXPECT_EQ(connections("a => ( [0]->[0]; [1]->[1] ) => b"), "a0>b0 a1>b1");
  EXPECT_EQ(connections("a => ( [0]->[1]; [1]->[0] ) => [4] b, c"), "a1>b4 a0>c0");
  EXPECT_EQ(connections("a => [0,1] ( [0]->[0]; [1]->[1] ) [0,1] -> b"), "a0>b0 a1>b0");
  EXPECT_EQ(connections("a => (-> b), (-> c -> e), d"), "a0>b0 a1>c0 a2>d0 c0>e0");
  EXPECT_EQ(connections("a => [1] b [1], (-> c => (->), d ->) -> e"), "a0>b1 a1>c0 c1>d0 b1>e0 c0>e0 d0>e0");
}

TEST(LangGroup, MayNest) { EXPECT_EQ(connections("a -> (-> (-> (-> b ->) ->) ->) -> c"), "a0>b0 b0>c0"); }

TEST(LangGroup, SharesTheScopeAroundIt) {
  EXPECT_EQ(connections("a -> (-> x :: Null ->) -> b; x [1] -> c"), "x0>b0 x1>c0 a0>x0");
}

TEST(LangGroup, NeedsAllOfItsPorts) {
  EXPECT_EQ(faults("x, y :: Idle;\nx => [0] ( [0]->[0]; [1]->Idle ) -> y;"), "c:2: '@3' input 1 unused\n");
  EXPECT_EQ(faults("x :: Idle;\nx => ( [0]->Idle; [2]->Idle );"),
            "c:2: '<anonymous group>' input 1 missing\n"
            "c:2: '@2' has no input 1\n");
  EXPECT_EQ(faults("x, y :: Idle; x -> (input -> Null, output -> y) -> y"),
            "c:1: '<anonymous group>' pseudoelement 'output' may only be used as input\n");
}

TEST(LangGroup, EndsWhereItsParenthesisLacks) {
  EXPECT_EQ(faults("a :: Idle; a -> (-> a ->"),
            "c:1: expected ')'\nc:1: output ports ignored at end of chain\nc:1: '@2' output 0 unused\n");
  EXPECT_EQ(faults("{ (Null }; x"), "c:1: syntax error near '}'\nc:1: undeclared element 'x'\n");
}

TEST(LangGroup, HasNoClassAndNoConfiguration) {
  EXPECT_EQ(faults("Idle -> (-> Discard) (x)"), "c:1: configuration string ignored on element reference\n");
  EXPECT_EQ(faults("(Null) :: Idle"), "c:1: redeclaration of element '@1'\n");
}

TEST(LangImplicitEnds, AreInputAndOutput) {
  EXPECT_EQ(flat("Idle -> x :: { [0], [1] -> Null -> [0], [1] } -> Discard; Idle -> [1] x [1] -> Discard"),
            "Idle@1 :: Idle;\nDiscard@3 :: Discard;\nIdle@4 :: Idle;\nDiscard@5 :: Discard;\nx/Null@1 :: Null;\n\n"
            "x/Null@1 -> Discard@5;\nIdle@1 -> x/Null@1\n    -> Discard@3;\nIdle@4 -> x/Null@1;\n");
}

TEST(LangImplicitEnds, AskForClarityAfterAnOpenChain) {
  const Parsed parsed = parse_text("Idle -> { -> Discard; -> Null -> output; } -> Discard");
  EXPECT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.messages, "c:1: warning: suggest 'input ->' or '[0] ->' to start connection\n");
  EXPECT_EQ(parse_text("Idle -> { -> Null -> ; => Discard } -> Discard").messages, "");
}

TEST(LangImplicitEnds, BelongAtTheEnds) {
  EXPECT_EQ(faults("{ Null -> [1] -> Null }"), "c:1: stranded port ignored\nc:1: syntax error near '->'\n");
  EXPECT_EQ(faults("{ Null -> [0], -> Null }"),
            "c:1: implicit ports used in the middle of a chain\n"
            "c:1: '<anonymous>' pseudoelement 'output' may only be used as input\n"
            "c:1: '@1' output 0 unused\n");
  EXPECT_EQ(faults("{ [0] ; }"), "c:1: stranded port ignored\n");
  EXPECT_EQ(faults("{ Null -> :: }"), "c:1: syntax error near '::'\n");
}

}  // namespace
}  // namespace headrace::lang
