#include "src/io/pcap/capture_writer.hh"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "src/io/pcap/link_type.hh"

namespace headrace::io {

namespace {

constexpr uint32_t kLargestSnapLength = 262144;
constexpr size_t kPiece = 256 * 1024;

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

struct CaptureWriter::Gzip {
  z_stream stream{};
  std::string packed;

  ~Gzip() { deflateEnd(&stream); }
};

CaptureWriter::CaptureWriter() = default;

CaptureWriter::~CaptureWriter() { close(); }

Status CaptureWriter::open(const std::string& name, const Options& options, Errors& errors) {
  options_ = options;
  name_ = name == "-" ? "<stdout>" : name;
  if (const int error = file_.open(name, RecordFile::Mode::kTruncate))
    return errors.error("{}: {}", name_, std::strerror(error));
  buffer_.reserve(kPiece + kLargestSnapLength);
  if (name.ends_with(".gz")) {
    constexpr int kGzipFormat = 16 + MAX_WBITS, kMemoryLevel = 8;
    gzip_ = std::make_unique<Gzip>();
    if (deflateInit2(&gzip_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipFormat, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      return errors.error("{}: out of memory", name_);
  }
  options_.complain = nullptr;
  make_header();
  const bool good = !buffer_.empty();
  ends_.push_back(static_cast<uint32_t>(buffer_.size()));
  lengths_.push_back(0);
  if (!good || write_buffer() != 1)
    return errors.error("{}: {}", name_, good ? std::strerror(error()) : "cannot make a file header");
  options_.complain = options.complain;
  return {};
}

void CaptureWriter::make_header() {
  const uint32_t snap_length = options_.snap_length ? options_.snap_length : kLargestSnapLength;
  if (!options_.pcapng) {
    pcap_ = pcap_open_dead_with_tstamp_precision(
        options_.link_type, static_cast<int>(snap_length),
        options_.nanoseconds ? PCAP_TSTAMP_PRECISION_NANO : PCAP_TSTAMP_PRECISION_MICRO);
    std::FILE* stream = fopencookie(&buffer_, "wb",
                                    {.read = nullptr,
                                     .write =
                                         [](void* buffer, const char* bytes, size_t n) {
                                           static_cast<std::string*>(buffer)->append(bytes, n);
                                           return static_cast<ssize_t>(n);
                                         },
                                     .seek = nullptr,
                                     .close = nullptr});
    if (!stream) return;
    std::setvbuf(stream, nullptr, _IONBF, 0);
    if (pcap_) dumper_ = pcap_dump_fopen(pcap_, stream);
    if (!pcap_) std::fclose(stream);
    return;
  }
  // libpcap reads pcapng and does not write it, so the blocks are made here (draft-ietf-opsawg-pcapng): a section
  // header, of a length that is not known in advance, and one interface whose times are nanoseconds.
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
  buffer_ = finish_block(0x0a0d0d0a, section) + finish_block(1, interface);
}

void CaptureWriter::append_block(const Packet& p, Timestamp time, uint32_t captured, uint32_t length) {
  constexpr uint32_t kEnhancedPacket = 6;
  const auto ns = static_cast<uint64_t>(time.ns);
  const uint32_t whole = 32 + (captured + 3) / 4 * 4;
  for (const uint32_t word :
       {kEnhancedPacket, whole, 0u, static_cast<uint32_t>(ns >> 32), static_cast<uint32_t>(ns), captured, length})
    append32(buffer_, word);
  buffer_.append(reinterpret_cast<const char*>(p.data()), captured);
  buffer_.append(-captured & 3, '\0');
  append32(buffer_, whole);
}

void CaptureWriter::append(const Packet& p) {
  Timestamp time = p.timestamp();
  if (!time) time = clock::now();
  const uint32_t captured = options_.snap_length ? std::min(p.length(), options_.snap_length) : p.length();
  const uint32_t length = p.length() + (options_.extra_length ? p.anno_u32(anno_offset::kExtraLength) : 0);
  if (dumper_) {
    pcap_pkthdr header{};
    header.ts.tv_sec = time.sec();
    header.ts.tv_usec = options_.nanoseconds ? time.nsec() : time.nsec() / 1000;
    header.caplen = captured;
    header.len = length;
    pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, p.data());
  } else {
    append_block(p, time, captured, length);
  }
  ends_.push_back(static_cast<uint32_t>(buffer_.size()));
  lengths_.push_back(p.length());
  taken_.add(1, p.length());
}

int CaptureWriter::write(Packet* const* packets, int n) {
  std::lock_guard guard(lock_);
  for (int i = 0; i < n; ++i) {
    append(*packets[i]);
    if (options_.buffered && buffer_.size() >= kPiece) (void)write_buffer();
  }
  return options_.buffered ? n : static_cast<int>(write_buffer());
}

size_t CaptureWriter::write_buffer() {
  const size_t count = ends_.size();
  if (count == 0) return 0;
  size_t whole;
  if (gzip_) {
    // Each piece is a member of its own: the file is good without those that follow.
    const std::string& packed = compress();
    const auto end = static_cast<uint32_t>(packed.size());
    whole = file_.write(packed, {&end, 1}) == 1 ? count : 0;
  } else {
    whole = file_.write(buffer_, ends_);
  }
  for (size_t i = whole; i < count; ++i) lost_.add(1, lengths_[i]);
  if (whole < count) {
    error_.store(file_.error(), std::memory_order_relaxed);
    if (!failing_ && options_.complain) options_.complain(fmt::format("{}: {}", name_, std::strerror(file_.error())));
  }
  failing_ = whole < count;
  ends_.clear();
  lengths_.clear();
  buffer_.clear();
  return whole;
}

const std::string& CaptureWriter::compress() {
  z_stream& z = gzip_->stream;
  std::string& packed = gzip_->packed;
  deflateReset(&z);
  packed.resize(deflateBound(&z, buffer_.size()));
  z.next_in = reinterpret_cast<Bytef*>(buffer_.data());
  z.avail_in = static_cast<uInt>(buffer_.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(packed.size() - z.avail_out);
  return packed;
}

void CaptureWriter::flush() {
  std::lock_guard guard(lock_);
  (void)write_buffer();
}

PortTotals CaptureWriter::written(int thread) const {
  const PortTotals taken = taken_.of_thread(thread), lost = lost_.of_thread(thread);
  return {taken.packets - lost.packets, taken.bytes - lost.bytes};
}

PortTotals CaptureWriter::written() const {
  const PortTotals taken = taken_.sum(), lost = lost_.sum();
  return {taken.packets - lost.packets, taken.bytes - lost.bytes};
}

void CaptureWriter::reset_counts() {
  taken_.reset();
  lost_.reset();
}

void CaptureWriter::close() {
  flush();
  file_.close();
  if (dumper_) pcap_dump_close(dumper_);
  if (pcap_) pcap_close(pcap_);
  dumper_ = nullptr;
  pcap_ = nullptr;
}

}  // namespace headrace::io
