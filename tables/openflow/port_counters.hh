#pragma once
/// \file
/// What passes the ports of an OpenFlow switch.

#include <array>
#include <cstdint>
#include <utility>

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
    void received(uint32_t place, uint64_t bytes, uint64_t packets = 1) const {
      Count& count = counts_[place % kPlaces];
      add(count.rx_packets, packets);
      add(count.rx_bytes, bytes);
    }
    void sent(uint32_t place, uint64_t bytes, uint64_t packets = 1) const {
      Count& count = counts_[place % kPlaces];
      add(count.tx_packets, packets);
      add(count.tx_bytes, bytes);
    }
    void not_received(uint32_t place, uint64_t packets = 1) const { add(counts_[place % kPlaces].rx_dropped, packets); }
    void not_sent(uint32_t place, uint64_t packets = 1) const { add(counts_[place % kPlaces].tx_dropped, packets); }

   private:
    friend class PortCounters;
    explicit Mine(std::array<Count, kPlaces>& counts) : counts_(counts) {}
    /// Atomic for those who sum; one thread writes.
    static void add(uint64_t& word, uint64_t n) { __atomic_store_n(&word, word + n, __ATOMIC_RELAXED); }

    std::array<Count, kPlaces>& counts_;
  };
  Mine mine() { return Mine(threads_.local().counts); }

  /// Packets and their bytes in one word: below 2^22 packets of less than 2^18 bytes.
  class Sum {
   public:
    void add(uint64_t bytes) { word_ += kPacket + bytes; }
    uint64_t packets() const { return word_ / kPacket; }
    uint64_t bytes() const { return word_ % kPacket; }

   private:
    static constexpr uint64_t kPacket = uint64_t{1} << 40;

    uint64_t word_ = 0;
  };

  /// Counts packets of the running worker that leave together, by ports that change from packet to packet. One at a time.
  class Leaving {
   public:
    explicit Leaving(PortCounters& counters) : sums_(counters.threads_.local().leaving.data()) {}
    /// \param place_after the port's place + 1; 0: it does not leave
    void add(uint32_t place_after, uint64_t bytes) {
      sums_[place_after % kSums].add(bytes);
      touched_ |= uint64_t{1} << place_after % kTouched;
    }
    /// Adds up what add() was called for, which is forgotten then.
    void count(Mine counts) {
      for (; touched_ != 0; touched_ &= touched_ - 1)
        for (auto at = static_cast<uint32_t>(__builtin_ctzll(touched_)); at < kSums; at += kTouched)
          if (const Sum sum = std::exchange(sums_[at], Sum()); at != 0 && sum.packets() != 0)
            counts.sent(at - 1, sum.bytes(), sum.packets());
    }

   private:
    static constexpr uint32_t kTouched = 64;

    Sum* const sums_;
    uint64_t touched_ = 0;  // places that may have a sum, by their remainder
  };

  Count sum(uint32_t place) const {
    Count total;
    for (int thread = 0; thread < threads_.size(); ++thread) {
      const Count& count = threads_[thread].counts[place % kPlaces];
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
  static constexpr uint32_t kSums = 2 * kPlaces;
  struct Thread {
    std::array<Count, kPlaces> counts{};
    std::array<Sum, kSums> leaving{};  // by place + 1; outside of a Leaving all are 0
  };

  PerThread<Thread> threads_;
};

}  // namespace headrace::openflow
