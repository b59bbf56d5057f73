#include "elements/tcpudp/frame_source.hh"

#include <algorithm>
#include <cstring>

#include "headrace/checksum.hh"
#include "headrace/router.hh"
#include "headrace/value_handlers.hh"

namespace headrace {

namespace {
constexpr uint8_t kFrameTtl = 250;
// At lower rates, pullers sleep between packets.
constexpr Timestamp kLongWait = Timestamp::from_us(100);
constexpr size_t kSegmentAt = sizeof(EtherHeader) + sizeof(Ip4Header);
}  // namespace

void FrameTemplate::build(const Ends& ends, uint8_t protocol, std::string_view header, uint32_t length, bool checksum) {
  bytes_.assign(length, '\0');
  auto& ether = *reinterpret_cast<EtherHeader*>(bytes_.data());
  ether.dst = ends.dst_ether;
  ether.src = ends.src_ether;
  ether.type = eth::kTypeIp4;
  auto& ip = *reinterpret_cast<Ip4Header*>(&ether + 1);
  ip.version_ihl = 0x45;
  ip.total_length = static_cast<uint16_t>(length - sizeof(EtherHeader));
  ip.ttl = kFrameTtl;
  ip.protocol = protocol;
  ip.src = ends.src;
  ip.dst = ends.dst;
  set_ip_checksum(ip);
  std::memcpy(bytes_.data() + kSegmentAt, header.data(), header.size());
  sum_ = static_cast<uint16_t>(~transport_checksum(ip, bytes_.data() + kSegmentAt, length - kSegmentAt));
  zero_means_none_ = protocol == ip_protocol::kUdp;
  checksum_at_ = 0;
  if (checksum)
    checksum_at_ = kSegmentAt + (zero_means_none_ ? offsetof(UdpHeader, checksum) : offsetof(TcpHeader, checksum));
}

void FrameTemplate::build_udp(const Ends& ends, uint32_t length, bool checksum) {
  UdpHeader udp{};
  udp.length = static_cast<uint16_t>(length - kSegmentAt);
  build(ends, ip_protocol::kUdp, {reinterpret_cast<const char*>(&udp), sizeof udp}, length, checksum);
}

Packet* FrameTemplate::make(uint16_t src_port, uint16_t dst_port) const {
  Packet* p = Packet::make(bytes_.data(), static_cast<uint32_t>(bytes_.size()));
  if (!p) return nullptr;
  auto* ports = reinterpret_cast<Net16*>(p->data() + kSegmentAt);
  ports[0] = src_port;
  ports[1] = dst_port;
  if (checksum_at_ != 0) {
    uint32_t sum = uint32_t{sum_} + src_port + dst_port;
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    const auto checksum = static_cast<uint16_t>(~sum);
    *reinterpret_cast<Net16*>(p->data() + checksum_at_) = checksum == 0 && zero_means_none_ ? 0xffff : checksum;
  }
  p->set_mac_header();
  p->set_network_header(sizeof(EtherHeader), sizeof(Ip4Header));
  const auto& ip = *reinterpret_cast<const Ip4Header*>(p->network_header());
  IpAddress(ip.dst).copy_to(p->anno() + anno_offset::kDstIp);
  return p;
}

Status FrameSource::check_settings(Errors& errors) {
  if (settings_.length > FrameTemplate::kLongest)
    return errors.error("LENGTH too large, maximum is {}", FrameTemplate::kLongest);
  if (settings_.length < FrameTemplate::kShortest) {
    errors.warning("LENGTH is at least {}", FrameTemplate::kShortest);
    settings_.length = FrameTemplate::kShortest;
  }
  set_rate();
  return {};
}

void FrameSource::set_rate() {
  pacer_.set_rate(settings_.rate);
  wait_ = Timestamp::from_ns(settings_.rate == 0 ? 0 : Timestamp::kSecond / settings_.rate);
}

void FrameSource::awake() {
  if (output_is_push(0))
    task_.reschedule();
  else
    nonempty_.wake();
}

Status FrameSource::initialize(Errors&) {
  timer_.initialize();
  if (output_is_push(0)) task_.initialize(settings_.active);
  return {};
}

int FrameSource::make(Batch& batch, int most) {
  int made = 0;
  while (made < most && settings_.active) {
    const bool over = at_limit();
    if (over && !has_last_frames()) {
      if (settings_.stop && !stopped_) router().request_stop();
      stopped_ = true;
      nonempty_.sleep();
      break;
    }
    if (settings_.rate != 0 && !pacer_.due(clock::now())) break;
    Packet* p = over ? last_frame() : next_frame();
    if (!p) break;
    pacer_.count(1);
    batch.push_back(p);
    ++made;
    count_ += 1;
    if (count_ == 1) first_ = clock::steady().ns;
    if (at_limit()) last_ = clock::steady().ns;
  }
  return made;
}

int FrameSource::pull(int, Batch& batch, int max) {
  if (!settings_.active) {
    nonempty_.sleep();
    return 0;
  }
  const int n = make(batch, max);
  if (n == 0 && wait_ >= kLongWait && !stopped_ && nonempty_.active()) {
    nonempty_.sleep();
    timer_.schedule_after(wait_);
  }
  return n;
}

bool FrameSource::run_task(Task& task) {
  bool worked = false;
  for (uint32_t left = burst_; left > 0;) {
    Batch batch;
    const int n = make(batch, static_cast<int>(std::min<uint32_t>(left, Batch::kCapacity)));
    if (n == 0) break;
    left -= static_cast<uint32_t>(n);
    output(0).push(batch);
    worked = true;
  }
  if (worked) {
    task.fast_reschedule();
  } else if (settings_.active && !stopped_) {
    // Not yet due, or no buffer.
    timer_.schedule_after(std::max(wait_, Timestamp::from_us(10)));
  }
  return worked;
}

Notifier* FrameSource::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty && output_is_pull(0) ? &nonempty_ : nullptr;
}

void FrameSource::changed() {
  if (!settings_.active) return;
  stopped_ = false;
  awake();
}

void FrameSource::reset() {
  count_ = 0;
  first_ = 0;
  last_ = 0;
  pacer_.reset();
  restart();
  changed();
}

uint64_t FrameSource::average_rate() const {
  if (last_ == 0) return 0;
  const int64_t span = std::max(last_ - first_, Timestamp::from_ms(1).ns);
  return static_cast<uint64_t>(static_cast<double>(count_) * Timestamp::kSecond / static_cast<double>(span));
}

void FrameSource::add_handlers(Handlers& handlers) {
  read_value(handlers, "count", count_);
  handlers.read("rate", [this] { return std::to_string(average_rate()); });
  write_value(handlers, "rate", settings_.rate, [this] {
    set_rate();
    changed();
  });
  handlers.button("reset", [this] { reset(); });
  read_value(handlers, "active", settings_.active);
  write_value(handlers, "active", settings_.active, [this] {
    if (settings_.active) reset();
  });
  handlers.value("limit", settings_.limit, [this] { changed(); });
}

}  // namespace headrace
