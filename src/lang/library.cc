#include "lang/library.hh"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace headrace::lang {

std::optional<std::string> find_library(const std::string& name, const std::string& requiring_file,
                                        const std::vector<std::string>& search_path) {
  const auto exists = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error);
  };
  if (name.empty()) return std::nullopt;
  if (name.front() == '/') return exists(name) ? std::optional(name) : std::nullopt;

  const size_t slash = requiring_file.rfind('/');
  const bool has_folder = slash != std::string::npos && slash > 0;
  const std::string beside = (has_folder ? requiring_file.substr(0, slash) : ".") + "/" + name;
  for (const std::string& folder : search_path) {
    if (folder.empty()) {
      if (exists(beside)) return beside;
      continue;
    }
    const std::string prefix = folder.back() == '/' ? folder : folder + "/";
    for (const std::string& path : {prefix + "conf/" + name, prefix + name}) {
      if (exists(path)) return path;
    }
  }
  return exists(beside) ? std::optional(beside) : std::nullopt;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  return text;
}

}  // namespace headrace::lang
