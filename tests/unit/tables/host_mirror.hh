#pragma once
/// \file
/// A mirror whose copies are in this process.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "headrace/mirror.hh"

namespace headrace {

/// Keeps copies in this process, and counts what it copies.
class HostMirror final : public Mirror {
 public:
  size_t copied = 0;

 private:
  struct Copy {
    std::unique_ptr<std::byte[]> bytes;
    uint64_t moment = 0;
  };

  uint64_t place(const void* objects, size_t size, ChangedPages* changes) override {
    Copy& copy = copies_[changes->id()];
    // A page may be copied whole.
    if (!copy.bytes) copy.bytes = std::make_unique<std::byte[]>(size + 64);
    std::byte* const to = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(copy.bytes.get()) + 63) & ~63ul);
    const uint64_t now = changes->advance();
    changes->each_since(copy.moment, [&](size_t begin, size_t end) {
      end = std::min(end, size);
      std::memcpy(to + begin, static_cast<const std::byte*>(objects) + begin, end - begin);
      copied += end - begin;
    });
    copy.moment = now;
    return reinterpret_cast<uint64_t>(to);
  }
  uint64_t put(const void* value, size_t size) override {
    objects_.push_back(std::make_unique<uint64_t[]>((size + 7) / 8));
    std::memcpy(objects_.back().get(), value, size);
    return reinterpret_cast<uint64_t>(objects_.back().get());
  }

  std::map<uint64_t, Copy> copies_;
  std::vector<std::unique_ptr<uint64_t[]>> objects_;
};

}  // namespace headrace
