#pragma once
/// \file
/// Text files of IPv4 routes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/error.hh"

namespace headrace {

/// One line of a route file; addresses in host byte order.
struct TextRoute {
  uint32_t prefix = 0;  ///< host bits are clear
  int length = 0;
  std::optional<uint32_t> gateway;
  std::optional<uint32_t> port;
  int line = 0;
};

/// Reads the routes of a file and appends them to `routes`, in the order of the file. The file may be compressed by xz
/// or gzip, which is told from its content.
///
/// A line is `PREFIX [GATEWAY] [PORT]`, or empty. PREFIX is an address and a length, `18.26.4.0/24`, of which trailing
/// zero bytes may be left out (`18.26.4/24`, `0/0`), an address and a netmask, `18.26.4.0/255.255.255.0`, or an address
/// alone for a single host. GATEWAY is an address or `-` for none; PORT a decimal number. `#` starts a comment, and so
/// does `;` at the beginning of a line. Lines end with a newline, with or without a carriage return.
///
/// Returns false, with the reasons in `errors`, if the file cannot be read or has bad lines; the first 20 bad lines are
/// named one by one, and the good lines are appended nevertheless.
bool read_routes(const std::string& path, std::vector<TextRoute>& routes, Errors& errors);

}  // namespace headrace
