#pragma once
/// \file
/// The unit of work: packets that an element sees together.

#include "headrace/packet.hh"

namespace headrace {

/// Up to 256 packets. A packet's place is its *slot*. Whoever is passed a batch owns its packets and may reorder the
/// array; the caller must not read the batch again (but may clear() and refill it).
class Batch {
 public:
  static constexpr int kCapacity = 256;

  Batch() {}  // slots stay uninitialized on purpose
  explicit Batch(Packet* p) : size_(1) { slots_[0] = p; }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kCapacity; }
  int room() const { return kCapacity - size_; }
  Packet*& operator[](int slot) { return slots_[slot]; }
  Packet* operator[](int slot) const { return slots_[slot]; }
  Packet** begin() { return slots_; }
  Packet** end() { return slots_ + size_; }
  void push_back(Packet* p) { slots_[size_++] = p; }
  void clear() { size_ = 0; }
  /// Shrinks the batch, or grows it after slots were written through begin().
  void resize(int size) { size_ = size; }
  /// Returns all packets to their pool and empties the batch.
  void kill();

 private:
  int size_ = 0;
  Packet* slots_[kCapacity];
};

}  // namespace headrace
