#pragma once
#include <atomic>
#include <headrace/element.hh>

#include "elements/ethernet/ARPTable.hh"

namespace headrace {

/// Encapsulates IP packets for an Ethernet and resolves the destination addresses by ARP (RFC 826; RFC 1122, 2.3.2).
///
///     ARPQuerier(IP, ETH [, keyword TABLE, CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, CAPACITY_SLIM_FACTOR,
///                TIMEOUT, POLL_TIMEOUT, BROADCAST, BROADCAST_POLL, WAIT])
///     ARPQuerier(NAME, ...)
///
/// Input 0: IP packets whose destination address annotation is the next-hop host on the link. Input 1: ARP replies
/// with their Ethernet headers. Output 0: the IP packets with Ethernet headers. Packets for a host whose address is not
/// known wait for the reply. Output 1 (optional): ARP requests, at most ten per second and host; without it they leave
/// by output 0. Output 2 (optional): IP packets for a host that does not answer, for ICMPError(..., unreachable, host)
/// (RFC 1812, 3.3.2); with it, ARPQuerier repeats the request once per second until WAIT expires. Without it, packets
/// wait until the entry expires.
///
/// All replies are accepted, including unsolicited ones, except those that claim this host's own address, a broadcast
/// or multicast address, or an Ethernet group address: these are counted as drops.
///
/// Packets for 255.255.255.255 and BROADCAST go to all hosts, those for multicast addresses to the Ethernet group of
/// RFC 1112. Packets for 0.0.0.0 are dropped.
///
/// IP, ETH: the addresses of this host on the link; NAME stands for both (see AddressInfo).
/// TABLE: an ARPTable, instead of a private table; then CAPACITY to TIMEOUT, described with ARPTable, are ignored.
/// POLL_TIMEOUT: an address older than this is polled while it is in use: three times by unicast, then by broadcast
/// (RFC 1122, 2.3.2.1). Default 1 minute; 0: no polling.
/// BROADCAST: the link's broadcast address. Default: that of the network if IP has a prefix.
/// BROADCAST_POLL true: all polls are broadcast. Default false.
/// WAIT: how long packets wait before they leave by output 2. Default 3 seconds.
///
/// In a hot swap the table and the waiting packets are transferred to the new ARPQuerier if it has the same addresses.
///
/// Handlers: `ipaddr`, `broadcast` (rw); `table` (r, as in ARPTable); `stats` (r) drops and requests, as text;
/// `queries` (r) requests sent; `responses` (r) replies received; `drops` (r) packets dropped at once; `count` (r)
/// addresses in the table; `length` (r) waiting packets; `insert` (w) "IP ETH"; `delete` (w) IP; `clear` (w) the table
/// and the counts.
class ARPQuerier final : public Element {
 public:
  static constexpr Ports kPorts{"2/1-3"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"xy/x"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(Read{anno::dst_ip}, Read{Span<Anchor::kAnno, anno_offset::kVlanTci, 2>{}});
  }
  Status initialize(Errors& errors) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  void run_timer(Timer& timer) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return own_table_.waiting(); }
  std::vector<DropCount> drop_counts() const override;

 private:
  /// Ethernet headers of recent destinations, one for each thread: with few neighbors they save looking into the
  /// table.
  struct Cache {
    static constexpr size_t kSlots = 256;
    struct Slot {
      uint32_t ip = 0;          // network order
      uint32_t generation = 0;  // of the table; the table's is never 0
      int64_t good_until = 0;
      uint8_t header[sizeof(EtherHeader)] = {};
    };
    Slot slots[kSlots];
  };
  enum Count { kQueries, kDrops, kResponses, kCounts };
  enum Reason : int;

  void send(Batch& packets);
  /// Finds the header for `ip`, or takes the packet.
  bool resolve(Packet* p, IpAddress ip, int64_t& now, Cache::Slot& slot, Batch& out);
  /// With output 2: asks again for hosts that packets wait for, and gives up those that do not answer.
  void tend(Timer& timer);
  bool encapsulate(Packet* p, const Cache::Slot& slot);
  void keep(Cache::Slot& slot, IpAddress ip, EtherAddress to, int64_t good_until) const;
  /// Pushes a request, and before it what is in `out`.
  void send_request(const ArpTable::Question& question, EtherAddress to, Batch& out);
  void receive(Packet* reply, Batch& out);
  bool is_host(IpAddress ip) const;
  void refuse(Packet* p, Reason reason);
  void forget_headers();

  IpAddress ip_;
  EtherAddress ether_;
  IpAddress broadcast_;
  Interval poll_timeout_ = Interval::from_sec(60);
  bool broadcast_poll_ = false;
  ARPTable* shared_table_ = nullptr;
  ArpTable own_table_;
  ArpTable* table_ = &own_table_;
  Interval wait_ = Interval::from_sec(3);
  Timer timer_{this};
  Timer tend_timer_{this, [this](Timer& timer) { tend(timer); }};
  PerThread<Cache> caches_;
  ThreadCounters counts_{kCounts};
  std::atomic<bool> told_zero_ = false;
};

HEADRACE_ELEMENT(ARPQuerier)

}  // namespace headrace
