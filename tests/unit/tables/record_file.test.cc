#include "tables/files/record_file.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "support/temporary_file.hh"

namespace headrace {
namespace {

using testing::TemporaryFile;

/// Lets files of this process grow to `bytes`; writing beyond fails as on a full disk, in the middle of a record.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : before_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_handler_);
  }

 private:
  rlimit before_{};
  void (*before_handler_)(int);
};

constexpr uint32_t kEnds[] = {4, 8, 12};

TEST(RecordFile, HasWholeRecordsWhenTheDiskIsFullAndGoesOnLater) {
  for (const auto mode : {RecordFile::Mode::kTruncate, RecordFile::Mode::kAppend}) {
    const TemporaryFile made("old\n");
    RecordFile file;
    ASSERT_EQ(file.open(made.path(), mode), 0);
    const std::string before = mode == RecordFile::Mode::kAppend ? "old\n" : "";
    {
      const FileSizeLimit limit(before.size() + 10);
      EXPECT_EQ(file.write("aaa\nbbb\nccc\n", kEnds), 2u);
      EXPECT_EQ(file.error(), EFBIG);
      EXPECT_EQ(made.content(), before + "aaa\nbbb\n");
      EXPECT_EQ(file.write("ddd\n", std::span(kEnds).first(1)), 0u);
    }
    EXPECT_EQ(file.write("eee\n", std::span(kEnds).first(1)), 1u);
    EXPECT_EQ(made.content(), before + "aaa\nbbb\neee\n");
  }
}

TEST(RecordFile, APipeHasWholeRecordsOnly) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const TemporaryFile place;
  const std::string fifo = place.path() + ".fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  RecordFile file;
  ASSERT_EQ(file.open(fifo, RecordFile::Mode::kAppend), 0);
  EXPECT_EQ(file.write("aaa\nbbb\nccc\n", kEnds), 3u);
  char text[100];
  EXPECT_EQ(::read(reader, text, sizeof text), 12);
  close(reader);
  EXPECT_EQ(file.write("aaa\nbbb\nccc\n", kEnds), 0u);
  EXPECT_EQ(file.error(), EPIPE);
  reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(file.write("aaa\nbbb\nccc\n", kEnds), 3u);
  EXPECT_EQ(::read(reader, text, sizeof text), 12);
  close(reader);
  unlink(fifo.c_str());
  std::signal(SIGPIPE, before);
}

TEST(RecordFile, SaysWhyItCannotBeOpenedOrWritten) {
  RecordFile file;
  EXPECT_EQ(file.open("/no/such/folder/x", RecordFile::Mode::kAppend), ENOENT);
  ASSERT_EQ(file.open("/dev/full", RecordFile::Mode::kAppend), 0);
  EXPECT_EQ(file.write("aaa\nbbb\nccc\n", kEnds), 0u);
  EXPECT_EQ(file.error(), ENOSPC);
}

}  // namespace
}  // namespace headrace
