#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/error.hh"
#include "tables/lpm6/route_file6.hh"

namespace headrace::lpm6_test {
namespace {

class RouteFile6 : public ::testing::Test {
 protected:
  void SetUp() override {
    // Processes may run the same test at the same time.
    path_ = (std::filesystem::temp_directory_path() / ("headrace_routes6_" + std::to_string(getpid()))).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  bool read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_routes6(path_, routes_, errors_);
  }

  std::string path_;
  std::vector<TextRoute6> routes_;
  Errors errors_;
};

TEST_F(RouteFile6, ReadsAllFormsOfARoute) {
  ASSERT_TRUE(
      read("# a comment\n"
           "2001:db8::/32\r\n"
           "\n"
           "2001:db8:1::77/48 2001:db8::1\n"
           "  fe80::/10\t3   # host bits are cleared above\n"
           "2001:db8::5 fe80::1 9\n"
           "::/0 - 1"))
      << errors_.str();
  ASSERT_EQ(routes_.size(), 5u);
  const char* const kPrefixes[] = {"2001:db8::/32", "2001:db8:1::/48", "fe80::/10", "2001:db8::5/128", "::/0"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(routes_[i].prefix.unparse(), kPrefixes[i]);
  EXPECT_FALSE(routes_[0].gateway || routes_[0].port);
  EXPECT_EQ(routes_[1].gateway->unparse(), "2001:db8::1");
  EXPECT_EQ(routes_[2].port, 3u);
  EXPECT_EQ(routes_[3].gateway->unparse(), "fe80::1");
  EXPECT_EQ(routes_[3].port, 9u);
  EXPECT_FALSE(routes_[4].gateway);
  EXPECT_EQ(routes_[4].port, 1u);
  EXPECT_EQ(routes_[4].line, 7);
}

TEST_F(RouteFile6, NamesEachBadLine) {
  EXPECT_FALSE(
      read("2001:db8::/32\n"
           "10.0.0.0/8\n"
           "2001:db8::/129\n"
           "2001:db8::/x\n"
           "2001:db8::/32 gate\n"
           "2001:db8::/32 fe80::1 5 6\n" +
           std::string(5000, '0') + "\n2001:db8::/33\n"));
  const std::vector<std::string> expected = {
      "2: bad address '10.0.0.0'",         "3: prefix length 129 is above 128",
      "4: bad prefix length 'x'",          "5: expected a gateway or a port, found 'gate'",
      "6: unexpected '6' after the route", "7: line is too long",
  };
  ASSERT_EQ(errors_.lines().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(errors_.lines()[i], path_ + ":" + expected[i]);
  EXPECT_EQ(routes_.size(), 2u) << "the good lines count";
}

TEST_F(RouteFile6, AMissingFileIsNamed) {
  EXPECT_FALSE(read_routes6(path_ + ".none", routes_, errors_));
  EXPECT_EQ(errors_.lines(), std::vector<std::string>{path_ + ".none: No such file or directory"});
}

}  // namespace
}  // namespace headrace::lpm6_test
