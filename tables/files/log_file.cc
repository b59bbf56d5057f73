#include "tables/files/log_file.hh"

#include <fmt/format.h>

#include <cstring>

#include "headrace/chatter.hh"

namespace headrace {

namespace {
constexpr size_t kBuffer = size_t{64} << 10;
}

int LogFile::open(const std::string& name, std::string owner) {
  name_ = name;
  owner_ = std::move(owner);
  const int error = file_.open(name, RecordFile::Mode::kTruncate);
  open_ = error == 0;
  return error;
}

void LogFile::add(std::string_view bytes, std::span<const uint32_t> ends) {
  const std::lock_guard guard(lock_);
  const auto begin = static_cast<uint32_t>(bytes_.size());
  bytes_ += bytes;
  for (const uint32_t end : ends) ends_.push_back(begin + end);
  // Between the lines of others on the standard output.
  if (bytes_.size() >= kBuffer || name_ == "-") write();
}

void LogFile::flush() {
  const std::lock_guard guard(lock_);
  write();
}

uint64_t LogFile::lost() {
  const std::lock_guard guard(lock_);
  write();
  return lost_;
}

void LogFile::write() {
  if (ends_.empty()) return;
  const size_t written = file_.write(bytes_, ends_);
  if (written < ends_.size() && lost_ == 0)
    chatter_line(fmt::format("{}: {}: {}; records are lost", owner_, name_, std::strerror(file_.error())));
  lost_ += ends_.size() - written;
  bytes_.clear();
  ends_.clear();
}

}  // namespace headrace
