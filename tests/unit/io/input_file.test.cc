#include "src/io/input_file.hh"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/temporary_file.hh"

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

TEST(InputFile, DecompressesWhatGzipXzAndBzip2Made) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919) + "\n";
  for (const char* program : {"gzip", "xz", "bzip2"}) {
    SCOPED_TRACE(program);
    TemporaryFile plain(text), packed;
    const std::string command = std::string(program) + " -c " + plain.path() + " > " + packed.path() + " 2>/dev/null";
    if (std::system(command.c_str()) != 0) {
      std::printf("%s is not installed\n", program);
      continue;
    }
    InputFile file;
    Errors errors;
    ASSERT_EQ(file.open(packed.path(), errors), InputFile::Opened::kYes) << errors.str();
    EXPECT_EQ(read_bytes(file, errors), text);
    EXPECT_EQ(errors.str(), "");
    EXPECT_EQ(file.position(), text.size());
  }
}

TEST(InputFile, SaysThatCompressedDataEndsEarly) {
  for (const char* program : {"gzip", "xz"}) {
    SCOPED_TRACE(program);
    TemporaryFile plain(std::string(100000, 'a') + "end"), packed;
    const std::string command = std::string(program) + " -c " + plain.path() + " > " + packed.path() + " 2>/dev/null";
    if (std::system(command.c_str()) != 0) continue;
    const std::string whole = packed.content();
    TemporaryFile cut(whole.substr(0, whole.size() - 20));
    InputFile file;
    Errors errors;
    if (file.open(cut.path(), errors) == InputFile::Opened::kYes) read_bytes(file, errors);
    EXPECT_NE(errors.str().find("compressed file ends early"), std::string::npos) << errors.str();
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
