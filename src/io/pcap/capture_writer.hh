#pragma once
/// \file
/// Writes capture files: pcap or pcapng, plain or compressed by gzip.

#include <cstdio>
#include <mutex>
#include <string>

#include "headrace/error.hh"
#include "headrace/packet.hh"

struct pcap;
struct pcap_dumper;

namespace headrace::io {

class CaptureWriter {
 public:
  struct Options {
    int link_type = 1;         // a libpcap DLT_ value
    uint32_t snap_length = 0;  // 0: whole packets
    bool nanoseconds = true;   // pcapng always has them
    bool pcapng = false;
    bool buffered = true;
    /// Count the extra-length annotation.
    bool extra_length = true;
  };

  CaptureWriter() = default;
  ~CaptureWriter() { close(); }
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  /// "-" is the standard output; a name that ends in ".gz" is compressed.
  Status open(const std::string& name, const Options& options, Errors& errors);
  /// Any thread. False, and closed for good, when the file could not be written; `error` says why, once.
  bool write(const Packet& p, std::string& error);
  void flush();
  void close();
  bool is_open() const { return stream_ != nullptr; }
  const std::string& name() const { return name_; }

 private:
  bool write_header();
  bool write_block(const Packet& p, Timestamp time, uint32_t captured, uint32_t length);

  std::mutex lock_;
  std::string name_;
  Options options_;
  std::FILE* stream_ = nullptr;
  pcap* pcap_ = nullptr;
  pcap_dumper* dumper_ = nullptr;
};

}  // namespace headrace::io
