#pragma once
#include <headrace/batch_size.hh>
#include <headrace/element.hh>
#include <memory>
#include <optional>

#include "headrace/device_port.hh"
#include "headrace/device_state.hh"
#include "headrace/single_writer.hh"
#include "headrace/software_rss.hh"
#include "headrace/touches_machine.hh"
#include "src/io/dpdk/plan.hh"

namespace headrace {

/// Receives packets from a DPDK port.
///
///     FromDPDKDevice(PORT [, QUEUE, N_QUEUES, keyword PROMISC, BURST, NDESC, MTU, MAC, MINQUEUES, MAXQUEUES,
///                    MAXTHREADS, THREADOFFSET, SPREAD, MODE, NUMA, CHECKSUM, TIMESTAMP, ACTIVE, ALLOW_NONEXISTENT,
///                    VERBOSE])
///
/// Output 0, push: packets with their Ethernet header, the packet type by its destination and, if the port provides it,
/// the hash by which it chose the queue. Output 1 (optional), push: with CHECKSUM, packets with a wrong checksum.
///
/// A port that distributes packets by flow (receive-side scaling) gets a receive queue for each worker, and each worker
/// reads its own. Other ports have one queue, read by the element's home thread (see StaticThreadSched), which
/// distributes packets to the other workers by flow. Packets are received into the router's own buffers and not copied.
/// The kernel does not receive them, except where the list below says so; that is also said when the router starts.
///
/// PORT: one of these:
/// a number, of the ports that DPDK finds when it starts (`--dpdk` gives it arguments, such as `--vdev`);
/// a PCI address, such as 0000:03:00.0, of a card bound to vfio-pci (root, IOMMU) or with a driver of its own (mlx5);
/// a virtual device with its arguments, which is made, and which other elements may name without them:
///   net_af_packet0,iface=eth1: a Linux interface by a packet socket. CAP_NET_RAW. The kernel goes on receiving, too: it
///     answers, forwards and bridges what it has addresses, routes or a bridge for, beside the router. FromDevice with
///     SNIFFER false keeps it out.
///   net_af_xdp0,iface=eth1: a Linux interface by AF_XDP, faster. CAP_NET_ADMIN, CAP_BPF; Linux 5.4 or newer.
///   net_tap0,iface=tap7: makes a Linux interface. CAP_NET_ADMIN, /dev/net/tun.
///   net_memif0,role=server,socket=/run/m.sock: shared memory with another program. No rights but to the socket.
///   net_vhost0,iface=/run/v.sock: a virtual machine's network card (vhost-user). No rights; its memory must be shared.
///   net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap: capture files. No rights; with iface=eth1: CAP_NET_RAW, and
///     the kernel receives as above.
///   net_ring0: what is sent to it comes back. net_null0,size=64: frames without end. No rights.
/// None of the virtual ones needs huge pages. DPDK is started only if a configuration has such an element.
///
/// QUEUE: the first receive queue to read. Default: the first that no other element reads.
/// N_QUEUES: how many. Default, and -1: one for each worker, if the port distributes and only this element reads it.
/// PROMISC true: also receives frames for other hosts. Default false.
/// BURST: maximum number of packets received in a row, which downstream elements see as a batch; up to 256. Default:
/// what `--batch` says, else as many as fit into the first-level cache (128 with 48 KiB).
/// NDESC: descriptors of a queue. Default: as the driver prefers, or 1024.
/// MTU: of the port. Default: as it is.
/// MAC: the port's address. Default: its own.
/// MINQUEUES, MAXQUEUES: bounds for the number of queues chosen by default, 1 and 128.
/// MAXTHREADS: most workers that read. Default all.
/// THREADOFFSET: the first worker that reads. Default: the home thread for one queue, else 0.
/// SPREAD false: every packet stays with the worker that receives it. Default true.
/// MODE rss: how the port distributes packets; the only way there is.
/// NUMA: true or false; accepted for FastClick's configurations, without effect.
/// CHECKSUM true: the port verifies IPv4, TCP and UDP checksums; packets with a wrong one leave by output 1, or are
/// dropped and counted. It is an error if the port cannot. Default false.
/// TIMESTAMP true: packets get the time of their receipt. Default false.
/// ACTIVE false: receives nothing until the handler `active` is set. Default true.
/// ALLOW_NONEXISTENT true: a missing port causes only a warning. Default false.
/// VERBOSE: a number; accepted for FastClick's configurations. The port is always described when the router starts.
///
/// In a hot swap the new configuration takes over the port. Settings that cannot change while it runs (the number of
/// queues, NDESC, MTU) must stay the same. A port that is used by several elements must be given the same settings, or
/// none, in each.
///
/// Handlers: `count`, `bytes` (r) received; `reset_counts` (w); `active` (rw); `hw_count`, `hw_bytes`, `hw_dropped`
/// (also `imissed`), `hw_errors`, `nombufs` (r) as the port counts; `xstats` (r) all its counters, or the one given;
/// `mac` (rw), `add_mac`, `remove_mac` (w); `promisc`, `mtu` (rw); `link` (r) "up" or "down", `carrier` (r) 1 or 0;
/// `speed` (r) in Mb/s, `duplex`, `autoneg` (r); `nb_rx_queues`, `nb_tx_queues`, `nb_vf_pools`, `rss_reta_size` (r) at
/// most; `queues` (r) of this element, as "queue thread" lines; `queue_count` (r) descriptors in use, by queue;
/// `device`, `driver`, `vendor`, `port` (r).
class FromDPDKDevice final : public Element, public DevicePort, public HasDevice, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"0/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return rss_.held(); }
  std::string note() const override;

  bool moves(Direction direction) const override { return direction == Direction::kIn; }
  PortTotals totals(Direction direction, int thread) const override;
  uint64_t missed() const override;
  std::optional<DeviceState> device_state() const override;
  DeviceCounters device_counters() const override;

 private:
  enum Counter { kPackets, kBytes, kLost, kCounters };
  enum Reason { kWrongChecksum, kRingFull };
  bool receive(Task& task, int queue);
  /// Takes out packets with a wrong checksum.
  void sort_out(Batch& batch, const bool* bad);
  void reset_counts();

  std::string device_;
  io::dpdk::ReceiveWants wants_;
  int burst_ = default_batch();
  int most_threads_ = -1;
  int first_thread_ = -1;
  bool timestamps_ = false;
  bool may_miss_ = false;
  bool spread_ = true;
  std::atomic<bool> active_{true};

  std::shared_ptr<io::dpdk::Plan> plan_;
  int number_ = -1;
  std::shared_ptr<io::dpdk::Port> port_;
  int first_queue_ = 0;
  std::atomic<bool> applied_{false};
  std::atomic<uint64_t> missed_before_{0};
  ThreadCounters counts_{kCounters};
  std::vector<std::unique_ptr<Task>> tasks_of_queues_;
  SoftwareRss rss_{*this, [this](Batch& batch) { output(0).push(batch); }};
};

HEADRACE_ELEMENT(FromDPDKDevice)

}  // namespace headrace
