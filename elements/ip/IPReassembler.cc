#include "elements/ip/IPReassembler.hh"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>

#include "headrace/checksum.hh"

namespace headrace {

enum IPReassembler::Reason : int { kBadFragment, kTimedOut, kNoMemory, kNoBuffer };

namespace {

constexpr int64_t kQuietSeconds = 30;
constexpr int64_t kReapInterval = 10;
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
  if (!args.read("HIMEM", high_memory_).read("MAX_MTU_ANNO", annotation).complete()) return Status::failed();
  if (annotation) mtu_annotation_ = *annotation;
  count_reasons({"bad fragment", "not complete in time", "no room for more fragments", "no buffer"});
  return {};
}

const uint8_t* IPReassembler::data_of(const Fragment& f) {
  const Ip4Header& ip = *ip4_header(*f.packet);
  return ip.bytes() + ip.header_length();
}

// --- Datagrams

bool IPReassembler::Datagram::is_part(const Ip4Header& ip) const {
  return id == ip.id && protocol == ip.protocol && src == ip.src && dst == ip.dst;
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

/// The last one that arrived for offset 0, or null.
const IPReassembler::Fragment* IPReassembler::Datagram::first() const {
  for (auto f = fragments.rbegin(); f != fragments.rend(); ++f)
    if (f->begin == 0) return &*f;
  return nullptr;
}

uint32_t IPReassembler::Datagram::memory() const {
  uint32_t sum = 0;
  for (const Fragment& f : fragments) sum += kOverhead + static_cast<uint32_t>(f.length);
  return sum;
}

Packet* IPReassembler::assemble(Datagram& datagram) {
  const Fragment* first = datagram.first();
  const Packet& model = first ? *first->packet : *datagram.fragments[0].packet;
  const Ip4Header& model_ip = *ip4_header(model);
  const int front = first ? std::max(model.network_header_offset(), 0) : 0;
  const int header_length = first ? model_ip.header_length() : 20;
  const bool too_long = header_length + datagram.end > 65535;
  Packet* q = too_long ? nullptr : Packet::make(static_cast<uint32_t>(front + header_length + datagram.end));
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
    if (!datagram.complete()) std::memset(q->transport_header(), 0, static_cast<size_t>(datagram.end));
    for (const Fragment& f : datagram.fragments)
      std::memcpy(q->transport_header() + f.begin, data_of(f), static_cast<size_t>(f.length));

    auto& ip = *reinterpret_cast<Ip4Header*>(q->network_header());
    const int flags = model_ip.fragment & ~(ip4::kOffsetMask | ip4::kMoreFragments);
    ip.version_ihl = static_cast<uint8_t>(0x40 | header_length >> 2);
    ip.total_length = static_cast<uint16_t>(header_length + datagram.end);
    ip.fragment = static_cast<uint16_t>(flags | (datagram.has_last ? 0 : ip4::kMoreFragments));
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
  // Seeded, so that nobody can send fragments that all fall into one bucket.
  const uint64_t addresses = uint64_t{IpAddress(ip.src).network_order()} << 32 | IpAddress(ip.dst).network_order();
  uint64_t hash = (addresses ^ seed_) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 32 ^ uint64_t{ip.id} << 8 ^ ip.protocol ^ uint64_t{seed_} << 20) * 0x9e3779b97f4a7c15;
  return buckets_[hash >> 56];
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
  p->take(static_cast<uint32_t>(p->network_length() - header_length - length));
  if (!p->timestamp()) p->set_timestamp(clock::now());
  const int64_t now = p->timestamp().sec();

  int64_t next = next_reap_.load(std::memory_order_relaxed);
  if (now >= next && next_reap_.compare_exchange_strong(next, now + kReapInterval, std::memory_order_relaxed))
    reap(now, kQuietSeconds, 0, kTimedOut, emit);
  const uint32_t low_memory = high_memory_ / 4 * 3;
  if (memory_.load(std::memory_order_relaxed) > high_memory_)
    for (const int64_t quiet : {10, 5, -1})
      if (memory_.load(std::memory_order_relaxed) > low_memory) reap(now, quiet, low_memory, kNoMemory, emit);

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
  // Fragments must agree on where the packet ends.
  if (datagram.has_last ? chunk.end > datagram.end || (last && chunk.end != datagram.end)
                        : last && chunk.end < datagram.end) {
    counts_.add(kBad, 1);
    drop(p, kBadFragment);
    return nullptr;
  }
  datagram.has_last |= last;
  datagram.end = std::max(datagram.end, chunk.end);
  datagram.longest = std::max(datagram.longest, p->network_length());
  datagram.last_sec = now;
  datagram.cover(chunk);
  datagram.fragments.push_back({p, chunk.begin, chunk.end - chunk.begin});
  memory_.fetch_add(kOverhead + static_cast<uint32_t>(chunk.end - chunk.begin), std::memory_order_relaxed);
  if (!datagram.complete()) return nullptr;

  std::unique_ptr<Datagram> whole = std::move(*found);
  *found = std::move(bucket.datagrams.back());
  bucket.datagrams.pop_back();
  memory_.fetch_sub(whole->memory(), std::memory_order_relaxed);
  return whole;
}

void IPReassembler::reap(int64_t now, int64_t quiet, uint32_t memory, Reason reason, Emitter& emit) {
  Datagrams reaped;
  for (Bucket& bucket : buckets_) {
    {
      const std::lock_guard lock(bucket.mutex);
      for (size_t i = 0; i < bucket.datagrams.size();) {
        std::unique_ptr<Datagram>& datagram = bucket.datagrams[i];
        if (now - datagram->last_sec <= quiet || memory_.load(std::memory_order_relaxed) <= memory) {
          ++i;
          continue;
        }
        memory_.fetch_sub(datagram->memory(), std::memory_order_relaxed);
        reaped.push_back(std::move(datagram));
        bucket.datagrams.erase(bucket.datagrams.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (const auto& datagram : reaped) {
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
