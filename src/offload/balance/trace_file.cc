#include "offload/balance/trace_file.hh"

#include <fstream>
#include <map>
#include <mutex>
#include <utility>

namespace headrace::balance {

struct TraceFile::Shared {
  std::mutex lock;
  std::ofstream out;
  uint64_t turns = 0;  // given
  uint64_t turn = 0;   // of the one that writes
};

bool TraceFile::open(const std::string& file, std::string head) {
  // Never destroyed: a balancer's thread may be at work when the process ends.
  static std::mutex& lock = *new std::mutex;
  static auto& all = *new std::map<std::string, Shared>;
  {
    const std::lock_guard guard(lock);
    Shared& shared = all[file];
    const std::lock_guard write_guard(shared.lock);
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
  if (turn_ < shared_->turn) return true;
  if (turn_ > shared_->turn) shared_->out << head_;
  shared_->turn = turn_;
  // At once: who reads the file meanwhile sees whole steps.
  shared_->out << lines << std::flush;
  if (shared_->out) return true;
  shared_ = nullptr;
  return false;
}

}  // namespace headrace::balance
