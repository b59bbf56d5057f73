#pragma once
/// \file
/// Immutable runs of words at fixed addresses, for programs and groups of a switch: the owner, on the host.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/memory/huge_array.hh"

namespace headrace::openflow {

/// Runs of words, known by the index of their first one, which 4 divides and which is not 0. Readers find them below
/// data(), which stays. A run that was given up keeps its words until no reader, and no job of a device, can know it.
/// One thread at a time changes the store.
class WordStore {
 public:
  /// \param most_words that there is room for; they take memory when they are used
  explicit WordStore(uint32_t most_words);

  /// Nothing if there is no room.
  std::optional<uint32_t> add(std::span<const uint32_t> words);
  /// Nothing that is published from now on has the run's index. \param words as many as it was added with
  void give_up(uint32_t index, uint32_t words);
  /// What was given up until now can be used again when it has returned() from a grace period that begins now.
  void begin_grace();

  const uint32_t* data() const { return words_.data(); }
  /// The address of a device's copy. Nobody may change the store meanwhile.
  const uint32_t* mirror(Mirror& mirror) const;
  /// Words of runs that are in use or rest.
  size_t used() const { return used_; }

 private:
  struct Run {
    uint32_t index, size_class;
  };
  struct Resting {
    rcu::Epoch grace;
    std::vector<Run> runs;
  };
  /// Up to 64 words there is a class for each multiple of 4, above for each power of two.
  static constexpr uint32_t kExact = 64, kClasses = 16 + 27;

  static uint32_t class_of(size_t words);
  static uint32_t words_of(uint32_t size_class);
  void reclaim();

  HugeArray<uint32_t> words_;
  mutable ChangedPages changes_;
  uint32_t end_ = 4;
  size_t used_ = 0;
  std::vector<uint32_t> free_[kClasses];
  std::vector<Run> given_up_;  // since the last begin_grace()
  std::deque<Resting> resting_;
};

}  // namespace headrace::openflow
