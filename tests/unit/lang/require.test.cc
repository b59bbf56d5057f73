// Requirements, libraries and archives.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lang_fixture.hh"

namespace headrace::lang {
namespace {

namespace fs = std::filesystem;

TEST(LangRequire, IsRecorded) {
  const Parsed parsed = parse_text("\nrequire(compact_config, package \"a b\");\nrequire(c)");
  EXPECT_TRUE(parsed.ok);
  ASSERT_EQ(parsed.configuration.requirements.size(), 3u);
  EXPECT_EQ(parsed.configuration.requirements[0].kind, "compact_config");
  EXPECT_EQ(parsed.configuration.requirements[0].landmark.str(), "c:2");
  EXPECT_EQ(parsed.configuration.requirements[1].value, "a b");
  EXPECT_EQ(parsed.configuration.requirements[2].kind, "package");
  EXPECT_EQ(parsed.configuration.requirements[2].value, "c");
  EXPECT_EQ(parsed.flat, "require(compact_config, package \"a b\", package \"c\");\n\n");
  EXPECT_EQ(flat(parsed.flat), parsed.flat);
}

TEST(LangRequire, ReportsMistakes) {
  for (const char* text : {"require(foo bar)", "require(library)", "require(package)", "require(compact_config x)",
                           "require(package a b)", "require(\"a,b\" c)"}) {
    EXPECT_EQ(faults(text), "c:1: syntax error at requirement\n") << text;
  }
  EXPECT_EQ(faults("require Idle"), "c:1: expected '('\n");
  EXPECT_EQ(flat("require(); require(,)"), "");
}

class LangLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("headrace-library-{}", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "sub");
    fs::create_directories(folder_ / "path" / "conf");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  Parsed parse_main(const std::string& text, Options options = known_classes()) const {
    return parse_text(text, options, (folder_ / "main").string());
  }

  fs::path folder_;
};

TEST_F(LangLibrary, IsReadOnceBesideTheFile) {
  write("lib", "require(library sub/lib2)\nelementclass A { b :: B; }");
  write("sub/lib2", "elementclass B { i :: Idle; }");
  write("lib3", "require(library lib)");
  const Parsed parsed = parse_main("require(library lib, library lib3)\na :: A; x");
  EXPECT_EQ(parsed.messages, (folder_ / "main").string() + ":2: undeclared element 'x'\n");
  ASSERT_GE(parsed.configuration.elements.size(), 2u);
  EXPECT_EQ(parsed.configuration.elements.back().name, "a/b/i");
  EXPECT_EQ(parsed.configuration.elements.back().landmark.str(), (folder_ / "sub/lib2").string() + ":1");
  EXPECT_TRUE(parsed.configuration.requirements.empty());
}

TEST_F(LangLibrary, MayRequireItself) {
  write("lib", "require(library lib) elementclass A Idle;");
  EXPECT_TRUE(parse_main("require(library lib) A").ok);
}

TEST_F(LangLibrary, IsSearchedOnThePath) {
  write("path/conf/lib", "elementclass A { conf :: Idle }");
  write("path/lib", "elementclass A { path :: Idle }");
  write("path/other", "elementclass O { path :: Idle }");
  write("other", "elementclass O { beside :: Idle }");
  Options options = known_classes();
  options.library_path = {(folder_ / "nowhere").string(), (folder_ / "path").string()};
  EXPECT_EQ(parse_main("require(library lib, library other) a :: A; o :: O", options).flat,
            "a/conf :: Idle;\no/path :: Idle;\n\n");
  options.library_path.insert(options.library_path.begin(), "");
  EXPECT_EQ(parse_main("require(library other) o :: O", options).flat, "o/beside :: Idle;\n\n");
  EXPECT_EQ(parse_main("require(library " + (folder_ / "path/lib").string() + ") a :: A").flat, "a/path :: Idle;\n\n");
}

TEST_F(LangLibrary, ReportsItsOwnErrors) {
  write("lib", "Idle;\n}\n{ Null");
  const std::string lib = (folder_ / "lib").string();
  EXPECT_EQ(parse_main("require(library lib)").messages,
            lib + ":2: syntax error near '}'\n" + lib + ":3: expected '}'\n");
}

TEST_F(LangLibrary, MustExist) {
  EXPECT_EQ(faults("require(library nope)"), "c:1: library 'nope' not found in CLICKPATH/conf\n");
  EXPECT_EQ(faults("require(library \"\")"), "c:1: library '' not found in CLICKPATH/conf\n");
  EXPECT_EQ(faults("require(library /nope)"), "c:1: library '/nope' not found in CLICKPATH/conf\n");
  EXPECT_FALSE(parse_main("require(library sub)").ok) << "a folder is no library";
}

TEST_F(LangLibrary, BelongsAtFileScope) {
  write("lib", "elementclass A Idle;");
  EXPECT_EQ(faults("x :: { require(library lib) }"), "c:1: 'require library' must be used at file scope\n");
}

TEST_F(LangLibrary, NestsOnlySoDeep) {
  for (int i = 0; i < 60; ++i) write(fmt::format("l{}", i), fmt::format("require(library l{})", i + 1));
  const Parsed parsed = parse_main("require(library l0)");
  EXPECT_EQ(parsed.messages, (folder_ / "l49").string() + ":1: maximum library nesting depth exceeded\n");
}

std::string member(const std::string& name, const std::string& data) {
  return fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, "100644", data.size()) + data +
         (data.size() % 2 ? "\n" : "");
}

TEST(LangArchive, HoldsTheConfiguration) {
  const std::string other = member("package.uo", "abc");
  EXPECT_EQ(flat("!<arch>\n" + other + member("config", "Idle;") + other), "Idle@1 :: Idle;\n\n");
  EXPECT_EQ(flat("!<arch>\n" + other + member("config/", "Idle")), "Idle@1 :: Idle;\n\n") << "GNU";
  EXPECT_EQ(
      flat("!<arch>\n" + member("//", "a_long_member_name/\nconfig/\n") + member("/0", "x") + member("/20", "Idle")),
      "Idle@1 :: Idle;\n\n");
  EXPECT_EQ(flat("!<arch>\n" + member("#1/8", std::string("config\0\0Idle", 12))), "Idle@1 :: Idle;\n\n") << "BSD";
  EXPECT_EQ(parse_text("!<arch>\n" + member("config", "Null")).configuration.source, "Null");
}

TEST(LangArchive, MustBeWhole) {
  EXPECT_EQ(faults("!<arch>\n"), "c: archive has no 'config' section\n");
  EXPECT_EQ(faults("!<arch>\n" + member("x", "config")), "c: archive has no 'config' section\n");
  EXPECT_EQ(faults("!foo"), "c: not an archive\n");
  EXPECT_EQ(faults("!<arch>\nconfig"), "c: truncated archive\n");
  EXPECT_EQ(faults("!<arch>\n" + member("config", "Idle").substr(0, 62)), "c: truncated archive\n");
  EXPECT_EQ(faults("!<arch>\n" + std::string(60, ' ')), "c: bad archive: missing header magic number\n");
  std::string bad_size = member("config", "Idle");
  bad_size[48] = 'x';
  EXPECT_EQ(faults("!<arch>\n" + bad_size), "c: bad archive: bad member size\n");
  EXPECT_EQ(faults("!<arch>\n" + member("/7", "Idle")), "c: bad long name in archive\n");
  EXPECT_EQ(faults("!<arch>\n" + member("#1/9", "Idle")), "c: bad long name in archive\n");
}

}  // namespace
}  // namespace headrace::lang
