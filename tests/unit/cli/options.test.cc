#include "cli/options.hh"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::cli {
namespace {

constexpr Option kOptions[] = {
    {0, "quiet", 'q'},
    {1, "file", 'f', Option::Value::kRequired},
    {2, "affinity", 'a', Option::Value::kOptional, true},
    {2, "affix", 0, Option::Value::kOptional, true},
    {3, "filter", 0, Option::Value::kRequired},
    {4, "warnings", 0, Option::Value::kNone, true},
};

/// A command line as it is read: "id[!][=value]" joined by blanks; "arg=x"; "bad" ends it.
std::string read(std::vector<std::string> words) {
  words.insert(words.begin(), "test");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  OptionReader reader("test", static_cast<int>(argv.size()), argv.data(), kOptions);
  std::string result;
  for (int id; (id = reader.next()) != OptionReader::kDone;) {
    if (!result.empty()) result += ' ';
    if (id == OptionReader::kBad) return result + "bad";
    result += id == OptionReader::kArgument ? "arg" : std::to_string(id);
    if (reader.negated()) result += '!';
    if (reader.has_value()) result += "=" + reader.value();
  }
  return result;
}

TEST(Options, LettersMayBeJoinedAndValuesAttached) {
  EXPECT_EQ(read({"-q"}), "0");
  EXPECT_EQ(read({"-qf", "x", "y"}), "0 1=x arg=y");
  EXPECT_EQ(read({"-qfx", "y"}), "0 1=x arg=y");
  EXPECT_EQ(read({"-qaq"}), "0 2=q");
}

TEST(Options, OptionalValuesMustBeAttached) {
  EXPECT_EQ(read({"-a", "1"}), "2 arg=1");
  EXPECT_EQ(read({"-a1"}), "2=1");
  EXPECT_EQ(read({"--affinity", "1"}), "2 arg=1");
  EXPECT_EQ(read({"--affinity=1"}), "2=1");
  EXPECT_EQ(read({"--affinity="}), "2=");
}

TEST(Options, LongNamesMayBeShortened) {
  EXPECT_EQ(read({"--qu"}), "0");
  EXPECT_EQ(read({"--file", "x"}), "1=x");
  EXPECT_EQ(read({"--filt=x"}), "3=x");
  EXPECT_EQ(read({"--fil=x"}), "bad");
  EXPECT_EQ(read({"--aff"}), "2");  // two names of one option
}

TEST(Options, Negation) {
  EXPECT_EQ(read({"--no-affinity"}), "2!");
  EXPECT_EQ(read({"--no-w"}), "4!");
  EXPECT_EQ(read({"--no-quiet"}), "bad");
  EXPECT_EQ(read({"--no-affinity=1"}), "bad");
}

TEST(Options, ArgumentsStandAnywhere) {
  EXPECT_EQ(read({"x", "-q", "-", "--", "-q", "--file"}), "arg=x 0 arg=- arg=-q arg=--file");
}

TEST(Options, Mistakes) {
  EXPECT_EQ(read({"-z"}), "bad");
  EXPECT_EQ(read({"--zzz"}), "bad");
  EXPECT_EQ(read({"-f"}), "bad");
  EXPECT_EQ(read({"--file"}), "bad");
  EXPECT_EQ(read({"--quiet=1"}), "bad");
}

TEST(Options, Numbers) {
  std::string words[] = {"test", "-a12", "-a1x", "-a2.5"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data()};
  OptionReader reader("test", 4, argv, kOptions);
  int n = 0;
  double d = 0;
  ASSERT_EQ(reader.next(), 2);
  EXPECT_TRUE(reader.integer(n));
  EXPECT_EQ(n, 12);
  ASSERT_EQ(reader.next(), 2);
  EXPECT_FALSE(reader.integer(n));
  EXPECT_FALSE(reader.number(d));
  ASSERT_EQ(reader.next(), 2);
  EXPECT_TRUE(reader.number(d));
  EXPECT_EQ(d, 2.5);
}

}  // namespace
}  // namespace headrace::cli
