#include "headrace/packet_pool.hh"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/out_of_memory.hh"
#include "headrace/single_writer.hh"

namespace headrace {

namespace {
constexpr uint32_t kBulk = 512;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
constexpr int kMostNodes = 64;

/// Lets memory come from a node, as long as it has any.
void prefer_node(uint8_t* begin, uint8_t* end, int node) {
  if (node < 0 || node >= kMostNodes || begin >= end) return;
  const unsigned long wanted = 1UL << node;
  // Where this is refused, memory comes from the node of the thread that first writes to it.
  (void)syscall(SYS_mbind, begin, end - begin, MPOL_PREFERRED, &wanted, kMostNodes, 0);
}

/// Makes the kernel provide the pages of [begin, end). What is in them stays; other threads may use them.
void provide_pages(uint8_t* begin, uint8_t* end) {
  if (begin >= end || madvise(begin, static_cast<size_t>(end - begin), MADV_POPULATE_WRITE) == 0) return;
  // Kernels before 5.14.
  for (uint8_t* at = begin; at < end; at += kPage) __atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
}

}  // namespace

/// A circular buffer that only its thread touches. Others may ask how much is in it.
struct alignas(64) PacketPool::Cache {
  static constexpr uint32_t kSlots = 32768;
  SingleWriter<uint32_t> head;
  SingleWriter<uint32_t> tail;
  uint32_t keep = 2048;  // above keep + 2 * kBulk buffers go back to the pool
  Packet* slots[kSlots] = {};
  std::vector<uint64_t> present;  // for sort(): a bit for each buffer of the pool, 0 between calls

  uint32_t size() const { return tail - head; }
  Packet* pop() {
    Packet* p;
    pop(&p, 1);
    return p;
  }
  void pop(Packet** out, uint32_t n) {
    uint32_t at = head;
    for (uint32_t i = 0; i < n; ++i) out[i] = slots[at++ % kSlots];
    head = at;
  }
  void push(Packet* const* in, uint32_t n) {
    uint32_t at = tail;
    for (uint32_t i = 0; i < n; ++i) slots[at++ % kSlots] = in[i];
    tail = at;
  }
};

PacketPool& PacketPool::instance() {
  // Never destroyed: packets may outlive every static object.
  static PacketPool* pool = new PacketPool;
  return *pool;
}

PacketPool::~PacketPool() {
  for (auto& cache : caches_) delete cache.load();
  if (base_ != nullptr) munmap(base_, bytes_);
}

void PacketPool::map() {
  if (parts_.empty()) set_nodes({-1});
  const size_t bytes = (kLead + size_t{wanted_} * kStride + kHugePage - 1) & ~(kHugePage - 1);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  page_kind_ = "2 MiB huge pages";
  if (p == MAP_FAILED) {
    page_kind_ = "transparent huge pages";
    p = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw OutOfMemory("packet buffers", bytes);
    p = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(p) + kHugePage - 1) & ~(kHugePage - 1));
    madvise(p, bytes, MADV_HUGEPAGE);
  }
  base_ = static_cast<uint8_t*>(p);
  bytes_ = bytes;
  // Each part is as large as its workers are many.
  uint32_t first = 0, workers = 0;
  for (Part& part : parts_) {
    workers += static_cast<uint32_t>(part.workers);
    part.first = first;
    first = static_cast<uint32_t>(uint64_t{wanted_} * workers / places_.size());
    part.buffers = first - part.first;
    if (parts_.size() > 1) prefer_node(page_of(part.first), page_of(first), part.node);
    part.free = std::make_unique<Ring<Packet*>>(part.buffers);
    part.used = std::make_unique<std::atomic<uint32_t>>(0);
  }
}

uint32_t PacketPool::take_unused(Part& part, Packet** out, uint32_t n) {
  uint32_t used = part.used->load(std::memory_order_relaxed), k;
  do {
    k = std::min(n, part.buffers - used);
    if (k == 0) return 0;
  } while (!part.used->compare_exchange_weak(used, used + k, std::memory_order_relaxed));
  for (uint32_t i = 0; i < k; ++i) out[i] = new (buffer_at(size_t{part.first} + used + i)) Packet;
  return k;
}

Packet* PacketPool::buffer_at(size_t number) const {
  return reinterpret_cast<Packet*>(base_ + kLead + number * kStride + kDriverRoom);
}

uint8_t* PacketPool::page_of(uint32_t buffer) const {
  return base_ + (buffer == wanted_ ? bytes_ : size_t{buffer} * kStride / kHugePage * kHugePage);
}

void PacketPool::set_nodes(const std::vector<int>& nodes) {
  if (base_ != nullptr) return;
  parts_.clear();
  places_.clear();
  for (const int node : nodes) {
    auto part = std::find_if(parts_.begin(), parts_.end(), [node](const Part& p) { return p.node == node; });
    if (part == parts_.end()) {
      part = parts_.emplace(parts_.end());
      part->node = node;
    }
    places_.push_back({static_cast<int>(part - parts_.begin()), part->workers++});
  }
}

int PacketPool::part_of_worker(int worker) const {
  return worker >= 0 && worker < static_cast<int>(places_.size()) ? places_[static_cast<size_t>(worker)].part : 0;
}

int PacketPool::part_of(const Packet* p) const {
  const auto buffer = static_cast<uint32_t>((reinterpret_cast<const uint8_t*>(p) - base_) / kStride);
  int part = 0;
  while (part + 1 < static_cast<int>(parts_.size()) && buffer >= parts_[static_cast<size_t>(part) + 1].first) ++part;
  return part;
}

void PacketPool::settle(int worker) {
  prepare();
  if (worker < 0 || worker >= static_cast<int>(places_.size())) return;
  const Place& place = places_[static_cast<size_t>(worker)];
  const Part& part = parts_[static_cast<size_t>(place.part)];
  // Buffers are first used in the order in which they lie.
  const uint32_t share = std::min(expected_.get(), part.buffers / static_cast<uint32_t>(part.workers));
  const uint32_t first = part.first + static_cast<uint32_t>(place.number) * share;
  uint8_t* const end = base_ + std::min(bytes_, size_t{first + share} * kStride + kHugePage);
  provide_pages(page_of(first), reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(end) & ~(kHugePage - 1)));
  if (thread_id() == worker) (void)cache();
}

void PacketPool::prepare() {
  std::call_once(mapped_, [this] { map(); });
}

PacketPool::Cache* PacketPool::cache() {
  Cache* c = caches_[thread_id() + 1].load(std::memory_order_relaxed);
  if (!c) [[unlikely]]
    c = make_cache();
  return c;
}

PacketPool::Cache* PacketPool::make_cache() {
  prepare();
  if (thread_id() < 0) return nullptr;
  auto* const c = new Cache;
  c->present.resize((wanted_ + 63) / 64);
  caches_[thread_id() + 1].store(c, std::memory_order_release);
  return c;
}

uint32_t PacketPool::allocate_shared(Packet** out, uint32_t n) {
  prepare();
  // From the node of the thread if that has any left.
  const auto parts = static_cast<int>(parts_.size());
  const int own = part_of_worker(thread_id());
  uint32_t k = 0;
  for (int i = 0; i < parts && k < n; ++i) {
    Part& part = parts_[static_cast<size_t>((own + i) % parts)];
    k += part.free->dequeue(out + k, n - k);
    if (k < n) k += take_unused(part, out + k, n - k);
  }
  return k;
}

void PacketPool::release_shared(Packet* const* p, uint32_t n) {
  // The ring has a cell for every buffer. It is full only if a thread lost its CPU in a refill, and the rest of the pool
  // was used meanwhile.
  while (n > 0) {
    const int part = part_of(*p);
    uint32_t same = 1;
    while (same < n && part_of(p[same]) == part) ++same;
    const uint32_t k = parts_[static_cast<size_t>(part)].free->enqueue(p, same);
    p += k;
    n -= k;
  }
}

bool PacketPool::refill(Cache& c, uint32_t n) {
  Packet* got[kBulk];
  while (n > 0) {
    const uint32_t k = allocate_shared(got, std::min(n, kBulk));
    if (k == 0) break;
    c.push(got, k);
    n -= k;
  }
  return c.size() > 0;
}

void PacketPool::spill(Cache& c, uint32_t n) {
  Packet* out[kBulk];
  while (n > 0) {
    const uint32_t k = std::min(n, kBulk);
    c.pop(out, k);
    release_shared(out, k);
    n -= k;
  }
}

uint32_t PacketPool::reserve(uint32_t n) {
  Cache* const c = cache();
  if (!c) return 0;
  n = std::min(n, Cache::kSlots / 2);
  c->keep = std::max(c->keep, n);
  if (c->size() < n) refill(*c, n - c->size());
  return c->size();
}

void PacketPool::sort() {
  Cache* const c = cache();
  if (!c) return;
  for (uint32_t at = c->head; at != c->tail; ++at) {
    const size_t offset = reinterpret_cast<const uint8_t*>(c->slots[at % Cache::kSlots]) - base_;
    const size_t number = offset / kStride;
    c->present[number / 64] |= uint64_t{1} << number % 64;
  }
  uint32_t at = c->head;
  for (size_t word = 0; word < c->present.size(); ++word)
    for (uint64_t bits = std::exchange(c->present[word], 0); bits != 0; bits &= bits - 1)
      c->slots[at++ % Cache::kSlots] = buffer_at(64 * word + static_cast<size_t>(std::countr_zero(bits)));
}

Packet* PacketPool::allocate_large(uint32_t length, uint32_t headroom) {
  if (length > Packet::kMaxLength || headroom > 4096) return nullptr;
  const size_t capacity = (size_t{length} + headroom + 256 + 63) & ~size_t{63};
  void* memory = std::aligned_alloc(64, sizeof(Packet) + capacity + kLead);
  if (!memory) return nullptr;
  Packet* p = new (memory) Packet;
  p->pool_class_ = 1;
  p->large_capacity_ = static_cast<uint32_t>(capacity);
  p->reset(length, headroom);
  large_in_use_.fetch_add(1, std::memory_order_relaxed);
  return p;
}

Packet* PacketPool::allocate(uint32_t length, uint32_t headroom) {
  if (length + headroom > kCapacity || headroom > 1024) [[unlikely]]
    return allocate_large(length, headroom);
  Cache* const c = cache();
  Packet* p;
  if (!c) [[unlikely]] {
    if (allocate_shared(&p, 1) == 0) return nullptr;
  } else {
    if (c->size() == 0 && !refill(*c, kBulk)) return nullptr;
    p = c->pop();
  }
  p->reset(length, headroom);
  return p;
}

void PacketPool::release(Packet* p) {
  if (p->pool_class_ != 0) [[unlikely]] {
    large_in_use_.fetch_sub(1, std::memory_order_relaxed);
    std::free(p);
    return;
  }
  Cache* const c = cache();
  if (!c) [[unlikely]] {
    release_shared(&p, 1);
    return;
  }
  c->push(&p, 1);
  if (c->size() > c->keep + 2 * kBulk) spill(*c, kBulk);
}

uint32_t PacketPool::allocate_bulk(Packet** out, uint32_t n) {
  Cache* const c = cache();
  if (!c) [[unlikely]]
    return allocate_shared(out, n);
  if (c->size() < n) [[unlikely]] {
    refill(*c, std::max(n, kBulk));
    n = std::min(n, c->size());
  }
  c->pop(out, n);
  return n;
}

void PacketPool::release_bulk(Packet* const* p, uint32_t n) {
  Cache* const c = cache();
  if (!c) [[unlikely]] {
    for (uint32_t i = 0; i < n; ++i) release(p[i]);
    return;
  }
  uint32_t at = c->tail;
  for (uint32_t i = 0; i < n; ++i) {
    if (p[i]->pool_class_ == 0) [[likely]]
      c->slots[at++ % Cache::kSlots] = p[i];
    else
      release(p[i]);
  }
  c->tail = at;
  if (c->size() > c->keep + 2 * kBulk) spill(*c, c->size() - c->keep - kBulk);
}

uint32_t PacketPool::in_use() const {
  if (!base_) return 0;
  int64_t used = int64_t{wanted_};
  for (const Part& part : parts_) used -= part.free->size() + part.unused();
  for (const auto& slot : caches_)
    if (const Cache* c = slot.load(std::memory_order_acquire)) used -= c->size();
  if (const auto elsewhere = free_elsewhere_.load(std::memory_order_acquire)) used -= elsewhere();
  return static_cast<uint32_t>(used + large_in_use_.load(std::memory_order_relaxed));
}

Packet* Packet::make(uint32_t length, uint32_t headroom) { return PacketPool::instance().allocate(length, headroom); }

Packet* Packet::make(const void* bytes, uint32_t length, uint32_t headroom) {
  Packet* p = make(length, headroom);
  if (p && length) std::memcpy(p->data(), bytes, length);
  return p;
}

Packet* Packet::clone() const {
  Packet* p = make(length_, data_);
  if (!p) return nullptr;
  // Bytes in front of the data are kept too: Unstrip may bring them back.
  std::memcpy(p->buffer(), buffer(), size_t{data_} + length_);
  p->mac_ = mac_;
  p->network_ = network_;
  p->transport_ = transport_;
  p->copy_annotations(*this);
  return p;
}

void Packet::kill() { PacketPool::instance().release(this); }

void Batch::kill() {
  PacketPool::instance().release_bulk(slots_, size_);
  size_ = 0;
}

bool Packet::shift_to(uint32_t headroom) {
  if (headroom >= kNoHeader || uint64_t{headroom} + length_ > capacity()) return false;
  const int delta = static_cast<int>(headroom) - data_;
  // Bytes that were pulled stay in front, for an element that pushes them again.
  const uint32_t pulled = std::min<uint32_t>(headroom, data_);
  std::memmove(buffer() + headroom - pulled, data() - pulled, pulled + length_);
  data_ = static_cast<uint16_t>(headroom);
  for (uint16_t* header : {&mac_, &network_, &transport_}) {
    if (*header == kNoHeader) continue;
    const int moved = *header + delta;
    *header = moved >= 0 && moved < kNoHeader ? static_cast<uint16_t>(moved) : kNoHeader;
  }
  return true;
}

bool Packet::push_slow(uint32_t n) {
  const uint32_t room = std::min(n + kDefaultHeadroom, capacity() - std::min(capacity(), length_));
  if (room < n || !shift_to(room)) return false;
  data_ = static_cast<uint16_t>(data_ - n);
  length_ += n;
  return true;
}

bool Packet::pull_slow(uint32_t n) {
  const uint32_t rest = length_ - n;
  std::memmove(buffer() + kDefaultHeadroom, data() + n, rest);
  data_ = kDefaultHeadroom;
  length_ = rest;
  clear_mac_header();
  clear_network_header();
  return true;
}

bool Packet::put_slow(uint32_t n) {
  if (uint64_t{length_} + n > capacity() || !shift_to(std::min<uint32_t>(data_, capacity() - length_ - n)))
    return false;
  length_ += n;
  return true;
}

}  // namespace headrace
