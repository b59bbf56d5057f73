/// \file
/// A copy of the IPv6 table that follows by changed pages.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "headrace/mirror.hh"
#include "lpm6_naive.hh"
#include "tables/lpm6/lpm6.hh"

namespace headrace::lpm6_test {
namespace {

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

TEST(Lpm6Mirror, ACopyFollowsByChangedPages) {
  std::mt19937_64 random(11);
  Lpm6 table;
  NaiveLpm6 naive;
  HostMirror mirror;
  const auto change = [&](int changes) {
    for (int i = 0; i < changes; ++i) {
      const int length = 20 + static_cast<int>(random() % 60);
      const Lpm6Key prefix = lpm6_clean({uint64_t{0x2001} << 48 | (random() & 0x0fff'00ff'00ff), random()}, length);
      const auto next_hop = static_cast<uint32_t>(random() % 100);
      if (random() % 3 == 0) {
        naive.remove(prefix, length);
        table.remove(prefix, length);
      } else {
        naive.set(prefix, length, next_hop);
        table.set(prefix, length, next_hop);
      }
    }
  };
  change(5000);
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
  for (int round = 0; round < 20; ++round) {
    const size_t before = mirror.copied;
    change(20);
    EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
    EXPECT_LT(mirror.copied - before, size_t{1} << 20) << "only what has changed";
  }
  const size_t before = mirror.copied;
  table.mirror(mirror);
  EXPECT_EQ(mirror.copied, before);
  // A generation that is swapped in.
  ASSERT_TRUE(table.build(naive.routes()));
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
  naive.set({}, 0, 7);
  table.set({}, 0, 7);
  EXPECT_EQ(count_wrong(table.mirror(mirror), naive, naive.routes()), 0u);
}

}  // namespace
}  // namespace headrace::lpm6_test
