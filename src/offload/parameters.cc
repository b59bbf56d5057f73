#include "offload/parameters.hh"

#include <algorithm>
#include <cstring>

namespace headrace::offload {

Parameters::Parameters(DeviceMemory& memory, const std::vector<Plan>& plans, size_t images, int workers)
    : memory_(memory), plans_(plans), images_((images + 15) / 16 * 16), users_(static_cast<size_t>(workers)) {}

Parameters::~Parameters() {
  for (auto& [key, array] : arrays_)
    for (Copy& copy : array.copies)
      if (copy.address) memory_.release(copy.address);
  for (const Copy& block : blocks_)
    if (block.address) memory_.release(block.address);
  for (int generation = 0; generation < kGenerations; ++generation) release_replaced(generation);
}

int Parameters::enter(int worker) {
  for (;;) {
    const int generation = current_.load(std::memory_order_acquire);
    std::atomic<uint32_t>& n = users_[worker].of[generation];
    // Sequentially consistent on both sides: either update() sees this user, or the user sees the new generation.
    n.fetch_add(1, std::memory_order_seq_cst);
    if (current_.load(std::memory_order_seq_cst) == generation) return generation;
    n.fetch_sub(1, std::memory_order_release);
  }
}

bool Parameters::busy(int generation) const {
  for (const Users& u : users_)
    if (u.of[generation].load(std::memory_order_seq_cst) != 0) return true;
  return false;
}

uint64_t Parameters::allocate(size_t size) {
  const uint64_t address = memory_.allocate(size);
  if (!address) {
    wanted_ = size;
    failed_ = true;
  }
  return address;
}

bool Parameters::reserve(Copy& copy, size_t size) {
  if (copy.capacity >= size) return true;
  if (copy.address && copy.placed == fills_) {
    // Something written in this fill() refers to it.
    replaced_[filling_].push_back({copy.address, copy.capacity});
  } else if (copy.address) {
    memory_.release(copy.address);
    bytes_ -= copy.capacity;
  }
  copy = {};
  copy.address = allocate(size);
  if (!copy.address) return false;
  copy.capacity = size;
  bytes_ += size;
  return true;
}

void Parameters::release_replaced(int generation) {
  for (const auto& [address, size] : replaced_[generation]) {
    memory_.release(address);
    bytes_ -= size;
  }
  replaced_[generation].clear();
}

uint64_t Parameters::place(const void* objects, size_t size, ChangedPages* changes) {
  if (failed_ || !objects || size == 0) return 0;
  Array& array = arrays_[Key{objects, changes, changes ? changes->id() : 0}];
  array.last_used = updates_.load(std::memory_order_relaxed);
  Copy& copy = array.copies[filling_];
  if (!reserve(copy, size)) return 0;
  copy.placed = fills_;
  const auto* bytes = static_cast<const uint8_t*>(objects);
  Status status;
  if (changes) {
    const uint64_t now = changes->advance();
    changes->each_since(copy.moment, [&](size_t begin, size_t end) {
      if (begin < size) status &= memory_.upload(copy.address + begin, bytes + begin, std::min(end, size) - begin);
    });
    copy.moment = now;
  } else if (copy.content.size() != size || std::memcmp(copy.content.data(), bytes, size) != 0) {
    copy.content.assign(bytes, bytes + size);
    status = memory_.upload(copy.address, bytes, size);
  }
  if (!status) failed_ = true;
  return copy.address;
}

uint64_t Parameters::put(const void* value, size_t size) {
  const size_t at = (used_ + 15) / 16 * 16;
  used_ = at + size;
  // If there is no room this only counts: fill() makes room and starts again.
  if (used_ <= block_.size()) std::memcpy(block_.data() + at, value, size);
  return blocks_[filling_].address + at;
}

void Parameters::write_images() {
  used_ = images_;
  for (const Plan& plan : plans_)
    for (const Step& step : plan.steps())
      if (!failed_) step.element->image(block_.data() + step.image, *this);
}

Status Parameters::fill(int generation, Errors& errors) {
  filling_ = generation;
  ++fills_;
  failed_ = false;
  wanted_ = 0;
  release_replaced(generation);
  Copy& block = blocks_[generation];
  block_.assign(std::max(block.capacity, images_), 0);
  write_images();
  if (!failed_ && used_ > block.capacity) {
    // Small objects that views point to follow the images; there may be more of them than last time.
    if (reserve(block, used_)) {
      block_.assign(block.capacity, 0);
      write_images();
    }
  }
  if (!failed_ && !memory_.upload(block.address, block_.data(), block_.size()).ok()) failed_ = true;
  if (failed_) {
    if (wanted_)
      return errors.error("device memory does not suffice: {} MB wanted beside {} MB in use, {} of {} MB free",
                          wanted_ >> 20, bytes_ >> 20, memory_.free_bytes() >> 20, memory_.total_bytes() >> 20);
    return errors.error("the device does not take tables");
  }
  current_.store(generation, std::memory_order_seq_cst);
  updates_.fetch_add(1, std::memory_order_relaxed);
  forget_old();
  return {};
}

/// Releases arrays that neither generation refers to any more.
void Parameters::forget_old() {
  const uint64_t now = updates_.load(std::memory_order_relaxed);
  for (auto it = arrays_.begin(); it != arrays_.end();) {
    if (it->second.last_used + kGenerations >= now) {
      ++it;
      continue;
    }
    for (const Copy& copy : it->second.copies) {
      if (!copy.address) continue;
      memory_.release(copy.address);
      bytes_ -= copy.capacity;
    }
    it = arrays_.erase(it);
  }
}

}  // namespace headrace::offload
