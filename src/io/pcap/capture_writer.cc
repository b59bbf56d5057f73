#include "src/io/pcap/capture_writer.hh"

#include <pcap/pcap.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/io/pcap/link_type.hh"

namespace headrace::io {

namespace {

constexpr uint32_t kLargestSnapLength = 262144;

std::FILE* open_gzip(const std::string& name) {
  gzFile file = gzopen(name.c_str(), "wbe");
  if (!file) return nullptr;
  return fopencookie(
      file, "wb",
      {.read = nullptr,
       .write =
           [](void* cookie, const char* bytes, size_t n) {
             // The contract of a cookie: 0 says that it failed.
             return static_cast<ssize_t>(gzwrite(static_cast<gzFile>(cookie), bytes, static_cast<unsigned>(n)));
           },
       .seek = nullptr,
       .close = [](void* cookie) { return gzclose(static_cast<gzFile>(cookie)) == Z_OK ? 0 : EOF; }});
}

void append16(std::string& block, uint32_t value) {
  const auto v = static_cast<uint16_t>(value);
  block.append(reinterpret_cast<const char*>(&v), sizeof v);
}
void append32(std::string& block, uint32_t value) { block.append(reinterpret_cast<const char*>(&value), sizeof value); }
/// Writes a block's length before and behind its body.
std::string finish_block(uint32_t type, const std::string& body) {
  std::string block;
  const auto length = static_cast<uint32_t>(12 + body.size());
  append32(block, type);
  append32(block, length);
  block += body;
  append32(block, length);
  return block;
}

}  // namespace

Status CaptureWriter::open(const std::string& name, const Options& options, Errors& errors) {
  options_ = options;
  name_ = name == "-" ? "<stdout>" : name;
  if (name == "-")
    stream_ = stdout;
  else
    stream_ = name.ends_with(".gz") ? open_gzip(name) : std::fopen(name.c_str(), "wbe");
  if (!stream_) return errors.error("{}: {}", name_, std::strerror(errno));
  if (!options_.buffered) std::setvbuf(stream_, nullptr, _IONBF, 0);
  if (!write_header()) return errors.error("{}: unable to write file header", name_);
  return {};
}

bool CaptureWriter::write_header() {
  const uint32_t snap_length = options_.snap_length ? options_.snap_length : kLargestSnapLength;
  if (!options_.pcapng) {
    pcap_ = pcap_open_dead_with_tstamp_precision(
        options_.link_type, static_cast<int>(snap_length),
        options_.nanoseconds ? PCAP_TSTAMP_PRECISION_NANO : PCAP_TSTAMP_PRECISION_MICRO);
    if (!pcap_) return false;
    dumper_ = pcap_dump_fopen(pcap_, stream_);
    // libpcap closes the stream itself when it cannot write the header.
    if (!dumper_ && stream_ != stdout) stream_ = nullptr;
    return dumper_ != nullptr;
  }
  // A section header, of a length that is not known in advance, and one interface whose times are nanoseconds
  // (draft-ietf-opsawg-pcapng).
  std::string section;
  append32(section, 0x1a2b3c4d);
  append16(section, 1);
  append16(section, 0);
  section.append(8, '\xff');
  std::string interface;
  append16(interface, static_cast<uint32_t>(file_link_type(options_.link_type)));
  append16(interface, 0);
  append32(interface, options_.snap_length);
  constexpr uint32_t kTimeResolution = 9, kEndOfOptions = 0;
  append16(interface, kTimeResolution);
  append16(interface, 1);
  interface += {9, 0, 0, 0};
  append16(interface, kEndOfOptions);
  append16(interface, 0);
  const std::string header = finish_block(0x0a0d0d0a, section) + finish_block(1, interface);
  return std::fwrite(header.data(), 1, header.size(), stream_) == header.size();
}

bool CaptureWriter::write_block(const Packet& p, Timestamp time, uint32_t captured, uint32_t length) {
  constexpr uint32_t kEnhancedPacket = 6;
  std::string body;
  body.reserve(captured + 32);
  const auto ns = static_cast<uint64_t>(time.ns);
  append32(body, 0);
  append32(body, static_cast<uint32_t>(ns >> 32));
  append32(body, static_cast<uint32_t>(ns));
  append32(body, captured);
  append32(body, length);
  body.append(reinterpret_cast<const char*>(p.data()), captured);
  body.append(-captured & 3, '\0');
  const std::string block = finish_block(kEnhancedPacket, body);
  return std::fwrite(block.data(), 1, block.size(), stream_) == block.size();
}

bool CaptureWriter::write(const Packet& p, std::string& error) {
  Timestamp time = p.timestamp();
  if (!time) time = clock::now();
  const uint32_t captured = options_.snap_length ? std::min(p.length(), options_.snap_length) : p.length();
  const uint32_t length = p.length() + (options_.extra_length ? p.anno_u32(anno_offset::kExtraLength) : 0);
  std::lock_guard guard(lock_);
  if (!stream_) return false;
  bool good;
  if (dumper_) {
    pcap_pkthdr header{};
    header.ts.tv_sec = time.sec();
    header.ts.tv_usec = options_.nanoseconds ? time.nsec() : time.nsec() / 1000;
    header.caplen = captured;
    header.len = length;
    errno = 0;
    pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, p.data());
    good = !std::ferror(stream_);
  } else {
    good = write_block(p, time, captured, length);
  }
  if (good) return true;
  error = errno ? std::strerror(errno) : "cannot write";
  close();
  return false;
}

void CaptureWriter::flush() {
  std::lock_guard guard(lock_);
  if (stream_) std::fflush(stream_);
}

void CaptureWriter::close() {
  if (pcap_ && !dumper_) {
    pcap_close(pcap_);
    pcap_ = nullptr;
  }
  if (!stream_) return;
  // The dumper closes its stream, which must not happen to the standard output.
  if (stream_ == stdout)
    std::fflush(stream_);
  else if (dumper_)
    pcap_dump_close(dumper_);
  else
    std::fclose(stream_);
  stream_ = nullptr;
  dumper_ = nullptr;
  if (pcap_) pcap_close(pcap_);
  pcap_ = nullptr;
}

}  // namespace headrace::io
