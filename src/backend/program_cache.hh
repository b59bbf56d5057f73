#pragma once
/// \file
/// Compiled programs that are kept for the next start, by content.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 128 bits: enough that two programs never share a name.
class ContentHash {
 public:
  void add(std::string_view text);
  std::string hex() const;

 private:
  using Wide = unsigned __int128;
  void step(unsigned char c) { value_ = (value_ ^ c) * kPrime; }
  static constexpr Wide kPrime = Wide{1} << 88 | 0x13b;
  Wide value_ = Wide{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
};

/// $XDG_CACHE_HOME/headrace or $HOME/.cache/headrace; empty without either.
std::filesystem::path cache_folder();
/// Makes the folder if it is missing. False, with the reason, unless it belongs to this user and only this user may
/// write to it: what it contains is executed.
bool safe_folder(const std::filesystem::path& folder, std::string& why_not);
bool read_file(const std::filesystem::path& path, std::vector<char>& bytes);
/// Under another name first: a reader sees the whole file or none. False if it could not be written.
bool write_file(const std::filesystem::path& path, const std::vector<char>& bytes);

}  // namespace headrace
