#pragma once
/// \file
/// Receive-side scaling in software, for device ports with fewer queues than there are workers.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/ring.hh"
#include "headrace/task.hh"

namespace headrace {

class Element;

/// Spreads what an element receives over all workers by flow: the worker that receives hashes each packet as a network
/// card would (Toeplitz over addresses and ports; addresses only for fragments and for protocols without ports; 0 for
/// what is not IP), sets its hash annotation, keeps the packets of its own flows and hands the others to their workers
/// by rings, one for each pair of workers, whose tasks push them on. So a flow stays with one worker and in order. A
/// ring that is full drops what does not fit, counted under the element's `reason`.
///
///     SoftwareRss rss_{*this, [this](Batch& batch) { output(0).push(batch); }};
///     initialize:       rss_.initialize({home_thread()}, reason);
///     when received:    rss_.spread(batch);
///     take_state:       rss_.take_state(old.rss_);
///     held_packets:     return rss_.held();
///
/// With one worker it only calls `deliver`, and hashes.
class SoftwareRss {
 public:
  /// Where the packets' flows are read.
  enum class Begin {
    kEthernet,  // an Ethernet header is at data()
    kIp,        // an IPv4 or IPv6 header is at data()
    kHashed,    // nowhere: rx_hash() is set already
  };
  /// Packets that a ring takes by default.
  static constexpr uint32_t kDefaultCapacity = 2048;

  /// \param deliver called on the worker that a batch's flows belong to; the packets are its own
  /// The tasks become `owner`'s; declare them behind the task that its handlers are to show.
  SoftwareRss(Element& owner, std::function<void(Batch&)> deliver);
  ~SoftwareRss();
  SoftwareRss(const SoftwareRss&) = delete;
  SoftwareRss& operator=(const SoftwareRss&) = delete;

  /// In Element::initialize.
  /// \param receivers the workers that will call spread()
  /// \param reason what Element::count_reasons() called the drops of full rings
  /// \param spread false: every packet stays with the worker that received it
  void initialize(const std::vector<int>& receivers, int reason, uint32_t capacity = kDefaultCapacity,
                  bool spread = true);
  /// The workers that packets are handed to wake when `fd` is readable, together with the one that receives from it
  /// (see headrace/alarm.hh).
  void wake_all(int fd, bool on);
  /// True if packets are handed to other workers.
  bool active() const { return !rings_.empty(); }

  struct Lost {
    uint64_t packets = 0;
    uint64_t bytes = 0;
  };
  /// Takes over the packets. Must run on a worker that is one of the receivers. Returns the packets dropped because a
  /// ring was full, for callers that keep their own counters in `deliver`.
  Lost spread(Batch& batch, Begin begin = Begin::kEthernet);

  /// Packets handed over and not yet delivered.
  uint64_t held() const;
  /// Takes over what is in `old`'s rings; neither side's workers may run. Packets of a flow stay in order if this side
  /// has received nothing yet.
  void take_state(SoftwareRss& old);
  /// Returns what is in the rings to the pool; how many there were.
  uint64_t clear();

 private:
  using PacketRing = Ring<Packet*>;
  struct Row;  // the rings from one receiver, by worker
  bool deliver_handed(Task& task, int worker);
  Lost hand_over(Row& row, Batch& batch);

  Element& owner_;
  std::function<void(Batch&)> deliver_;
  int workers_ = 1;
  int reason_ = 0;
  std::vector<std::unique_ptr<Row>> rings_;   // by receiving worker; null where nothing is received
  std::vector<std::unique_ptr<Task>> tasks_;  // by worker
};

}  // namespace headrace
