#include "elements/ip/IPReassembler.hh"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "headrace/checksum.hh"
#include "headrace/headers.hh"
#include "headrace/packet_pool.hh"

namespace headrace {

enum IPReassembler::Reason : int { kBadFragment, kTimedOut, kNoMemory, kNoBuffer, kOverlap, kDuplicate, kTiny };

namespace {

/// What a first fragment of TCP must have, so that a filter sees its flags (RFC 1858, 3.1).
constexpr int kTcpWithFlags = 16;
/// What keeping a fragment costs beside its data.
constexpr uint32_t kOverhead = 40;

int data_offset(const Ip4Header& ip) { return (ip.fragment & ip4::kOffsetMask) * 8; }

}  // namespace

IPReassembler::IPReassembler() : seed_(std::random_device()()) {}

IPReassembler::~IPReassembler() {
  for (Bucket& bucket : buckets_)
    for (const auto& datagram : bucket.datagrams)
      for (const Fragment& fragment : datagram->fragments) fragment.packet->kill();
}

Status IPReassembler::configure(Args& args) {
  std::optional<AnnotationArg<2>> annotation;
  if (!args.read("HIMEM", high_memory_)
           .read("TIMEOUT", timeout_, Between{1u, 3600u})
           .read("MAX_MTU_ANNO", annotation)
           .complete())
    return Status::failed();
  if (annotation) mtu_annotation_ = *annotation;
  count_reasons({"bad fragment", "not complete in time", "no room for more fragments", "no buffer",
                 "overlapping fragments", "duplicate fragment", "tiny fragment"});
  most_kept_ = PacketPool::instance().buffers() / 8;
  return {};
}

Status IPReassembler::initialize(Errors&) {
  timer_.initialize();
  timer_.schedule_after(Timestamp::from_sec(timeout_));
  return {};
}

/// Packets that come later find what is too old by their timestamps, which in a capture are of another time; this is
/// for when none come.
void IPReassembler::run_timer(Timer& timer) {
  const int64_t now = clock::steady().ns, timeout = timeout_ * Timestamp::kSecond;
  Emitter emit(*this);
  int64_t next = now + timeout;
  reap(
      [&](const Datagram& d) {
        if (now - d.last_steady >= timeout) return true;
        next = std::min(next, d.last_steady + timeout);
        return false;
      },
      kTimedOut, emit);
  timer.schedule_after(std::max(Timestamp{next - now}, Timestamp::from_sec(1)));
}

void IPReassembler::take_state(Element& old, Errors&) {
  auto& before = static_cast<IPReassembler&>(old);
  std::swap(seed_, before.seed_);
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i].datagrams.swap(before.buckets_[i].datagrams);
  memory_ = before.memory_.exchange(memory_);
  kept_ = before.kept_.exchange(kept_);
}

const uint8_t* IPReassembler::data_of(const Fragment& f) {
  const Ip4Header& ip = *ip4_header(*f.packet);
  return ip.bytes() + ip.header_length();
}

// --- Datagrams

bool IPReassembler::Datagram::is_part(const Ip4Header& ip) const {
  return id == ip.id && protocol == ip.protocol && src == ip.src && dst == ip.dst;
}

bool IPReassembler::Datagram::overlaps(Chunk chunk) const {
  for (const Chunk& c : chunks)
    if (chunk.begin < c.end && c.begin < chunk.end) return true;
  return false;
}

void IPReassembler::Datagram::cover(Chunk chunk) {
  auto at = chunks.begin();
  while (at != chunks.end() && at->end < chunk.begin) ++at;
  auto behind = at;
  for (; behind != chunks.end() && behind->begin <= chunk.end; ++behind) {
    chunk.begin = std::min(chunk.begin, behind->begin);
    chunk.end = std::max(chunk.end, behind->end);
  }
  at = chunks.erase(at, behind);
  chunks.insert(at, chunk);
}

bool IPReassembler::Datagram::complete() const {
  return has_last && chunks.size() == 1 && chunks[0].begin == 0 && chunks[0].end == end;
}

/// The one with offset 0, or null.
const IPReassembler::Fragment* IPReassembler::Datagram::first() const {
  for (const Fragment& f : fragments)
    if (f.begin == 0) return &f;
  return nullptr;
}

uint32_t IPReassembler::Datagram::memory() const {
  uint32_t sum = worthless ? kOverhead : 0;
  for (const Fragment& f : fragments) sum += kOverhead + static_cast<uint32_t>(f.length);
  return sum;
}

Packet* IPReassembler::assemble(Datagram& datagram) {
  const Fragment* first = datagram.first();
  const Packet& model = first ? *first->packet : *datagram.fragments[0].packet;
  const Ip4Header& model_ip = *ip4_header(model);
  const int front = first ? std::max(model.network_header_offset(), 0) : 0;
  const int header_length = first ? model_ip.header_length() : 20;
  const int begin = datagram.chunks[0].begin, length = datagram.end - begin;
  const bool too_long = header_length + datagram.end > 65535;
  Packet* q = too_long ? nullptr : Packet::make(static_cast<uint32_t>(front + header_length + length));
  if (!q) {
    count_drops(1, too_long ? kBadFragment : kNoBuffer);
  } else {
    q->copy_annotations(model);
    q->set_network_header(front, header_length);
    if (front > 0) {
      std::memcpy(q->data(), model.data(), static_cast<size_t>(front));
      if (model.has_mac_header() && model.mac_header_offset() >= 0) q->set_mac_header(model.mac_header_offset());
    }
    std::memcpy(q->network_header(), model_ip.bytes(), static_cast<size_t>(header_length));
    if (!datagram.complete()) std::memset(q->transport_header(), 0, static_cast<size_t>(length));
    for (const Fragment& f : datagram.fragments)
      std::memcpy(q->transport_header() + f.begin - begin, data_of(f), static_cast<size_t>(f.length));

    auto& ip = *reinterpret_cast<Ip4Header*>(q->network_header());
    const int flags = model_ip.fragment & ~(ip4::kOffsetMask | ip4::kMoreFragments);
    ip.version_ihl = static_cast<uint8_t>(0x40 | header_length >> 2);
    ip.total_length = static_cast<uint16_t>(header_length + length);
    ip.fragment = static_cast<uint16_t>(flags | (datagram.has_last ? 0 : ip4::kMoreFragments) | begin / 8);
    set_ip_checksum(ip);
    q->set_timestamp(datagram.fragments.back().packet->timestamp());
    if (mtu_annotation_ >= 0) q->set_anno_u16(mtu_annotation_, static_cast<uint16_t>(datagram.longest));
  }
  for (const Fragment& f : datagram.fragments) f.packet->kill();
  datagram.fragments.clear();
  return q;
}

// --- Fragments

IPReassembler::Bucket& IPReassembler::bucket_of(const Ip4Header& ip) {
  // Seeded, so that an attacker cannot send fragments that all fall into one bucket.
  const uint64_t addresses = uint64_t{IpAddress(ip.src).network_order()} << 32 | IpAddress(ip.dst).network_order();
  uint64_t hash = (addresses ^ seed_) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 32 ^ uint64_t{ip.id} << 8 ^ ip.protocol ^ seed_ << 20) * 0x9e3779b97f4a7c15;
  return buckets_[hash >> 56];
}

void IPReassembler::push(int port, Batch& batch) {
  // Fragments are rare: without one, packets go on as they came.
  const bool whole = std::all_of(batch.begin(), batch.end(), [](Packet* p) {
    const Ip4Header* ip = ip4_header(*p);
    return ip && !ip->is_fragment();
  });
  if (whole)
    output(0).push(batch);
  else
    SimpleElement::push(port, batch);
}

Packet* IPReassembler::act(Packet* p, Emitter& emit) {
  const Ip4Header* ip = ip4_header(*p);
  if (ip && !ip->is_fragment()) return p;

  counts_.add(kSeen, 1);
  const int begin = ip ? data_offset(*ip) : 0;
  const int header_length = ip ? ip->header_length() : 0;
  const int length = ip ? ip->total_length - header_length : 0;
  const bool more = ip && ip->fragment & ip4::kMoreFragments;
  // No packet is longer than 65535 bytes, all fragments but the last have a multiple of 8 bytes.
  if (length <= 0 || header_length + length > p->network_length() || header_length + begin + length > 65535 ||
      (more && length % 8 != 0)) {
    counts_.add(kBad, 1);
    drop(p, kBadFragment);
    return nullptr;
  }
  if (ip->protocol == ip_protocol::kTcp && (begin == 8 || (begin == 0 && length < kTcpWithFlags))) {
    counts_.add(kBad, 1);
    drop(p, kTiny);
    return nullptr;
  }
  p->take(static_cast<uint32_t>(p->network_length() - header_length - length));
  if (!p->timestamp()) p->set_timestamp(clock::now());
  const int64_t now = p->timestamp().sec();

  int64_t next = next_reap_.load(std::memory_order_relaxed);
  if (now >= next && next_reap_.compare_exchange_strong(next, now + (timeout_ + 2) / 3, std::memory_order_relaxed))
    reap([&](const Datagram& d) { return now - d.last_sec > timeout_; }, kTimedOut, emit);
  if (is_full(high_memory_, most_kept_)) make_room(now, emit);

  const std::unique_ptr<Datagram> whole = keep(p, *ip, {begin, begin + length}, now);
  if (!whole) return nullptr;
  Packet* q = assemble(*whole);
  counts_.add(kGood, q != nullptr);
  return q;
}

std::unique_ptr<IPReassembler::Datagram> IPReassembler::keep(Packet* p, const Ip4Header& ip, Chunk chunk, int64_t now) {
  const bool last = !(ip.fragment & ip4::kMoreFragments);
  Bucket& bucket = bucket_of(ip);
  const std::lock_guard lock(bucket.mutex);
  auto found = std::find_if(bucket.datagrams.begin(), bucket.datagrams.end(),
                            [&](const auto& datagram) { return datagram->is_part(ip); });
  if (found == bucket.datagrams.end()) {
    auto fresh = std::make_unique<Datagram>();
    fresh->src = ip.src;
    fresh->dst = ip.dst;
    fresh->id = ip.id;
    fresh->protocol = ip.protocol;
    bucket.datagrams.push_back(std::move(fresh));
    found = std::prev(bucket.datagrams.end());
  }
  Datagram& datagram = **found;
  if (datagram.worthless) {
    counts_.add(kBad, 1);
    drop(p, kOverlap);
    return nullptr;
  }
  // Fragments must agree on where the packet ends.
  if (datagram.has_last ? chunk.end > datagram.end || (last && chunk.end != datagram.end)
                        : last && chunk.end < datagram.end) {
    counts_.add(kBad, 1);
    drop(p, kBadFragment);
    return nullptr;
  }
  if (datagram.overlaps(chunk)) {
    const auto same = [&](const Fragment& f) {
      return f.begin == chunk.begin && f.length == chunk.end - chunk.begin &&
             std::memcmp(data_of(f), ip.bytes() + ip.header_length(), static_cast<size_t>(f.length)) == 0;
    };
    if (std::any_of(datagram.fragments.begin(), datagram.fragments.end(), same)) {
      drop(p, kDuplicate);
    } else {
      counts_.add(kBad, 1);
      drop(p, kOverlap);
      spoil(datagram);
    }
    return nullptr;
  }
  datagram.has_last |= last;
  datagram.end = std::max(datagram.end, chunk.end);
  datagram.longest = std::max(datagram.longest, p->network_length());
  datagram.last_sec = now;
  datagram.last_steady = clock::steady().ns;
  datagram.cover(chunk);
  datagram.fragments.push_back({p, chunk.begin, chunk.end - chunk.begin});
  memory_.fetch_add(kOverhead + static_cast<uint32_t>(chunk.end - chunk.begin), std::memory_order_relaxed);
  kept_.fetch_add(1, std::memory_order_relaxed);
  if (!datagram.complete()) return nullptr;

  std::unique_ptr<Datagram> whole = std::move(*found);
  *found = std::move(bucket.datagrams.back());
  bucket.datagrams.pop_back();
  memory_.fetch_sub(whole->memory(), std::memory_order_relaxed);
  kept_.fetch_sub(static_cast<uint32_t>(whole->fragments.size()), std::memory_order_relaxed);
  return whole;
}

void IPReassembler::spoil(Datagram& datagram) {
  const uint32_t before = datagram.memory();
  const auto fragments = static_cast<uint32_t>(datagram.fragments.size());
  count_drops(fragments, kOverlap);
  for (const Fragment& f : datagram.fragments) f.packet->kill();
  datagram.fragments.clear();
  datagram.chunks.clear();
  datagram.worthless = true;
  memory_.fetch_add(datagram.memory() - before, std::memory_order_relaxed);
  kept_.fetch_sub(fragments, std::memory_order_relaxed);
  counts_.add(kFailed, 1);
}

bool IPReassembler::is_full(uint32_t memory, uint32_t kept) const {
  return memory_.load(std::memory_order_relaxed) > memory || kept_.load(std::memory_order_relaxed) > kept;
}

void IPReassembler::make_room(int64_t now, Emitter& emit) {
  const uint32_t memory = high_memory_ / 4 * 3, kept = most_kept_ / 4 * 3;
  for (const int64_t quiet : {10, 5, -1})
    if (is_full(memory, kept))
      reap([&](const Datagram& d) { return is_full(memory, kept) && now - d.last_sec > quiet; }, kNoMemory, emit);
}

void IPReassembler::reap(const Condition& condition, Reason reason, Emitter& emit) {
  Datagrams reaped;
  for (Bucket& bucket : buckets_) {
    {
      const std::lock_guard lock(bucket.mutex);
      for (size_t i = 0; i < bucket.datagrams.size();) {
        std::unique_ptr<Datagram>& datagram = bucket.datagrams[i];
        if (!condition(*datagram)) {
          ++i;
          continue;
        }
        memory_.fetch_sub(datagram->memory(), std::memory_order_relaxed);
        kept_.fetch_sub(static_cast<uint32_t>(datagram->fragments.size()), std::memory_order_relaxed);
        reaped.push_back(std::move(datagram));
        bucket.datagrams.erase(bucket.datagrams.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (const auto& datagram : reaped) {
      if (datagram->worthless) continue;
      counts_.add(kFailed, 1);
      if (noutputs() < 2) {
        count_drops(datagram->fragments.size(), reason);
        for (const Fragment& f : datagram->fragments) f.packet->kill();
      } else if (Packet* q = assemble(*datagram)) {
        emit(1, q);
      }
    }
    reaped.clear();
  }
}

// --- Handlers

std::string IPReassembler::dump() {
  std::string text = fmt::format(
      "frags seen total:    {}\n"
      "good reassemblies:   {}\n"
      "failed reassemblies: {}\n"
      "bad fragments seen:  {}\n"
      "cached chunk data:\n",
      counts_.sum(kSeen), counts_.sum(kGood), counts_.sum(kFailed), counts_.sum(kBad));
  for (Bucket& bucket : buckets_) {
    const std::lock_guard lock(bucket.mutex);
    for (const auto& datagram : bucket.datagrams) {
      uint16_t ports[2] = {0, 0};
      if (const Fragment* first = datagram->first(); first && first->length >= 4)
        for (int i = 0; i < 2; ++i) {
          Net16 port;
          std::memcpy(&port, data_of(*first) + 2 * i, 2);
          ports[i] = port;
        }
      text += fmt::format(" ({}, {}, {}, {}) {}", datagram->src, ports[0], datagram->dst, ports[1], datagram->id);
      for (const Chunk& chunk : datagram->chunks) text += fmt::format(" ({},{})", chunk.begin, chunk.end);
      text += '\n';
    }
  }
  return text;
}

void IPReassembler::add_handlers(Handlers& handlers) {
  handlers.read("dump", [this] { return dump(); });
}

}  // namespace headrace
