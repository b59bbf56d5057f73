#include "elements/ip/reassembler.hh"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "headrace/headers.hh"
#include "headrace/packet_pool.hh"

namespace headrace {

enum Reassembler::Reason : int { kBadFragment, kTimedOut, kNoMemory, kNoBuffer, kOverlap, kDuplicate, kTiny };

namespace {

/// What keeping a fragment costs beside its data.
constexpr uint32_t kOverhead = 40;

}  // namespace

Reassembler::Reassembler() : seed_(std::random_device()()) {}

Reassembler::~Reassembler() {
  for (Bucket& bucket : buckets_)
    for (const auto& datagram : bucket.datagrams)
      for (const Fragment& fragment : datagram->fragments) fragment.packet->kill();
}

Status Reassembler::configure(Args& args) {
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

Status Reassembler::initialize(Errors&) {
  timer_.initialize();
  timer_.schedule_after(Timestamp::from_sec(timeout_));
  return {};
}

/// Packets that come later find what is too old by their timestamps, which in a capture are of another time; this is
/// for when none come.
void Reassembler::run_timer(Timer& timer) {
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

void Reassembler::take_state(Element& old, Errors&) {
  auto& before = static_cast<Reassembler&>(old);
  std::swap(seed_, before.seed_);
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i].datagrams.swap(before.buckets_[i].datagrams);
  memory_ = before.memory_.exchange(memory_);
  kept_ = before.kept_.exchange(kept_);
}

// --- Datagrams

bool Reassembler::Datagram::overlaps(Chunk chunk) const {
  for (const Chunk& c : chunks)
    if (chunk.begin < c.end && c.begin < chunk.end) return true;
  return false;
}

void Reassembler::Datagram::cover(Chunk chunk) {
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

void Reassembler::Datagram::add(const Fragment& fragment, bool last) {
  const Chunk chunk{fragment.begin, fragment.begin + fragment.length};
  has_last |= last;
  end = std::max(end, chunk.end);
  longest = std::max(longest, fragment.packet->network_length());
  cover(chunk);
  fragments.push_back(fragment);
}

bool Reassembler::Datagram::complete() const {
  return has_last && chunks.size() == 1 && chunks[0].begin == 0 && chunks[0].end == end;
}

/// The one with offset 0, or null.
const Reassembler::Fragment* Reassembler::Datagram::first() const {
  for (const Fragment& f : fragments)
    if (f.begin == 0) return &f;
  return nullptr;
}

uint32_t Reassembler::Datagram::memory() const {
  uint32_t sum = worthless ? kOverhead : 0;
  for (const Fragment& f : fragments) sum += kOverhead + static_cast<uint32_t>(f.length);
  return sum;
}

Packet* Reassembler::assemble(Datagram& datagram) {
  const Fragment* first = datagram.first();
  const Fragment& model = first ? *first : datagram.fragments[0];
  const Part part{datagram.chunks[0].begin, datagram.end - datagram.chunks[0].begin, datagram.complete(),
                  datagram.has_last};
  const int front = first ? std::max(model.packet->network_header_offset(), 0) : 0;
  const int length = header_length(model, part);
  const bool too_long = length + datagram.end > most_bytes();
  Packet* q = too_long ? nullptr : Packet::make(static_cast<uint32_t>(front + length + part.length));
  if (!q) {
    count_drops(1, too_long ? kBadFragment : kNoBuffer);
  } else {
    q->copy_annotations(*model.packet);
    q->set_network_header(front, length);
    if (front > 0) {
      std::memcpy(q->data(), model.packet->data(), static_cast<size_t>(front));
      if (model.packet->has_mac_header() && model.packet->mac_header_offset() >= 0)
        q->set_mac_header(model.packet->mac_header_offset());
    }
    if (!part.whole) std::memset(q->transport_header(), 0, static_cast<size_t>(part.length));
    for (const Fragment& f : datagram.fragments)
      std::memcpy(q->transport_header() + f.begin - part.begin, f.data(), static_cast<size_t>(f.length));
    write_header(q->network_header(), length, model, part);
    q->set_timestamp(datagram.fragments.back().packet->timestamp());
    if (mtu_annotation_ >= 0) q->set_anno_u16(mtu_annotation_, static_cast<uint16_t>(datagram.longest));
  }
  for (const Fragment& f : datagram.fragments) f.packet->kill();
  datagram.fragments.clear();
  return q;
}

// --- Fragments

Reassembler::Bucket& Reassembler::bucket_of(const Key& key) {
  // Seeded, so that an attacker cannot send fragments that all fall into one bucket.
  uint64_t hash = seed_;
  for (size_t i = 0; i < key.size(); i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, key.data() + i, sizeof word);
    hash = (hash ^ hash >> 32 ^ word) * 0x9e3779b97f4a7c15;
  }
  return buckets_[hash >> 56];
}

void Reassembler::push(int port, Batch& batch) {
  // Fragments are rare: without one, packets go on as they came.
  Place place;
  const bool whole =
      std::all_of(batch.begin(), batch.end(), [&](const Packet* p) { return look(*p, place) == Kind::kWhole; });
  if (whole)
    output(0).push(batch);
  else
    SimpleElement::push(port, batch);
}

Packet* Reassembler::act(Packet* p, Emitter& emit) {
  Place place;
  const Kind kind = look(*p, place);
  if (kind == Kind::kWhole) return p;

  counts_.add(kSeen, 1);
  if (kind != Kind::kFragment) {
    counts_.add(kBad, 1);
    drop(p, kind == Kind::kTiny ? kTiny : kBadFragment);
    return nullptr;
  }
  p->take(static_cast<uint32_t>(p->network_length() - place.header - place.length));
  if (!p->timestamp()) p->set_timestamp(clock::now());
  const int64_t now = p->timestamp().sec();
  if (place.begin == 0 && place.last) {
    // An atomic fragment is a packet by itself, whatever else has its identification (RFC 6946).
    Datagram whole;
    whole.key = place.key;
    whole.add({p, 0, place.length, place.header}, true);
    Packet* q = assemble(whole);
    counts_.add(kGood, q != nullptr);
    return q;
  }

  int64_t next = next_reap_.load(std::memory_order_relaxed);
  if (now >= next && next_reap_.compare_exchange_strong(next, now + (timeout_ + 2) / 3, std::memory_order_relaxed))
    reap([&](const Datagram& d) { return now - d.last_sec > timeout_; }, kTimedOut, emit);
  if (is_full(high_memory_, most_kept_)) make_room(now, emit);

  const std::unique_ptr<Datagram> whole = keep(p, place, now);
  if (!whole) return nullptr;
  Packet* q = assemble(*whole);
  counts_.add(kGood, q != nullptr);
  return q;
}

std::unique_ptr<Reassembler::Datagram> Reassembler::keep(Packet* p, const Place& place, int64_t now) {
  const Chunk chunk{place.begin, place.begin + place.length};
  const bool last = place.last;
  Bucket& bucket = bucket_of(place.key);
  const std::lock_guard lock(bucket.mutex);
  auto found = std::find_if(bucket.datagrams.begin(), bucket.datagrams.end(),
                            [&](const auto& datagram) { return datagram->key == place.key; });
  if (found == bucket.datagrams.end()) {
    auto fresh = std::make_unique<Datagram>();
    fresh->key = place.key;
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
             std::memcmp(f.data(), p->network_header() + place.header, static_cast<size_t>(f.length)) == 0;
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
  datagram.last_sec = now;
  datagram.last_steady = clock::steady().ns;
  datagram.add({p, place.begin, place.length, place.header}, last);
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

void Reassembler::spoil(Datagram& datagram) {
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

bool Reassembler::is_full(uint32_t memory, uint32_t kept) const {
  return memory_.load(std::memory_order_relaxed) > memory || kept_.load(std::memory_order_relaxed) > kept;
}

void Reassembler::make_room(int64_t now, Emitter& emit) {
  const uint32_t memory = high_memory_ / 4 * 3, kept = most_kept_ / 4 * 3;
  for (const int64_t quiet : {10, 5, -1})
    if (is_full(memory, kept))
      reap([&](const Datagram& d) { return is_full(memory, kept) && now - d.last_sec > quiet; }, kNoMemory, emit);
}

void Reassembler::reap(const Condition& condition, Reason reason, Emitter& emit) {
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

std::string Reassembler::dump() {
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
          std::memcpy(&port, first->data() + 2 * i, 2);
          ports[i] = port;
        }
      text += " " + name_of(datagram->key, ports);
      for (const Chunk& chunk : datagram->chunks) text += fmt::format(" ({},{})", chunk.begin, chunk.end);
      text += '\n';
    }
  }
  return text;
}

void Reassembler::add_handlers(Handlers& handlers) {
  handlers.read("dump", [this] { return dump(); });
}

}  // namespace headrace
