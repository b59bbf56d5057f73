#pragma once
/// \file
/// Runs a fuzz target over its kept corpus without libFuzzer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/support/source_dir.hh"

namespace headrace {

/// Feeds every file of tests/fuzz/corpus/`name`/ to `target`, in the order of their names, and the empty input first
/// and last: a target that keeps something for the next input gives it up when there is none. What fails is what a
/// sanitizer, a signal or an assertion of the target ends; a corpus without a file fails, too.
inline void replay_corpus(const char* name, int (*target)(const std::uint8_t* data, std::size_t size)) {
  const std::filesystem::path folder = std::filesystem::path(kSourceDir) / "tests/fuzz/corpus" / name;
  if (!std::filesystem::is_directory(kSourceDir)) GTEST_SKIP() << "the source tree is not on this machine";
  ASSERT_TRUE(std::filesystem::is_directory(folder)) << folder;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << folder;

  const std::uint8_t nothing = 0;
  target(&nothing, 0);
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> input{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()), 0) << file;
  }
  target(&nothing, 0);
}

}  // namespace headrace
