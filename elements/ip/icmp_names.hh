#pragma once
#include <optional>
#include <string_view>

namespace headrace {

/// Click's names of ICMP types and codes; empty (or nothing) when there is none.
std::string_view icmp_type_name(int type);
std::string_view icmp_code_name(int type, int code);
std::optional<int> find_icmp_type(std::string_view name);
std::optional<int> find_icmp_code(int type, std::string_view name);

}  // namespace headrace
