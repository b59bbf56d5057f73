#pragma once
/// \file
/// Packets as the tests of decision programs see them.

#include <cassert>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "tables/decision/decision_view.hh"

namespace headrace::decision_test {

using Bytes = std::vector<uint8_t>;

/// A packet's sections, and a check that a program never looks beyond them.
class CheckedWords {
 public:
  /// A whole frame.
  explicit CheckedWords(const Bytes& frame) : bytes_(frame), begin_{0, absent(), absent()} {}
  /// An IP packet: where the headers begin. A MAC header that is `absent()` is not there.
  CheckedWords(const Bytes& bytes, size_t mac, size_t network, size_t transport)
      : bytes_(bytes), begin_{mac, network, transport} {}

  static constexpr size_t absent() { return SIZE_MAX; }

  uint32_t length(uint32_t section) const {
    const size_t begin = begin_[section];
    return begin < bytes_.size() ? static_cast<uint32_t>(bytes_.size() - begin) : 0;
  }
  uint32_t load(uint32_t section, uint32_t offset) const {
    outside_ |= offset + 4 > length(section);
    uint32_t word = 0;
    if (!outside_) std::memcpy(&word, bytes_.data() + begin_[section] + offset, sizeof word);
    return word;
  }
  uint8_t byte(uint32_t section, uint32_t offset) const {
    outside_ |= offset >= length(section);
    return outside_ ? 0 : bytes_[begin_[section] + offset];
  }
  /// True if the program asked for a byte that the packet does not have.
  bool outside() const { return outside_; }

 private:
  const Bytes& bytes_;
  size_t begin_[decision_section::kCount];
  mutable bool outside_ = false;
};

}  // namespace headrace::decision_test
