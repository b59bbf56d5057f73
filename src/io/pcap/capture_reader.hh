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
  /// The file's name, for messages.
  const std::string& name() const { return file_.name(); }
  /// Continues at a position of the decompressed file, where a record must begin.
  Status seek(uint64_t position, Errors& errors);
  /// The handlers of InputFile, and `packet_filepos`: where the packet returned last begins.
  void add_handlers(Handlers& handlers);

 private:
  static ssize_t read_cookie(void* cookie, char* to, size_t n);
  static int seek_cookie(void* cookie, off64_t* offset, int whence);
  uint64_t position() const;

  InputFile file_;
  Errors* errors_ = nullptr;     // of the call under way
  std::FILE* stream_ = nullptr;  // libpcap closes it
  pcap* pcap_ = nullptr;
  int link_type_ = -1;
  uint64_t record_position_ = 0;
};

/// A packet with the record's bytes, timestamp, MAC header and extra-length annotation; null when there is no buffer.
Packet* make_packet(const CaptureReader::Record& record, uint32_t headroom = Packet::kDefaultHeadroom);

}  // namespace headrace::io
