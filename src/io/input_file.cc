#include "src/io/input_file.hh"

#include <fcntl.h>
#include <lzma.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace headrace::io {

namespace {

constexpr size_t kBufferSize = 64 * 1024;

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(int fd) : fd_(fd) {}
  ~PlainSource() override {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  int64_t read(uint8_t* to, size_t n, std::string& error) override {
    for (;;) {
      const ssize_t got = ::read(fd_, to, n);
      if (got >= 0) return got;
      if (errno != EINTR) {
        error = std::strerror(errno);
        return -1;
      }
    }
  }
  bool seek(uint64_t position) override { return lseek(fd_, static_cast<off_t>(position), SEEK_SET) >= 0; }

 private:
  int fd_;
};

class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  int64_t read(uint8_t* to, size_t n, std::string&) override {
    n = std::min(n, text_.size() - used_);
    std::memcpy(to, text_.data() + used_, n);
    used_ += n;
    return static_cast<int64_t>(n);
  }
  bool seek(uint64_t position) override {
    if (position > text_.size()) return false;
    used_ = position;
    return true;
  }

 private:
  std::string text_;
  size_t used_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(int fd) : file_(gzdopen(fd, "rb")) { gzbuffer(file_, kBufferSize); }
  ~GzipSource() override { gzclose(file_); }
  int64_t read(uint8_t* to, size_t n, std::string& error) override {
    const int got = gzread(file_, to, static_cast<unsigned>(n));
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (got < 0 || (got < static_cast<int>(n) && code == Z_BUF_ERROR)) {
      error = code == Z_BUF_ERROR ? "compressed file ends early" : text;
      // What could be decompressed is still good.
      return got > 0 ? got : -1;
    }
    return got;
  }

 private:
  gzFile file_;
};

class XzSource final : public ByteSource {
 public:
  explicit XzSource(int fd) : fd_(fd) {
    good_ = lzma_stream_decoder(&stream_, UINT64_MAX, LZMA_CONCATENATED) == LZMA_OK;
  }
  ~XzSource() override {
    lzma_end(&stream_);
    ::close(fd_);
  }
  int64_t read(uint8_t* to, size_t n, std::string& error) override {
    if (!good_) {
      error = "out of memory";
      return -1;
    }
    stream_.next_out = to;
    stream_.avail_out = n;
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0 && !at_end_) {
        const ssize_t got = ::read(fd_, in_, sizeof in_);
        if (got < 0) {
          if (errno == EINTR) continue;
          error = std::strerror(errno);
          return -1;
        }
        at_end_ = got == 0;
        stream_.next_in = in_;
        stream_.avail_in = static_cast<size_t>(got);
      }
      const lzma_ret code = lzma_code(&stream_, at_end_ ? LZMA_FINISH : LZMA_RUN);
      if (code == LZMA_STREAM_END) {
        ended_ = true;
      } else if (code != LZMA_OK) {
        error = code == LZMA_BUF_ERROR ? "compressed file ends early" : "damaged compressed data";
        ended_ = true;
        return stream_.avail_out < n ? static_cast<int64_t>(n - stream_.avail_out) : -1;
      }
    }
    return static_cast<int64_t>(n - stream_.avail_out);
  }

 private:
  int fd_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool good_ = false;
  bool at_end_ = false;
  bool ended_ = false;
  uint8_t in_[kBufferSize];
};

/// The output of `bzip2 -dc` with the file as its input.
class Bzip2Source final : public ByteSource {
 public:
  static std::unique_ptr<ByteSource> start(int fd) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    char program[] = "bzip2", options[] = "-dc";
    char* arguments[] = {program, options, nullptr};
    pid_t child;
    const int failed = posix_spawnp(&child, program, &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    ::close(fd);
    if (failed) {
      ::close(ends[0]);
      errno = failed;
      return nullptr;
    }
    return std::unique_ptr<ByteSource>(new Bzip2Source(ends[0], child));
  }
  ~Bzip2Source() override {
    ::close(fd_);
    waitpid(child_, nullptr, 0);
  }
  int64_t read(uint8_t* to, size_t n, std::string& error) override {
    const ssize_t got = ::read(fd_, to, n);
    if (got < 0) error = std::strerror(errno);
    return got;
  }

 private:
  Bzip2Source(int fd, pid_t child) : fd_(fd), child_(child) {}
  int fd_;
  pid_t child_;
};

std::unique_ptr<ByteSource> recognise(int fd) {
  uint8_t magic[6] = {};
  const ssize_t n = pread(fd, magic, sizeof magic, 0);
  if (n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b) return std::make_unique<GzipSource>(fd);
  if (n == 6 && std::memcmp(magic,
                            "\xfd"
                            "7zXZ",
                            6) == 0)
    return std::make_unique<XzSource>(fd);
  if (n >= 4 && std::memcmp(magic, "BZh", 3) == 0) return Bzip2Source::start(fd);
  return std::make_unique<PlainSource>(fd);
}

}  // namespace

InputFile::Opened InputFile::open(const std::string& name, Errors& errors, bool may_miss) {
  close();
  const bool standard = name.empty() || name == "-";
  name_ = standard ? "<stdin>" : name;
  line_ = 0;
  size_ = -1;
  if (standard) {
    source_ = std::make_unique<PlainSource>(STDIN_FILENO);
  } else {
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      const bool missing = errno == ENOENT;
      if (!missing || !may_miss) (void)errors.error("{}: {}", name_, std::strerror(errno));
      return missing ? Opened::kMissing : Opened::kFailed;
    }
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
    source_ = recognise(fd);
    if (!source_) {
      (void)errors.error("{}: bzip2: {}", name_, std::strerror(errno));
      return Opened::kFailed;
    }
  }
  const int before = errors.error_count();
  if (!fill(errors)) {
    close();
    if (errors.error_count() > before) return Opened::kFailed;
    if (!may_miss) (void)errors.error("{}: empty file", name_);
    return Opened::kMissing;
  }
  return Opened::kYes;
}

void InputFile::open_text(std::string text) {
  close();
  name_ = "<data>";
  line_ = 0;
  size_ = static_cast<int64_t>(text.size());
  source_ = std::make_unique<TextSource>(std::move(text));
}

void InputFile::close() {
  source_.reset();
  buffer_.clear();
  used_ = 0;
  position_ = 0;
}

bool InputFile::fill(Errors& errors) {
  if (!source_) return false;
  buffer_.resize(kBufferSize);
  used_ = 0;
  std::string error;
  const int64_t got = source_->read(reinterpret_cast<uint8_t*>(buffer_.data()), kBufferSize, error);
  if (!error.empty()) (void)errors.error("{}: {}", name_, error);
  buffer_.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return got > 0;
}

size_t InputFile::read(void* to, size_t n, Errors& errors) {
  size_t done = 0;
  while (done < n) {
    if (used_ == buffer_.size() && !fill(errors)) break;
    const size_t part = std::min(n - done, buffer_.size() - used_);
    std::memcpy(static_cast<uint8_t*>(to) + done, buffer_.data() + used_, part);
    used_ += part;
    done += part;
  }
  position_ += done;
  return done;
}

bool InputFile::read_all(void* to, size_t n, Errors& errors, size_t* short_by) {
  const size_t got = read(to, n, errors);
  if (short_by) *short_by = got == 0 ? 0 : n - got;
  return got == n;
}

bool InputFile::skip(uint64_t n, Errors& errors) {
  while (n > 0) {
    if (used_ == buffer_.size() && !fill(errors)) return false;
    const size_t part = static_cast<size_t>(std::min<uint64_t>(n, buffer_.size() - used_));
    used_ += part;
    position_ += part;
    n -= part;
  }
  return true;
}

bool InputFile::read_line(std::string& line, Errors& errors) {
  line.clear();
  bool any = false;
  for (;;) {
    if (used_ == buffer_.size() && !fill(errors)) break;
    any = true;
    const size_t end = buffer_.find_first_of("\r\n", used_);
    const size_t part = std::min(end, buffer_.size()) - used_;
    line.append(buffer_, used_, part);
    used_ += part;
    position_ += part;
    if (end == std::string::npos) continue;
    const bool cr = buffer_[used_] == '\r';
    ++used_;
    ++position_;
    if (cr && (used_ < buffer_.size() || fill(errors)) && buffer_[used_] == '\n') {
      ++used_;
      ++position_;
    }
    break;
  }
  if (any) ++line_;
  return any;
}

Status InputFile::seek(uint64_t position, Errors& errors) {
  if (!source_) return errors.error("{}: not open", name_);
  if (position >= position_) {
    if (!skip(position - position_, errors)) return errors.error("FILEPOS out of range");
    return {};
  }
  if (!source_->seek(position)) return errors.error("{}: cannot go back in this file", name_);
  buffer_.clear();
  used_ = 0;
  position_ = position;
  return {};
}

void InputFile::add_handlers(Handlers& handlers) {
  handlers.read(
      "filename", [this] { return name_; }, Handler::kCalm);
  handlers.read("filesize", [this] { return size_ < 0 ? std::string("-") : std::to_string(size_); });
  handlers.read("filepos", [this] { return std::to_string(position_); });
  handlers.write("filepos", [this](const std::string& text, Errors& errors) {
    uint64_t position;
    if (!parse_argument(text, position, ArgContext())) return errors.error("argument must be file position");
    return seek(position, errors);
  });
}

}  // namespace headrace::io
