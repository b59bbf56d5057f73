#pragma once
/// \file
/// Text files of IPv6 routes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/error.hh"

namespace headrace {

/// One line of a file of IPv6 routes.
struct TextRoute6 {
  Ip6Prefix prefix;  ///< host bits are clear
  std::optional<Ip6Address> gateway;
  std::optional<uint32_t> port;
  int line = 0;
};

/// Reads the routes of a file and appends them to `routes`, in the order of the file. The file may be compressed by xz
/// or gzip, which is told from its content.
///
/// A line is `PREFIX [GATEWAY] [PORT]`, or empty. PREFIX is an address and a length, `2001:db8::/32`, or an address
/// alone for a single host. GATEWAY is an address or `-` for none; PORT a decimal number. `#` starts a comment, and so
/// does `;` at the beginning of a line. Lines end with a newline, with or without a carriage return.
///
/// Returns false, with the reasons in `errors`, if the file cannot be read or has bad lines; the first 20 bad lines are
/// named one by one, and the good lines are appended nevertheless.
bool read_routes6(const std::string& path, std::vector<TextRoute6>& routes, Errors& errors);

}  // namespace headrace
