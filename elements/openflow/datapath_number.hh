#pragma once
/// \file
/// The number of an OpenFlow switch as an argument.

#include <headrace/args.hh>

namespace headrace {

struct DatapathNumber {
  bool parse(std::string_view text, uint64_t& number, const ArgContext& context) const {
    uint64_t value = 0;
    if (text.size() > 18 || !IntegerBase{16}.parse(text, value, ArgContext()))
      return context.expect("up to 16 hexadecimal digits");
    number = value;
    return true;
  }
};

}  // namespace headrace
