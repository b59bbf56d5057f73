#pragma once
#include <cstdlib>
#include <string>

#include "support/temporary_file.hh"

namespace headrace::testing {

/// The programs whose output our files may be; tools/deps installs them.
inline constexpr const char* kCompressors[] = {"gzip", "xz", "bzip2", "zstd"};

/// What such a program makes of `text`; empty if it is not there.
inline std::string compressed(const std::string& program, const std::string& text) {
  const TemporaryFile plain(text), packed;
  const std::string command = program + " -qc " + plain.path() + " > " + packed.path() + " 2>/dev/null";
  return std::system(command.c_str()) == 0 ? packed.content() : std::string();
}

}  // namespace headrace::testing
