// Variables: define, the command line, formal parameters, scopes.

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

/// The configuration of the only element.
std::string config(std::string_view text, const Options& options = known_classes()) {
  const Parsed parsed = parse_text(text, options);
  EXPECT_EQ(parsed.messages, "") << text;
  EXPECT_EQ(parsed.configuration.elements.size(), 1u) << text;
  return parsed.configuration.elements.empty() ? "" : parsed.configuration.elements[0].config;
}

TEST(LangDefine, ReplacesInConfigurations) {
  EXPECT_EQ(config("define($a 1, $b x y) Idle($a, ${b}z, $ab)"), "1, x yz, $ab");
  EXPECT_EQ(config("define($a 1) Idle('$a' \"$a\" \\$a // $a\n)"), "'$a' \"1\" \\1 // $a\n");
  EXPECT_EQ(config("define($q \"x\") Idle(\"$q\")"), "\"\\\"x\\\"\"") << "a value within quotes is escaped";
  EXPECT_EQ(config("define($r) Idle(<$r>)"), "<>");
  EXPECT_EQ(config("define(); define(,) Idle($r)"), "$r");
}

TEST(LangDefine, DoesNotDependOnOrder) { EXPECT_EQ(config("Idle($a) define($a $b$b); define($b 3)"), "33"); }

TEST(LangDefine, KnowsDefaultsAndIndices) {
  EXPECT_EQ(config("define($a x y z) Idle(${a[0]} ${a[2]} ${a[3]}| ${n-def ault} ${a-no} ${n-$a})"),
            "x z | def ault x y z x y z");
  EXPECT_EQ(config("x :: { $a, $n | Idle(${a[$n]}) } (D E F, 2)"), "F");
}

TEST(LangDefine, IsNeverItsOwnValue) {
  EXPECT_EQ(config("define($a $b x, $b $a) Idle($a, $b)"), "$a x, $b x");
  EXPECT_EQ(config("define($a \"$a\" $a) Idle($a)"), "\"$a\" $a");
}

TEST(LangDefine, MayHaveCallParentheses) { EXPECT_EQ(config("define($a 1) Idle($(a) $(b $a))"), "1 $(b 1)"); }

TEST(LangDefine, IsBoundedInSize) {
  std::string text = "define($v0 0123456789)";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("define($v{}", i);
    for (int j = 0; j < 20; ++j) text += fmt::format(" $v{}", i - 1);
    text += ")";
  }
  Options options = known_classes();
  options.limits.text_bytes = 1000000;
  EXPECT_EQ(faults(text + "Idle($v9)", options), "configuration text too large: more than 1000000 bytes\n");
}

TEST(LangDefine, ReportsMistakes) {
  EXPECT_EQ(faults("define(a b)"), "c:1: bad 'define' declaration: not a variable\n");
  EXPECT_EQ(faults("define($ b)"), "c:1: bad 'define' declaration: not a variable\n");
  EXPECT_EQ(faults("define($a-b 1)"), "c:1: bad 'define' declaration: not a variable\n");
  EXPECT_EQ(faults("define($a 1,\n $a 2)"), "c:2: parameter '$a' multiply defined\n");
  EXPECT_EQ(faults("define Idle"), "c:1: expected '('\n");
  EXPECT_EQ(faults("define($a"), "c:1: expected ')'\n");
}

TEST(LangDefine, MultipliesNothingIntoNothing) {
  std::string text = "define($v0 )";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("define($v{}", i);
    for (int j = 0; j < 20; ++j) text += fmt::format(" ${{v{}}}", i - 1);
    text += ")";
  }
  Options options = known_classes();
  options.limits.text_bytes = 1000000;
  EXPECT_EQ(faults(text + "Idle($v9)", options), "configuration text too large: more than 1000000 bytes\n");
}

TEST(LangCommandLine, WinsAtFileScope) {
  Options options = known_classes();
  options.variables = {{"a", "9"}, {"new", "8"}};
  EXPECT_EQ(config("define($a 1) Idle($a $new)", options), "9 8");
  EXPECT_EQ(config("x :: { define($a 1) Idle($a $new) }", options), "1 8");
}

TEST(LangVariable, MustLeaveTheConfigurationWhole) {
  const auto with = [](std::string_view value) {
    Options options = known_classes();
    options.variables = {{"v", std::string(value)}};
    return options;
  };
  const std::string message =
      "c:1: variables unbalance the quotation marks or parentheses in the configuration of 'x'\n";
  EXPECT_EQ(faults("x :: Idle($v)", with(")")), message);
  EXPECT_EQ(faults("x :: Idle($v)", with("(")), message);
  EXPECT_EQ(faults("x :: Idle($v)", with("\"")), message);
  EXPECT_EQ(faults("x :: Idle(\"${w-a\" b}, 1)"), message) << "the default ends behind the quotation";
  EXPECT_EQ(config("x :: Idle($v)", with("(\")\", ')')")), "(\")\", ')')");
  EXPECT_EQ(config("x :: Idle(\"$v\")", with(")")), "\")\"");
}

TEST(LangScope, OfFormalsIsLexical) {
  EXPECT_EQ(config("elementclass Foo { $a | Idle($a) } elementclass Far { $a, $b | Foo($b) } Far(x, y)"), "y");
  EXPECT_EQ(flat("elementclass Foo { $a | elementclass Bar { $b | Null($a) }\n"
                 "elementclass Baz { $a | Idle; Bar($a) } Baz(2) } Foo(1)"),
            "Foo@1/Baz@1/Idle@1 :: Idle;\nFoo@1/Baz@1/Bar@2/Null@1 :: Null(1);\n\n");
}

TEST(LangScope, OfDefineIsTheCompoundElement) {
  EXPECT_EQ(config("define($z 1) { define($z $a) define($a 2) Idle($z) }"), "2");
  EXPECT_EQ(config("define($z 1) { define($z <$z>) Idle($z) }"), "<1>");
  EXPECT_EQ(flat("define($z 1) { define($z 2) Idle } Idle($z)"), "Idle@2 :: Idle(1);\n@1/Idle@1 :: Idle;\n\n");
}

TEST(LangScope, OfAnArgumentIsWhereItIsWritten) {
  EXPECT_EQ(config("elementclass X { $a | define($b 2) Idle($a) } X($b)"), "$b");
  EXPECT_EQ(config("elementclass X { $a | Idle($a) } X(\"$a $a\")"), "\"$a $a\"");
}

TEST(LangScope, OfAGroupIsTheOneAroundIt) { EXPECT_EQ(config("(define($z 1)) Idle($z)"), "1"); }

TEST(LangArguments, AreSplitAfterReplacement) {
  EXPECT_EQ(config("define($two 1, $args 2) x :: { $a, $b | Idle($b-$a) } ($two, $args)"), "2-1");
  Options options = known_classes();
  options.variables = {{"args", "1, 2"}};
  EXPECT_EQ(config("x :: { $a, $b | Idle($b-$a) } ($args)", options), "2-1");
}

}  // namespace
}  // namespace headrace::lang
