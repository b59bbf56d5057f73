#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "headrace/error.hh"
#include "support/compressed.hh"
#include "tables/lpm4/route_file.hh"

namespace headrace {
namespace {

constexpr uint32_t address4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

class RouteFile : public ::testing::Test {
 protected:
  void SetUp() override {
    // Processes may run the same test at the same time.
    path_ = (std::filesystem::temp_directory_path() / ("headrace_routes_" + std::to_string(getpid()))).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  bool read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_routes(path_, routes_, errors_);
  }
  /// The messages without the path in front.
  std::vector<std::string> messages() const {
    std::vector<std::string> all;
    for (const std::string& line : errors_.lines()) {
      EXPECT_EQ(line.substr(0, path_.size() + 1), path_ + ":");
      all.push_back(line.substr(path_.size() + 1));
    }
    return all;
  }

  std::string path_;
  std::vector<TextRoute> routes_;
  Errors errors_;
};

TEST_F(RouteFile, ReadsAllFormsOfARoute) {
  ASSERT_TRUE(
      read("# a comment\n"
           "10.0.0.0/8\n"
           "\n"
           "18.26.4/24 18.26.4.1\n"
           "  192.168.1.77/16\t3   # host bits are cleared\n"
           "1.2.3.4/32 5.6.7.8 9\n"
           "0/0 - 1\n"
           "10.1.0.0/255.255.128.0 - \n"
           "; another comment\n"
           "9.9.9.9 4294967295\n"
           "128/1"))
      << errors_.str();
  ASSERT_EQ(routes_.size(), 8u);
  const auto expect = [&](size_t i, uint32_t prefix, int length, std::optional<uint32_t> gateway,
                          std::optional<uint32_t> port, int line) {
    SCOPED_TRACE(i);
    EXPECT_EQ(routes_[i].prefix, prefix);
    EXPECT_EQ(routes_[i].length, length);
    EXPECT_EQ(routes_[i].gateway, gateway);
    EXPECT_EQ(routes_[i].port, port);
    EXPECT_EQ(routes_[i].line, line);
  };
  constexpr std::optional<uint32_t> kNone;
  expect(0, address4(10, 0, 0, 0), 8, kNone, kNone, 2);
  expect(1, address4(18, 26, 4, 0), 24, address4(18, 26, 4, 1), kNone, 4);
  expect(2, address4(192, 168, 0, 0), 16, kNone, 3, 5);
  expect(3, address4(1, 2, 3, 4), 32, address4(5, 6, 7, 8), 9, 6);
  expect(4, 0, 0, kNone, 1, 7);
  expect(5, address4(10, 1, 0, 0), 17, kNone, kNone, 8);
  expect(6, address4(9, 9, 9, 9), 32, kNone, 4294967295u, 10);
  expect(7, address4(128, 0, 0, 0), 1, kNone, kNone, 11);
}

TEST_F(RouteFile, ToleratesCarriageReturnsAndAppends) {
  routes_.push_back({});
  ASSERT_TRUE(read("10/8 1\r\n\r\n# x\r\n11/8 2\r\n")) << errors_.str();
  ASSERT_EQ(routes_.size(), 3u);
  EXPECT_EQ(routes_[1].port, 1u);
  EXPECT_EQ(routes_[2].port, 2u);
  EXPECT_EQ(routes_[2].line, 4);
}

TEST_F(RouteFile, AnEmptyFileHasNoRoutes) {
  EXPECT_TRUE(read(""));
  EXPECT_TRUE(routes_.empty());
}

TEST_F(RouteFile, NamesEachBadLine) {
  EXPECT_FALSE(
      read("10.0.0.0/8\n"
           "10.0.0/33\n"
           "10.0.0.256/8\n"
           "10.0.0.0/\n"
           "10.0.0.0/255.0.255.0\n"
           "10.1\n"
           "10.0.0.0/8 gate\n"
           "10.0.0.0/8 1.2.3.4 5 6\n"
           "10.0.0.0/8 1.2.3.4 -5\n"
           "10.0.0.0.0/8\n"
           "/8\n"
           "18.26/24\n"
           "10.0.0.0/8 4294967296\n"
           "1.2.3.4/+8\n"
           "\x01 1\n"
           "11.0.0.0/8\n"));
  EXPECT_EQ(messages(), (std::vector<std::string>{
                            "2: prefix length 33 is above 32",
                            "3: bad address '10.0.0.256'",
                            "4: bad prefix length ''",
                            "5: bad prefix length '255.0.255.0'",
                            "6: '10.1' has no prefix length",
                            "7: expected a gateway or a port, found 'gate'",
                            "8: unexpected '6' after the route",
                            "9: expected a gateway or a port, found '-5'",
                            "10: bad address '10.0.0.0.0'",
                            "11: bad address ''",
                            "12: '18.26/24' says less than 24 bits of the address",
                            "13: expected a gateway or a port, found '4294967296'",
                            "14: bad prefix length '+8'",
                            "15: bad address '?'",
                        }));
  EXPECT_EQ(routes_.size(), 2u) << "the good lines count";
}

TEST_F(RouteFile, ShowsTwentyBadLinesAndCountsTheRest) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "bad\n";
  EXPECT_FALSE(read(text));
  EXPECT_EQ(errors_.error_count(), 20);

  Errors more, many;
  std::ofstream(path_, std::ios::app) << "bad\n";
  EXPECT_FALSE(read_routes(path_, routes_, more));
  ASSERT_EQ(more.lines().size(), 21u);
  EXPECT_EQ(more.lines().back(), path_ + ": 1 more bad line");
  std::ofstream(path_, std::ios::app) << text;
  EXPECT_FALSE(read_routes(path_, routes_, many));
  ASSERT_EQ(many.lines().size(), 21u);
  EXPECT_EQ(many.lines().back(), path_ + ": 21 more bad lines");
}

TEST_F(RouteFile, CannotBeFilledByOneEndlessLine) {
  EXPECT_FALSE(read(std::string(1 << 20, '1') + "\n10/8\n" + std::string(300000, 'x')));
  EXPECT_EQ(messages(), (std::vector<std::string>{"1: line is too long", "3: line is too long"}));
  EXPECT_EQ(routes_.size(), 1u);
}

TEST_F(RouteFile, AFileThatCannotBeReadIsAClearError) {
  EXPECT_FALSE(read_routes(path_, routes_, errors_));
  EXPECT_EQ(errors_.str(), path_ + ": No such file or directory\n");
  Errors directory;
  EXPECT_FALSE(read_routes(std::filesystem::temp_directory_path().string(), routes_, directory));
  EXPECT_EQ(directory.str(), std::filesystem::temp_directory_path().string() + ": Is a directory\n");
}

/// Enough lines for many blocks of input and output.
std::string many_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." + std::to_string(i % 256) + ".0/24 " +
            std::to_string(i) + "\n";
  }
  return text;
}

class CompressedRouteFile : public RouteFile, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::string pack(const std::string& text) { return testing::compressed(GetParam(), text); }
};

TEST_P(CompressedRouteFile, IsUnpacked) {
  constexpr int kLines = 100000;
  ASSERT_TRUE(read(pack(many_lines(kLines)))) << errors_.str();
  ASSERT_EQ(routes_.size(), static_cast<size_t>(kLines));
  for (int i = 0; i < kLines; ++i) {
    ASSERT_EQ(routes_[i].prefix, static_cast<uint32_t>(i) << 8);
    ASSERT_EQ(routes_[i].port, static_cast<uint32_t>(i));
  }
}

TEST_P(CompressedRouteFile, MayHaveSeveralParts) {
  ASSERT_TRUE(read(pack("10/8 1\n11/") + pack("8 2\n"))) << errors_.str();
  ASSERT_EQ(routes_.size(), 2u);
  EXPECT_EQ(routes_[1].port, 2u);
}

TEST_P(CompressedRouteFile, OfNothingHasNoRoutes) {
  EXPECT_TRUE(read(pack(""))) << errors_.str();
  EXPECT_TRUE(routes_.empty());
}

TEST_P(CompressedRouteFile, CutShortIsAnError) {
  const std::string packed = pack(many_lines(50000));
  for (const size_t size : {size_t{6}, size_t{20}, packed.size() / 2, packed.size() - 1}) {
    Errors errors;
    std::ofstream(path_, std::ios::binary) << packed.substr(0, size);
    EXPECT_FALSE(read_routes(path_, routes_, errors)) << size;
    EXPECT_EQ(errors.str(), path_ + ": compressed file ends early\n");
  }
}

TEST_P(CompressedRouteFile, DamagedIsAnError) {
  std::string packed = pack(many_lines(50000));
  for (size_t i = packed.size() / 2; i < packed.size() / 2 + 16; ++i) packed[i] ^= 0x55;
  EXPECT_FALSE(read(packed));
  EXPECT_EQ(errors_.lines().back(), path_ + ": damaged compressed data");
}

INSTANTIATE_TEST_SUITE_P(Formats, CompressedRouteFile, ::testing::ValuesIn(testing::kCompressors),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headrace
