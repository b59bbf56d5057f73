// Elements: names, classes, configurations, and the lines that they come from.

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

TEST(LangDeclaration, NamesClassesAndConfigurations) {
  EXPECT_EQ(flat("a :: Idle; b :: Queue(10);c::Null()"), "a :: Idle;\nb :: Queue(10);\nc :: Null;\n\n");
  EXPECT_EQ(flat("a, b , c :: Queue(1)"), "a :: Queue(1);\nb :: Queue(1);\nc :: Queue(1);\n\n");
  EXPECT_EQ(flat("a/b@_9 :: Idle; 3x/y3::Idle"), "a/b@_9 :: Idle;\n3x/y3 :: Idle;\n\n");
  EXPECT_EQ(flat(""), "");
  EXPECT_EQ(flat(" ; ;; // nothing\n"), "");
}

TEST(LangDeclaration, SemicolonsAreOptional) {
  EXPECT_EQ(flat("a :: Idle b :: Idle(x) elementclass I Idle c :: I"), "a :: Idle;\nb :: Idle(x);\nc :: Idle;\n\n");
}

TEST(LangDeclaration, NumbersAnonymousElementsByTheirPlace) {
  EXPECT_EQ(flat("Idle; x :: Idle; Null; Idle(3)"),
            "Idle@1 :: Idle;\nx :: Idle;\nNull@3 :: Null;\nIdle@4 :: Idle(3);\n\n");
}

TEST(LangDeclaration, NamesOfTheUserComeFirst) {
  EXPECT_EQ(flat("Idle; Idle; Idle@2 :: Null; Idle@3 :: Null"),
            "Idle@1 :: Idle;\nIdle@4 :: Idle;\nIdle@2 :: Null;\nIdle@3 :: Null;\n\n");
}

TEST(LangDeclaration, GroupsCountThreeInNumbers) {
  // As in Click, where a group is three elements that vanish.
  EXPECT_EQ(flat("Idle -> (-> Null ->) -> Discard"),
            "Idle@1 :: Idle;\nNull@5 :: Null;\nDiscard@6 :: Discard;\n\nIdle@1 -> Null@5\n    -> Discard@6;\n");
}

TEST(LangDeclaration, KeepsTheConfigurationAsWritten) {
  EXPECT_EQ(flat("a :: Idle( x ,\n\ty )"), "a :: Idle( x ,\n\ty );\n\n");
  EXPECT_EQ(flat("a :: Idle((()) \")\" ')(' \\<29 )> // )\n /* ) */)"),
            "a :: Idle((()) \")\" ')(' \\<29 )> // )\n /* ) */);\n\n");
  EXPECT_EQ(flat("a :: Idle(\"\\\")\\<22 /* > */ >)\")"), "a :: Idle(\"\\\")\\<22 /* > */ >)\");\n\n");
  EXPECT_EQ(flat("a :: Idle(#x)"), "a :: Idle(#x);\n\n");
}

TEST(LangDeclaration, DistinguishesElementsFromClasses) {
  EXPECT_EQ(faults("x :: Idle; x :: Null(3); x(4)"),
            "c:1: configuration string ignored on element reference\n"
            "c:1: redeclaration of element 'x'\n"
            "c:1: element 'x' previously declared here\n"
            "c:1: configuration string ignored on element reference\n");
  EXPECT_EQ(faults("Idle :: Null"), "c:1: class 'Idle' used as element name\n");
  EXPECT_EQ(faults("x;\nx; x :: Idle"), "c:1: undeclared element 'x'\nc:2: class 'x' used as element name\n");
  EXPECT_EQ(faults("x :: Nope; Nope -> Discard"), "c:1: unknown element class 'Nope'\n");
  EXPECT_EQ(faults("x ::\n(Null)"), "c:2: missing element type in declaration\n");
}

TEST(LangDeclaration, RefusesComponentsOfDigits) {
  EXPECT_EQ(faults("3 :: Idle"), "c:1: element name '3' has all-digit component\n");
  EXPECT_EQ(faults("a/3/b :: Idle"), "c:1: element name 'a/3/b' has all-digit component\n");
  EXPECT_EQ(faults("2/Far", {}), "c:1: element name '2/Far@1' has all-digit component\n")
      << "where every name is a class";
  EXPECT_EQ(faults("2/Far"), "c:1: undeclared element '2/Far'\n");
}

TEST(LangDeclaration, WithoutAListOfClassesUnknownNamesAreClasses) {
  EXPECT_EQ(flat("Foo -> b :: Bar(1)", {}), "Foo@1 :: Foo;\nb :: Bar(1);\n\nFoo@1 -> b;\n");
  EXPECT_EQ(faults("elementclass Foo {\nA -> B;\n}\nA :: Idle;", {}), "c:4: class 'A' used as element name\n");
  EXPECT_EQ(faults("elementclass Foo {\nA :: A -> B;\n}\nA :: Idle;", {}),
            "c:2: class 'A' used as element name\nc:4: class 'A' used as element name\n");
  EXPECT_EQ(flat("elementclass Foo {\nA :: AA -> B;\n}\nA :: Idle;", {}), "A :: Idle;\n\n");
}

TEST(LangDeclaration, AListOfSeveralNeedsOneDeclaration) {
  EXPECT_EQ(faults("d, e"), "c:1: undeclared element 'd'\nc:1: undeclared element 'e'\n");
  EXPECT_EQ(faults("a, b :: Idle -> Discard"), "c:1: undeclared element 'a'\n");
  EXPECT_EQ(faults("a, b :: Idle [0]"), "c:1: undeclared element 'a'\nc:1: output ports ignored at end of chain\n");
  EXPECT_EQ(flat("Null, Idle(3)"), "Null@1 :: Null;\nIdle@2 :: Idle(3);\n\n");
}

TEST(LangLandmark, IsTheLineOfTheName) {
  const Parsed parsed = parse_text("a\n::\nIdle(x\n)\n-> Null(\n\n)\n ->\nb :: Null; /*\n*/ Queue");
  std::string lines;
  for (const ElementDecl& element : parsed.configuration.elements) {
    lines += element.name + " " + element.landmark.str() + "\n";
  }
  EXPECT_EQ(lines, "a c:1\nNull@2 c:5\nb c:9\nQueue@4 c:10\n");
}

TEST(LangLandmark, CountsAllLineEnds) {
  EXPECT_EQ(faults("\r\n\r\n\n\rx"), "c:5: undeclared element 'x'\n");
  EXPECT_EQ(faults("Idle(\r\n\"\r\n\" '\n' \\<\r> /*\n*/ //\r\n\"\\\r\n\"\n);x"), "c:9: undeclared element 'x'\n");
}

TEST(LangLandmark, FollowsLineDirectives) {
  EXPECT_EQ(faults("# 10 \"foo\"\nx\n#line 7 \"b\\\"ar\"\ny\n# 3\nz\n# 5 \"\"\nw"),
            "foo:10: undeclared element 'x'\nb\"ar:7: undeclared element 'y'\n"
            "b\"ar:3: undeclared element 'z'\nc:5: undeclared element 'w'\n");
  EXPECT_EQ(faults("Idle;\n#include <x>\nx"), "c:2: unknown preprocessor directive\nc:3: undeclared element 'x'\n");
  EXPECT_EQ(faults("# 99999999999999999999\nx"), "c:1: unknown preprocessor directive\nc:2: undeclared element 'x'\n");
  EXPECT_EQ(faults(" # 3"), "c:1: syntax error near '#'\nc:1: undeclared element '3'\n");
}

TEST(LangLandmark, FollowsLineDirectivesWithinConfigurations) {
  const Parsed parsed = parse_text("a :: Idle(\n# 100 \"f\"\n\"test\");\nb :: Idle;\nd :: Idle(\"\n# 5\n\")");
  EXPECT_EQ(parsed.flat, "a :: Idle(\n\n\"test\");\nb :: Idle;\nd :: Idle(\"\n# 5\n\");\n\n");
  EXPECT_EQ(parsed.configuration.elements[0].landmark.str(), "c:1");
  EXPECT_EQ(parsed.configuration.elements[1].landmark.str(), "f:101");
}

TEST(LangLandmark, ErrorsWithinAnIncludedFileNameBothFiles) {
  EXPECT_EQ(faults("# 1 \"A\"\n\nx :: Idle;\n# 1 \"./B\"\nx :: Idle;\n# 5 \"A\"\ny :: Idle"),
            "./B:1: redeclaration of element 'x'\nA:2: element 'x' previously declared here\n");
}

TEST(LangSyntax, ReportsAndGoesOn) {
  EXPECT_EQ(faults("->Null;"), "c:1: syntax error near '->'\n");
  EXPECT_EQ(faults("Idle -> ;\nx"), "c:1: syntax error near ';'\nc:2: undeclared element 'x'\n");
  EXPECT_EQ(faults("Idle ->"), "c:1: syntax error near ''\n");
  EXPECT_EQ(faults("% } ) || ]"),
            "c:1: syntax error near '%'\nc:1: syntax error near '}'\nc:1: syntax error near ')'\n"
            "c:1: syntax error near '||'\nc:1: syntax error near ']'\n");
  EXPECT_EQ(faults("provide;"), "c:1: syntax error near 'provide'\n") << "reserved, without a meaning";
  EXPECT_EQ(faults("a :: Idle ... $x"), "c:1: syntax error near '...'\nc:1: syntax error near 'x'\n");
  EXPECT_EQ(faults("\x01\xff"), "c:1: syntax error near '\\001'\nc:1: syntax error near '\\377'\n");
  EXPECT_EQ(faults("a :: Idle(\nfoo \""), "c:2: expected ')'\n");
}

TEST(LangConfiguration, FindsElements) {
  const Parsed parsed = parse_text("a :: Idle; b :: Idle");
  EXPECT_EQ(parsed.configuration.find("b"), 1);
  EXPECT_EQ(parsed.configuration.find("x"), -1);
  EXPECT_EQ(parsed.configuration.source, "a :: Idle; b :: Idle");
}

}  // namespace
}  // namespace headrace::lang
