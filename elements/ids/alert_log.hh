#pragma once
/// \file
/// Alerts on their way from workers to a file.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <headrace/error.hh>
#include <headrace/packet.hh>
#include <headrace/ring.hh>
#include <headrace/worker.hh>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tables/rules/packet_facts.hh"
#include "tables/rules/rule.hh"

namespace headrace {

/// Lets `rate` events a second pass, and as many at once. Times come with the events; when they jump back, as they do
/// where a capture is replayed again, it begins anew.
class AlertRate {
 public:
  /// \param rate 0: no limit
  explicit AlertRate(uint32_t rate) : interval_(rate == 0 ? 0 : 1000000000 / rate), burst_(interval_ * rate) {}

  /// \param full when the events that passed so far are worked off; 0 at first
  bool pass(int64_t now, int64_t& full) const {
    if (interval_ == 0) return true;
    if (full < now || full - now > burst_) full = now;
    if (full - now > burst_ - interval_) return false;
    full += interval_;
    return true;
  }

 private:
  int64_t interval_;
  int64_t burst_;
};

/// Writes alerts as lines of JSON with the names that Suricata's EVE has. A worker puts a record into its own ring and
/// goes on; a thread of the log's own formats and writes.
class AlertLog {
 public:
  struct Options {
    std::string file;  // "-": the standard output; it is appended to
    uint32_t rate = 0;
    uint32_t queue = 4096;
  };

  AlertLog() = default;
  ~AlertLog();
  AlertLog(const AlertLog&) = delete;
  AlertLog& operator=(const AlertLog&) = delete;

  /// \param rules what records refer to by number; they outlive the log
  Status open(const Options& options, const std::vector<rules::Rule>& rules, Errors& errors);
  bool is_open() const { return file_ != nullptr; }

  /// A packet matches a rule. On a worker: no lock, no allocation, no system call.
  void add(uint32_t rule, const rules::PacketFacts& facts, const Packet& p);
  /// Writes what is in the rings.
  void flush();

  /// Alerts that found their ring full, or the file not writable.
  uint64_t lost() const { return counts_.sum(kLost) + failed_.load(std::memory_order_relaxed); }
  /// Alerts that came too fast.
  uint64_t suppressed() const { return counts_.sum(kSuppressed) + late_suppressed_.load(std::memory_order_relaxed); }
  uint64_t written() const { return written_.load(std::memory_order_relaxed); }
  /// Counts start again from zero.
  void reset();

 private:
  struct Record {
    int64_t time;
    uint32_t rule;
    uint32_t length;
    uint8_t version;
    uint8_t protocol;
    bool has_ports;
    bool has_type;  // of ICMP; then the ports are type and code
    uint16_t src_port, dst_port;
    rules::Address6 src, dst;
  };
  enum { kLost, kSuppressed, kCounts };
  struct Worker {
    std::unique_ptr<Ring<Record>> ring;
    std::vector<int64_t> full;  // by rule, see AlertRate
  };

  void run();
  void write(const Record& record);
  void append_json(const Record& record);

  AlertRate rate_{0};
  const std::vector<rules::Rule>* rules_ = nullptr;
  PerThread<Worker> workers_;
  ThreadCounters counts_{kCounts};
  std::string name_;
  std::FILE* file_ = nullptr;

  std::mutex write_lock_;  // among the log's thread and those who flush
  std::vector<int64_t> full_;
  std::string text_;
  bool complained_ = false;
  std::atomic<uint64_t> written_{0}, failed_{0}, late_suppressed_{0};

  std::mutex stop_lock_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Appends `text` as a string of JSON. Bytes that are not UTF-8 are taken for Latin-1.
void append_json_string(std::string_view text, std::string& out);

}  // namespace headrace
