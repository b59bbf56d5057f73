#pragma once
/// \file
/// Where traces are written.

#include <cstdint>
#include <string>

namespace headrace::balance {

/// A file to which routers of this process write their traces, one after the other: each when it has taken over.
class TraceFile {
 public:
  /// Whether `file` is or could be made one that may be written; if not, errno says why. Changes nothing.
  static bool may_write(const std::string& file);
  /// The first call of the process for a file makes it anew. False if it cannot be written.
  /// \param head the lines that come before those of this router
  bool open(const std::string& file, std::string head);
  bool is_open() const { return shared_ != nullptr; }
  /// Appends whole lines, unless a router that came later has begun: a last step of the one before is of no use then.
  /// False if they could not be written, the first time. Then the trace ends, also for routers that come later.
  [[nodiscard]] bool write(const std::string& lines);

 private:
  struct Shared;
  Shared* shared_ = nullptr;  // with others that opened the file; for ever
  uint64_t turn_ = 0;
  std::string head_;
};

}  // namespace headrace::balance
