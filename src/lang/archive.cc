#include "lang/archive.hh"

#include "base/characters.hh"
#include "headrace/text.hh"

namespace headrace::lang {
namespace {

constexpr std::string_view kMagic = "!<arch>\n";
constexpr size_t kHeaderSize = 60;
constexpr size_t kNameSize = 16;
constexpr size_t kSizeOffset = 48;
constexpr size_t kSizeSize = 10;

/// A decimal number at the beginning of a header field, followed by nothing but blanks.
std::optional<size_t> read_number(std::string_view field) {
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  return whole_number<size_t>(field);
}

std::string_view until_end_of_name(std::string_view text) { return text.substr(0, text.find_first_of("/ \t\r\n")); }

}  // namespace

bool is_archive(std::string_view text) { return text.substr(0, 1) == "!"; }

std::optional<std::string_view> archive_member(std::string_view archive, std::string_view name, std::string& problem) {
  if (archive.substr(0, kMagic.size()) != kMagic) {
    problem = "not an archive";
    return std::nullopt;
  }
  archive.remove_prefix(kMagic.size());
  std::string_view long_names;
  while (!archive.empty()) {
    if (archive.size() < kHeaderSize) {
      problem = "truncated archive";
      return std::nullopt;
    }
    const std::string_view field = archive.substr(0, kNameSize);
    if (archive.substr(kHeaderSize - 2, 2) != "`\n") {
      problem = "bad archive: missing header magic number";
      return std::nullopt;
    }
    const auto size = read_number(archive.substr(kSizeOffset, kSizeSize));
    archive.remove_prefix(kHeaderSize);
    if (!size || *size > archive.size()) {
      problem = size ? "truncated archive" : "bad archive: bad member size";
      return std::nullopt;
    }
    std::string_view data = archive.substr(0, *size);
    archive.remove_prefix(std::min(archive.size(), *size + *size % 2));

    std::string_view member = until_end_of_name(field);
    if (field.substr(0, 2) == "//") {
      long_names = data;
      continue;
    }
    if (field[0] == '/' && is_digit(field[1])) {
      const auto offset = read_number(field.substr(1));
      if (!offset || *offset >= long_names.size()) {
        problem = "bad long name in archive";
        return std::nullopt;
      }
      member = until_end_of_name(long_names.substr(*offset));
    } else if (field.substr(0, 3) == "#1/") {
      const auto length = read_number(field.substr(3));
      if (!length || *length > data.size()) {
        problem = "bad long name in archive";
        return std::nullopt;
      }
      // The name is padded with null bytes.
      member = data.substr(0, *length);
      member = member.substr(0, member.find('\0'));
      data.remove_prefix(*length);
    }
    if (member == name) return data;
  }
  return std::nullopt;
}

}  // namespace headrace::lang
