#include "src/io/input_file.hh"

#include <gtest/gtest.h>

#include "support/compressed.hh"

namespace headrace::io {
namespace {

using headrace::testing::TemporaryFile;

std::string read_lines(InputFile& file) {
  Errors errors;
  std::string line, all;
  while (file.read_line(line, errors)) all += line + "|";
  EXPECT_EQ(errors.str(), "");
  return all;
}

std::string read_bytes(InputFile& file, Errors& errors) {
  std::string all, part(1000, '\0');
  while (const size_t n = file.read(part.data(), part.size(), errors)) all.append(part, 0, n);
  return all;
}

TEST(InputFile, ReadsLinesWithAnyEnd) {
  InputFile file;
  Errors errors;
  file.open_text("a\nb\r\nc\rd\n\ne");
  EXPECT_EQ(read_lines(file), "a|b|c|d||e|");
  EXPECT_EQ(file.line(), 6);
}

TEST(InputFile, ReadsLinesLongerThanItsBuffer) {
  const std::string line(200000, 'x');
  TemporaryFile made(line + "\r\n" + line + "\n");
  InputFile file;
  Errors errors;
  ASSERT_EQ(file.open(made.path(), errors), InputFile::Opened::kYes);
  EXPECT_EQ(read_lines(file), line + "|" + line + "|");
}

TEST(InputFile, ReadsCompressedFiles) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919) + "\n";
  for (const char* program : headrace::testing::kCompressors) {
    SCOPED_TRACE(program);
    const TemporaryFile packed(headrace::testing::compressed(program, text));
    InputFile file;
    Errors errors;
    ASSERT_EQ(file.open(packed.path(), errors), InputFile::Opened::kYes) << errors.str();
    EXPECT_EQ(read_bytes(file, errors), text);
    EXPECT_EQ(errors.str(), "");
    EXPECT_EQ(file.position(), text.size());
    EXPECT_TRUE(file.seek(100, errors).ok());
    EXPECT_EQ(read_bytes(file, errors), text.substr(100));
  }
}

TEST(InputFile, SaysThatCompressedDataEndsEarly) {
  const std::string text = std::string(100000, 'a') + "end";
  for (const char* program : headrace::testing::kCompressors) {
    SCOPED_TRACE(program);
    const std::string whole = headrace::testing::compressed(program, text);
    TemporaryFile cut(whole.substr(0, whole.size() - 1));
    InputFile file;
    Errors errors;
    if (file.open(cut.path(), errors) == InputFile::Opened::kYes) read_bytes(file, errors);
    EXPECT_EQ(errors.str(), cut.path() + ": compressed file ends early\n");
  }
}

TEST(InputFile, GoesToPositions) {
  TemporaryFile made("0123456789");
  InputFile file;
  Errors errors;
  ASSERT_EQ(file.open(made.path(), errors), InputFile::Opened::kYes);
  char c;
  EXPECT_TRUE(file.seek(4, errors).ok());
  EXPECT_TRUE(file.read_all(&c, 1, errors));
  EXPECT_EQ(c, '4');
  EXPECT_TRUE(file.seek(1, errors).ok());
  EXPECT_TRUE(file.read_all(&c, 1, errors));
  EXPECT_EQ(c, '1');
  EXPECT_EQ(file.position(), 2u);
  EXPECT_FALSE(file.seek(11, errors).ok());
  EXPECT_NE(errors.str().find("FILEPOS out of range"), std::string::npos);
}

TEST(InputFile, TellsHowMuchIsMissing) {
  InputFile file;
  Errors errors;
  file.open_text("abcde");
  char four[4];
  size_t missing;
  EXPECT_TRUE(file.read_all(four, 4, errors, &missing));
  EXPECT_FALSE(file.read_all(four, 4, errors, &missing));
  EXPECT_EQ(missing, 3u);
  EXPECT_FALSE(file.read_all(four, 4, errors, &missing));
  EXPECT_EQ(missing, 0u);
}

TEST(InputFile, MissingAndEmptyFilesAreErrorsUnlessTheyMayMiss) {
  InputFile file;
  Errors errors;
  EXPECT_EQ(file.open("/no/such/file", errors), InputFile::Opened::kMissing);
  EXPECT_EQ(errors.str(), "/no/such/file: No such file or directory\n");
  TemporaryFile empty;
  EXPECT_EQ(file.open(empty.path(), errors), InputFile::Opened::kMissing);
  EXPECT_EQ(errors.error_count(), 2);
  EXPECT_EQ(file.open(empty.path(), errors, true), InputFile::Opened::kMissing);
  EXPECT_EQ(errors.error_count(), 2);
  EXPECT_EQ(file.open("/tmp", errors, true), InputFile::Opened::kFailed);
}

}  // namespace
}  // namespace headrace::io
