#include "elements/control/Script.hh"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// What a passive script with these instructions returns for `arguments`.
std::string run(const std::string& instructions, const std::string& arguments = "") {
  TestRouter r("s :: Script(TYPE PASSIVE, " + instructions + ");");
  EXPECT_TRUE(r.ok()) << r.errors();
  return r.ok() ? r.read("s.run" + (arguments.empty() ? "" : " " + arguments)) : "";
}

/// The errors of a configuration that does not work.
std::string errors_of(const std::string& text) {
  TestRouter r(text);
  EXPECT_FALSE(r.ok());
  return r.errors();
}

class TemporaryFile {
 public:
  TemporaryFile() : path_(::testing::TempDir() + "headrace_script_" + std::to_string(getpid())) { remove(); }
  ~TemporaryFile() { remove(); }
  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  void remove() { std::filesystem::remove(path_); }
  std::string path_;
};

struct Calculation {
  const char* call;
  const char* value;
};

class ScriptFunctions : public ::testing::TestWithParam<Calculation> {};

TEST_P(ScriptFunctions, Calculate) {
  TestRouter r("s :: Script(TYPE PASSIVE);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read(std::string("s.") + GetParam().call), GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, ScriptFunctions,
    ::testing::Values(Calculation{"add 1 2 3", "6"}, Calculation{"add", "0"}, Calculation{"mul", "1"},
                      Calculation{"sub 10 2 2", "6"}, Calculation{"sub 5", "5"}, Calculation{"add 0x10 1", "17"},
                      Calculation{"add 1 0.5", "1.5"}, Calculation{"mul 2 3 4", "24"}, Calculation{"div 7 2", "3.5"},
                      Calculation{"idiv 7 2", "3"}, Calculation{"idiv -7 2", "-3"}, Calculation{"mod 7 3", "1"},
                      Calculation{"mod -7 3", "-1"}, Calculation{"rem 7.5 2", "1.5"}, Calculation{"min 10 6 20", "6"},
                      Calculation{"max -1 6 3", "6"}, Calculation{"max 1 2.5", "2.5"}, Calculation{"neg 4", "-4"},
                      Calculation{"neg -1.5", "1.5"}, Calculation{"abs -4", "4"}, Calculation{"abs 3", "3"},
                      Calculation{"add 9223372036854775807 1", "9.22337203685e+18"},
                      Calculation{"mod -9223372036854775808 -1", "0"}));

INSTANTIATE_TEST_SUITE_P(Comparisons, ScriptFunctions,
                         ::testing::Values(Calculation{"eq 10 0xA", "true"}, Calculation{"eq 1 1.0", "true"},
                                           Calculation{"eq 10x 10x", "true"}, Calculation{"eq 10x \"10x\"", "true"},
                                           Calculation{"ne 1 1", "false"}, Calculation{"ne a b", "true"},
                                           Calculation{"lt 1 2", "true"}, Calculation{"lt 2 2", "false"},
                                           Calculation{"lt b a", "false"}, Calculation{"le 2 2", "true"},
                                           Calculation{"le 9 8", "false"}, Calculation{"gt 2 1", "true"},
                                           Calculation{"gt 2 2", "false"}, Calculation{"gt 10 9", "true"},
                                           Calculation{"ge 2 2", "true"}, Calculation{"ge 1 2", "false"}));

INSTANTIATE_TEST_SUITE_P(Truth, ScriptFunctions,
                         ::testing::Values(Calculation{"not true", "false"}, Calculation{"not 0", "true"},
                                           Calculation{"and true true", "true"}, Calculation{"and true false", "false"},
                                           Calculation{"and", "true"}, Calculation{"or", "false"},
                                           Calculation{"or false true", "true"}, Calculation{"nand true true", "false"},
                                           Calculation{"nand true false", "true"},
                                           Calculation{"nor false false", "true"},
                                           Calculation{"nor false true", "false"}, Calculation{"if true a b", "a"},
                                           Calculation{"if false a b", "b"}, Calculation{"in foo bar foo", "true"},
                                           Calculation{"in foo bar", "false"}));

INSTANTIATE_TEST_SUITE_P(
    Text, ScriptFunctions,
    ::testing::Values(Calculation{"first a b c", "a"}, Calculation{"length abcdef", "6"},
                      Calculation{"unquote \"a b\"", "a b"},
                      Calculation{"sprintf \"%05x|%-4d|%s\" 127 3 'a b'", "0007f|3   |a b"},
                      Calculation{"sprintf \"%*d%%\" 4 7", "   7%"}, Calculation{"sprintf \"%.2s\" abc", "ab"},
                      Calculation{"sprintf \"%hd %hu\" 65537 65537", "1 1"}, Calculation{"htons 1", "256"},
                      Calculation{"ntohl 16777216", "1"}, Calculation{"readable run s.get nothing.here", "false"},
                      Calculation{"readable run s.get", "true"}, Calculation{"writable set s.step", "true"},
                      Calculation{"writable add", "false"}, Calculation{"random 1", "0"},
                      Calculation{"random 7 7", "7"}));

TEST(Script, FunctionErrors) {
  TestRouter r("s :: Script(TYPE PASSIVE);");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto error_of = [&](const std::string& name, const std::string& parameters) {
    Errors errors;
    std::string value;
    Element* s = r.router().find("s");
    EXPECT_FALSE(r.router().call_read(*s->handlers().find(name), parameters, value, errors).ok()) << name;
    return errors.str();
  };
  EXPECT_EQ(error_of("add", "1 x"), "expected list of numbers\n");
  EXPECT_EQ(error_of("mod", "1"), "expected two numbers\n");
  EXPECT_EQ(error_of("mod", "1 0"), "division by zero\n");
  EXPECT_EQ(error_of("idiv", "1 0"), "division by zero\n");
  EXPECT_EQ(error_of("neg", "x"), "expected one number\n");
  EXPECT_EQ(error_of("eq", "1"), "expected two numbers\n");
  for (const char* name : {"not", "and", "or", "if"})
    EXPECT_EQ(error_of(name, "maybe"), "expected true or false\n") << name;
  EXPECT_EQ(error_of("htons", "x"), "expected an integer\n");
  EXPECT_EQ(error_of("sprintf", "%d"), "'%d' has no word\n");
  EXPECT_EQ(error_of("sprintf", "%04hx 1.5"), "expected an integer for '%04hx', found '1.5'\n");
  EXPECT_EQ(error_of("sprintf", "%u x"), "expected an integer for '%u', found 'x'\n");
  EXPECT_EQ(error_of("sprintf", "%.*s x y"),
            "expected an integer from 0 to 65536 as the precision of '%.*', found 'x'\n");
  EXPECT_EQ(error_of("sprintf", "%99999d 1"), "expected an integer from -65536 to 65536 as the width of '%99999'\n");
  EXPECT_EQ(error_of("sprintf", "%k 1"), "unknown conversion '%k', expected one of o x X u d i s %\n");
  EXPECT_EQ(error_of("sprintf", "%l"), "conversion '%l' has no letter, expected one of o x X u d i s %\n");
  EXPECT_EQ(error_of("sprintf", "%d 1 2 3"), "no conversion takes '2 3'\n");
  EXPECT_EQ(error_of("random", "0"), "bad N\n");
  EXPECT_EQ(error_of("get", "x"), "undefined variable 'x'\n");
  EXPECT_EQ(error_of("kill", "NOSUCH 1"), "bad SIGNO\n");
  EXPECT_EQ(error_of("cat", "/nonexistent/file"), "/nonexistent/file: No such file or directory\n");
}

TEST(Script, PassiveScriptsSeeTheirArguments) {
  EXPECT_EQ(run("return $args", "a  b"), "a  b");
  EXPECT_EQ(run("return $#:$1:$2:$3", "a \"b c\""), "2:a:\"b c\":");
  EXPECT_EQ(run("return $(add $1 $2)", "3 4"), "7");
  EXPECT_EQ(run("return $0 $write", "3 4"), "run false");
}

TEST(Script, QuotesStayUnlessTheInstructionEndsWithQ) {
  EXPECT_EQ(run("return \"a b\""), "\"a b\"");
  EXPECT_EQ(run("returnq \"a b\""), "a b");
  EXPECT_EQ(run("set x 'a', return $x"), "'a'");
  EXPECT_EQ(run("setq x 'a', return $x"), "a");
}

TEST(Script, UnknownVariablesAndHandlersStayAsTheyAre) {
  EXPECT_EQ(run("return $nothing"), "$nothing");
  EXPECT_EQ(run("set nothing 5, return $nothing ${nothing}"), "5 5");
}

TEST(Script, HandlersNestInText) { EXPECT_EQ(run("set f add, return $($f 1 $(mul 2 $(add 1 2)))"), "7"); }

TEST(Script, JumpsAndLoops) {
  EXPECT_EQ(run("set x 0, label again, set x $(add $x 1), goto again $(lt $x 5), return $x"), "5");
  EXPECT_EQ(run("goto over, return no, label over, return yes"), "yes");
  EXPECT_EQ(run("goto end true, return no"), "");
  EXPECT_EQ(run("init x 0, set x $(add $x 1), goto begin $(lt $x 3), return $x"), "3");
}

TEST(Script, InitHappensOnce) {
  TestRouter r("s :: Script(TYPE PASSIVE, init n 5, set n $(add $n 1), return $n);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.run"), "6");
  EXPECT_EQ(r.read("s.run"), "7");
}

TEST(Script, SetGetAndShift) {
  TestRouter r("s :: Script(TYPE PASSIVE, export e here);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.e"), "here");
  EXPECT_TRUE(r.write("s.set", "v one two"));
  EXPECT_EQ(r.read("s.get v"), "one two");
  EXPECT_EQ(r.read("s.shift v"), "one");
  EXPECT_EQ(r.read("s.get v"), "two");
}

TEST(Script, StatusOfWrites) {
  EXPECT_EQ(run("write set x 1, set ok $?, return $ok"), "0");
  TestRouter r("s :: Script(TYPE PASSIVE, write t.run, return $?); t :: Script(TYPE PASSIVE, error oops);");
  ASSERT_TRUE(r.ok()) << r.errors();
  Errors errors;
  std::string value;
  Element* s = r.router().find("s");
  EXPECT_TRUE(r.router().call_read(*s->handlers().find("run"), "", value, errors).ok());
  EXPECT_EQ(value, "-22");
  EXPECT_EQ(errors.str(), "While calling 't.run':\n  oops\n");
}

TEST(Script, ErrorEndsTheScript) {
  TestRouter r("s :: Script(TYPE PASSIVE, export x 0, errorq \"it failed\", set x 1);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_FALSE(r.write("s.run"));
  EXPECT_EQ(r.errors(), "it failed\n");
  EXPECT_EQ(r.read("s.x"), "0");
}

TEST(Script, ActiveScriptRunsAndStopsTheRouter) {
  TestRouter r("s :: Script(export x 0, set x 1, stop, set x 2);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.x"), "0");
  r.run();
  EXPECT_EQ(r.read("s.x"), "1");
}

TEST(Script, WaitTakesItsTime) {
  TestRouter r("s :: Script(export t $(now), wait 2.5s, set t $(sub $(now) $t), stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stod(r.read("s.t")), 2.5, 0.001);
}

TEST(Script, AScriptMayBeginByWaiting) {
  TestRouter r("s :: Script(wait 3s, export x 0, set x $(now), stop); t :: Script(wait 1s, export y 0, set y $(now));");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stod(r.read("s.x")) - std::stod(r.read("t.y")), 2, 0.001);
}

TEST(Script, StepsPassPauses) {
  TestRouter r("s :: Script(TYPE PASSIVE, export x 0, pause 2, set x 1, pause, set x 2);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_EQ(r.read("s.x"), "0");
  EXPECT_TRUE(r.write("s.step"));
  EXPECT_EQ(r.read("s.x"), "0");
  EXPECT_TRUE(r.write("s.step"));
  EXPECT_EQ(r.read("s.x"), "1");
  EXPECT_TRUE(r.write("s.step"));
  EXPECT_EQ(r.read("s.x"), "2");
}

TEST(Script, OneWriteMayBeSeveralSteps) {
  TestRouter r("s :: Script(TYPE PASSIVE, export x 0, pause 2, set x 1, pause, set x 2);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_TRUE(r.write("s.step", "3"));
  EXPECT_EQ(r.read("s.x"), "2");
}

TEST(Script, AStepEndsAWait) {
  TestRouter r(
      "s :: Script(wait 100s, export x 0, set x $(now)); Script(set a $(now), wait 1s, write s.step, stop);"
      "b :: Script(export x $(now));");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_NEAR(std::stod(r.read("s.x")) - std::stod(r.read("b.x")), 1, 0.01);
}

TEST(Script, GotoHandlerMovesTheScript) {
  TestRouter r("s :: Script(TYPE PASSIVE, export x 0, pause, set x 1, end, label there, set x 9);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.goto", "there"));
  EXPECT_EQ(r.read("s.x"), "9");
  EXPECT_FALSE(r.write("s.goto", "nowhere"));
  EXPECT_EQ(r.errors(), "jump to nonexistent label\n");
}

TEST(Script, GoingRoundInCirclesIsGivenUp) {
  TestRouter r("s :: Script(export x 0, label a, set x $(add $x 1), goto a); Script(wait 1, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "s :: Script: too many jumps, giving up\n");
  EXPECT_EQ(r.read("s.x"), "1000");
}

TEST(Script, VariablesDoNotGrowWithoutBound) {
  TestRouter r("s :: Script(TYPE PASSIVE, set x 0123456789, label a, set x $x$x, goto a $(gt $(length $x) 0));");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_EQ(r.errors(), "value of 'x' too long\n");
}

TEST(Script, ErrorsOfAnActiveScriptSayWhereTheyAreFrom) {
  TestRouter r("s :: Script(write nothing.here, print $(nothing.there), stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  r.run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "While executing 's :: Script':\n  no element named 'nothing'\n  no element named 'nothing'\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "$(nothing.there)");
}

TEST(Script, Printing) {
  TestRouter r(
      "s :: Script(TYPE PASSIVE, print a, print \"a  b\", print 5, printn \"x\", print y, print $(add 1 2),"
      "print '\"q\"', printq first \"'w'\", read first 7); Script(TYPE PASSIVE, export a A, export y Y);");
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a  b\n5\nx3\n\"q\"\n'w'\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "s.first:\n7\n");
  // `print a` names a handler, and that of another element needs its name.
  EXPECT_EQ(r.errors(), "no 'a' handler\nno 'y' handler\n");
}

TEST(Script, PrintingToFiles) {
  TemporaryFile file;
  TestRouter r("s :: Script(TYPE PASSIVE, set f " + file.path() +
               ", print >$f \"one\", print >$f \"two\", print >> $f \"three\", printn >>$f 4);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_EQ(file.text(), "two\nthree\n4");
}

TEST(Script, SaveAndAppendWriteHandlersToFiles) {
  TemporaryFile file;
  TestRouter r("s :: Script(TYPE PASSIVE, export v 4, save v " + file.path() + ", append v " + file.path() + ");");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_TRUE(r.write("s.run"));
  EXPECT_EQ(file.text(), "4\n4\n");
}

TEST(Script, ProxyAnswersToEveryName) {
  TestRouter r(
      "s :: Script(TYPE PROXY, goto nota $(ne $0 a), returnq \"you called 'a' $write $args\", label nota, error bad "
      "handler);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("s.a 1 2"), "you called 'a' false 1 2");
  EXPECT_EQ(r.read("s.add 1 2"), "3");
  EXPECT_FALSE(r.write("s.b"));
  EXPECT_EQ(r.errors(), "bad handler\n");
  TestRouter other("s :: Script(TYPE PASSIVE);");
  EXPECT_EQ(other.router().find("s")->handlers().find("a"), nullptr);
}

TEST(Script, SignalScriptsAreInstalledAgainAtTheirEnd) {
  TestRouter r(
      "s :: Script(TYPE SIGNAL USR1 USR2, export n 0, set n $(add $n 1));"
      "Script(set y $(kill USR1 $$), wait 1, set y $(kill USR1 $$), wait 1, set y $(kill USR2 $$), wait 1, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("s.n"), "3");
}

// --- Packets

TEST(Script, PacketsLeaveByTheReturnedOutput) {
  TestRouter r(
      "Idle -> s :: Script(TYPE PACKET, init i 0, set j $i, set i $(mod $(add $i 1) 3), return $j);"
      "s[0] -> a :: Capture; s[1] -> b :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* bytes : {"0", "1", "2", "3", "4"}) r.push("s", bytes);
  auto& a = *dynamic_cast<Capture*>(r.router().find("a"));
  auto& b = *dynamic_cast<Capture*>(r.router().find("b"));
  ASSERT_EQ(a.seen().size(), 2u);
  ASSERT_EQ(b.seen().size(), 2u);
  EXPECT_EQ(a.bytes(1), "3");
  EXPECT_EQ(b.bytes(1), "4");
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tdropped\n");  // output 2 does not exist
}

TEST(Script, EndPassesAndExitDrops) {
  TestRouter r(
      "Idle -> e :: Script(TYPE PACKET) -> a :: Capture; Idle -> x :: Script(TYPE PACKET, exit) -> b :: Capture;"
      "p :: Script(return $input); Idle -> p; Idle -> [1] p; p[0] -> c :: Capture; p[1] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("e", "0");
  r.push("x", "0");
  r.push("p", "0", 1);
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("a"))->seen().size(), 1u);
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("b"))->seen().size(), 0u);
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->seen().size(), 0u);
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("d"))->seen().size(), 1u);
  EXPECT_EQ(r.read("x.drop_reasons"), "1\tdropped\n");
}

TEST(Script, EachPacketOfABatchLeavesBeforeTheNextOnesScriptRuns) {
  TestRouter r(
      "Idle -> s :: Script(init i 0, write sw.switch $i, set i $(sub 1 $i), end) -> sw :: Switch;"
      "sw[0] -> a :: Capture; sw[1] -> b :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  Batch batch;
  for (const char* bytes : {"0", "1", "2", "3"}) batch.push_back(Packet::make(bytes, 1));
  r.router().find("s")->push(0, batch);
  auto& a = *dynamic_cast<Capture*>(r.router().find("a"));
  auto& b = *dynamic_cast<Capture*>(r.router().find("b"));
  ASSERT_EQ(a.seen().size(), 2u);
  ASSERT_EQ(b.seen().size(), 2u);
  EXPECT_EQ(a.bytes(1), "2");
  EXPECT_EQ(b.bytes(1), "3");
}

// --- Drivers

TEST(DriverManager, EachStopRequestIsAStep) {
  TestRouter r(
      "d :: DriverManager(export n 0, pause, set n 1, pause, set n 2, wait 5s, set n 3, stop);"
      "s :: Script(wait 1s, write stop, wait 1s, write stop, export t 0, set t $(d.n), wait 1s, set t $(d.n));");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.n"), "3");
  EXPECT_EQ(r.read("s.t"), "2");
}

TEST(DriverManager, EmptyOneStopsAtTheFirstRequest) {
  TestRouter r("DriverManager; s :: Script(export n 0, wait 1s, set n 1, write stop, wait 1s, set n 2);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("s.n"), "1");
}

TEST(DriverManager, RunsBeforeAnythingStops) {
  TestRouter r("d :: DriverManager(export n 0, set n 1, wait 1s, set n 2, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  EXPECT_EQ(r.read("d.n"), "2");
}

TEST(DriverManager, OnlyOneInARouter) {
  EXPECT_EQ(errors_of("DriverManager(pause); Script(TYPE DRIVER, pause);"),
            "config:1: While configuring 'Script@2 :: Script':\n  router has more than one driver script\n"
            "Router could not be initialized!\n");
}

TEST(Script, ConfigurationErrors) {
  EXPECT_EQ(
      errors_of("Script(frob x, set x, goto nowhere, label, stop now, pause x, print ok);"),
      "config:1: While configuring 'Script@1 :: Script':\n"
      "  syntax error at 'frob'\n  syntax error at 'set', expected a variable and its value\n"
      "  syntax error at 'label', expected one name\n  syntax error at 'stop', expected no operand\n"
      "  syntax error at 'pause', expected a count\n  no such label 'nowhere'\nRouter could not be initialized!\n");
  const auto has = [](const std::string& text, const std::string& line) {
    return errors_of(text).find("\n  " + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("Script(TYPE WEIRD);", "bad TYPE"));
  EXPECT_TRUE(has("Script(TYPE SIGNAL);", "bad signal number"));
  EXPECT_TRUE(has("Script(TYPE SIGNAL NOSUCH);", "bad signal number"));
  EXPECT_TRUE(has("Script(TYPE PACKET);", "PACKET script must have inputs"));
  EXPECT_TRUE(has("Idle -> Script(TYPE ACTIVE) -> Idle;", "ports allowed only on PACKET scripts"));
}

}  // namespace
}  // namespace headrace::testing
