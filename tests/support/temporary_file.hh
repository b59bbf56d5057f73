#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace headrace::testing {

/// A file that is removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content = {}, const std::string& suffix = {})
      : path_(std::filesystem::temp_directory_path() /
              ("headrace-test-" + std::to_string(::getpid()) + "-" + std::to_string(next_++) + suffix)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return path_; }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  static inline int next_ = 0;
  std::filesystem::path path_;
};

}  // namespace headrace::testing
