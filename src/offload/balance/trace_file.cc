#include "offload/balance/trace_file.hh"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

namespace headrace::balance {

struct TraceFile::Shared {
  std::mutex lock;
  std::ofstream out;
  bool failed = false;  // to write, after all that is there
  uint64_t turns = 0;   // given
  uint64_t turn = 0;    // of the one that writes
};

bool TraceFile::may_write(const std::string& file) {
  if (::access(file.c_str(), F_OK) == 0) {
    if (std::error_code ignored; std::filesystem::is_directory(file, ignored)) {
      errno = EISDIR;
      return false;
    }
    return ::access(file.c_str(), W_OK) == 0;
  }
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
}

bool TraceFile::open(const std::string& file, std::string head) {
  // Never destroyed: a balancer's thread may be at work when the process ends.
  static std::mutex& lock = *new std::mutex;
  static auto& all = *new std::map<std::string, Shared>;
  {
    const std::lock_guard guard(lock);
    Shared& shared = all[file];
    const std::lock_guard write_guard(shared.lock);
    if (shared.failed) return true;
    if (!shared.out.is_open()) shared.out.open(file);
    if (!shared.out) return false;
    shared_ = &shared;
    turn_ = ++shared.turns;
    head_ = std::move(head);
  }
  // That of the first router is there before any packet came.
  return turn_ > 1 || write("");
}

bool TraceFile::write(const std::string& lines) {
  const std::lock_guard guard(shared_->lock);
  if (turn_ < shared_->turn || shared_->failed) return true;
  if (turn_ > shared_->turn) shared_->out << head_;
  shared_->turn = turn_;
  // At once: who reads the file meanwhile sees whole steps.
  shared_->out << lines << std::flush;
  if (shared_->out) return true;
  shared_->failed = true;
  shared_ = nullptr;
  return false;
}

}  // namespace headrace::balance
