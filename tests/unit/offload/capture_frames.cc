#include "capture_frames.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "io/pcap/capture_reader.hh"
#include "support/source_dir.hh"

namespace headrace::testing {

namespace {

namespace fs = std::filesystem;

/// A folder that is removed at the end.
struct CaptureFolder {
  CaptureFolder() : path(fs::temp_directory_path() / fmt::format("headrace-captures-{}", ::getpid())) {
    fs::create_directories(path);
  }
  ~CaptureFolder() { fs::remove_all(path); }
  fs::path path;
};

/// None of files that are no Ethernet captures.
void read_capture(const std::string& path, size_t most, std::vector<std::string>& frames) {
  io::CaptureReader reader;
  Errors errors;
  constexpr int kEthernet = 1;
  if (!reader.open(path, errors) || reader.link_type() != kEthernet) return;
  io::CaptureReader::Record record;
  for (size_t n = 0; n < most && reader.next(record, errors) == io::CaptureReader::Got::kRecord; ++n)
    frames.emplace_back(reinterpret_cast<const char*>(record.bytes), record.captured);
}

}  // namespace

std::vector<std::string> captured_frames(size_t most_of_a_capture) {
  std::vector<std::string> frames, paths;
  for (const char* folder : {"/conf/data", "/tests/data/capture"})
    for (const auto& file : fs::directory_iterator(kSourceDir + folder)) paths.push_back(file.path());
  const fs::path shared = kSourceDir + "/../shared/data/pcap";
  const CaptureFolder unpacked;
  if (fs::exists(shared)) {
    for (const auto& file : fs::directory_iterator(shared)) {
      if (file.path().string().find(".tar.") == std::string::npos) {
        paths.push_back(file.path());
      } else if (std::system(
                     fmt::format("tar -xf '{}' -C '{}'", file.path().string(), unpacked.path.string()).c_str()) != 0) {
        ADD_FAILURE() << file.path() << ": tar failed";
      }
    }
    for (const auto& file : fs::recursive_directory_iterator(unpacked.path))
      if (file.is_regular_file()) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) read_capture(path, most_of_a_capture, frames);
  return frames;
}

}  // namespace headrace::testing
