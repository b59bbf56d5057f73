#include "headrace/offload_options.hh"

#include <fmt/format.h>

#include <cstdlib>

namespace headrace {

bool OffloadOptions::set_mode(std::string_view text) {
  if (text == "auto") {
    mode = Mode::kAuto;
  } else if (text == "cpu") {
    mode = Mode::kCpu;
  } else if (text == "device") {
    mode = Mode::kDevice;
  } else if (text == "fixed") {
    mode = Mode::kFixed;
  } else if (text.starts_with("fixed=")) {
    const std::string number(text.substr(6));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != 0 || !(value >= 0 && value <= 1)) return false;
    mode = Mode::kFixed;
    fraction = value;
  } else {
    return false;
  }
  return true;
}

std::string OffloadOptions::mode_text() const {
  switch (mode) {
    case Mode::kAuto:
      return "auto";
    case Mode::kCpu:
      return "cpu";
    case Mode::kDevice:
      return "device";
    case Mode::kFixed:
      return fmt::format("fixed={}", fraction);
  }
  return {};
}

}  // namespace headrace
