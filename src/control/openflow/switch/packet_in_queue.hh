#pragma once
/// \file
/// How packets for controllers get from workers to the control thread.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include "control/openflow/definitions.hh"
#include "control/openflow/switch/rate_limit.hh"
#include "headrace/packet.hh"
#include "headrace/ring.hh"
#include "headrace/worker.hh"

namespace headrace::openflow {

inline constexpr int kPacketInReasons = 3;

/// A packet for controllers, and what is to be said of it.
struct QueuedPacketIn {
  Packet* packet = nullptr;
  PacketInReason reason = PacketInReason::kNoMatch;
  uint8_t table = 0;
  uint16_t max_length = kWholePacket;  ///< bytes to send at most
  uint32_t entry = 0;                  ///< number of the flow entry that sends it
  uint32_t in_port = 0;
  uint64_t metadata = 0;
  uint64_t tunnel_id = 0;
};

/// Bounded, from many workers to one control thread, without locks. A packet is copied only when a controller wants it,
/// the bucket of its reason has a token and the queue has room: a flood of misses costs workers little, and the control
/// thread takes what the rates allow.
///
/// The number of a flow entry may belong to another entry once OpenFlowPipeline::settle() has run after the entry's
/// removal: drain() to the end before each settle().
class PacketInQueue {
 public:
  struct Rate {
    uint64_t packets = 0;  ///< a second; 0: no limit
    uint64_t burst = 1;    ///< packets that may come at once
    bool operator==(const Rate&) const = default;
  };
  struct Options {
    uint32_t most = 1024;  ///< packets that wait
    std::array<Rate, kPacketInReasons> rates{};
  };
  /// Why a packet did not become a message.
  enum class Loss : uint8_t {
    kUnwanted,  ///< no controller asks for packets of this reason, or the port has OFPPC_NO_PACKET_IN
    kLimited,   ///< above the rate of its reason
    kFull,      ///< the control thread is behind
    kNoBuffer,  ///< the pool has no buffer for a copy
  };
  static constexpr int kLosses = 4;

  explicit PacketInQueue(const Options& options);
  ~PacketInQueue();
  PacketInQueue(const PacketInQueue&) = delete;
  PacketInQueue& operator=(const PacketInQueue&) = delete;

  /// Whether a controller asks for packets of this reason; at first none does. Control thread.
  void set_wanted(PacketInReason reason, bool wanted);

  /// Takes a copy of `packet`, which stays the caller's, with what `about` says besides. False: it was counted as a loss.
  /// On any worker. \param now in nanoseconds
  bool offer(const Packet& packet, const QueuedPacketIn& about, int64_t now);

  /// Counts a packet that is kUnwanted. On any worker.
  void refuse(PacketInReason reason) { (void)lose(reason, Loss::kUnwanted); }

  /// Readable while packets wait.
  int fd() const { return event_; }
  /// Calls `take`, which gets the packet, for at most `most` packets that wait; returns how many. Control thread.
  int drain(int most, const std::function<void(const QueuedPacketIn&)>& take);

  /// Whether no packet waits. Any thread.
  bool empty() const { return ring_.size() == 0; }

  /// Packets that were queued.
  uint64_t queued(PacketInReason reason) const { return counters_.sum(counter_of(reason)); }
  uint64_t lost(PacketInReason reason, Loss loss) const {
    return counters_.sum(counter_of(reason) + 1 + index_of(loss));
  }

 private:
  static int index_of(Loss loss) { return static_cast<int>(loss); }
  static int counter_of(PacketInReason reason) { return static_cast<int>(reason) * (1 + kLosses); }
  bool lose(PacketInReason reason, Loss loss) {
    counters_.add(counter_of(reason) + 1 + index_of(loss), 1);
    return false;
  }
  void wake();

  Ring<QueuedPacketIn> ring_;
  std::array<RateLimit, kPacketInReasons> limits_;
  std::atomic<uint32_t> wanted_{0};  // bits by reason
  std::atomic<bool> waiting_{true};  // the control thread has found nothing, and is to be woken
  ThreadCounters counters_{kPacketInReasons * (1 + kLosses)};
  int event_ = -1;
};

}  // namespace headrace::openflow
