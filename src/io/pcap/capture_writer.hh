#pragma once
/// \file
/// Writes capture files: pcap or pcapng, plain or compressed by gzip.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/device_port.hh"
#include "headrace/error.hh"
#include "headrace/packet.hh"
#include "tables/files/record_file.hh"

struct pcap;
struct pcap_dumper;

namespace headrace::io {

/// Packets are collected and written in large pieces. Those that cannot be written (a full disk, a reader that has gone)
/// are counted as lost, and later ones are tried again: the file holds whole packets only, see RecordFile.
class CaptureWriter {
 public:
  struct Options {
    int link_type = 1;         // a libpcap DLT_ value
    uint32_t snap_length = 0;  // 0: whole packets
    bool nanoseconds = true;   // pcapng always has them
    bool pcapng = false;
    bool buffered = true;  // false: write() writes
    /// Count the extra-length annotation.
    bool extra_length = true;
    /// Called with a message when writing begins to fail, on the thread that writes.
    std::function<void(const std::string& message)> complain = {};
  };

  CaptureWriter();
  ~CaptureWriter();
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  /// "-" is the standard output; a name that ends in ".gz" is compressed. Writes the file's header.
  Status open(const std::string& name, const Options& options, Errors& errors);
  /// Any thread. Returns how many packets from the first on are in the file or, buffered, on their way there.
  int write(Packet* const* packets, int n);
  /// Writes what is buffered.
  void flush();
  void close();
  const std::string& name() const { return name_; }

  /// Packets that write() took and that are not in the file and not on their way.
  uint64_t lost() const { return lost_.sum().packets; }
  /// Why the last packet was lost, as an errno.
  int error() const { return error_.load(std::memory_order_relaxed); }
  /// Packets taken less those lost, with the lengths that they have in the router. A thread may have lost packets of
  /// another; the sum over threads is right (modulo 2^64).
  PortTotals written(int thread) const;
  PortTotals written() const;
  void reset_counts();

 private:
  void make_header();
  void append(const Packet& p);
  void append_block(const Packet& p, Timestamp time, uint32_t captured, uint32_t length);
  /// Returns how many of the records in buffer_ are in the file now.
  size_t write_buffer();
  const std::string& compress();

  std::mutex lock_;
  std::string name_;
  Options options_;
  RecordFile file_;
  bool failing_ = false;
  std::string buffer_;
  std::vector<uint32_t> ends_;     // of the records in buffer_
  std::vector<uint32_t> lengths_;  // of their packets in the router
  struct Gzip;
  std::unique_ptr<Gzip> gzip_;

  pcap* pcap_ = nullptr;
  pcap_dumper* dumper_ = nullptr;  // appends to buffer_
  PortCounter taken_, lost_;
  std::atomic<int> error_{0};
};

}  // namespace headrace::io
