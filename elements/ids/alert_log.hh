#pragma once
/// \file
/// Alerts on their way from workers to a file.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <headrace/error.hh>
#include <headrace/packet.hh>
#include <headrace/ring.hh>
#include <headrace/worker.hh>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tables/files/record_file.hh"
#include "tables/rules/packet_facts.hh"
#include "tables/rules/rule.hh"

namespace headrace {

/// Passes `rate` events per second, with bursts of the same size. The events carry their times; when time jumps back,
/// as in a capture that is replayed, the limiter starts over.
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

/// Writes alerts as lines of JSON with the field names of Suricata's EVE. A worker puts a record into its own ring and
/// continues; a separate thread formats and writes it. The file has whole lines only, see RecordFile.
class AlertLog {
 public:
  struct Options {
    std::string file;  // "-": standard output; it is appended to
    uint32_t rate = 0;
    uint32_t queue = 4096;
  };

  AlertLog() = default;
  ~AlertLog();
  AlertLog(const AlertLog&) = delete;
  AlertLog& operator=(const AlertLog&) = delete;

  /// \param rules what records refer to by number; they outlive the log
  Status open(const Options& options, const std::vector<rules::Rule>& rules, Errors& errors);
  bool is_open() const { return open_; }

  /// A packet matches a rule. On a worker: no lock, no allocation, no system call.
  void add(uint32_t rule, const rules::PacketFacts& facts, const Packet& p);
  /// Writes what is in the rings.
  void flush();

  /// Alerts that found their ring full, or the file not writable.
  uint64_t lost() const { return counts_.sum(kLost) + failed_.load(std::memory_order_relaxed); }
  /// Alerts that came too fast.
  uint64_t suppressed() const { return counts_.sum(kSuppressed) + late_suppressed_.load(std::memory_order_relaxed); }
  /// Lines in the file.
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
  void append(const Record& record);
  void write_lines();
  std::string json(const Record& record) const;

  AlertRate rate_{0};
  const std::vector<rules::Rule>* rules_ = nullptr;
  PerThread<Worker> workers_;
  ThreadCounters counts_{kCounts};
  std::string name_;
  RecordFile file_;
  bool open_ = false;

  std::mutex write_lock_;  // between the log's thread and flushing threads
  std::vector<int64_t> full_;
  std::string lines_;
  std::vector<uint32_t> ends_;  // of the lines
  bool failing_ = false;
  std::atomic<uint64_t> written_{0}, failed_{0}, late_suppressed_{0};

  std::mutex stop_lock_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace headrace
