#pragma once
/// \file
/// Options that look at one number of a packet's headers.

#include <string>
#include <string_view>
#include <vector>

#include "tables/rules/rule.hh"

namespace headrace::rules {

/// Whether `name` is such an option.
bool is_field_option(std::string_view name);
/// Appends the condition that an option stands for; false, with `error` set, when its value is wrong.
bool read_field_option(std::string_view name, std::string_view value, std::vector<FieldTest>& tests,
                       std::string& error);

}  // namespace headrace::rules
