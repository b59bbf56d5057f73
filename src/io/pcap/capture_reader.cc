#include "src/io/pcap/capture_reader.hh"

#include <pcap/pcap.h>

#include <algorithm>

namespace headrace::io {

ssize_t CaptureReader::read_cookie(void* cookie, char* to, size_t n) {
  auto* self = static_cast<CaptureReader*>(cookie);
  return static_cast<ssize_t>(self->file_.read(to, n, *self->errors_));
}

Status CaptureReader::open(const std::string& name, Errors& errors) {
  close();
  if (file_.open(name, errors) != InputFile::Opened::kYes) return Status::failed();
  errors_ = &errors;
  // Through a stream of ours, so that compressed files can be read and positions are known: nothing is read ahead.
  std::FILE* stream =
      fopencookie(this, "rb", {.read = read_cookie, .write = nullptr, .seek = nullptr, .close = nullptr});
  if (!stream) return errors.error("{}: out of memory", file_.name());
  std::setvbuf(stream, nullptr, _IONBF, 0);
  char text[PCAP_ERRBUF_SIZE] = "";
  pcap_ = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, text);
  if (!pcap_) {
    std::fclose(stream);
    file_.close();
    return errors.error("{}: not a capture file ({})", file_.name(), text);
  }
  link_type_ = pcap_datalink(pcap_);
  record_position_ = file_.position();
  return {};
}

void CaptureReader::close() {
  if (pcap_) pcap_close(pcap_);
  pcap_ = nullptr;
  file_.close();
}

CaptureReader::Got CaptureReader::next(Record& record, Errors& errors) {
  if (!pcap_) return Got::kEnd;
  errors_ = &errors;
  record_position_ = file_.position();
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
