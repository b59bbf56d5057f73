#include "src/io/pcap/capture_reader.hh"

#include <pcap/pcap.h>

#include <algorithm>

namespace headrace::io {

namespace {

constexpr size_t kStreamBuffer = 64 * 1024;

}  // namespace

ssize_t CaptureReader::read_cookie(void* cookie, char* to, size_t n) {
  auto* self = static_cast<CaptureReader*>(cookie);
  return static_cast<ssize_t>(self->file_.read_some(to, n, *self->errors_));
}

int CaptureReader::seek_cookie(void* cookie, off64_t* offset, int whence) {
  auto* self = static_cast<CaptureReader*>(cookie);
  const auto here = static_cast<off64_t>(self->file_.position());
  if (whence == SEEK_END) return -1;
  if (whence == SEEK_CUR) *offset += here;
  return *offset == here || self->file_.seek(static_cast<uint64_t>(*offset), *self->errors_).ok() ? 0 : -1;
}

Status CaptureReader::open(const std::string& name, Errors& errors) {
  close();
  if (file_.open(name, errors) != InputFile::Opened::kYes) return Status::failed();
  errors_ = &errors;
  // libpcap reads a stream of ours, so that the file may be compressed.
  stream_ = fopencookie(this, "rb", {.read = read_cookie, .write = nullptr, .seek = seek_cookie, .close = nullptr});
  if (!stream_) return errors.error("{}: out of memory", file_.name());
  std::setvbuf(stream_, nullptr, _IOFBF, kStreamBuffer);
  char text[PCAP_ERRBUF_SIZE] = "";
  pcap_ = pcap_fopen_offline_with_tstamp_precision(stream_, PCAP_TSTAMP_PRECISION_NANO, text);
  if (!pcap_) {
    std::fclose(stream_);
    file_.close();
    return errors.error("{}: not a capture file ({})", file_.name(), text);
  }
  link_type_ = pcap_datalink(pcap_);
  record_position_ = position();
  return {};
}

uint64_t CaptureReader::position() const { return pcap_ ? static_cast<uint64_t>(ftello(stream_)) : 0; }

Status CaptureReader::seek(uint64_t position, Errors& errors) {
  if (!pcap_) return errors.error("{}: not open", file_.name());
  errors_ = &errors;
  return fseeko(stream_, static_cast<off_t>(position), SEEK_SET) == 0 ? Status() : Status::failed();
}

void CaptureReader::add_handlers(Handlers& handlers) {
  file_.add_handlers(handlers);
  // What libpcap has read, not what its stream has read ahead.
  handlers.read("filepos", [this] { return std::to_string(position()); });
  handlers.write("filepos", [this](const std::string& text, Errors& errors) {
    uint64_t position;
    if (!parse_argument(text, position, ArgContext())) return errors.error("argument must be file position");
    return seek(position, errors);
  });
  handlers.read("packet_filepos", [this] { return std::to_string(record_position_); });
}

void CaptureReader::close() {
  if (pcap_) pcap_close(pcap_);
  pcap_ = nullptr;
  file_.close();
}

CaptureReader::Got CaptureReader::next(Record& record, Errors& errors) {
  if (!pcap_) return Got::kEnd;
  errors_ = &errors;
  record_position_ = position();
  pcap_pkthdr* header;
  const uint8_t* bytes;
  switch (pcap_next_ex(pcap_, &header, &bytes)) {
    case 1:
      break;
    case PCAP_ERROR_BREAK:
      return Got::kEnd;
    default:
      (void)errors.error("{}: {}", file_.name(), pcap_geterr(pcap_));
      return Got::kFailed;
  }
  // With this precision the field for microseconds holds nanoseconds.
  record.time = Timestamp::from_sec(header->ts.tv_sec) + Timestamp::from_ns(header->ts.tv_usec);
  record.length = header->len;
  // Some programs count captured bytes that the packet does not have.
  record.captured = std::min(header->caplen, header->len);
  record.bytes = bytes;
  return Got::kRecord;
}

Packet* make_packet(const CaptureReader::Record& record, uint32_t headroom) {
  const uint32_t n = std::min(record.captured, Packet::kMaxLength);
  Packet* p = Packet::make(record.bytes, n, headroom);
  if (!p) return nullptr;
  p->set_timestamp(record.time);
  p->set_mac_header();
  p->set_anno_u32(anno_offset::kExtraLength, record.length - n);
  return p;
}

}  // namespace headrace::io
