#pragma once
/// \file
/// The bytes of a file that may be compressed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headrace {

/// Undoes one kind of compression, stream by stream.
class Decoder {
 public:
  enum class Result { kMore, kStreamEnd, kDamaged };

  virtual ~Decoder() = default;
  /// Decodes from the front of `in` to the front of `out` and shortens both by what was used. \param last nothing
  /// follows `in`
  virtual Result decode(std::span<uint8_t>& in, std::span<uint8_t>& out, bool last) = 0;
  /// Gets ready for a stream from its beginning; false when there is no memory.
  virtual bool restart() = 0;
};

/// Reads a file. What gzip, xz, bzip2 and zstd made is recognized by its first bytes and decompressed, with checksums
/// verified; several compressed streams in a row are one file, as those programs see it. A decoder takes at most 1 GiB
/// of memory.
class ByteReader {
 public:
  ByteReader() = default;
  ~ByteReader() { close(); }
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  /// Opens a file. Returns an errno, or 0.
  int open(const std::string& path);
  /// Reads the standard input, which stays open.
  void open_stdin();
  void close();
  bool is_open() const { return fd_ >= 0; }
  /// The size of the file as it is stored, or -1 if it is no regular file.
  int64_t stored_size() const;

  /// Reads up to `n` bytes, at least one. 0: the end, or nothing more can be read because of fault().
  size_t read(void* to, size_t n);
  /// Why the file ends here, or an empty text. What comes before a fault has been read.
  const std::string& fault() const { return fault_; }
  /// Goes to a position of the decompressed bytes, which costs decompressing what comes before. False if the file
  /// cannot be read twice.
  bool seek(uint64_t position);

 private:
  void recognize();
  size_t read_stored(void* to, size_t n);
  size_t decompress(std::span<uint8_t> out);
  bool refill();

  int fd_ = -1;
  std::unique_ptr<Decoder> decoder_;  // null: the file is not compressed
  std::vector<uint8_t> buffer_;
  std::span<uint8_t> stored_;  // bytes of buffer_ that were not used yet
  bool all_read_ = false;      // the file has no more than stored_
  bool between_streams_ = false;
  bool ended_ = false;
  std::string fault_;
};

}  // namespace headrace
