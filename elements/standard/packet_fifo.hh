#pragma once
#include <cstddef>
#include <vector>

#include "headrace/packet.hh"

namespace headrace {

/// Packets of one thread, first in first out. Its memory doubles when it is full and is never given back, so a steady
/// load allocates nothing.
class PacketFifo {
 public:
  PacketFifo() : cells_(256) {}
  ~PacketFifo() { clear(); }
  PacketFifo(const PacketFifo&) = delete;
  PacketFifo& operator=(const PacketFifo&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Packet* front() const { return cells_[first_]; }
  Packet* back() const { return cells_[place(size_ - 1)]; }
  void push_back(Packet* p) {
    if (size_ == cells_.size()) grow();
    cells_[place(size_++)] = p;
  }
  Packet* pop_front() {
    Packet* p = front();
    first_ = place(1);
    --size_;
    return p;
  }
  void clear() {
    while (!empty()) pop_front()->kill();
  }

 private:
  size_t place(size_t i) const { return (first_ + i) & (cells_.size() - 1); }
  void grow() {
    std::vector<Packet*> cells(2 * cells_.size());
    for (size_t i = 0; i < size_; ++i) cells[i] = cells_[place(i)];
    cells_.swap(cells);
    first_ = 0;
  }

  std::vector<Packet*> cells_;  // a power of two
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace headrace
