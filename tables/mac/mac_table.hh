#pragma once
/// \file
/// Where Ethernet addresses were seen: the table of a learning switch.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace headrace {

/// The port of each address of each network. Workers learn and look up at any time, without locks: of two that learn about
/// the same address at once, one wins.
///
/// Addresses are numbers of 48 bits, the first byte highest. Networks are numbers of 16 bits: VLANs of which each has its
/// own addresses, or always 0. Times are seconds of a clock that never goes back.
class MacTable {
 public:
  static constexpr uint32_t kMostAddresses = 1 << 24;

  /// \param capacity addresses; rounded up to eight times a power of two. Of eight that share a hash value, a new one
  /// replaces that which was silent for the longest time.
  explicit MacTable(uint32_t capacity);

  /// Six bytes in network order.
  static uint64_t load_address(const uint8_t* at) {
    uint64_t value = 0;
    for (int i = 0; i < 6; ++i) value = value << 8 | at[i];
    return value;
  }
  /// Group addresses are not learned, nor is the address 0.
  static bool is_group(uint64_t address) { return (address >> 40 & 1) != 0; }

  /// Seconds of silence after which an address is forgotten; 0: nothing is learned or found. Default 300.
  uint32_t timeout() const { return timeout_.load(std::memory_order_relaxed); }
  void set_timeout(uint32_t seconds) { timeout_.store(seconds, std::memory_order_relaxed); }

  /// An address has sent a frame that came by `port`.
  void learn(uint64_t address, uint16_t network, uint32_t port, uint32_t now);
  std::optional<uint32_t> find(uint64_t address, uint16_t network, uint32_t now) const;
  /// Forgets all, or what was learned from one port. May miss what workers learn meanwhile.
  void clear();
  void forget_port(uint32_t port);

  struct Known {
    uint64_t address;
    uint16_t network;
    uint32_t port;
    uint32_t silent;  ///< seconds
  };
  /// By network and address.
  std::vector<Known> known(uint32_t now) const;
  /// Addresses for which there are places.
  uint32_t places() const { return sets_ * kWays; }

 private:
  static constexpr uint32_t kWays = 8;

  /// `guarded` is address and network, xor a mixture of the port; 0: empty, as no address that sends is 0. A reader that
  /// meets half of a change finds no address that it looks for.
  struct Entry {
    std::atomic<uint64_t> guarded{0};
    std::atomic<uint32_t> port{0};
    std::atomic<uint32_t> seen{0};
  };
  struct Content {
    uint64_t key;  // 0: none
    uint32_t port;
  };

  static uint64_t key_of(uint64_t address, uint16_t network) { return address << 16 | network; }
  static Content load(const Entry& entry);
  Entry* set_of(uint64_t key) const;
  /// Another worker may be in the next second already.
  static uint32_t silence(const Entry& entry, uint32_t now) {
    const auto seconds = static_cast<int32_t>(now - entry.seen.load(std::memory_order_relaxed));
    return seconds < 0 ? 0 : static_cast<uint32_t>(seconds);
  }

  uint32_t sets_;  // a power of two
  std::unique_ptr<Entry[]> entries_;
  std::atomic<uint32_t> timeout_{300};
};

}  // namespace headrace
