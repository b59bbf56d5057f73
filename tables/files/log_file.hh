#pragma once
/// \file
/// A buffered file of records, for elements that print.

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tables/files/record_file.hh"

namespace headrace {

/// Any number of threads add records. The file holds whole records only, see RecordFile; those that do not fit are
/// counted, and the first one is reported on standard error.
class LogFile {
 public:
  LogFile() = default;
  ~LogFile() { flush(); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Empties or makes the file; "-" is the standard output. Returns an errno, or 0.
  /// \param owner who is named in the report
  int open(const std::string& name, std::string owner);
  bool is_open() const { return open_; }

  /// Adds records, which end at `ends` within `bytes`. They stay together.
  void add(std::string_view bytes, std::span<const uint32_t> ends);
  /// Adds one record.
  void add(std::string_view record) {
    const uint32_t end = static_cast<uint32_t>(record.size());
    add(record, {&end, 1});
  }
  void flush();
  /// Records that are not in the file, after a flush().
  uint64_t lost();

 private:
  void write();

  std::mutex lock_;
  RecordFile file_;
  bool open_ = false;
  std::string name_, owner_;
  std::string bytes_;
  std::vector<uint32_t> ends_;
  uint64_t lost_ = 0;
};

}  // namespace headrace
