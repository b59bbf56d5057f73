#include "tables/files/byte_reader.hh"

#include <bzlib.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace headrace {

namespace {

constexpr size_t kBlock = size_t{1} << 16;
constexpr uint64_t kMostMemory = uint64_t{1} << 30;

/// Shortens `span` to its last `left` bytes.
void keep_last(std::span<uint8_t>& span, size_t left) { span = span.last(left); }

class GzipDecoder final : public Decoder {
 public:
  ~GzipDecoder() override { inflateEnd(&stream_); }
  bool restart() override {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    return (stream_.state ? inflateReset(&stream_) : inflateInit2(&stream_, kGzipOnly)) == Z_OK;
  }
  Result decode(std::span<uint8_t>& in, std::span<uint8_t>& out, bool) override {
    stream_.next_in = in.data();
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(out.size(), kBlock));
    const size_t beyond = out.size() - stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    keep_last(in, stream_.avail_in);
    keep_last(out, stream_.avail_out + beyond);
    if (code == Z_STREAM_END) return Result::kStreamEnd;
    return code == Z_OK || code == Z_BUF_ERROR ? Result::kMore : Result::kDamaged;
  }

 private:
  z_stream stream_{};
};

class XzDecoder final : public Decoder {
 public:
  ~XzDecoder() override { lzma_end(&stream_); }
  bool restart() override { return lzma_stream_decoder(&stream_, kMostMemory, LZMA_CONCATENATED) == LZMA_OK; }
  Result decode(std::span<uint8_t>& in, std::span<uint8_t>& out, bool last) override {
    stream_.next_in = in.data();
    stream_.avail_in = in.size();
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream_, last ? LZMA_FINISH : LZMA_RUN);
    keep_last(in, stream_.avail_in);
    keep_last(out, stream_.avail_out);
    if (code == LZMA_STREAM_END) return Result::kStreamEnd;
    return code == LZMA_OK || code == LZMA_BUF_ERROR ? Result::kMore : Result::kDamaged;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Bzip2Decoder final : public Decoder {
 public:
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }
  bool restart() override {
    BZ2_bzDecompressEnd(&stream_);
    return BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
  }
  Result decode(std::span<uint8_t>& in, std::span<uint8_t>& out, bool) override {
    stream_.next_in = reinterpret_cast<char*>(in.data());
    stream_.avail_in = static_cast<unsigned>(in.size());
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = static_cast<unsigned>(std::min<size_t>(out.size(), kBlock));
    const size_t beyond = out.size() - stream_.avail_out;
    const int code = BZ2_bzDecompress(&stream_);
    keep_last(in, stream_.avail_in);
    keep_last(out, stream_.avail_out + beyond);
    if (code == BZ_STREAM_END) return Result::kStreamEnd;
    return code == BZ_OK ? Result::kMore : Result::kDamaged;
  }

 private:
  bz_stream stream_{};
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() {
    // A window of 2^30 bytes.
    if (stream_) ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 30);
  }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  bool restart() override { return stream_ && !ZSTD_isError(ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only)); }
  Result decode(std::span<uint8_t>& in, std::span<uint8_t>& out, bool) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t code = ZSTD_decompressStream(stream_, &to, &from);
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    if (ZSTD_isError(code)) return Result::kDamaged;
    return code == 0 ? Result::kStreamEnd : Result::kMore;
  }

 private:
  ZSTD_DStream* stream_ = ZSTD_createDStream();
};

template <typename T>
std::unique_ptr<Decoder> make_decoder() {
  return std::make_unique<T>();
}

struct Format {
  std::string_view magic;
  std::unique_ptr<Decoder> (*make)();
};
using namespace std::string_view_literals;
constexpr Format kFormats[] = {
    {"\x1f\x8b"sv, make_decoder<GzipDecoder>},
    {"\xfd\x37zXZ\0"sv, make_decoder<XzDecoder>},
    {"BZh"sv, make_decoder<Bzip2Decoder>},
    {"\x28\xb5\x2f\xfd"sv, make_decoder<ZstdDecoder>},
};
constexpr size_t kLongestMagic = 6;

}  // namespace

int ByteReader::open(const std::string& path) {
  close();
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return errno;
  recognize();
  return 0;
}

void ByteReader::open_stdin() {
  close();
  fd_ = STDIN_FILENO;
  recognize();
}

void ByteReader::close() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
  fd_ = -1;
  decoder_.reset();
  stored_ = {};
  all_read_ = between_streams_ = ended_ = false;
  fault_.clear();
}

int64_t ByteReader::stored_size() const {
  struct stat status;
  return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

void ByteReader::recognize() {
  buffer_.resize(kBlock);
  size_t n = 0;
  while (n < kLongestMagic) {
    const size_t got = read_stored(buffer_.data() + n, buffer_.size() - n);
    if (got == 0) break;
    n += got;
  }
  stored_ = std::span(buffer_).first(n);
  const std::string_view start(reinterpret_cast<const char*>(buffer_.data()), n);
  for (const Format& format : kFormats)
    if (start.starts_with(format.magic)) decoder_ = format.make();
  between_streams_ = true;
}

size_t ByteReader::read_stored(void* to, size_t n) {
  for (;;) {
    const ssize_t got = ::read(fd_, to, n);
    if (got > 0) return static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fault_ = std::strerror(errno);
    all_read_ = true;
    return 0;
  }
}

bool ByteReader::refill() {
  if (!stored_.empty() || all_read_) return !stored_.empty();
  stored_ = std::span(buffer_).first(read_stored(buffer_.data(), buffer_.size()));
  return !stored_.empty();
}

size_t ByteReader::read(void* to, size_t n) {
  if (!is_open() || n == 0) return 0;
  if (decoder_) return decompress({static_cast<uint8_t*>(to), n});
  if (stored_.empty()) return all_read_ ? 0 : read_stored(to, n);
  n = std::min(n, stored_.size());
  std::memcpy(to, stored_.data(), n);
  stored_ = stored_.subspan(n);
  return n;
}

size_t ByteReader::decompress(std::span<uint8_t> out) {
  const size_t wanted = out.size();
  while (out.size() == wanted && !ended_) {
    const bool some = refill();
    if (!some && between_streams_) {
      ended_ = true;
    } else if (between_streams_ && !decoder_->restart()) {
      fault_ = "not enough memory to decompress";
      ended_ = true;
    } else {
      between_streams_ = false;
      const size_t left = stored_.size();
      const Decoder::Result result = decoder_->decode(stored_, out, all_read_);
      between_streams_ = result == Decoder::Result::kStreamEnd;
      const bool stuck = !some && result == Decoder::Result::kMore && stored_.size() == left && out.size() == wanted;
      ended_ = stuck || result == Decoder::Result::kDamaged;
      if (ended_ && fault_.empty()) fault_ = stuck ? "compressed file ends early" : "damaged compressed data";
    }
  }
  return wanted - out.size();
}

bool ByteReader::seek(uint64_t position) {
  const uint64_t start = decoder_ ? 0 : position;
  if (lseek(fd_, static_cast<off_t>(start), SEEK_SET) < 0) return false;
  stored_ = {};
  all_read_ = ended_ = false;
  between_streams_ = true;
  fault_.clear();
  uint8_t unused[4096];
  for (uint64_t left = position - start; left > 0;) {
    const size_t got = read(unused, static_cast<size_t>(std::min<uint64_t>(left, sizeof unused)));
    if (got == 0) return false;
    left -= got;
  }
  return true;
}

}  // namespace headrace
