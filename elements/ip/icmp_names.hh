#pragma once
#include <optional>
#include <string_view>

namespace headrace {

/// Click's names of ICMP types and codes; empty (or nothing) when there is none.
std::string_view icmp_type_name(int type);
std::string_view icmp_code_name(int type, int code);
/// The number of a name, or of digits up to 255.
std::optional<int> find_icmp_type(std::string_view name);
std::optional<int> find_icmp_code(int type, std::string_view name);

/// True for types that report errors: 3, 4, 5, 11 and 12 (RFC 1122, 3.2.2).
bool is_icmp_error(int type);

}  // namespace headrace
