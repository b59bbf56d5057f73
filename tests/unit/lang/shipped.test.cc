// Compound elements that come with the program (Options::shipped).

#include <vector>

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

/// `Chain(N)` is N Nulls in a row; it keeps what it was asked.
struct Shipped {
  std::vector<std::string> asked;

  Options options(Options options = known_classes()) {
    if (options.is_class)
      options.is_class = [known = options.is_class](std::string_view name) { return name == "Chain" || known(name); };
    options.shipped = [this](const ElementUse& use, Errors& errors) -> std::optional<std::string> {
      if (use.class_name != "Chain") return std::nullopt;
      asked.push_back(
          fmt::format("{} ({}) {}/{} {}", use.name, use.config, use.inputs, use.outputs, use.landmark.str()));
      if (use.config == "bad") {
        (void)errors.error_at(use.landmark, "bad is bad");
        return std::nullopt;
      }
      if (use.config == "itself") return "input -> Chain(itself) -> output";
      if (use.config == "formals") return "$a | input -> output";
      if (use.config == "early") return "input -> output } input -> output";
      if (use.config == "broken") return "input -> Nonsense -> output";
      std::string body = "// a comment ends the body\ninput -> ";
      for (int i = 0; i < std::stoi(std::string(use.config)); ++i) body += fmt::format("n{} :: Null -> ", i);
      return body + "output  // here";
    };
    return options;
  }
};

TEST(LangShipped, BodyTakesThePlaceOfTheElement) {
  Shipped s;
  EXPECT_EQ(flat("Idle -> c :: Chain(2) -> Discard;", s.options()),
            flat("Idle -> c :: { input -> n0 :: Null -> n1 :: Null -> output } -> Discard;"));
  EXPECT_EQ(s.asked, std::vector<std::string>{"c (2) 1/1 c:1"});
}

TEST(LangShipped, ArgumentsComeWithVariablesReplacedFromWithinCompounds) {
  Shipped s;
  EXPECT_EQ(flat("define($n 1);\nelementclass Outer { $m |\n input -> c :: Chain($m) -> output }\n"
                 "Idle -> o :: Outer($n) -> Discard;",
                 s.options()),
            flat("Idle -> o :: { input -> c :: { input -> n0 :: Null -> output } -> output } -> Discard;"));
  EXPECT_EQ(s.asked, std::vector<std::string>{"o/c (1) 1/1 c:3"});
}

TEST(LangShipped, ElementsHaveTheLineOfTheElement) {
  Shipped s;
  const Parsed parsed = parse_text("Idle ->\n c :: Chain(1)\n -> Discard;", s.options());
  const int inner = parsed.configuration.find("c/n0");
  ASSERT_GE(inner, 0);
  EXPECT_EQ(parsed.configuration.elements[static_cast<size_t>(inner)].landmark.str(), "c:2");
  EXPECT_EQ(faults("Idle\n -> Chain(broken) -> Discard;", s.options()), "Chain:1: undeclared element 'Nonsense'\n");
}

TEST(LangShipped, ClassOfTheTextCounts) {
  Shipped s;
  EXPECT_EQ(
      flat("elementclass Chain { $n | input -> Paint($n) -> output } Idle -> c :: Chain(3) -> Discard;", s.options()),
      flat("elementclass Other { $n | input -> Paint($n) -> output } Idle -> c :: Other(3) -> Discard;"));
  EXPECT_EQ(s.asked, std::vector<std::string>{});
  // The text adds an overload, and leaves the rest to the program's.
  EXPECT_EQ(
      flat("elementclass Chain { $a, $b | input -> Paint($b) -> output || ... } Idle -> c :: Chain(1) -> Discard;",
           s.options()),
      flat("Idle -> c :: { input -> n0 :: Null -> output } -> Discard;"));
}

TEST(LangShipped, BodyDoesNotSeeClassesOfTheText) {
  Shipped s;
  EXPECT_EQ(flat("elementclass Null { input -> Queue -> output } Idle -> c :: Chain(1) -> Discard;", s.options()),
            flat("Idle -> c :: { input -> n0 :: Null -> output } -> Discard;"));
}

TEST(LangShipped, ErrorsAndWrongPorts) {
  Shipped s;
  EXPECT_EQ(faults("Idle -> Discard;\nIdle -> Chain(bad) -> Discard;", s.options()), "c:2: bad is bad\n");
  EXPECT_NE(faults("Idle -> Chain(formals) -> Discard;", s.options()).find("syntax error near 'a'"), std::string::npos);
  EXPECT_EQ(faults("Idle -> Chain(early) -> Discard;", s.options()),
            "c:1: the body of compound element 'Chain' ends too early\n");
  EXPECT_EQ(faults("Idle -> c :: Chain(1) -> Discard; c[1] -> Discard;", s.options()), "c:1: 'c' has no output 1\n");
}

TEST(LangShipped, OneThatContainsItselfIsAnError) {
  Shipped s;
  Options options = s.options();
  options.limits.elements = 1000;
  EXPECT_NE(faults("Idle -> Chain(itself) -> Discard;", options).find("too many elements: more than 1000"),
            std::string::npos);
}

TEST(LangShipped, WhereEveryNameIsAClass) {
  Shipped s;
  EXPECT_EQ(flat("Unknown -> c :: Chain(1) -> Discard;", s.options(Options())),
            flat("Unknown -> c :: { input -> n0 :: Null -> output } -> Discard;", Options()));
}

}  // namespace
}  // namespace headrace::lang
