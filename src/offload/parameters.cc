#include "offload/parameters.hh"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace headrace::offload {

Parameters::Parameters(DeviceMemory& memory, const std::vector<Plan>& plans, size_t images, int workers)
    : memory_(memory), plans_(plans), images_((images + 15) / 16 * 16), users_(static_cast<size_t>(workers)) {}

Parameters::~Parameters() {
  for (auto& [key, copies] : arrays_)
    for (Copy& copy : copies) release(copy);
  for (Copy& block : blocks_) release(block);
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

void Parameters::release(Copy& copy) {
  if (copy.address && copy.secret) {
    static constexpr uint8_t kZeros[64 << 10] = {};
    Status sent;
    for (size_t at = 0; at < copy.capacity && sent.ok(); at += sizeof kZeros)
      sent = memory_.send(copy.address + at, kZeros, std::min(sizeof kZeros, copy.capacity - at));
    // A device that takes no more has failed: its memory is not given to anybody.
    if (sent.ok()) (void)memory_.finish();
  }
  if (copy.address) memory_.release(copy.address);
  bytes_ -= copy.capacity;
  copy = {};
}

bool Parameters::reserve(Copy& copy, size_t size) {
  if (copy.capacity >= size) return true;
  // An array that grows once grows again, and memory is not to be had without a pause of a resident kernel.
  if (copy.capacity > 0) size = std::max(size, copy.capacity + copy.capacity / 2);
  if (copy.address && copy.placed == fills_)
    // Something written in this fill() refers to it.
    replaced_[filling_].push_back(std::exchange(copy, {}));
  release(copy);
  copy.address = allocate(size);
  if (!copy.address) return false;
  copy.capacity = size;
  bytes_ += size;
  return true;
}

void Parameters::release_replaced(int generation) {
  for (Copy& copy : replaced_[generation]) release(copy);
  replaced_[generation].clear();
}

uint64_t Parameters::place(const void* objects, size_t size, ChangedPages* changes) {
  if (!objects || size == 0) return 0;
  // For an image that is not used: shaders may add to the address.
  const auto any_address = reinterpret_cast<uint64_t>(objects);
  if (failed_) return any_address;
  const Key key{objects, changes, changes ? changes->id() : 0};
  const auto* bytes = static_cast<const uint8_t*>(objects);
  if (comparing_) {
    const auto found = arrays_.find(key);
    const Copy* const copy = found == arrays_.end() ? nullptr : &found->second[filling_];
    const bool same = copy && copy->capacity >= size &&
                      (changes ? !changes->any_since(copy->moment)
                               : copy->content.size() == size && std::memcmp(copy->content.data(), bytes, size) == 0);
    changed_ |= !same;
    return same ? copy->address : any_address;
  }
  Copy& copy = arrays_[key][filling_];
  const bool secret = changes && changes->secret();
  if (erasing_ && (!secret || copy.capacity < size)) return copy.address ? copy.address : any_address;
  if (!reserve(copy, size)) return any_address;
  copy.secret = secret;
  secrets_ |= secret;
  if (!erasing_) copy.placed = fills_;
  Status status;
  if (changes) {
    const uint64_t now = changes->advance();
    changes->each_since(copy.moment, [&](size_t begin, size_t end) {
      if (begin < size) status &= memory_.send(copy.address + begin, bytes + begin, std::min(end, size) - begin);
    });
    copy.moment = now;
  } else {
    status = send_changes(copy, bytes, size);
  }
  if (!status) failed_ = true;
  return copy.address;
}

Status Parameters::send_changes(Copy& copy, const uint8_t* bytes, size_t size) {
  constexpr size_t kPage = ChangedPages::kPage;
  const size_t known = std::min(copy.content.size(), size);
  const auto same = [&](size_t at) {
    const size_t end = std::min(at + kPage, size);
    return end <= known && std::memcmp(copy.content.data() + at, bytes + at, end - at) == 0;
  };
  Status status;
  for (size_t at = 0; at < size;) {
    const size_t begin = at;
    while (at < size && !same(at)) at += kPage;
    if (at > begin) status &= memory_.send(copy.address + begin, bytes + begin, std::min(at, size) - begin);
    while (at < size && same(at)) at += kPage;
  }
  copy.content.assign(bytes, bytes + size);
  return status;
}

uint64_t Parameters::put(const void* value, size_t size) {
  const size_t at = (used_ + 15) / 16 * 16;
  used_ = at + size;
  // If there is no room this only counts: fill() makes room and starts again.
  if (used_ <= block_.size()) std::memcpy(block_.data() + at, value, size);
  return blocks_[filling_].address + at;
}

void Parameters::write_images(size_t size) {
  block_.assign(std::max(size, images_), 0);
  used_ = images_;
  for (const Plan& plan : plans_)
    for (const Step& step : plan.steps())
      if (!failed_) step.element->image(block_.data() + step.image, *this);
}

bool Parameters::behind() {
  const std::unique_lock guard(lock_, std::try_to_lock);
  return !guard || stale_secrets() || looks_behind();
}

bool Parameters::looks_behind() {
  filling_ = current_.load(std::memory_order_relaxed);
  const std::vector<uint8_t>& content = blocks_[filling_].content;
  if (content.empty()) return true;
  failed_ = changed_ = false;
  comparing_ = true;
  write_images(content.size());
  comparing_ = false;
  return changed_ || used_ > content.size() || block_ != content;
}

Status Parameters::fill(int generation, Errors& errors) {
  filling_ = generation;
  ++fills_;
  failed_ = false;
  wanted_ = 0;
  release_replaced(generation);
  const rcu::Epoch now = rcu::now();
  epochs_[generation].store(now);
  // The first generation will be as old as this.
  if (std::atomic<rcu::Epoch>& first = epochs_[current_.load()]; first.load() == 0) first.store(now);
  Copy& block = blocks_[generation];
  write_images(block.capacity);
  // Small objects that views point to follow the images; there may be more of them than last time.
  if (!failed_ && used_ > block.capacity && reserve(block, used_)) write_images(block.capacity);
  block.placed = fills_;
  if (!failed_ && !(memory_.send(block.address, block_.data(), block_.size()) && memory_.finish())) failed_ = true;
  if (failed_) {
    if (wanted_)
      return errors.error("device memory does not suffice: {} MB wanted beside {} MB in use, {} of {} MB free",
                          wanted_ >> 20, bytes() >> 20, memory_.free_bytes() >> 20, memory_.total_bytes() >> 20);
    return errors.error("the device does not take tables");
  }
  block.content = block_;
  current_.store(generation, std::memory_order_seq_cst);
  updates_.fetch_add(1, std::memory_order_relaxed);
  forget_old();
  return erase_secrets(errors);
}

Status Parameters::erase_secrets(Errors& errors) {
  if (!secrets_) return {};
  forget_old();
  bool stale = false;
  failed_ = false;
  for (int generation = 0; generation < kGenerations; ++generation) {
    if (generation == current_.load(std::memory_order_relaxed) || blocks_[generation].address == 0) continue;
    if (busy(generation)) {
      stale = true;
      continue;
    }
    filling_ = generation;
    erasing_ = true;
    write_images(blocks_[generation].capacity);
    erasing_ = false;
  }
  if (failed_ || !memory_.finish().ok()) return errors.error("the device does not take tables");
  stale_secrets_.store(stale, std::memory_order_relaxed);
  return {};
}

bool Parameters::fill_spare() {
  Errors why;
  if (fill(kSpare, why).ok()) return true;
  forget_old();
  return false;
}

void Parameters::forget_old() {
  if (current_.load(std::memory_order_relaxed) != kSpare && !busy(kSpare)) {
    release_replaced(kSpare);
    release(blocks_[kSpare]);
  }
  for (auto it = arrays_.begin(); it != arrays_.end();) {
    bool used = false;
    for (int generation = 0; generation < kGenerations; ++generation) {
      Copy& copy = it->second[generation];
      // The last fill() of its generation did not use it.
      if (copy.address && copy.placed != blocks_[generation].placed) release(copy);
      used |= copy.address != 0;
    }
    it = used ? std::next(it) : arrays_.erase(it);
  }
}

}  // namespace headrace::offload
