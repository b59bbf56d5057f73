#include "tables/text_lines.hh"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace headrace {

namespace {

constexpr size_t kBlock = size_t{1} << 16;

/// Cuts a stream of bytes into lines.
class LineSplitter {
 public:
  LineSplitter(const std::function<void(std::string_view)>& consumer, size_t longest)
      : consumer_(consumer), longest_(longest) {}

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (end != std::string_view::npos && rest_.empty()) {
        consumer_(piece);
      } else {
        // One byte above the bound is kept, for the consumer to see that the line is too long.
        rest_.append(piece.substr(0, longest_ + 1 - std::min(rest_.size(), longest_ + 1)));
        if (end == std::string_view::npos) return;
        finish();
      }
      bytes.remove_prefix(end + 1);
    }
  }

  /// Hands over the last line if no newline ended it.
  void finish() {
    if (!rest_.empty()) consumer_(rest_);
    rest_.clear();
  }

 private:
  const std::function<void(std::string_view)>& consumer_;
  const size_t longest_;
  std::string rest_;
};

/// An open file; reads retry on signals.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_open() const { return fd_ >= 0; }

  /// Reads up to `size` bytes: 0 at the end, -1 with errno set on failure.
  ssize_t read(void* buffer, size_t size) {
    ssize_t got;
    do {
      got = ::read(fd_, buffer, size);
    } while (got < 0 && errno == EINTR);
    return got;
  }

 private:
  int fd_;
};

/// Undoes xz.
class XzDecoder {
 public:
  static constexpr std::string_view kMagic{
      "\xfd"
      "7zXZ\0",
      6};

  XzDecoder() : ok_(lzma_stream_decoder(&stream_, kMemoryLimit, LZMA_CONCATENATED) == LZMA_OK) {}
  ~XzDecoder() { lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  /// Passes what `input` unpacks to on to `sink`. `last`: no more input follows. False if the data are damaged.
  template <typename Sink>
  bool feed(std::string_view input, bool last, Sink& sink) {
    if (!ok_) return false;
    stream_.next_in = reinterpret_cast<const uint8_t*>(input.data());
    stream_.avail_in = input.size();
    for (;;) {
      stream_.next_out = reinterpret_cast<uint8_t*>(buffer_.data());
      stream_.avail_out = buffer_.size();
      const lzma_ret result = lzma_code(&stream_, last ? LZMA_FINISH : LZMA_RUN);
      sink.feed({buffer_.data(), buffer_.size() - stream_.avail_out});
      if (result == LZMA_STREAM_END) return true;
      if (result != LZMA_OK) return false;
      if (stream_.avail_in == 0 && stream_.avail_out != 0) return !last;
    }
  }

 private:
  static constexpr uint64_t kMemoryLimit = uint64_t{1} << 30;

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ok_;
  std::vector<char> buffer_ = std::vector<char>(kBlock);
};

/// Undoes gzip.
class GzipDecoder {
 public:
  static constexpr std::string_view kMagic{"\x1f\x8b", 2};

  GzipDecoder() : ok_(inflateInit2(&stream_, kGzipOnly) == Z_OK) {}
  ~GzipDecoder() { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  /// As XzDecoder::feed().
  template <typename Sink>
  bool feed(std::string_view input, bool last, Sink& sink) {
    if (!ok_) return false;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    for (;;) {
      if (at_end_) {
        if (stream_.avail_in == 0) return true;
        // Another member follows.
        if (inflateReset(&stream_) != Z_OK) return false;
        at_end_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      sink.feed({buffer_.data(), buffer_.size() - stream_.avail_out});
      if (result == Z_STREAM_END) {
        at_end_ = true;
      } else if (result == Z_BUF_ERROR) {
        return !last;
      } else if (result != Z_OK) {
        return false;
      }
    }
  }

 private:
  static constexpr int kGzipOnly = 16 + MAX_WBITS;

  z_stream stream_{};
  bool ok_;
  bool at_end_ = false;
  std::vector<char> buffer_ = std::vector<char>(kBlock);
};

/// Passes bytes on as they are.
struct PlainDecoder {
  template <typename Sink>
  bool feed(std::string_view input, bool, Sink& sink) {
    sink.feed(input);
    return true;
  }
};

enum class Outcome { kDone, kUnreadable, kDamaged };

/// Decodes `head`, which has been read already, and the rest of the file.
template <typename Decoder, typename Sink>
Outcome decode(OpenFile& file, std::string_view head, Sink& sink) {
  Decoder decoder;
  if (!decoder.feed(head, false, sink)) return Outcome::kDamaged;
  std::vector<char> buffer(kBlock);
  for (;;) {
    const ssize_t got = file.read(buffer.data(), buffer.size());
    if (got < 0) return Outcome::kUnreadable;
    if (!decoder.feed({buffer.data(), static_cast<size_t>(got)}, got == 0, sink)) return Outcome::kDamaged;
    if (got == 0) return Outcome::kDone;
  }
}

}  // namespace

std::string read_text_lines(const std::string& path, const std::function<void(std::string_view)>& consumer,
                            size_t longest) {
  OpenFile file(path);
  if (!file.is_open()) return std::strerror(errno);

  char head[XzDecoder::kMagic.size()];
  size_t head_size = 0;
  while (head_size < sizeof head) {
    const ssize_t got = file.read(head + head_size, sizeof head - head_size);
    if (got < 0) return std::strerror(errno);
    if (got == 0) break;
    head_size += static_cast<size_t>(got);
  }
  const std::string_view start(head, head_size);

  LineSplitter lines(consumer, longest);
  Outcome outcome;
  if (start.starts_with(XzDecoder::kMagic)) {
    outcome = decode<XzDecoder>(file, start, lines);
  } else if (start.starts_with(GzipDecoder::kMagic)) {
    outcome = decode<GzipDecoder>(file, start, lines);
  } else {
    outcome = decode<PlainDecoder>(file, start, lines);
  }
  if (outcome == Outcome::kUnreadable) return std::strerror(errno);
  if (outcome == Outcome::kDamaged) return "the compressed data are damaged or cut short";
  lines.finish();
  return {};
}

}  // namespace headrace
