// Compound elements: expansion, parameters, overloads, scopes.

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

TEST(LangCompound, ExpandsToInnerNames) {
  EXPECT_EQ(
      flat("elementclass Q { input -> q :: Queue -> Null -> output } Idle -> x :: Q -> Discard; Idle -> Q -> Discard"),
      "Idle@1 :: Idle;\nDiscard@3 :: Discard;\nIdle@4 :: Idle;\nDiscard@6 :: Discard;\n"
      "x/q :: Queue;\nx/Null@2 :: Null;\nQ@5/q :: Queue;\nQ@5/Null@2 :: Null;\n\n"
      "Idle@1 -> x/q\n    -> x/Null@2\n    -> Discard@3;\n"
      "Idle@4 -> Q@5/q\n    -> Q@5/Null@2\n    -> Discard@6;\n");
}

TEST(LangCompound, ContentsOfEachPrecedeThoseOfTheNext) {
  EXPECT_EQ(flat("elementclass A { a :: Idle } elementclass B { A; b :: Idle } B; Idle; B"),
            "Idle@2 :: Idle;\nB@1/b :: Idle;\nB@1/A@1/a :: Idle;\nB@3/b :: Idle;\nB@3/A@1/a :: Idle;\n\n");
}

TEST(LangCompound, MayStandWhereItIsUsed) {
  EXPECT_EQ(flat("Idle -> { -> Null -> } -> Discard"),
            "Idle@1 :: Idle;\nDiscard@3 :: Discard;\n@2/Null@1 :: Null;\n\nIdle@1 -> @2/Null@1\n    -> Discard@3;\n");
  EXPECT_EQ(flat("x :: { $a | Idle($a) } (7)"), "x/Idle@1 :: Idle(7);\n\n");
  EXPECT_EQ(flat("a, b :: { Idle }"), "a/Idle@1 :: Idle;\nb/Idle@1 :: Idle;\n\n");
}

TEST(LangCompound, PassesConnectionsThrough) {
  EXPECT_EQ(flat("elementclass P { -> } Idle -> P -> P -> Discard"),
            "Idle@1 :: Idle;\nDiscard@4 :: Discard;\n\nIdle@1 -> Discard@4;\n");
  EXPECT_EQ(flat("p, q :: { -> }; Idle -> p -> q -> p; q -> Discard"),
            "Idle@3 :: Idle;\nDiscard@4 :: Discard;\n\nIdle@3 -> Discard@4;\n")
      << "a circle of nothing but passages";
}

TEST(LangCompound, MultipliesConnections) {
  EXPECT_EQ(flat("p :: { -> }; a, b :: Idle; c, d :: Discard; a, b -> p -> c, d"),
            "a :: Idle;\nb :: Idle;\nc :: Discard;\nd :: Discard;\n\na -> c;\nb -> c;\na -> d;\nb -> d;\n");
}

TEST(LangCompound, KeepsInnerLandmarks) {
  const Parsed parsed = parse_text("elementclass A {\n Idle }\n\nA");
  ASSERT_EQ(parsed.configuration.elements.size(), 1u);
  EXPECT_EQ(parsed.configuration.elements[0].landmark.str(), "c:2");
}

TEST(LangCompound, ChecksItsPorts) {
  EXPECT_EQ(faults("elementclass G {\ninput [1] -> Idle -> [2] output\n}"),
            "c:2: 'G' input 0 missing\nc:2: 'G' output 0 missing\nc:2: 'G' output 1 missing\n");
  EXPECT_EQ(faults("elementclass F { a :: Idle -> input; output -> a }"),
            "c:1: 'F' pseudoelement 'input' may only be used as output\n"
            "c:1: 'F' pseudoelement 'output' may only be used as input\n");
}

TEST(LangCompound, ReportsPortsUsedOnOneSide) {
  const std::string h = "elementclass H { input -> output; input [1] -> Null -> [1] output }\n";
  EXPECT_EQ(faults(h + "Idle -> H -> Discard"), "c:2: 'H@2' input 1 unused\nc:2: 'H@2' output 1 unused\n");
  EXPECT_EQ(faults(h + "h :: H; Idle => h => Discard, Discard; Idle -> [2] h [3] -> Discard"),
            "c:2: 'h' has no input 2\nc:2: 'h' has no output 3\nc:2: 'h' input 1 unused\n");
}

TEST(LangCompound, RefusesTakenNames) {
  EXPECT_EQ(faults("elementclass C {\n Idle }\n c :: C;\n c/Idle@1 :: Null"),
            "c:3: redeclaration of element 'c/Idle@1'\nc:4: 'c/Idle@1' previously declared here\n");
  EXPECT_EQ(faults("A :: { B :: Idle }"), "c:1: 'A/B' is an element class\n");
}

TEST(LangCompound, MustEnd) { EXPECT_EQ(faults("{ Idle;\n\n"), "c:3: expected '}'\n"); }

TEST(LangCompound, NestsOnlySoDeep) {
  const auto nested = [](int depth, char open, char close) {
    return std::string(static_cast<size_t>(depth), open) + "Idle" + std::string(static_cast<size_t>(depth), close);
  };
  EXPECT_TRUE(parse_text(nested(50, '{', '}')).ok);
  EXPECT_EQ(faults(nested(60, '{', '}') + ";x"),
            "c:1: maximum compound element nesting depth exceeded\nc:1: undeclared element 'x'\n");
  EXPECT_TRUE(parse_text(nested(50, '(', ')')).ok);
  EXPECT_EQ(faults(nested(60, '(', ')') + ";x"),
            "c:1: maximum element group nesting depth exceeded\nc:1: undeclared element 'x'\n");
}

TEST(LangCompound, IsBoundedInSize) {
  std::string text = "elementclass C0 { Idle }";
  for (int i = 1; i < 40; ++i) text += fmt::format(" elementclass C{} {{ C{}; C{} }}", i, i - 1, i - 1);
  Options options = known_classes();
  options.limits.elements = 1000;
  EXPECT_EQ(faults(text + "\nC39", options), "c:1: too many elements: more than 1000\n");
  options.limits.elements = 1u << 30;
  options.limits.text_bytes = 100000;
  EXPECT_EQ(faults(text + "\nC39", options), "configuration text too large: more than 100000 bytes\n");
}

TEST(LangCompound, IsBoundedInConnections) {
  std::string text = "elementclass C0 { -> }";
  for (int i = 1; i < 40; ++i) {
    text += fmt::format(" elementclass C{0} {{ a, b :: C{1}; input -> a, b -> output }}", i, i - 1);
  }
  Options options = known_classes();
  options.limits.connections = 1000;
  EXPECT_EQ(faults(text + "\nIdle -> C39 -> Discard", options), "c:1: too many connections: more than 1000\n");
  options.limits.connections = 100;
  EXPECT_EQ(faults("a :: {->}; Idle, Idle, Idle, Idle, Idle -> a -> Discard, Discard, Discard, Discard, Discard, "
                   "Discard, Discard, Discard, Discard, Discard, Discard, Discard, Discard, Discard, Discard, Discard, "
                   "Discard, Discard, Discard, Discard, Discard, Discard, Discard",
                   options),
            "c:1: too many connections: more than 100\n");
}

TEST(LangCompound, ALongChainOfClassesIsNoProblem) {
  std::string text = "elementclass C0 { Idle }";
  for (int i = 1; i < 2000; ++i) text += fmt::format(" elementclass C{} {{ c :: C{} }}", i, i - 1);
  EXPECT_EQ(parse_text(text + "c :: C1999").configuration.elements.size(), 1u);
}

TEST(LangParameters, ArePositionalThenKeywordsThenRest) {
  const std::string c = "elementclass C { $a, $b, KEY $k, __REST__ $r | Idle($a:$b:$k:$r) } ";
  EXPECT_EQ(flat(c + "x :: C(1, 2, KEY 3, FOO 4)"), "x/Idle@1 :: Idle(1:2:3:FOO 4);\n\n");
  EXPECT_EQ(flat(c + "x :: C(1, 2, FOO 4, KEY 3 x, 5)"), "x/Idle@1 :: Idle(1:2:3 x:FOO 4, 5);\n\n");
  EXPECT_EQ(flat(c + "x :: C(KEY 1, KEY 2, KEY 3, KEY 4)"), "x/Idle@1 :: Idle(KEY 1:KEY 2:4:);\n\n");
  EXPECT_EQ(flat("x :: { __REST__ $r | Idle($r) }"), "x/Idle@1 :: Idle;\n\n");
  EXPECT_EQ(flat("x :: { | Idle }"), "x/Idle@1 :: Idle;\n\n");
  EXPECT_EQ(flat("x :: { $a | Idle($a) } (/* none */,)"), "x/Idle@1 :: Idle;\n\n");
}

TEST(LangParameters, MustMatch) {
  EXPECT_EQ(faults("\n\nx :: {\n$a, $b | Idle } (1)"),
            "c:3: no match for '<anonymous>[1 argument, 0 inputs, 0 outputs]'\n"
            "c:4: candidates are:\n"
            "c:4:   <anonymous>(<arg>, <arg>)[0 inputs, 0 outputs]\n");
  EXPECT_FALSE(parse_text("{ $a | Idle } (1, 2)").ok);
  EXPECT_FALSE(parse_text("{ KEY $a | Idle } (1)").ok);
  EXPECT_FALSE(parse_text("{ KEY $a | Idle } (KEY 1, X 2)").ok);
  EXPECT_FALSE(parse_text("{ KEY $a, $r | Idle } ()").ok);
  EXPECT_FALSE(parse_text("{ Idle } (1)").ok);
}

TEST(LangParameters, HaveAnOrder) {
  const std::string order =
      "c:1: compound element parameters out of order\n"
      "c:1: (The correct order is '[positional], [keywords], [__REST__]'.)\n";
  EXPECT_EQ(faults("elementclass X { K $a, $b, J $c, $d | Idle }"), order);
  EXPECT_EQ(faults("elementclass X { __REST__ $a, K $b | Idle }"), order);
  EXPECT_EQ(faults("elementclass X { $a, $a | Idle }"), "c:1: parameter '$a' multiply defined\n");
  EXPECT_EQ(faults("elementclass X { K $a, K $b | Idle }"),
            "c:1: repeated keyword parameter 'K' in compound element\n");
  EXPECT_EQ(faults("elementclass X { $a, Idle }"), "c:1: expected variable\n");
  EXPECT_EQ(faults("elementclass X { $a, }"), "c:1: expected variable\n");
  EXPECT_EQ(faults("elementclass X { $a Idle }"), "c:1: expected ',' or '|'\n");
}

TEST(LangOverload, TakesTheFirstThatMatches) {
  const std::string q =
      "elementclass Q { input -> a :: Null -> output\n"
      "|| $c | input -> b :: Null($c) -> output\n"
      "|| $c, MAX $m | input -> c :: Null($c $m) -> output\n"
      "|| input -> d :: Null -> output; input [1] -> Discard }\n";
  EXPECT_EQ(parse_text(q + "Idle -> x :: Q -> Discard").configuration.elements[2].name, "x/a");
  EXPECT_EQ(parse_text(q + "Idle -> x :: Q(1) -> Discard").configuration.elements[2].name, "x/b");
  EXPECT_EQ(parse_text(q + "Idle -> x :: Q(1, MAX 2) -> Discard").configuration.elements[2].config, "1 2");
  EXPECT_EQ(parse_text(q + "Idle -> x :: Q -> Discard; Idle -> [1] x").configuration.elements[3].name, "x/d");
}

TEST(LangOverload, ListsCandidates) {
  EXPECT_EQ(faults("elementclass T {\n$a |\n||\n$a, KEY $k, __REST__ $r | input -> output }\nt :: T"),
            "c:5: no match for 'T[0 inputs, 0 outputs]'\n"
            "c:2: candidates are:\n"
            "c:2:   T(<arg>)[0 inputs, 0 outputs]\n"
            "c:4:   T(<arg>, KEY, ...)[1 input, 1 output]\n");
  EXPECT_EQ(faults("elementclass T { $a | Idle || Discard }\nIdle, Idle => T(1, 2)"),
            "c:2: no match for 'T[2 arguments, 2 inputs, 0 outputs]'\n"
            "c:1: candidates are:\n"
            "c:1:   T(<arg>)[0 inputs, 0 outputs]\n"
            "c:1:   T[0 inputs, 0 outputs]\n");
}

TEST(LangOverload, ExtendsAClass) {
  const std::string q = "elementclass Queue { $a, $b | input -> Queue($a) -> Null($b) -> output || ... }\n";
  EXPECT_EQ(flat(q + "Idle -> q :: Queue(1, 2) -> Discard"),
            "Idle@1 :: Idle;\nDiscard@3 :: Discard;\nq/Queue@1 :: Queue(1);\nq/Null@2 :: Null(2);\n\n"
            "Idle@1 -> q/Queue@1\n    -> q/Null@2\n    -> Discard@3;\n");
  EXPECT_EQ(flat(q + "q :: Queue(5)"), "q :: Queue(5);\n\n");
  EXPECT_EQ(flat(q + "q :: Queue"), "q :: Queue;\n\n");
  EXPECT_EQ(flat("elementclass F { $a | a :: Idle } elementclass F { $a, $b | b :: Idle || ... }"
                 "elementclass F { $a, $b, $c | c :: Idle || ... } x :: F(1); y :: F(1, 2); z :: F(1, 2, 3)"),
            "x/a :: Idle;\ny/b :: Idle;\nz/c :: Idle;\n\n");
}

TEST(LangOverload, SeesOnlyWhatPrecedes) {
  EXPECT_FALSE(parse_text("elementclass T { $a | } t :: T(1, 2); elementclass T { $a, $b | || ... }").ok);
}

TEST(LangOverload, EllipsisBelongsLast) {
  EXPECT_EQ(faults("elementclass Nope { Idle || ... }"), "c:1: cannot extend unknown element class 'Nope'\n");
  EXPECT_EQ(faults("elementclass Queue { ... }"), "c:1: '...' should occur last, after one or more compounds\n");
  EXPECT_EQ(faults("elementclass Queue { Idle || ... Idle }"),
            "c:1: '...' should occur last, after one or more compounds\n");
}

TEST(LangOverload, TheMatchWithOtherPortsIsUsed) {
  EXPECT_EQ(faults("x :: { $a | input -> Null($a) -> output } (1)\nIdle -> x"), "c:1: 'x' output 0 unused\n");
}

TEST(LangElementClass, IsLexicallyScoped) {
  EXPECT_EQ(flat("elementclass A { elementclass B { Idle } B; elementclass A Null; A } A"),
            "A@1/A@2 :: Null;\nA@1/B@1/Idle@1 :: Idle;\n\n");
  EXPECT_EQ(faults("elementclass A { elementclass B { Idle } } B"), "c:1: undeclared element 'B'\n");
}

TEST(LangElementClass, MayHideAClass) {
  EXPECT_EQ(flat("elementclass Idle { Idle(1) } elementclass Idle { Idle; Idle } Idle"),
            "Idle@1/Idle@1/Idle@1 :: Idle(1);\nIdle@1/Idle@2/Idle@1 :: Idle(1);\n\n");
}

TEST(LangElementClass, MayBeASynonym) {
  EXPECT_EQ(flat("elementclass I Idle; elementclass J I; j :: J(2); J"), "j :: Idle(2);\nJ@2 :: Idle;\n\n");
  EXPECT_EQ(flat("elementclass C { $a | Idle($a) } elementclass D C; D(3)"), "D@1/Idle@1 :: Idle(3);\n\n");
}

TEST(LangElementClass, NeedsANameAndABody) {
  EXPECT_EQ(faults("elementclass { Idle }"), "c:1: expected element type name\n");
  EXPECT_EQ(faults("elementclass X;"), "c:1: syntax error near ';'\n");
  EXPECT_EQ(faults("elementclass X Nope"), "c:1: unknown element class 'Nope'\n");
}

}  // namespace
}  // namespace headrace::lang
