#pragma once
/// \file
/// Archives of ar(1), which may carry a configuration.

#include <optional>
#include <string>
#include <string_view>

namespace headrace::lang {

/// Whether the text begins like an archive. No configuration begins like this.
bool is_archive(std::string_view text);

/// The contents of a member of an archive, within `archive`. Names in the plain, the GNU and the BSD form are known.
/// Returns nothing when there is no such member or the archive is damaged before it; `problem` then says what is wrong
/// with it, if anything is.
std::optional<std::string_view> archive_member(std::string_view archive, std::string_view name, std::string& problem);

}  // namespace headrace::lang
