#pragma once
/// \file
/// What the command line says to DPDK. Part of every build, so that a command knows the option also where DPDK is not.

#include <string>
#include <vector>

namespace headrace::io {

/// Arguments for DPDK's environment (EAL), as its own programs take them. Set before a configuration is built.
inline std::vector<std::string>& dpdk_arguments() {
  static std::vector<std::string> arguments;
  return arguments;
}

}  // namespace headrace::io
