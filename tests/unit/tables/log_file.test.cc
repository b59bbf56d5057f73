#include "tables/files/log_file.hh"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "support/temporary_file.hh"

namespace headrace {
namespace {

using testing::TemporaryFile;

TEST(LogFile, RecordsOfSeveralThreadsStayWhole) {
  const TemporaryFile made("old\n");
  LogFile file;
  ASSERT_EQ(file.open(made.path(), "log"), 0);
  const auto write = [&file](const std::string& a, const std::string& b) {
    const std::string both = a + b;
    const uint32_t ends[] = {static_cast<uint32_t>(a.size()), static_cast<uint32_t>(both.size())};
    for (int i = 0; i < 5000; ++i) file.add(both, ends);
  };
  std::thread other([&] { write("first of two lines\n", "second\n"); });
  write("FIRST\n", "SECOND LINE OF TWO\n");
  other.join();
  EXPECT_EQ(file.lost(), 0u);
  const std::string content = made.content();
  size_t pairs = 0;
  for (size_t at = 0; at < content.size();)
    for (const std::string pair : {"first of two lines\nsecond\n", "FIRST\nSECOND LINE OF TWO\n"})
      if (content.compare(at, pair.size(), pair) == 0) {
        at += pair.size();
        ++pairs;
        break;
      } else if (pair[0] == 'F') {
        FAIL() << "at byte " << at;
      }
  EXPECT_EQ(pairs, 10000u);
}

TEST(LogFile, WhatAFullDiskDoesNotTakeIsCounted) {
  LogFile file;
  ASSERT_EQ(file.open("/dev/full", "log"), 0);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 100000; ++i) file.add("a line\n");
  EXPECT_EQ(file.lost(), 100000u);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "log: /dev/full: No space left on device; records are lost\n");
}

}  // namespace
}  // namespace headrace
