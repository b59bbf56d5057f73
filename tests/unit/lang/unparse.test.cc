// The flat text of a configuration.

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

TEST(LangUnparse, WritesChains) {
  EXPECT_EQ(flat("a, b, c :: Idle; a [1] -> b -> [2] c; b [1] -> c"),
            "a :: Idle;\nb :: Idle;\nc :: Idle;\n\na [1] -> b\n    -> [2] c;\nb [1] -> c;\n");
}

TEST(LangUnparse, PrefersToGoOnAtInputZero) {
  EXPECT_EQ(flat("a, b, c, d :: Idle; a -> b; b -> [1] c; b -> d"),
            "a :: Idle;\nb :: Idle;\nc :: Idle;\nd :: Idle;\n\na -> b\n    -> d;\nb -> [1] c;\n");
  EXPECT_EQ(flat("a, b, c, d :: Idle; a -> b; b -> [1] c; b -> [1] d"),
            "a :: Idle;\nb :: Idle;\nc :: Idle;\nd :: Idle;\n\na -> b\n    -> [1] d;\nb -> [1] c;\n")
      << "else the last one";
}

TEST(LangUnparse, CutsCircles) {
  EXPECT_EQ(flat("a, b :: Idle; a -> b -> a"), "a :: Idle;\nb :: Idle;\n\nb -> a\n    -> b;\n");
  EXPECT_EQ(flat("a :: Idle; a -> a"), "a :: Idle;\n\na -> a;\n");
  EXPECT_EQ(flat("a, b :: Idle; a -> a -> b"), "a :: Idle;\nb :: Idle;\n\na -> a\n    -> b;\n");
  EXPECT_EQ(flat("a :: Idle; a -> a; a [1] -> a"), "a :: Idle;\n\na [1] -> a\n    -> a;\n");
}

TEST(LangUnparse, OrdersByReceivingPort) {
  const Parsed parsed = parse_text("a, b, c :: Idle; b -> [1] a; c -> a; b -> a; a -> c");
  std::string order;
  for (const Connection& connection : parsed.configuration.connections) {
    order += fmt::format("{}>{}[{}] ", connection.from.element, connection.to.element, connection.to.port);
  }
  EXPECT_EQ(order, "1>0[0] 2>0[0] 1>0[1] 0>2[0] ");
}

TEST(LangUnparse, IsItsOwnFlattening) {
  const std::string once = flat(
      "require(package x); elementclass Q { $a | input -> Queue($a) -> output }\n"
      "Idle -> Q(\"$x\") -> t :: Tee => Discard, Null -> (-> Null ->) -> Discard; Idle -> { -> Discard }");
  EXPECT_EQ(flat(once), once);
}

TEST(LangConnections, KeepTheLineOfTheArrow) {
  const Parsed parsed = parse_text("Idle\n->\nNull\n\n-> { -> Null\n-> } -> Discard");
  ASSERT_EQ(parsed.configuration.connections.size(), 3u);
  EXPECT_EQ(parsed.configuration.connections[0].landmark.str(), "c:2");
  EXPECT_EQ(parsed.configuration.connections[1].landmark.str(), "c:6");
  EXPECT_EQ(parsed.configuration.connections[2].landmark.str(), "c:5");
}

}  // namespace
}  // namespace headrace::lang
