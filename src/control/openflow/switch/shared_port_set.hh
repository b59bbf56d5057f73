#pragma once
/// \file
/// Ports that the control thread names and workers look up.

#include <atomic>
#include <cstdint>

#include "tables/openflow/port_set_view.hh"

namespace headrace::openflow {

class SharedPortSet {
 public:
  static constexpr uint32_t kWords = PortSet::kPlaces / 32;

  void set(const PortSet& set) {
    for (uint32_t i = 0; i < kWords; ++i) words_[i].store(set.words[i], std::memory_order_relaxed);
  }
  PortSet get() const {
    PortSet set;
    for (uint32_t i = 0; i < kWords; ++i) set.words[i] = words_[i].load(std::memory_order_relaxed);
    return set;
  }

 private:
  std::atomic<uint32_t> words_[kWords] = {};
};

}  // namespace headrace::openflow
