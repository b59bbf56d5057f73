#pragma once
/// \file
/// The elements that store packets.

#include <cstdint>

namespace headrace {

/// An element that stores packets: Queue and its variants, LinkUnqueue. RED reads the number of stored packets.
class Storage {
 public:
  virtual ~Storage() = default;
  /// Packets stored now. Any thread.
  virtual uint32_t stored() const = 0;
};

}  // namespace headrace
