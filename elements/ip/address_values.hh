#pragma once
/// \file
/// Addresses as the values of handlers.

#include <string>

#include "headrace/addresses.hh"

namespace headrace {

inline std::string unparse_value(const IpAddress& value) { return value.unparse(); }
inline std::string unparse_value(const Ip6Address& value) { return value.unparse(); }
inline std::string unparse_value(const EtherAddress& value) { return value.unparse(); }

}  // namespace headrace

#include "headrace/value_handlers.hh"
