#include "elements/tcpudp/WebGen.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "headrace/chatter.hh"
#include "headrace/checksum.hh"

namespace headrace {

enum WebGen::Reason : int { kNotTcp, kNotMine, kNoSegmentBuffer };

/// A segment of the server.
struct WebGen::Incoming {
  IpAddress src, dst;
  uint16_t src_port, dst_port;
  uint32_t sequence, acknowledgment;
  uint8_t flags;
  uint32_t length;  // of its data

  bool has(uint8_t flag) const { return flags & flag; }
  /// The number of sequence numbers it occupies.
  uint32_t occupied() const;
};

/// A segment to the server.
struct WebGen::Outgoing {
  IpAddress src, dst;
  uint16_t src_port, dst_port;
  uint32_t sequence, acknowledgment;
  uint8_t flags;
  bool request = false;
  uint16_t page = 0;
};

namespace {

constexpr uint8_t kFinFlag = 1, kSynFlag = 2, kRstFlag = 4, kPshFlag = 8, kAckFlag = 16;
constexpr uint16_t kHttp = 80;
constexpr uint32_t kFirstClientPort = 1024, kClientPorts = 60000;
constexpr uint16_t kWindow = 60 * 1024;
constexpr uint8_t kClientTtl = 250;
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint32_t kSegmentHeaders = sizeof(Ip4Header) + sizeof(TcpHeader);

/// The zeros are replaced by the digits of a page.
constexpr std::string_view kRequest = "GET /spec/0/0-0-0 HTTP/1.0\r\n\r\n";
constexpr int kDirectories = 10, kClasses = 3, kFiles = 9;
constexpr auto kRequestLength = static_cast<uint32_t>(kRequest.size());
/// SYN, request, and FIN.
constexpr uint32_t kSequenceLength = 1 + kRequestLength + 1;

constexpr int64_t kSilence = Timestamp::kSecond;
constexpr int kMostSilences = 5;
constexpr int64_t kTick = Timestamp::kSecond / 1000;
constexpr uint32_t kOpenSeconds = 8;

/// If the timer is late, connections of this time at most are made up for.
constexpr int64_t kMostLate = Timestamp::kSecond / 10;
/// Random addresses tried before a connection is skipped.
constexpr int kPicks = 4;

/// How far `a` is ahead of `b` (RFC 9293, 3.4).
int32_t ahead_of(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }

void write_request(uint8_t* to, uint16_t page) {
  std::memcpy(to, kRequest.data(), kRequest.size());
  const auto digit = [](int n) { return static_cast<uint8_t>('0' + n); };
  to[10] = to[12] = digit(page / (kClasses * kFiles));
  to[14] = digit(page / kFiles % kClasses);
  to[16] = digit(page % kFiles);
}

}  // namespace

uint32_t WebGen::Incoming::occupied() const { return length + (has(kSynFlag) ? 1 : 0) + (has(kFinFlag) ? 1 : 0); }

Status WebGen::configure(Args& args) {
  if (!args.read_mp("PREFIX", prefix_)
           .read_mp("DST", server_)
           .read_mp("RATE", rate_, Between{1, 1000000})
           .read("REPORT", report_)
           .complete())
    return Status::failed();
  count_reasons({"not a TCP segment", "not for an address in PREFIX", "no buffer"});
  return {};
}

Status WebGen::initialize(Errors&) {
  const uint32_t most = kOpenSeconds * rate_;
  connections_.resize(most);
  buckets_.assign(std::bit_ceil(std::max(most, kStripes)), kNone);
  stripes_ = std::make_unique<Stripe[]>(kStripes);
  waiting_.resize(most);
  free_.resize(most);
  for (uint32_t i = 0; i < most; ++i) free_[i] = most - 1 - i;
  next_start_ = clock::steady().ns;
  timer_.initialize();
  timer_.schedule_after({});
  report_timer_.initialize();
  if (report_.ns) report_timer_.schedule_after(report_.timestamp());
  return {};
}

// --- Connections

uint32_t WebGen::bucket(IpAddress src, uint16_t port) const {
  const uint64_t key = uint64_t{src.network_order()} << 16 | port;
  return static_cast<uint32_t>(key * 0x9e3779b97f4a7c15 >> 32) & static_cast<uint32_t>(buckets_.size() - 1);
}

uint32_t WebGen::find(uint32_t bucket, IpAddress src, uint16_t port) const {
  uint32_t i = buckets_[bucket];
  while (i != kNone && (connections_[i].src != src || connections_[i].port != port)) i = connections_[i].next;
  return i;
}

void WebGen::close(Connection& c, Count why) {
  c.state = Connection::kClosed;
  counts_.add(why, 1);
}

WebGen::Outgoing WebGen::segment(const Connection& c, uint8_t flags) const {
  Outgoing out{c.src, server_, c.port, kHttp, c.first + kSequenceLength, c.received, flags};
  if (flags & kSynFlag) {
    out.sequence = c.first;
    out.acknowledgment = 0;
  } else if (flags & kFinFlag) {
    out.sequence = c.first + 1;
    out.request = true;
    out.page = c.page;
  }
  return out;
}

/// RFC 9293, 3.10.7.1.
WebGen::Outgoing WebGen::reset_for(const Incoming& in) {
  Outgoing out{in.dst, in.src, in.dst_port, in.src_port, 0, 0, kRstFlag};
  if (in.has(kAckFlag)) {
    out.sequence = in.acknowledgment;
  } else {
    out.acknowledgment = in.sequence + in.occupied();
    out.flags = kRstFlag | kAckFlag;
  }
  return out;
}

std::optional<WebGen::Outgoing> WebGen::repeat(const Connection& c) const {
  if (c.state == Connection::kConnecting) return segment(c, kSynFlag);
  if (c.acked != c.first + kSequenceLength) return segment(c, kAckFlag | kPshFlag | kFinFlag);
  return {};
}

std::optional<WebGen::Outgoing> WebGen::take(Connection& c, const Incoming& in, int64_t now) {
  const auto progress = [&] {
    c.silences = 0;
    c.active_at = now;
  };
  if (c.state == Connection::kConnecting) {
    if (in.has(kAckFlag) && in.acknowledgment != c.first + 1) {
      if (in.has(kRstFlag)) return {};
      return reset_for(in);
    }
    if (in.has(kRstFlag)) {
      if (in.has(kAckFlag)) close(c, kResets);
      return {};
    }
    if (!in.has(kSynFlag) || !in.has(kAckFlag)) return {};
    c.received = in.sequence + 1;
    c.acked = c.first + 1;
    c.state = Connection::kOpen;
    progress();
    return repeat(c);
  }

  const int32_t ahead = ahead_of(in.sequence, c.received);
  if (in.has(kRstFlag)) {
    // Only a reset with exactly the expected number is accepted (RFC 5961, 3.2).
    if (ahead == 0) {
      close(c, kResets);
      return {};
    }
    if (ahead < 0 || ahead >= kWindow) return {};
    return segment(c, kAckFlag);
  }
  if (in.has(kSynFlag)) return segment(c, kAckFlag);
  if (!in.has(kAckFlag)) return {};
  if (ahead_of(in.acknowledgment, c.first + kSequenceLength) > 0) return segment(c, kAckFlag);
  if (ahead_of(in.acknowledgment, c.acked) > 0) {
    c.acked = in.acknowledgment;
    progress();
  }
  const uint32_t occupied = in.occupied();
  // Accept data that continues or overlaps what was received, but nothing behind a gap.
  if (!c.finished && ahead <= 0 && ahead + static_cast<int32_t>(occupied) > 0) {
    c.received = in.sequence + occupied;
    c.finished = in.has(kFinFlag);
    progress();
  }
  if (c.finished && c.acked == c.first + kSequenceLength) {
    close(c, kCompleted);
    return segment(c, kAckFlag);
  }
  if (occupied > 0 || ahead != 0) return segment(c, kAckFlag);
  return {};
}

// --- Packets

std::optional<WebGen::Reason> WebGen::read(const Packet& p, Incoming& in) const {
  if (p.length() < kSegmentHeaders) return kNotTcp;
  const auto& ip = *reinterpret_cast<const Ip4Header*>(p.data());
  const auto header = static_cast<uint32_t>(ip.header_length());
  const uint32_t total = ip.total_length;
  if (ip.version_ihl >> 4 != 4 || header < sizeof(Ip4Header) || total > p.length() ||
      total < header + sizeof(TcpHeader) || ip.protocol != ip_protocol::kTcp || ip.is_fragment())
    return kNotTcp;
  const auto& tcp = *reinterpret_cast<const TcpHeader*>(ip.bytes() + header);
  const auto tcp_header = static_cast<uint32_t>(tcp.header_length());
  if (tcp_header < sizeof(TcpHeader) || total < header + tcp_header) return kNotTcp;
  if (!prefix_.contains(ip.dst)) return kNotMine;
  in = {ip.src,       ip.dst,
        tcp.src_port, tcp.dst_port,
        tcp.sequence, tcp.acknowledgment,
        tcp.flags,    total - header - tcp_header};
  return {};
}

std::optional<WebGen::Outgoing> WebGen::answer(const Incoming& in, int64_t now) {
  if (in.src == server_ && in.src_port == kHttp) {
    const uint32_t at = bucket(in.dst, in.dst_port);
    const std::lock_guard lock(stripe(at).mutex);
    const uint32_t i = find(at, in.dst, in.dst_port);
    if (i != kNone && connections_[i].state != Connection::kClosed) return take(connections_[i], in, now);
  }
  if (in.has(kRstFlag)) return {};
  return reset_for(in);
}

void WebGen::push(int, Batch& batch) {
  const int64_t now = clock::steady().ns;
  Batch out;
  for (Packet* p : batch) {
    Incoming in;
    if (const std::optional<Reason> refused = read(*p, in)) {
      drop(p, *refused);
      continue;
    }
    taken_.add(1, p->length());
    const std::optional<Outgoing> reply = answer(in, now);
    if (!reply)
      p->kill();
    else if (Packet* made = make(*reply, p))
      out.push_back(made);
  }
  if (!out.empty()) output(0).push(out);
}

Packet* WebGen::make(const Outgoing& out, Packet* reuse) {
  const uint32_t length = kSegmentHeaders + (out.request ? kRequestLength : 0);
  Packet* p = reuse;
  if (p && p->capacity() >= Packet::kDefaultHeadroom + length) {
    p->reset(length);
  } else {
    if (p) p->kill();
    p = Packet::make(length);
  }
  if (!p) {
    made_.add(1, 0);
    count_drops(1, kNoSegmentBuffer);
    return nullptr;
  }
  made_.add(1, length);
  auto& ip = *reinterpret_cast<Ip4Header*>(p->data());
  ip.version_ihl = 0x45;
  ip.tos = 0;
  ip.total_length = static_cast<uint16_t>(length);
  ip.id = 0;  // allowed, because it is not fragmented (RFC 6864, 4.1)
  ip.fragment = kDontFragment;
  ip.ttl = kClientTtl;
  ip.protocol = ip_protocol::kTcp;
  ip.src = out.src;
  ip.dst = out.dst;
  set_ip_checksum(ip);
  auto& tcp = *reinterpret_cast<TcpHeader*>(&ip + 1);
  tcp.src_port = out.src_port;
  tcp.dst_port = out.dst_port;
  tcp.sequence = out.sequence;
  tcp.acknowledgment = out.acknowledgment;
  tcp.data_offset = sizeof(TcpHeader) / 4 << 4;
  tcp.flags = out.flags;
  tcp.window = out.flags & kRstFlag ? uint16_t{0} : kWindow;
  tcp.checksum = 0;
  tcp.urgent = 0;
  if (out.request) write_request(p->data() + kSegmentHeaders, out.page);
  tcp.checksum = transport_checksum(ip, &tcp, length - sizeof(Ip4Header));
  p->set_network_header(0, sizeof(Ip4Header));
  out.dst.copy_to(p->anno() + anno_offset::kDstIp);
  return p;
}

void WebGen::send(const Outgoing& out, Batch& batch) {
  Packet* p = make(out, nullptr);
  if (!p) return;
  batch.push_back(p);
  if (!batch.full()) return;
  output(0).push(batch);
  batch.clear();
}

// --- Timer: only it opens connections and recycles them

void WebGen::run_timer(Timer& timer) {
  Batch batch;
  const int64_t now = clock::steady().ns;
  const int64_t interval = Timestamp::kSecond / rate_;
  next_start_ = std::max(next_start_, now - kMostLate);
  for (; next_start_ <= now; next_start_ += interval) begin(now, batch);
  for (size_t n = waiting_count_; n > 0; --n) {
    const uint32_t index = waiting_[first_waiting_];
    if (connections_[index].due > now) break;
    first_waiting_ = first_waiting_ + 1 == waiting_.size() ? 0 : first_waiting_ + 1;
    --waiting_count_;
    look_after(index, now, batch);
  }
  if (!batch.empty()) output(0).push(batch);
  int64_t next = next_start_;
  if (waiting_count_ > 0) next = std::min(next, connections_[waiting_[first_waiting_]].due);
  timer.schedule_at(Timestamp::from_ns(std::max(next, now + kTick)));
}

void WebGen::wait(uint32_t index, int64_t due) {
  connections_[index].due = due;
  const size_t at = first_waiting_ + waiting_count_++;
  waiting_[at < waiting_.size() ? at : at - waiting_.size()] = index;
}

void WebGen::begin(int64_t now, Batch& batch) {
  for (int picks = 0; picks < kPicks && !free_.empty(); ++picks) {
    const IpAddress src = (IpAddress::from_network_order(random_.next()) & ~prefix_.mask) | prefix_.network();
    const auto port = static_cast<uint16_t>(kFirstClientPort + random_.below(kClientPorts));
    const uint32_t at = bucket(src, port);
    const uint32_t index = free_.back();
    Connection& c = connections_[index];
    std::optional<Outgoing> syn;
    {
      const std::lock_guard lock(stripe(at).mutex);
      if (find(at, src, port) != kNone) continue;
      c = Connection();
      c.src = src;
      c.port = port;
      c.page = static_cast<uint16_t>(random_.below(kDirectories * kClasses * kFiles));
      c.first = c.acked = random_.next();
      c.state = Connection::kConnecting;
      c.active_at = now;
      c.next = buckets_[at];
      buckets_[at] = index;
      syn = repeat(c);
    }
    free_.pop_back();
    wait(index, now + kSilence);
    counts_.add(kInitiated, 1);
    send(*syn, batch);
    return;
  }
  counts_.add(kSkipped, 1);
}

void WebGen::look_after(uint32_t index, int64_t now, Batch& batch) {
  Connection& c = connections_[index];
  std::optional<Outgoing> again;
  {
    const uint32_t at = bucket(c.src, c.port);
    const std::lock_guard lock(stripe(at).mutex);
    const bool silent = now - c.active_at >= kSilence;
    if (silent && c.state != Connection::kClosed && c.silences == kMostSilences) close(c, kTimeouts);
    if (c.state == Connection::kClosed) {
      unlink(index);
      free_.push_back(index);
      return;
    }
    if (silent) {
      ++c.silences;
      c.active_at = now;
      again = repeat(c);
    }
  }
  wait(index, now + kSilence);
  if (again) send(*again, batch);
}

/// The stripe must be locked.
void WebGen::unlink(uint32_t index) {
  const Connection& c = connections_[index];
  uint32_t* at = &buckets_[bucket(c.src, c.port)];
  while (*at != index) at = &connections_[*at].next;
  *at = c.next;
}

void WebGen::report(Timer& timer) {
  chatter("{}: {} initiated, {} completed, {} timed out, {} reset", declaration(), counts_.sum(kInitiated),
          counts_.sum(kCompleted), counts_.sum(kTimeouts), counts_.sum(kResets));
  timer.reschedule_after(report_.timestamp());
}

void WebGen::add_handlers(Handlers& handlers) {
  const std::pair<const char*, Count> kReads[] = {{"initiated", kInitiated},
                                                  {"completed", kCompleted},
                                                  {"timeouts", kTimeouts},
                                                  {"resets", kResets},
                                                  {"skipped", kSkipped}};
  for (const auto& [name, count] : kReads)
    handlers.read(name, [this, count = count] { return std::to_string(counts_.sum(count)); });
  handlers.button("reset_counts", [this] { counts_.reset(); });
}

}  // namespace headrace
