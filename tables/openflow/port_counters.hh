#pragma once
/// \file
/// What passes the ports of an OpenFlow switch.

#include <array>
#include <cstdint>

#include "headrace/worker.hh"

namespace headrace::openflow {

/// Packets and bytes by the place of a port: its number; 0 for LOCAL. Each worker counts for itself, and anyone sums.
class PortCounters {
 public:
  static constexpr uint32_t kPlaces = 256;

  struct Count {
    uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0;
    uint64_t rx_dropped = 0, tx_dropped = 0;  ///< for the port's configuration
  };
  /// Those of the running worker.
  class Mine {
   public:
    explicit Mine(std::array<Count, kPlaces>& counts) : counts_(counts) {}
    void received(uint32_t place, uint64_t bytes, uint64_t packets = 1) {
      Count& count = counts_[place % kPlaces];
      add(count.rx_packets, packets);
      add(count.rx_bytes, bytes);
    }
    void sent(uint32_t place, uint64_t bytes, uint64_t packets = 1) {
      Count& count = counts_[place % kPlaces];
      add(count.tx_packets, packets);
      add(count.tx_bytes, bytes);
    }
    void not_received(uint32_t place, uint64_t packets = 1) { add(counts_[place % kPlaces].rx_dropped, packets); }
    void not_sent(uint32_t place, uint64_t packets = 1) { add(counts_[place % kPlaces].tx_dropped, packets); }

   private:
    /// Atomic for those who sum; one thread writes.
    static void add(uint64_t& word, uint64_t n) { __atomic_store_n(&word, word + n, __ATOMIC_RELAXED); }
    std::array<Count, kPlaces>& counts_;
  };

  Mine mine() { return Mine(threads_.local()); }
  Count sum(uint32_t place) const {
    Count total;
    for (int thread = 0; thread < threads_.size(); ++thread) {
      const Count& count = threads_[thread][place % kPlaces];
      const auto add = [](uint64_t& to, const uint64_t& from) { to += __atomic_load_n(&from, __ATOMIC_RELAXED); };
      add(total.rx_packets, count.rx_packets);
      add(total.rx_bytes, count.rx_bytes);
      add(total.tx_packets, count.tx_packets);
      add(total.tx_bytes, count.tx_bytes);
      add(total.rx_dropped, count.rx_dropped);
      add(total.tx_dropped, count.tx_dropped);
    }
    return total;
  }

 private:
  PerThread<std::array<Count, kPlaces>> threads_;
};

}  // namespace headrace::openflow
