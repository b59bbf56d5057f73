#pragma once
/// \file
/// Whether a file is still the one that was read.

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace headrace {

struct FileStamp {
  std::string path;
  int64_t seconds = 0, nanoseconds = 0, size = -1;  // of the last change; -1: there is no such file

  static FileStamp of(const std::string& path) {
    struct stat s {};
    if (stat(path.c_str(), &s) != 0) return {path};
    return {path, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_size};
  }
  bool unchanged() const { return *this == of(path); }
  bool operator==(const FileStamp&) const = default;
};

}  // namespace headrace
