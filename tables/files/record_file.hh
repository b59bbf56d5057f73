#pragma once
/// \file
/// A file that records are added to.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// Holds whole records only, also when the disk fills up in the middle of one or the reader of a FIFO goes away: what was
/// written of a record that does not fit is cut off again, and later records are tried anew. Where nothing can be cut
/// off, as of a pipe, a record of up to PIPE_BUF bytes goes wholly or not at all, and a larger one that goes in part is
/// the end. The process must ignore SIGPIPE.
class RecordFile {
 public:
  RecordFile() = default;
  ~RecordFile() { close(); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  enum class Mode { kTruncate, kAppend };
  /// "-" is the standard output. Returns an errno, or 0.
  int open(const std::string& name, Mode mode);
  void close();

  /// Writes records, which end at `ends` within `bytes`. Returns how many from the first on are in the file.
  size_t write(std::string_view bytes, std::span<const uint32_t> ends);
  /// Why the last record that is missing is missing, as an errno.
  int error() const { return error_; }

 private:
  size_t write_bytes(std::string_view bytes);
  bool cut_off(size_t n);

  int fd_ = -1;
  bool can_cut_ = false;
  int error_ = 0;
};

}  // namespace headrace
