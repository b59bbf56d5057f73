#include "elements/icmp/ICMPPingSource.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "elements/icmp/echo_request.hh"
#include "elements/ip/address_values.hh"
#include "headrace/chatter.hh"
#include "headrace/router.hh"

namespace headrace {

enum ICMPPingSource::Reason : int { kNoReply, kNoBuffer };

namespace {

constexpr uint8_t kRequestTtl = 200;
constexpr uint32_t kHeaders = sizeof(Ip4Header) + sizeof(IcmpHeader);

std::string seconds(int64_t ns) { return fmt::format("{}.{:06}", ns / 1000000000, ns / 1000 % 1000000); }
std::string milliseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000000, ns / 1000 % 1000); }

}  // namespace

ICMPPingSource::~ICMPPingSource() {
  if (!replies_ || !verbose_) return;
  const std::string text = summary();
  chatter("{}: {}", declaration(), text.substr(0, text.size() - 1));
}

Status ICMPPingSource::configure(Args& args) {
  std::optional<Interval> interval;
  if (!args.read_mp("SRC", src_)
           .read_mp("DST", dst_)
           .read("INTERVAL", interval)
           .read("IDENTIFIER", identifier_)
           .read("LIMIT", limit_)
           .read("STOP", stop_)
           .read("DATA", data_)
           .read("ACTIVE", active_)
           .read("MIRROR", mirror_)
           .read("VERBOSE", verbose_)
           .complete())
    return Status::failed();
  if (data_.size() > Packet::kMaxLength - kHeaders || data_.size() > 65535 - kHeaders)
    return args.errors().error("DATA too long");
  if (output_is_pull(0) && interval) args.errors().warning("element is pull, INTERVAL parameter will be ignored");
  if (output_is_pull(0) && mirror_) return args.errors().error("MIRROR invalid on pull element");
  interval_ = interval.value_or(interval_);
  count_reasons({"not a reply to a ping sent", "no buffer"});
  return {};
}

Status ICMPPingSource::initialize(Errors&) {
  if (ninputs() > 0) replies_ = std::make_unique<Replies>();
  if (!output_is_push(0)) return {};
  timer_.initialize();
  if (active_ && limit_ != 0) timer_.schedule_after(interval_.timestamp());
  return {};
}

void ICMPPingSource::take_state(Element& old, Errors&) {
  auto& before = static_cast<ICMPPingSource&>(old);
  if (dst_ != before.dst_ || identifier_ != before.identifier_ || !replies_ != !before.replies_) return;
  count_ = before.count_.load();
  replies_ = std::move(before.replies_);
}

Packet* ICMPPingSource::make_request(Packet* reply) {
  const bool fresh = !reply;
  Packet* p = fresh ? Packet::make(kHeaders + static_cast<uint32_t>(data_.size())) : reply;
  if (!p) {
    made_.add(1, 0);
    count_drops(1, kNoBuffer);
    return nullptr;
  }
  const int number = count_.fetch_add(1, std::memory_order_relaxed);
  const auto sequence = static_cast<uint16_t>(number % 0xffff + 1);
  if (fresh && !data_.empty()) std::memcpy(p->data() + kHeaders, data_.data(), data_.size());
  if (fresh) made_.add(1, p->length());
  write_echo_request(*p, src_, dst_, kRequestTtl, identifier_, sequence);
  p->set_timestamp(clock::now());
  if (replies_) replies_->sent[sequence].store(p->timestamp().ns, std::memory_order_relaxed);
  return p;
}

void ICMPPingSource::run_timer(Timer& timer) {
  if (!active_) return;
  if (!more()) {
    if (stop_) router().request_stop();
    return;
  }
  if (Packet* p = make_request()) output(0).push(p);
  timer.reschedule_after(interval_.timestamp());
}

int ICMPPingSource::pull(int, Batch& batch, int max) {
  int n = 0;
  while (active_ && n < max && more()) {
    Packet* p = make_request();
    if (!p) break;
    batch.push_back(p);
    ++n;
  }
  if (n == 0 && !more() && std::exchange(stop_, false)) router().request_stop();
  // The puller sleeps until a handler wakes it; without a buffer it retries.
  if (n == 0 && nonempty_.active() && !(active_ && more())) nonempty_.sleep();
  return n;
}

Notifier* ICMPPingSource::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty && output_is_pull(0) ? &nonempty_ : nullptr;
}

void ICMPPingSource::push(int, Batch& batch) {
  Batch out;
  for (Packet* p : batch) receive(p, out);
  if (!out.empty()) output(0).push(out);
}

void ICMPPingSource::receive(Packet* p, Batch& out) {
  const Ip4Header* ip = ip4_header(*p);
  const bool can_be = ip && ip->protocol == ip_protocol::kIcmp && !ip->is_fragment() &&
                      std::min<int>(p->network_length(), ip->total_length) >=
                          ip->header_length() + static_cast<int>(sizeof(IcmpHeader));
  const IcmpHeader* icmp = can_be ? reinterpret_cast<const IcmpHeader*>(ip->bytes() + ip->header_length()) : nullptr;
  const uint32_t numbers = icmp ? uint32_t{icmp->rest} : 0;
  const auto sequence = static_cast<uint16_t>(numbers);
  if (!icmp || icmp->type != IcmpHeader::kEchoReply || numbers >> 16 != identifier_ ||
      replies_->sent[sequence].load(std::memory_order_relaxed) == Replies::kNever) {
    drop(p, kNoReply);
    return;
  }
  note_reply(*p, *ip, sequence);
  if (!mirror_) {
    taken_.add(1, p->length());
    p->kill();
    return;
  }
  // The request carries what the reply did, without its options and the padding of its link.
  const int length = ip->total_length;
  if (length < p->network_length()) p->take(static_cast<uint32_t>(p->network_length() - length));
  p->pull(static_cast<uint32_t>(p->network_header_offset() + ip->header_length()) - sizeof(Ip4Header));
  out.push_back(make_request(p));
}

void ICMPPingSource::note_reply(const Packet& p, const Ip4Header& ip, uint16_t sequence) {
  Replies& r = *replies_;
  int64_t sent = r.sent[sequence].load(std::memory_order_relaxed);
  if (sent < 0) {
    r.duplicates += 1;
    sent = -sent;
  }
  const Timestamp at = p.timestamp() ? p.timestamp() : clock::now();
  const int64_t took = std::max<int64_t>(at.ns - sent, 0);
  r.fastest = r.received.get() ? std::min(r.fastest.get(), took) : took;
  r.slowest = std::max(r.slowest.get(), took);
  r.sum += took;
  r.square_sum += static_cast<double>(took) * static_cast<double>(took);
  r.received += 1;
  r.sent[sequence].store(-sent, std::memory_order_relaxed);
  if (verbose_)
    chatter("{}: {} bytes from {}: icmp_seq={} ttl={} time={} ms", declaration(),
            ip.total_length - ip.header_length() - static_cast<int>(sizeof(IcmpHeader)), IpAddress(ip.src), sequence,
            ip.ttl, milliseconds(took));
}

std::string ICMPPingSource::summary() const {
  const Replies& r = *replies_;
  const auto sent = static_cast<uint64_t>(count_.load());
  const uint64_t duplicates = r.duplicates, received = r.received.get() - duplicates;
  std::string text = fmt::format("{} packets transmitted, {} received", sent, received);
  if (duplicates) text += fmt::format(", +{} duplicates", duplicates);
  if (sent) text += fmt::format(", {}% packet loss", received < sent ? (sent - received) * 100 / sent : 0);
  text += '\n';
  if (const uint64_t n = r.received) {
    const auto mean = static_cast<double>(r.sum.get()) / static_cast<double>(n);
    const double variance = r.square_sum.get() / static_cast<double>(n) - mean * mean;
    text += fmt::format("rtt min/avg/max/mdev = {}/{}/{}/{}\n", milliseconds(r.fastest),
                        milliseconds(static_cast<int64_t>(mean)), milliseconds(r.slowest),
                        milliseconds(static_cast<int64_t>(std::sqrt(std::max(variance, 0.0)))));
  }
  return text;
}

void ICMPPingSource::start() {
  if (!active_ || !more()) return;
  if (!output_is_push(0))
    nonempty_.wake();
  else if (!timer_.scheduled())
    timer_.schedule_after(interval_.timestamp());
}

void ICMPPingSource::reset() {
  count_ = 0;
  if (replies_) replies_ = std::make_unique<Replies>();
  start();
}

void ICMPPingSource::add_handlers(Handlers& handlers) {
  handlers.value("active", active_, [this] {
    if (!output_is_push(0)) {
      start();
      return;
    }
    timer_.unschedule();
    if (active_) timer_.schedule_after({});
  });
  handlers.value("src", src_, {}, Handler::kCalm);
  handlers.value("dst", dst_, {}, Handler::kCalm);
  handlers.read("count", [this] { return std::to_string(count_.load()); });
  write_value(handlers, "limit", limit_, [this] { start(); });
  write_value(handlers, "interval", interval_);
  handlers.button("reset_counts", [this] { reset(); });
  if (ninputs() == 0) return;
  handlers.read("summary", [this] { return summary(); });
  handlers.read("rtt_min", [this] { return seconds(replies_->fastest); });
  handlers.read("rtt_max", [this] { return seconds(replies_->slowest); });
  handlers.read("rtt_avg", [this] {
    const auto n = static_cast<int64_t>(replies_->received.get());
    return seconds(n ? replies_->sum.get() / n : 0);
  });
}

}  // namespace headrace
