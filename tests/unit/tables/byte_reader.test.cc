#include "tables/files/byte_reader.hh"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "support/compressed.hh"

namespace headrace {
namespace {

using testing::compressed;
using testing::TemporaryFile;

/// Text that neither packs to nothing nor fits into one block.
std::string some_text() {
  std::minstd_rand random(7);
  std::string text;
  for (int i = 0; i < 100000; ++i) text += static_cast<char>('a' + random() % 13);
  return text;
}

std::string read_all(ByteReader& file, size_t step = 1000) {
  std::string all, part(step, '\0');
  while (const size_t n = file.read(part.data(), part.size())) all.append(part, 0, n);
  return all;
}

class Compressed : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    packed_ = compressed(GetParam(), text_);
    if (packed_.empty()) GTEST_SKIP() << GetParam() << " is not installed: run tools/deps test";
  }
  /// The bytes of a file with this content; fault_ is why it ended.
  std::string read(const std::string& content, size_t step = 1000) {
    const TemporaryFile made(content);
    ByteReader file;
    EXPECT_EQ(file.open(made.path()), 0);
    const std::string all = read_all(file, step);
    fault_ = file.fault();
    return all;
  }

  const std::string text_ = some_text();
  std::string packed_;
  std::string fault_;
};

TEST_P(Compressed, IsUndone) {
  for (const size_t step : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
    EXPECT_EQ(read(packed_, step), text_);
    EXPECT_EQ(fault_, "");
  }
  EXPECT_EQ(read(compressed(GetParam(), std::string())), "");
  EXPECT_EQ(fault_, "");
}

TEST_P(Compressed, StreamsInARowAreOneFile) {
  EXPECT_EQ(read(packed_ + compressed(GetParam(), "and more") + packed_), text_ + "and more" + text_);
  EXPECT_EQ(fault_, "");
}

TEST_P(Compressed, WhatIsBeforeACutIsRead) {
  const std::string two = packed_ + packed_;
  const std::string all = read(two.substr(0, two.size() - 1));
  EXPECT_EQ(fault_, "compressed file ends early");
  EXPECT_GE(all.size(), text_.size());
  EXPECT_EQ(all, (text_ + text_).substr(0, all.size()));
  for (const size_t size : {size_t{6}, size_t{20}, packed_.size() / 2}) {
    const std::string part = read(packed_.substr(0, size));
    EXPECT_EQ(fault_, "compressed file ends early") << size;
    EXPECT_EQ(part, text_.substr(0, part.size()));
  }
}

TEST_P(Compressed, EveryDamagedByteIsNoticed) {
  std::minstd_rand random(3);
  for (int i = 0; i < 40; ++i) {
    // gzip has its checksum, and the length, at the end; the name and time in front have none.
    const size_t at = i < 8 ? packed_.size() - 1 - i : 40 + random() % (packed_.size() - 48);
    std::string bad = packed_;
    bad[at] = static_cast<char>(bad[at] ^ 1 << random() % 8);
    read(bad);
    EXPECT_NE(fault_, "") << at;
  }
}

TEST_P(Compressed, CanGoBack) {
  const TemporaryFile made(packed_);
  ByteReader file;
  ASSERT_EQ(file.open(made.path()), 0);
  read_all(file);
  ASSERT_TRUE(file.seek(70001));
  EXPECT_EQ(read_all(file), text_.substr(70001));
  ASSERT_TRUE(file.seek(0));
  EXPECT_EQ(read_all(file), text_);
  EXPECT_FALSE(file.seek(text_.size() + 1));
}

INSTANTIATE_TEST_SUITE_P(By, Compressed, ::testing::ValuesIn(testing::kCompressors),
                         [](const auto& info) { return std::string(info.param); });

TEST(ByteReader, ReadsPlainFilesFromAnyPosition) {
  const std::string text = some_text();
  const TemporaryFile made(text);
  ByteReader file;
  ASSERT_EQ(file.open(made.path()), 0);
  EXPECT_EQ(file.stored_size(), static_cast<int64_t>(text.size()));
  EXPECT_EQ(read_all(file), text);
  ASSERT_TRUE(file.seek(3));
  EXPECT_EQ(read_all(file), text.substr(3));
  EXPECT_EQ(file.fault(), "");
}

TEST(ByteReader, SaysWhyAFileCannotBeRead) {
  ByteReader file;
  EXPECT_EQ(file.open("/no/such/file"), ENOENT);
  EXPECT_FALSE(file.is_open());
  ASSERT_EQ(file.open("/tmp"), 0);
  EXPECT_EQ(read_all(file), "");
  EXPECT_EQ(file.fault(), "Is a directory");
}

}  // namespace
}  // namespace headrace
