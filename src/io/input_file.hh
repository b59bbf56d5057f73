#pragma once
/// \file
/// A file that elements read: by bytes or by lines, compressed or not.

#include <cstdint>
#include <string>

#include "headrace/args.hh"
#include "headrace/error.hh"
#include "headrace/handlers.hh"
#include "tables/files/byte_reader.hh"

namespace headrace::io {

/// By bytes or by lines, from the standard input, a file or a text. ByteReader says which kinds of compression it knows.
class InputFile {
 public:
  enum class Opened { kYes, kMissing, kFailed };

  /// Opens a file; "-" is the standard input. kMissing: there is no such file or it is empty, which is reported as an
  /// error unless `may_miss`.
  Opened open(const std::string& name, Errors& errors, bool may_miss = false);
  /// Takes a text in the place of a file.
  void open_text(std::string text);
  void close();
  bool is_open() const { return source_ != Source::kNone; }

  /// Reads up to `n` bytes; fewer only at the end or after an error, which goes to `errors`.
  size_t read(void* to, size_t n, Errors& errors);
  /// The same, but what is there at once is enough; 0 only at the end or after an error.
  size_t read_some(void* to, size_t n, Errors& errors);
  /// Reads exactly `n` bytes, or nothing when there are fewer (`short_by` > 0 then tells how many are missing).
  bool read_all(void* to, size_t n, Errors& errors, size_t* short_by = nullptr);
  bool skip(uint64_t n, Errors& errors);
  /// Reads a line without its end (LF, CR LF or CR). False at the end of the file.
  bool read_line(std::string& line, Errors& errors);
  /// Goes to a byte position. Only a file can go back; a compressed one is then read again from its beginning.
  Status seek(uint64_t position, Errors& errors);

  /// Bytes read so far, after decompression.
  uint64_t position() const { return position_; }
  /// Lines or records read so far.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }
  /// "<stdin>" or the file's name, with the line unless that is 0.
  Landmark landmark() const { return {name_, line_}; }
  const std::string& name() const { return name_; }

  /// The handlers `filesize`, `filepos` and `filename`.
  void add_handlers(Handlers& handlers);

 private:
  enum class Source { kNone, kFile, kText };

  bool fill(Errors& errors);

  std::string name_;
  Source source_ = Source::kNone;
  ByteReader reader_;
  std::string buffer_;  // all of a text, or a part of the file
  size_t used_ = 0;     // bytes of buffer_ that were read
  uint64_t position_ = 0;
  int64_t size_ = -1;
  int line_ = 0;
};

}  // namespace headrace::io
