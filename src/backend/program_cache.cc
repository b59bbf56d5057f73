#include "backend/program_cache.hh"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace headrace {

namespace fs = std::filesystem;

void ContentHash::add(std::string_view text) {
  for (const char c : text) step(static_cast<unsigned char>(c));
  step(0);  // so that "ab", "c" differs from "a", "bc"
}

std::string ContentHash::hex() const {
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(value_ >> 64), static_cast<uint64_t>(value_));
}

fs::path cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') return fs::path(xdg) / "headrace";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".cache/headrace";
  return {};
}

bool safe_folder(const fs::path& folder, std::string& why_not) {
  if (folder.empty()) {
    why_not = "neither HOME nor XDG_CACHE_HOME is set";
    return false;
  }
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (!error && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    error = std::error_code(errno, std::generic_category());
  if (error) {
    why_not = fmt::format("{}: {}", folder.string(), error.message());
    return false;
  }
  struct stat s {};
  if (lstat(folder.c_str(), &s) != 0) {
    why_not = fmt::format("{}: {}", folder.string(), std::strerror(errno));
  } else if (!S_ISDIR(s.st_mode)) {
    why_not = fmt::format("{} is no folder", folder.string());
  } else if (s.st_uid != geteuid()) {
    why_not = fmt::format("{} belongs to another user", folder.string());
  } else if ((s.st_mode & 022) != 0) {
    why_not = fmt::format("others may write to {}", folder.string());
  } else {
    return true;
  }
  return false;
}

bool read_file(const fs::path& path, std::vector<char>& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return file.good() || file.eof();
}

bool write_file(const fs::path& path, const std::vector<char>& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  fs::path fresh = path;
  fresh += fmt::format(".{}", getpid());
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
      file.close();
      fs::remove(fresh, error);
      return false;
    }
  }
  fs::rename(fresh, path, error);
  if (!error) return true;
  std::error_code ignored;
  fs::remove(fresh, ignored);
  return false;
}

}  // namespace headrace
