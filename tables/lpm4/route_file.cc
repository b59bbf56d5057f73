#include "tables/lpm4/route_file.hh"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>

namespace headrace {

namespace {

constexpr size_t kBlock = size_t{1} << 16;
constexpr int kErrorsShown = 20;
/// Longer lines are not routes; the bound keeps a wrong file from filling the memory.
constexpr size_t kLongestLine = 4096;

/// Cuts a stream of bytes into lines.
template <typename Consumer>
class LineSplitter {
 public:
  explicit LineSplitter(Consumer& consumer) : consumer_(consumer) {}

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (end != std::string_view::npos && rest_.empty()) {
        consumer_.line(piece);
      } else {
        // One byte above the bound is kept, for the consumer to see that the line is too long.
        rest_.append(piece.substr(0, kLongestLine + 1 - std::min(rest_.size(), kLongestLine + 1)));
        if (end == std::string_view::npos) return;
        finish();
      }
      bytes.remove_prefix(end + 1);
    }
  }

  /// Hands over the last line if no newline ended it.
  void finish() {
    if (!rest_.empty()) consumer_.line(rest_);
    rest_.clear();
  }

 private:
  Consumer& consumer_;
  std::string rest_;
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Takes the next word off the front of `text`; empty at the end.
std::string_view take_word(std::string_view& text) {
  size_t begin = 0;
  while (begin < text.size() && is_blank(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && !is_blank(text[end])) ++end;
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  if (text.empty() || text.front() == '-') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Reads a dotted address. Returns how many of its four bytes there were, the rest being 0, or 0 if it is malformed.
int parse_address(std::string_view text, uint32_t& address) {
  address = 0;
  for (int bytes = 1; bytes <= 4; ++bytes) {
    const size_t dot = text.find('.');
    uint32_t byte = 0;
    const std::string_view digits = text.substr(0, dot);
    if (digits.size() > 3 || !parse_number(digits, byte) || byte > 255) return 0;
    address |= byte << (32 - 8 * bytes);
    if (dot == std::string_view::npos) return bytes;
    text.remove_prefix(dot + 1);
  }
  return 0;
}

bool parse_full_address(std::string_view text, uint32_t& address) { return parse_address(text, address) == 4; }

uint32_t mask_of(int length) { return length == 0 ? 0 : ~uint32_t{0} << (32 - length); }

/// A word of the file as an error message shows it: short, and fit for a terminal.
std::string shown(std::string_view word) {
  constexpr size_t kLongest = 40;
  std::string text(word.substr(0, kLongest));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text + (word.size() > kLongest ? "..." : "");
}

/// Reads one line into `route`. Returns what is wrong with it, or an empty text.
std::string parse_route(std::string_view text, TextRoute& route) {
  const std::string_view prefix = take_word(text);
  const size_t slash = prefix.find('/');
  const std::string_view address = prefix.substr(0, slash);
  const int bytes = parse_address(address, route.prefix);
  if (bytes == 0) return fmt::format("bad address '{}'", shown(address));
  if (slash == std::string_view::npos) {
    if (bytes != 4) return fmt::format("'{}' has no prefix length", shown(address));
    route.length = 32;
  } else {
    const std::string_view length = prefix.substr(slash + 1);
    uint32_t mask = 0;
    if (parse_number(length, route.length)) {
      if (route.length > 32) return fmt::format("prefix length {} is above 32", route.length);
    } else if (parse_full_address(length, mask) && mask == mask_of(std::countl_one(mask))) {
      route.length = std::countl_one(mask);
    } else {
      return fmt::format("bad prefix length '{}'", shown(length));
    }
    if (route.length > 8 * bytes) {
      return fmt::format("'{}' says less than {} bits of the address", shown(prefix), route.length);
    }
    route.prefix &= mask_of(route.length);
  }

  std::string_view word = take_word(text);
  uint32_t value = 0;
  if (word == "-") {
    word = take_word(text);
  } else if (parse_full_address(word, value)) {
    route.gateway = value;
    word = take_word(text);
  }
  if (!word.empty()) {
    if (!parse_number(word, value)) {
      return fmt::format("expected a gateway or a port, found '{}'", shown(word));
    }
    route.port = value;
    word = take_word(text);
  }
  if (!word.empty()) return fmt::format("unexpected '{}' after the route", shown(word));
  return {};
}

/// Makes routes of lines.
class RouteReader {
 public:
  RouteReader(const std::string& path, std::vector<TextRoute>& routes, Errors& errors)
      : path_(path), routes_(routes), errors_(errors) {}

  void line(std::string_view text) {
    ++line_;
    if (text.size() > kLongestLine) return bad("line is too long");
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (!text.empty() && text.front() == ';') return;
    text = text.substr(0, text.find('#'));
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    if (text.empty()) return;
    TextRoute route;
    route.line = line_;
    const std::string reason = parse_route(text, route);
    if (!reason.empty()) return bad(reason);
    routes_.push_back(route);
  }

  /// False if there were bad lines.
  bool finish() {
    if (bad_ > kErrorsShown) {
      const int more = bad_ - kErrorsShown;
      (void)errors_.error("{}: {} more bad {}", path_, more, more == 1 ? "line" : "lines");
    }
    return bad_ == 0;
  }

 private:
  void bad(std::string_view reason) {
    if (++bad_ <= kErrorsShown) (void)errors_.error("{}:{}: {}", path_, line_, reason);
  }

  const std::string& path_;
  std::vector<TextRoute>& routes_;
  Errors& errors_;
  int line_ = 0;
  int bad_ = 0;
};

/// An open file; reads retry on signals.
class InputFile {
 public:
  explicit InputFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~InputFile() {
    if (fd_ >= 0) close(fd_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

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
Outcome decode(InputFile& file, std::string_view head, Sink& sink) {
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

bool read_routes(const std::string& path, std::vector<TextRoute>& routes, Errors& errors) {
  const auto fail = [&](std::string_view reason) {
    (void)errors.error("{}: {}", path, reason);
    return false;
  };
  InputFile file(path);
  if (!file.is_open()) return fail(std::strerror(errno));

  char head[XzDecoder::kMagic.size()];
  size_t head_size = 0;
  while (head_size < sizeof head) {
    const ssize_t got = file.read(head + head_size, sizeof head - head_size);
    if (got < 0) return fail(std::strerror(errno));
    if (got == 0) break;
    head_size += static_cast<size_t>(got);
  }
  const std::string_view start(head, head_size);

  RouteReader reader(path, routes, errors);
  LineSplitter<RouteReader> lines(reader);
  Outcome outcome;
  if (start.starts_with(XzDecoder::kMagic)) {
    outcome = decode<XzDecoder>(file, start, lines);
  } else if (start.starts_with(GzipDecoder::kMagic)) {
    outcome = decode<GzipDecoder>(file, start, lines);
  } else {
    outcome = decode<PlainDecoder>(file, start, lines);
  }
  const int error = errno;
  if (outcome == Outcome::kDone) lines.finish();
  const bool all_good = reader.finish();
  if (outcome == Outcome::kUnreadable) return fail(std::strerror(error));
  if (outcome == Outcome::kDamaged) return fail("the compressed data are damaged or cut short");
  return all_good;
}

}  // namespace headrace
