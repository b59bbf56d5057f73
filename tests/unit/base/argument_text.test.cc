#include "base/argument_text.hh"

#include <gtest/gtest.h>

#include <map>

namespace headrace::lang {
namespace {

using Words = std::vector<std::string>;

TEST(LangSplitArguments, PartsAtCommas) {
  EXPECT_EQ(split_arguments("a, b c ,d"), (Words{"a", "b c", "d"}));
  EXPECT_EQ(split_arguments("  one  "), (Words{"one"}));
}

TEST(LangSplitArguments, DropsOnlyAnEmptyLastArgument) {
  EXPECT_EQ(split_arguments(""), Words{});
  EXPECT_EQ(split_arguments(" /* nothing */ "), Words{});
  EXPECT_EQ(split_arguments("a,"), (Words{"a"}));
  EXPECT_EQ(split_arguments("a, ,"), (Words{"a", ""}));
  EXPECT_EQ(split_arguments("a,,b"), (Words{"a", "", "b"}));
  EXPECT_EQ(split_arguments(","), (Words{""}));
}

TEST(LangSplitArguments, KeepsCommasInQuotationsAndData) {
  EXPECT_EQ(split_arguments("\"a,b\\\",c\", 'd,\"', e"), (Words{"\"a,b\\\",c\"", "'d,\"'", "e"}));
  EXPECT_EQ(split_arguments("\\<01, 02>, x"), (Words{"\\<01, 02>", "x"}));
  EXPECT_EQ(split_arguments("\"\\<22, /* > */ 23>\", x"), (Words{"\"\\<22, /* > */ 23>\"", "x"}));
}

TEST(LangSplitArguments, ReplacesCommentsByABlank) {
  EXPECT_EQ(split_arguments("a/*,*/b, c // d, e\n f"), (Words{"a b", "c f"}));
  EXPECT_EQ(split_arguments("a   b /* x */ // y\r\n /**/ c"), (Words{"a   b c"}));
  EXPECT_EQ(split_arguments("'/* kept */'"), (Words{"'/* kept */'"}));
}

TEST(LangSplitArguments, ClosesWhatIsOpenAtTheEnd) {
  EXPECT_EQ(split_arguments("a, \"b, c"), (Words{"a", "\"b, c"}));
  EXPECT_EQ(split_arguments("a, 'b, c"), (Words{"a", "'b, c"}));
  EXPECT_EQ(split_arguments("a, b /* c, d"), (Words{"a", "b"}));
  EXPECT_EQ(split_arguments("a, \\<0"), (Words{"a", "\\<0"}));
  EXPECT_EQ(split_arguments("a /"), (Words{"a /"}));
  EXPECT_EQ(split_arguments("a //"), (Words{"a"}));
  EXPECT_EQ(split_arguments("\"\\"), (Words{"\"\\"}));
}

TEST(LangSplitWords, PartsAtSpaceAndComments) {
  EXPECT_EQ(split_words(" a\tb\nc "), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_words("'a b'\"c d\" e, \\<0 1>x"), (Words{"'a b'\"c d\"", "e,", "\\<0 1>x"}));
  EXPECT_EQ(split_words("a/**/b // c"), (Words{"a", "b"}));
  EXPECT_EQ(split_words("18.26.4/24 x"), (Words{"18.26.4/24", "x"}));
  EXPECT_EQ(split_words("  "), Words{});
}

TEST(LangTakeWord, LeavesTheRestAtTheNextWord) {
  std::string_view text = "  set x /* why */  1 2";
  EXPECT_EQ(take_word(text), "set");
  EXPECT_EQ(take_word(text), "x");
  EXPECT_EQ(text, "1 2");
  EXPECT_EQ(take_word(text), "1");
  EXPECT_EQ(take_word(text), "2");
  EXPECT_EQ(take_word(text), "");
}

TEST(LangUnquote, TakesOneLevelAway) {
  EXPECT_EQ(unquote("a\"b\"'c'"), "abc");
  EXPECT_EQ(unquote("  x  "), "x");
  EXPECT_EQ(unquote("\" x \""), " x ");
  EXPECT_EQ(unquote("'a\\n\"'"), "a\\n\"");
  EXPECT_EQ(unquote("\"it's\""), "it's");
  EXPECT_EQ(unquote("\"\""), "");
  EXPECT_EQ(unquote("a\\nb"), "a\\nb");
}

TEST(LangUnquote, KnowsTheEscapesOfC) {
  EXPECT_EQ(unquote(R"("\a\b\f\n\r\t\v")"), "\a\b\f\n\r\t\v");
  EXPECT_EQ(unquote(R"("\\\"\$\,\'\q")"), "\\\"$,'q");
  EXPECT_EQ(unquote(R"("\101\60\7x\1234")"), std::string("A0\ax") + "S4");
  EXPECT_EQ(unquote(R"("\x41\x4a4Bg")"), "AKg") << "the low byte of all digits";
  EXPECT_EQ(unquote("\"a\\\nb\\\r\nc\\\rd\""), "abcd");
}

TEST(LangUnquote, DecodesHexData) {
  EXPECT_EQ(unquote("\\<48 65 6C6c 6f>"), "Hello");
  EXPECT_EQ(unquote("\"<\\<48/* 49 */4a>\">"), "<HJ>");
  EXPECT_EQ(unquote("\\<00>"), std::string(1, '\0'));
  EXPECT_EQ(unquote("\\<4>"), "");
  EXPECT_EQ(unquote("\\<41 4"), "A");
  EXPECT_EQ(unquote("'\\<41>'"), "\\<41>");
}

TEST(LangQuote, IsUndoneByUnquote) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(unquote(quote(all)), all);
  EXPECT_EQ(unquote(quote(all, true)), all);
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote("a\"b\\$\n\t\r\x01\xff"), R"("a\"b\\\$\n\t\r\001\377")");
  EXPECT_EQ(quote("a\nb", true), "\"a\nb\"");
}

TEST(LangUnparse, JoinsArgumentsAndWords) {
  EXPECT_EQ(unparse_arguments({}), "");
  EXPECT_EQ(unparse_arguments({"a"}), "a");
  EXPECT_EQ(unparse_arguments({"a", "KEY b"}), "a, KEY b");
  EXPECT_EQ(unparse_words({"a", "b"}), "a b");
}

TEST(LangUncomment, TrimsAndReplaces) {
  EXPECT_EQ(uncomment("  a  b /* c */ , d // e"), "a  b , d");
  EXPECT_EQ(uncomment("//"), "");
}

TEST(LangSplitKeyword, NeedsAKeywordInFront) {
  using Pair = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(split_keyword("LIMIT 10 20"), (Pair{"LIMIT", "10 20"}));
  EXPECT_EQ(split_keyword("a.b:c?!_9"), (Pair{"a.b:c?!_9", ""}));
  EXPECT_EQ(split_keyword("1.2.3.4/24 5"), std::nullopt);
  EXPECT_EQ(split_keyword("\"A\" 1"), std::nullopt);
  EXPECT_EQ(split_keyword(""), std::nullopt);
}

TEST(LangIsWord, RefusesQuotationsSpaceAndCommas) {
  EXPECT_TRUE(is_word("a/b@1!~"));
  for (const char* text : {"", "a b", "a,b", "'", "\"", "\\", "\x7f", "\xc3\xa4"}) EXPECT_FALSE(is_word(text)) << text;
}

class LangExpandVariables : public ::testing::Test {
 protected:
  std::string expand(std::string_view text, ExpandInto mode = ExpandInto::kText) const {
    return expand_variables(
        text,
        [this](std::string_view name) -> std::optional<std::string> {
          const auto found = variables_.find(std::string(name));
          if (found == variables_.end()) return std::nullopt;
          return found->second;
        },
        [](std::string_view call) -> std::optional<std::string> {
          if (call.substr(0, 4) == "fail") return std::nullopt;
          return "<" + std::string(call) + ">";
        },
        mode);
  }

  std::map<std::string, std::string> variables_{{"x", "1"},    {"name_9", "A B  C"}, {"n", "2"},
                                                {"q", "a\"b"}, {"empty", ""},        {"?", "0"},
                                                {"$", "77"},   {"#", "3"},           {"dollar", "$x"}};
};

TEST_F(LangExpandVariables, ReplacesNames) {
  EXPECT_EQ(expand("a$x"), "a1");
  EXPECT_EQ(expand("$x$name_9-$x."), "1A B  C-1.");
  EXPECT_EQ(expand("${x}y ${ x }"), "1y 1");
  EXPECT_EQ(expand("$empty"), "");
  EXPECT_EQ(expand("$? $$ $# ${?}"), "0 77 3 0");
}

TEST_F(LangExpandVariables, KnowsThatQuotesWithinHexDataAreNone) {
  EXPECT_EQ(expand("\"a\\<48\"/* > \" */ 45> $q\" $q '$q'"), "\"a\\<48\"/* > \" */ 45> a\\\"b\" a\"b '$q'");
  EXPECT_EQ(expand("\\<4'8 $n> $q"), "\\<4'8 2> a\"b");
  EXPECT_EQ(expand("'\\<' $n '>'"), "'\\<' 2 '>'");
}

TEST_F(LangExpandVariables, LeavesTheUnknown) {
  EXPECT_EQ(expand("$y ${y} $( $ $. ${ $"), "$y ${y} $( $ $. ${ $");
  EXPECT_EQ(expand("$x ${x $x"), "1 ${x $x");
  EXPECT_EQ(expand("$(fail a) $x"), "$(fail a) 1");
  EXPECT_EQ(expand("${y$x}"), "${y1}");
  EXPECT_EQ(expand("$(fail $x)"), "$(fail 1)");
}

TEST_F(LangExpandVariables, ValuesAreNotSearched) { EXPECT_EQ(expand("$dollar"), "$x"); }

TEST_F(LangExpandVariables, UsesDefaults) {
  EXPECT_EQ(expand("${y-7}"), "7");
  EXPECT_EQ(expand("${x-7}"), "1");
  EXPECT_EQ(expand("${y-}|"), "|");
  EXPECT_EQ(expand("${y-a-b c}"), "a-b c");
  EXPECT_EQ(expand("${y-$x}"), "1");
}

TEST_F(LangExpandVariables, IndexesWords) {
  EXPECT_EQ(expand("${name_9[0]}${name_9[1]}${name_9[2]}"), "ABC");
  EXPECT_EQ(expand("${name_9[3]}|${name_9[ 1]}"), "|B");
  EXPECT_EQ(expand("${name_9[$n]}"), "C");
  EXPECT_EQ(expand("${y[0]-d}"), "d");
  EXPECT_EQ(expand("${x[z]}"), "1");
}

TEST_F(LangExpandVariables, RespectsQuotation) {
  EXPECT_EQ(expand("'$x' \"$x\" $x"), "'$x' \"1\" 1");
  EXPECT_EQ(expand("\"'$x'\""), "\"'1'\"");
  EXPECT_EQ(expand("\"\\$x\" \\$x"), "\"\\$x\" \\1");
  EXPECT_EQ(expand("\"$q\" $q"), "\"a\\\"b\" a\"b");
  EXPECT_EQ(expand("/* $x */ $x // $x\n$x \"// $x\""), "/* $x */ 1 // $x\n1 \"// 1\"");
  EXPECT_EQ(expand("$q \"$q\"", ExpandInto::kQuoted), "\"a\\\"b\" \"a\\\"b\"");
}

TEST_F(LangExpandVariables, CallsHandlers) {
  EXPECT_EQ(expand("$(a.b 1)"), "<a.b 1>");
  EXPECT_EQ(expand("$(a $(b $x))"), "<a <b 1>>");
  EXPECT_EQ(expand("$(add (1) \")\" ')')!"), "<add (1) \")\" ')'>!");
  EXPECT_EQ(expand_variables("$(a) $b", [](std::string_view) { return std::optional<std::string>("v"); }), "$(a) v");
}

TEST_F(LangExpandVariables, StopsAtItsDepth) {
  std::string text = "$x";
  for (int i = 0; i < 30; ++i) text = "$(" + text + ")";
  const std::string expanded = expand(text);
  EXPECT_NE(expanded.find("$x"), std::string::npos);
  EXPECT_EQ(expanded.substr(0, 2), "<<");
}

}  // namespace
}  // namespace headrace::lang
