#include "offload/balance/trace_file.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace headrace::balance {
namespace {

TEST(BalanceTraceFile, RoutersFollowOneAnother) {
  // A test that is repeated is in the same process.
  static int times = 0;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("headrace-trace-file-{}-{}", ::getpid(), ++times);
  const auto text = [&] {
    std::stringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  };
  std::ofstream(path) << "of another process\n";
  TraceFile first, refused, second;
  ASSERT_TRUE(first.open(path, "head 1\n"));
  EXPECT_EQ(text(), "head 1\n");
  EXPECT_TRUE(first.write("a\n"));
  ASSERT_TRUE(refused.open(path, "head of a router that never took over\n"));
  ASSERT_TRUE(second.open(path, "head 2\n"));
  EXPECT_TRUE(first.write("b\n"));
  EXPECT_TRUE(second.write("c\n"));
  EXPECT_TRUE(first.write("too late\n"));
  EXPECT_TRUE(second.write("d\n"));
  EXPECT_EQ(text(), "head 1\na\nb\nhead 2\nc\nd\n");
  std::filesystem::remove(path);
}

TEST(BalanceTraceFile, AFullDiskEndsTheTraceOfAllRouters) {
  // Files that failed stay so in this process.
  static int times = 0;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("headrace-full-{}-{}", ::getpid(), ++times);
  std::filesystem::create_symlink("/dev/full", path);
  TraceFile first, second;
  EXPECT_FALSE(first.open(path, "head 1\n"));
  EXPECT_FALSE(first.is_open());
  // A swap is no worse for it.
  EXPECT_TRUE(second.open(path, "head 2\n"));
  EXPECT_FALSE(second.is_open());
  std::filesystem::remove(path);
}

TEST(BalanceTraceFile, SaysBeforehandWhetherItMayWrite) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  EXPECT_TRUE(TraceFile::may_write(folder / "headrace-no-such-file"));
  EXPECT_FALSE(std::filesystem::exists(folder / "headrace-no-such-file"));
  EXPECT_TRUE(TraceFile::may_write("/dev/null"));
  EXPECT_FALSE(TraceFile::may_write(folder));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_FALSE(TraceFile::may_write(folder / "headrace-no-such-folder" / "file"));
  EXPECT_EQ(errno, ENOENT);
}

TEST(BalanceTraceFile, AFolderIsNone) {
  TraceFile file;
  EXPECT_FALSE(file.open(std::filesystem::temp_directory_path(), ""));
  EXPECT_FALSE(file.is_open());
}

}  // namespace
}  // namespace headrace::balance
