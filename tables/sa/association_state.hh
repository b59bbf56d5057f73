#pragma once
/// \file
/// What an association must not forget: its numbers.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "headrace/single_writer.hh"
#include "tables/sa/association_config.hh"
#include "tables/sa/nonce_source.hh"
#include "tables/sa/replay_window.hh"

namespace headrace {

/// The numbers of an association. It belongs to the process: a router that replaces another goes on with the state
/// of each association that it has, too.
///
/// One worker at a time owns an association, and calls what is for the owner; any thread may read. It shares no cache
/// line with that of another owner.
class alignas(128) AssociationState {
 public:
  /// \param order how many states the process made before
  AssociationState(const AssociationConfig& config, std::shared_ptr<NonceCounter> nonces, uint32_t order = 0);

  /// Its place in the order in which the process made states: the same for as long as there is an association of it.
  uint32_t order() const { return order_; }

  /// The number of the next packet to send, or nothing: after the last number the association has come to its end (RFC
  /// 4303, section 3.3.3). For the owner.
  std::optional<uint64_t> next_sequence() {
    const uint64_t last = last_sent_;
    if (last == limit_) return std::nullopt;
    return last_sent_ = last + 1;
  }
  /// The number of the last packet that was sent; one less than the first number if there was none.
  uint64_t last_sent() const { return last_sent_; }

  /// The explicit IV of the next packet to send, see nonce_source.hh, or nothing as long as there is none that was never
  /// used. For the owner.
  std::optional<uint64_t> next_iv() { return nonces_.next(); }

  /// The window of an inbound association. Those without authentication must not use it.
  ReplayWindow& window() { return *window_; }
  const ReplayWindow& window() const { return *window_; }

  /// Counts what was protected or accepted, for the lifetime. For the owner.
  void count(uint64_t packets, uint64_t bytes) {
    packets_ += packets;
    bytes_ += bytes;
  }
  uint64_t packets() const { return packets_; }
  uint64_t bytes() const { return bytes_; }
  /// Whether the lifetime is over.
  bool expired(const AssociationConfig& config) const {
    return (config.most_packets != 0 && packets_ >= config.most_packets) ||
           (config.most_bytes != 0 && bytes_ >= config.most_bytes);
  }

 private:
  const uint64_t limit_;
  const uint32_t order_;
  SingleWriter<uint64_t> last_sent_;
  SingleWriter<uint64_t> packets_, bytes_;
  NonceStream nonces_;
  std::unique_ptr<ReplayWindow> window_;  // none outbound
};

/// The states of a process. Any thread may call.
///
/// Associations have one state if they agree in direction, SPI, destination, extended numbers, algorithms and keys. A
/// state outlives its association, so that an association that is removed and added again neither repeats numbers nor
/// accepts old packets; only when there are more than kMost states, those without an association are forgotten.
class AssociationStates {
 public:
  static constexpr size_t kMost = 65536;

  /// Those of this process, with NonceSource::process().
  static AssociationStates& process();

  explicit AssociationStates(NonceSource& nonces, size_t most = kMost) : nonces_(nonces), most_(most) {}
  AssociationStates(const AssociationStates&) = delete;
  AssociationStates& operator=(const AssociationStates&) = delete;

  /// The state of an association. If there is one already it goes on, whatever `first_sequence` is, with the window's
  /// size from now on.
  std::shared_ptr<AssociationState> get(const AssociationConfig& config);
  size_t size() const;

 private:
  struct Identity {
    IPsecDirection direction;
    uint32_t spi;
    Ip6Address destination;
    bool extended_sequence;
    KeyFingerprint fingerprint;

    auto operator<=>(const Identity&) const = default;
  };

  NonceSource& nonces_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::map<Identity, std::shared_ptr<AssociationState>> states_;
  uint32_t made_ = 0;
};

}  // namespace headrace
