#pragma once
#include <headrace/element.hh>
#include <memory>

#include "headrace/device_port.hh"
#include "headrace/device_state.hh"
#include "headrace/touches_machine.hh"
#include "src/io/dpdk/plan.hh"

namespace headrace {

/// Sends packets by a DPDK port.
///
///     ToDPDKDevice(PORT [, QUEUE, N_QUEUES, keyword IQUEUE, BLOCKING, BURST, TIMEOUT, NDESC, MTU, IPCO, TCO,
///                  ALLOW_NONEXISTENT, VERBOSE])
///
/// Input 0, push or pull: packets with their Ethernet header.
///
/// Each worker has its own transmit queue if the port has enough of them; otherwise workers share queues without
/// waiting for each other. Packets are not copied, unless they are longer than a buffer. Packets longer than the port's
/// MTU are dropped and counted.
///
/// PORT: as for FromDPDKDevice.
/// QUEUE: has no effect; workers choose their queues.
/// N_QUEUES: transmit queues. Default, and -1: one for each worker, if the port distributes what it receives; else as
/// many as are received from. With net_memif the other side must have as many receive queues.
/// IQUEUE: packets that may wait in a queue until the port takes them. Default 1024.
/// BLOCKING true: if the queue is full the worker waits for the port, but not if the link is down, and at most 10 ms if
/// the port takes nothing; false: packets that do not fit are dropped. Default true. Use false for a virtual port whose
/// other end may in turn wait for this router.
/// BURST: maximum number of packets sent, and pulled, together; up to 256. Default 32.
/// TIMEOUT: milliseconds that packets may wait for BURST of them to be together. Default 0: those that arrive together
/// are sent together, at once. Negative: no limit.
/// NDESC, MTU: as for FromDPDKDevice.
/// IPCO true: sets the checksum in IPv4 headers, by the port if it can. Default false.
/// TCO true: also sets TCP and UDP checksums, except in fragments and in IPv6 packets whose routing header still lists
/// other destinations. Default false.
/// ALLOW_NONEXISTENT true: a missing port causes only a warning; packets are dropped. Default false.
/// VERBOSE: as for FromDPDKDevice.
///
/// Handlers: `count` (also `n_sent`), `bytes` (r) sent or waiting; `dropped` (also `n_dropped`) (r); `reset_counts`
/// (w); `hw_count`, `hw_bytes`, `hw_errors` (r) as the port counts; `xstats`, `mac`, `mtu`, `link`, `carrier`, `speed`,
/// `duplex`, `autoneg`, `nb_rx_queues`, `nb_tx_queues`, `device`, `driver`, `vendor`, `port` (r) as for FromDPDKDevice.
class ToDPDKDevice final : public Element, public DevicePort, public HasDevice, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"1/0"};

  ~ToDPDKDevice() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  bool run_task(Task& task) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override;

  bool moves(Direction direction) const override { return direction == Direction::kOut; }
  PortTotals totals(Direction direction, int thread) const override;
  std::optional<DeviceState> device_state() const override;
  DeviceCounters device_counters() const override;

 private:
  enum Counter { kPackets, kBytes, kCounters };
  enum Reason { kNoRoom, kUnfit, kNoPort };
  /// Packets that wait for others.
  struct Gathered {
    Batch batch;
    std::unique_ptr<Timer> timer;
  };
  void send(Packet** packets, int n);
  [[gnu::noinline]] void finish(int queue, Packet** packets, io::dpdk::Port::Transmitted done,
                                io::dpdk::Port::Sender self);
  bool wait_for_room(int queue, Packet** packets, int& n);
  void gather(Batch& batch);
  void send_gathered();
  void count(io::dpdk::Port::Transmitted done);
  bool flush(Task& task);
  int queue() const;
  /// What the running thread is to its queue.
  io::dpdk::Port::Sender sender() const;

  // What each batch needs comes first, beside each other.
  std::shared_ptr<io::dpdk::Port> port_;
  std::unique_ptr<PerThread<Gathered>> gathered_;
  ThreadCounters counts_{kCounters};
  int owners_ = 0;  // workers, if each has a queue of its own
  std::atomic<bool> stuck_{false};
  bool blocking_ = true;
  bool may_miss_ = false;
  int burst_ = 32;
  double timeout_ms_ = 0;

  std::string device_;
  io::dpdk::SendWants wants_;
  std::shared_ptr<io::dpdk::Plan> plan_;
  int number_ = -1;
  std::unique_ptr<Task> pull_task_;
  Signal signal_;
  std::vector<std::unique_ptr<Task>> flush_tasks_;  // by worker
};

HEADRACE_ELEMENT(ToDPDKDevice)

}  // namespace headrace
