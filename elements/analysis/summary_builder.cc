#include <algorithm>
#include <cstring>

#include "elements/analysis/summary_field.hh"
#include "headrace/checksum.hh"

namespace headrace::summary {

namespace {
void put16(uint8_t* p, uint32_t value) {
  p[0] = static_cast<uint8_t>(value >> 8);
  p[1] = static_cast<uint8_t>(value);
}
void put32(uint8_t* p, uint32_t value) {
  put16(p, value >> 16);
  put16(p + 2, value);
}
int get16(const uint8_t* p) { return p[0] << 8 | p[1]; }
}  // namespace

Builder::Builder(int default_protocol, const FlowId* default_flow, int minor_version, NameScope* names)
    : minor_version(minor_version), default_protocol_(default_protocol), default_flow_(default_flow), names_(names) {}

void Builder::make_ethernet() {
  if (ethernet_) return;
  ethernet_ = true;
  bytes_.insert(0, 14, '\0');
  put16(data() + 12, 0x0800);
  network_ = network_ < 0 ? 14 : network_ + 14;
  transport_ = transport_ < 0 ? 14 : transport_ + 14;
}

bool Builder::make_ip(int protocol) {
  if (!is_ip) return false;
  if (network_ < 0) network_ = transport_ = length();
  if (network_length() < 20) {
    bytes_.resize(static_cast<size_t>(network_ + 20));
    transport_ = network_ + 20;
    uint8_t* h = ip();
    h[0] = 0x45;
    put16(h + 2, 0);
    put16(h + 6, 0);
    h[8] = 100;
    h[9] = static_cast<uint8_t>(default_protocol_);
    if (default_flow_) {
      put32(h + 12, default_flow_->src);
      put32(h + 16, default_flow_->dst);
    }
  }
  return protocol == 0 || ip()[9] == 0 || ip()[9] == protocol;
}

bool Builder::make_transport() {
  if (!first_fragment()) return false;
  if (transport_length() >= 8) return true;
  int n;
  switch (ip()[9]) {
    case kTcp:
      n = 20;
      break;
    case kUdp:
    case kUdpLite:
    case kIcmp:
      n = 8;
      break;
    case kDccp:
      n = 12;
      break;
    default:
      return true;
  }
  // A packet that is meant to be shorter gets as much of the header as fits.
  if (wanted_length > 0 && wanted_length < static_cast<uint32_t>(transport_ + n))
    n = static_cast<int>(wanted_length) - transport_;
  if (transport_length() >= n) return true;
  need_transport(std::max(n, 4));
  if (ip()[9] == kTcp && n >= 13) transport()[12] = 0x50;
  if (default_flow_) {
    put16(transport(), default_flow_->sport);
    put16(transport() + 2, default_flow_->dport);
  }
  if (n < 4) bytes_.resize(static_cast<size_t>(transport_ + n));
  return true;
}

void Builder::set_ip_header_length(int n) {
  const int old = (ip()[0] & 15) * 4;
  if (n > old) {
    insert(network_ + old, n - old);
    transport_ = network_ + n;
  }
  ip()[0] = static_cast<uint8_t>(0x40 | n / 4);
}

int Builder::payload_offset() {
  if (!has_ip()) return std::max(network_, 0);
  if (!first_fragment()) return transport_;
  switch (ip()[9]) {
    case kTcp:
      return transport_ + (transport_length() >= 13 && transport()[12] >> 4 >= 5 ? (transport()[12] >> 4) * 4 : 20);
    case kUdp:
    case kUdpLite:
      return transport_ + 8;
    default:
      return transport_;
  }
}

void Builder::account_payload(int& offset, uint32_t n) {
  if (!has_ip() || (get16(ip() + 2) == 0 && wanted_length == 0)) {
    wanted_length = static_cast<uint32_t>(offset) + n;
    return;
  }
  // The IP length minus the payload leaves room for options; zero bytes end a list of options.
  const int64_t end = get16(ip() + 2) ? get16(ip() + 2) + network_ : static_cast<int64_t>(wanted_length);
  int64_t room = end - offset - n;
  if (room > 3 && first_fragment() && ip()[9] == kTcp && !have_tcp_header_length && transport_length() >= 20 &&
      transport()[12] >> 4 == 5) {
    const int more = static_cast<int>(std::min<int64_t>(room & ~int64_t{3}, 40));
    insert(transport_ + 20, more);
    transport()[12] = static_cast<uint8_t>((20 + more) / 4 << 4);
    offset += more;
    room -= more;
  }
  if (room > 3 && !have_ip_header_length && (ip()[0] & 15) == 5) {
    const int more = static_cast<int>(std::min<int64_t>(room & ~int64_t{3}, 40));
    set_ip_header_length(20 + more);
    offset += more;
  }
}

void Builder::write(int offset, std::string_view bytes) {
  const size_t end = static_cast<size_t>(offset) + bytes.size();
  if (bytes_.size() < end) bytes_.resize(end);
  std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
}

void Builder::finish_lengths() {
  uint8_t* h = ip();
  if (get16(h + 2) == 0) {
    uint32_t n = wanted_length;
    if (n >= static_cast<uint32_t>(network_)) n -= static_cast<uint32_t>(network_);
    n = std::min<uint32_t>(n, 0xffff);
    put16(h + 2, n ? n : static_cast<uint32_t>(network_length()));
  }
  if (h[9] == kUdp && first_fragment() && transport_length() >= 6 && get16(transport() + 4) == 0)
    put16(transport() + 4, static_cast<uint32_t>(get16(h + 2) - (transport_ - network_)));
}

void Builder::set_checksums() {
  uint8_t* h = ip();
  auto& header = *reinterpret_cast<Ip4Header*>(h);
  set_ip_checksum(header);
  if (is_fragment()) return;
  const size_t n = static_cast<size_t>(transport_length());
  uint8_t* t = transport();
  if (h[9] == kTcp && n >= 18) {
    put16(t + 16, 0);
    put16(t + 16, transport_checksum(header, t, n));
  } else if (h[9] == kUdp && n >= 8) {
    put16(t + 6, 0);
    put16(t + 6, transport_checksum(header, t, n));
  } else if (h[9] == kIcmp && n >= 4) {
    put16(t + 2, 0);
    put16(t + 2, internet_checksum(t, n));
  }
}

Packet* Builder::finish(bool checksums) {
  if (default_flow_) (void)make_ip();
  if (has_ip()) {
    (void)make_transport();
    finish_lengths();
    if (checksums) {
      const int n = get16(ip() + 2);
      if (n > network_length()) bytes_.resize(static_cast<size_t>(network_ + n));
      set_checksums();
    }
  }
  Packet* p = Packet::make(bytes_.data(), static_cast<uint32_t>(bytes_.size()));
  if (!p) return nullptr;
  if (wanted_length > p->length()) set_anno(anno_offset::kExtraLength, wanted_length - p->length());
  if (has_ip()) std::memcpy(anno + anno_offset::kDstIp, ip() + 16, 4);
  std::memcpy(p->anno(), anno, sizeof anno);
  if (timestamp) p->set_timestamp(*timestamp);
  if (ethernet_) p->set_mac_header();
  if (has_ip()) p->set_network_header(network_, transport_ - network_);
  return p;
}

}  // namespace headrace::summary
