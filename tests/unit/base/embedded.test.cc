#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headrace/device/embedded.hh>
#include <headrace/version.hh>
#include <iterator>
#include <regex>
#include <string>

#include "support/source_dir.hh"

namespace headrace {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Every header of the three kinds is in the binary, byte for byte: a page or a device program made from an old or a cut
// text would be wrong without a sign.
TEST(Embedded, HoldsEveryHeaderAsItIs) {
  const std::filesystem::path root = kSourceDir;
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "the source tree is not on this machine";
  int checked = 0;
  const auto check = [&](const std::filesystem::path& file, const std::filesystem::path& base) {
    const std::string path = file.lexically_relative(base).generic_string();
    // Not EXPECT_EQ, which would print both texts.
    EXPECT_TRUE(find_embedded_header(path).text == read(file))
        << path << " is embedded with another text, or not at all";
    ++checked;
  };
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "include"))
    if (entry.path().extension() == ".hh") check(entry.path(), root / "include");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "elements"))
    if (entry.path().extension() == ".hh") check(entry.path(), root);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "tables"))
    if (entry.path().string().ends_with("_view.hh")) check(entry.path(), root);
  EXPECT_GT(checked, 2);
  // Tests of programs bring headers of their own.
  int of_tree = 0;
  for (const EmbeddedText& e : embedded_headers()) of_tree += !e.path.starts_with("tests/");
  EXPECT_EQ(of_tree, checked);
}

TEST(Embedded, FindsByPathAndByElementName) {
  EXPECT_NE(find_embedded_header("headrace/device/embedded.hh").text.find("register_embedded_header"),
            std::string_view::npos);
  EXPECT_TRUE(find_embedded_header("headrace/absent.hh").text.empty());
  EXPECT_TRUE(find_embedded_header("embedded.hh").path.empty());
  EXPECT_EQ(find_embedded_element("embedded").path, "headrace/device/embedded.hh");
  EXPECT_TRUE(find_embedded_element("mbedded").path.empty());
  EXPECT_TRUE(find_embedded_element("").path.empty());
}

TEST(Embedded, IsOrderedByPath) {
  const auto all = embedded_headers();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; }));
}

TEST(Version, NamesVersionCommitAndBuild) {
  EXPECT_TRUE(std::regex_match(kVersion, std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << kVersion;
  EXPECT_TRUE(std::regex_match(kCommit, std::regex("unknown|[0-9a-f]{12}(-dirty)?"))) << kCommit;
  EXPECT_TRUE(std::regex_search(kBuild, std::regex("GNU|Clang"))) << kBuild;
}

}  // namespace
}  // namespace headrace
