#pragma once
/// \file
/// Receive-side scaling in software, for device ports with fewer queues than there are workers.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/spsc_ring.hh"
#include "headrace/task.hh"

namespace headrace {

class Element;

/// Distributes what an element receives over all workers by flow. The receiving worker hashes each packet as a network
/// card would (Toeplitz over addresses and ports; addresses only for fragments and for protocols without ports; 0 for
/// packets that are not IP) and sets the packet's hash annotation. It keeps the packets of its own flows and hands the
/// others to their workers through rings, one for each pair of workers; a task of the destination worker pushes them
/// on. So a flow stays with one worker and in order. What does not fit into a ring is dropped and counted under the
/// element's `reason`, as by the queue of a network card; or, with WhenFull::kWait, it is held until there is room, and
/// until then the tasks of this worker that feed the element rest. Elements to which packets come back that the element
/// has sent feed it on without a rest, because two workers could wait for each other; they and what is on its way fill
/// the room for held packets, kMostHeld for each worker, and what exceeds it is dropped and counted as well.
///
///     SoftwareRss rss_{*this, [this](Batch& batch) { output(0).push(batch); }};
///     initialize:       rss_.initialize({home_thread()}, reason);
///     when received:    rss_.spread(batch);
///     take_state:       rss_.take_state(old.rss_);
///     held_packets:     return rss_.held();
///
/// With one worker, it only hashes and calls `deliver`.
class SoftwareRss {
 public:
  /// Where to find a packet's flow.
  enum class Begin {
    kEthernet,  // an Ethernet header is at data()
    kIp,        // an IPv4 or IPv6 header is at data()
    kHashed,    // nowhere: rx_hash() is already set
  };
  enum class WhenFull { kDrop, kWait };
  /// Default capacity of a ring, in packets.
  static constexpr uint32_t kDefaultCapacity = 2048;
  /// Most packets that a worker holds because rings are full.
  static constexpr uint32_t kMostHeld = 16384;

  /// \param deliver called on the worker that a batch's flows belong to; it owns the packets
  /// The tasks belong to `owner`. Declare this object after the task that the owner's handlers are to show.
  SoftwareRss(Element& owner, std::function<void(Batch&)> deliver);
  ~SoftwareRss();
  SoftwareRss(const SoftwareRss&) = delete;
  SoftwareRss& operator=(const SoftwareRss&) = delete;

  /// Call in Element::initialize.
  /// \param receivers the workers that will call spread()
  /// \param reason under which drops of full rings are counted (see Element::count_reasons())
  /// \param spread false: every packet stays with the worker that received it
  void initialize(const std::vector<int>& receivers, int reason, uint32_t capacity = kDefaultCapacity,
                  bool spread = true, WhenFull when_full = WhenFull::kDrop);
  /// When `fd` becomes readable, the workers that packets are handed to also wake, together with the one that receives
  /// from it (see headrace/alarm.hh).
  void wake_all(int fd, bool on);
  /// True if packets are handed to other workers.
  bool active() const { return !rings_.empty(); }

  struct Lost {
    uint64_t packets = 0;
    uint64_t bytes = 0;
  };
  /// Takes the packets. Must run on one of the receivers. Returns the packets dropped because a ring was full, for
  /// callers that keep their own counters in `deliver`.
  Lost spread(Batch& batch, Begin begin = Begin::kEthernet);

  /// Packets handed over and not yet delivered.
  uint64_t held() const;
  /// Takes over the contents of `old`'s rings; no worker of either side may run. Packets of a flow stay in order if
  /// this side has received nothing yet.
  void take_state(SoftwareRss& old);
  /// The same when packets may belong to other workers now: `adopt` gives each its new hash. Those for which it returns
  /// false are dropped under `reason`.
  void take_state(SoftwareRss& old, const std::function<bool(Packet&)>& adopt, int reason);
  /// Returns the contents of the rings to the pool; returns how many packets there were.
  uint64_t clear();

 private:
  using PacketRing = SpscRing<Packet*>;
  struct Row;  // the rings from one receiver, by destination worker
  bool deliver_handed(Task& task, int worker);
  Lost hand_over(Row& row, Batch& batch);
  /// Hands over what is held, as far as there is room, and delivers what is held for `here`, whose row this is. True if
  /// something moved.
  bool hand_over_held(Row& row, int here);
  /// Lets the tasks that feed the owner on this worker rest while its row holds packets.
  void update_gate(Row& row, int worker);
  /// Wakes the tasks of workers whose rings have been filled.
  void tell(const int* workers, int n);

  Element& owner_;
  std::function<void(Batch&)> deliver_;
  int workers_ = 1;
  int reason_ = 0;
  bool wait_ = false;
  int gate_ = -1;                             // see Task
  std::vector<std::unique_ptr<Row>> rings_;   // by receiving worker; null if it receives nothing
  std::vector<std::unique_ptr<Task>> tasks_;  // by worker
};

}  // namespace headrace
