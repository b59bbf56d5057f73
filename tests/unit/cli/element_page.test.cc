#include "cli/element_page.hh"

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

constexpr std::string_view kHeader = R"(#pragma once
/// \file
/// About the file.

/// About a helper.
struct FooHelper {};

class Foo;

/// Does foo. And then, e.g. in 10.0.0.1, more.
///
///     Foo(BAR)
///
/// Handlers: none.
class Foo final : public Element {
  /// Not this.
  int bar;
};
)";

TEST(ElementPage, TakesTheCommentBeforeTheClass) {
  EXPECT_EQ(doc_comment(kHeader, "Foo"),
            "Does foo. And then, e.g. in 10.0.0.1, more.\n\n    Foo(BAR)\n\nHandlers: none.\n");
  EXPECT_EQ(doc_comment(kHeader, "FooHelper"), "About a helper.\n");
}

TEST(ElementPage, NothingWithoutComment) {
  EXPECT_EQ(doc_comment(kHeader, "Fo"), "");
  EXPECT_EQ(doc_comment("/// Far away.\n\nstruct A {\n};\n", "A"), "");
  EXPECT_EQ(doc_comment("", "A"), "");
}

TEST(ElementPage, SummaryIsTheFirstSentence) {
  EXPECT_EQ(summary_of("Does foo. And more.\n"), "Does foo.");
  EXPECT_EQ(summary_of("Sends to 10.0.0.1 e.g. now\nor later. Then stops.\n\nMore.\n"),
            "Sends to 10.0.0.1 e.g. now or later.");
  EXPECT_EQ(summary_of("One line without end\n\nMore.\n"), "One line without end");
  EXPECT_EQ(summary_of(""), "");
}

}  // namespace
}  // namespace headrace::cli
