#pragma once
/// \file
/// Reads capture files: pcap in both byte orders and with micro- or nanoseconds, pcapng, plain or compressed.

#include <cstdio>

#include "headrace/packet.hh"
#include "src/io/input_file.hh"

struct pcap;

namespace headrace::io {

class CaptureReader {
 public:
  CaptureReader() = default;
  ~CaptureReader() { close(); }
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  Status open(const std::string& name, Errors& errors);
  void close();
  bool is_open() const { return pcap_ != nullptr; }

  /// What the header of a packet says. `captured` bytes follow.
  struct Record {
    Timestamp time;
    uint32_t captured = 0;
    uint32_t length = 0;
    const uint8_t* bytes = nullptr;  // until the next call
  };
  enum class Got { kRecord, kEnd, kFailed };
  /// kFailed: the file is damaged or ends within a packet, as `errors` says.
  Got next(Record& record, Errors& errors);

  /// A libpcap DLT_ value.
  int link_type() const { return link_type_; }
  InputFile& file() { return file_; }
  /// Where the packet returned last begins.
  uint64_t record_position() const { return record_position_; }

 private:
  static ssize_t read_cookie(void* cookie, char* to, size_t n);

  InputFile file_;
  Errors* errors_ = nullptr;  // of the call under way
  pcap* pcap_ = nullptr;
  int link_type_ = -1;
  uint64_t record_position_ = 0;
};

/// A packet with the record's bytes, timestamp, MAC header and extra-length annotation; null when there is no buffer.
Packet* make_packet(const CaptureReader::Record& record, uint32_t headroom = Packet::kDefaultHeadroom);

}  // namespace headrace::io
