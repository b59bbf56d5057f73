#pragma once
#include <atomic>
#include <headrace/element.hh>

#include "elements/ethernet/neighbor_table.hh"

namespace headrace {

/// Encapsulates IPv6 packets for an Ethernet and resolves the destination addresses by Neighbor Discovery (RFC 4861).
///
///     IP6NDSolicitor(IP, ETH [, keyword CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, CAPACITY_SLIM_FACTOR,
///                    TIMEOUT, POLL_TIMEOUT, WAIT])
///
/// Input 0: IPv6 packets whose destination address annotation is the next-hop host on the link (GetIP6Address,
/// LookupIP6Route). Input 1: neighbor advertisements with their Ethernet headers, as Classifier(12/86dd 20/3aff 54/88)
/// selects them. Output 0: the IPv6 packets with Ethernet headers. Packets for a host whose address is not known wait
/// for the advertisement. Output 1 (optional): neighbor solicitations, at most one per second and host; without it they
/// leave by output 0. Output 2 (optional): IPv6 packets for a host that did not answer until WAIT expired; without it
/// they are dropped and counted.
///
/// Advertisements are processed by the rules of RFC 4861, 7.2.5; those for addresses that were not requested are
/// ignored. Invalid advertisements (checksum, code, option length, hop limit other than 255) are dropped and counted,
/// as are those that claim this host's own address or an Ethernet group address.
///
/// Packets for multicast addresses go to the Ethernet group of RFC 2464. Packets for :: are dropped.
///
/// IP, ETH: the addresses of this host on the link.
/// CAPACITY to CAPACITY_SLIM_FACTOR: limits of the table, as for ARPTable.
/// TIMEOUT: the time after which an address expires. Default 2 minutes; 0: never.
/// POLL_TIMEOUT: an address older than this is polled while it is in use: three times by unicast, then by
/// multicast. Default 1 minute; 0: no polling.
/// WAIT: how long packets wait; meanwhile the solicitation is repeated once per second. Default 3 seconds.
///
/// In a hot swap the table and the waiting packets are transferred to the new IP6NDSolicitor if it has the same
/// addresses.
///
/// Handlers: `table` (r) one address per line: IPv6 address, 1 if known, Ethernet address, seconds since it was
/// confirmed; `stats` (r) drops and solicitations, as text; `queries` (r) solicitations sent; `responses` (r) valid
/// advertisements received; `drops` (r) packets dropped; `count` (r) addresses in the table; `length` (r) waiting
/// packets; `insert` (w) "IP ETH"; `delete` (w) IP; `clear` (w) the table and the counts.
class IP6NDSolicitor final : public Element {
 public:
  static constexpr Ports kPorts{"2/1-3"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"xy/x"};

  IP6NDSolicitor();
  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(Read{anno::dst_ip6}, Read{Span<Anchor::kAnno, anno_offset::kVlanTci, 2>{}});
  }
  Status initialize(Errors& errors) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  void run_timer(Timer& timer) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return table_.waiting(); }
  std::vector<DropCount> drop_counts() const override;

 private:
  using Table = NeighborTable<Ip6Address>;
  /// Ethernet headers for recent destinations, as in ARPQuerier. Each thread has its own.
  struct Cache {
    static constexpr size_t kSlots = 256;
    struct Slot {
      Ip6Address ip;
      uint32_t generation = 0;  // of the table; the table's is never 0
      int64_t good_until = 0;
      uint8_t header[sizeof(EtherHeader)] = {};
    };
    Slot slots[kSlots];
  };
  enum Count { kQueries, kDrops, kResponses, kCounts };
  enum Reason : int;

  void send(Batch& packets);
  /// Fills `slot` with the header for `ip`. Returns false if the packet waits or was dropped instead.
  bool resolve(Packet* p, const Ip6Address& ip, int64_t& now, Cache::Slot& slot, Batch& out);
  bool encapsulate(Packet* p, const Cache::Slot& slot);
  void keep(Cache::Slot& slot, const Ip6Address& ip, EtherAddress to, int64_t good_until) const;
  /// Pushes the packets in `out`, then a solicitation: to the Ethernet address `to`, or by multicast if that is null.
  void solicit(const Table::Question& question, const EtherAddress* to, Batch& out);
  void receive(Packet* p, Batch& out);
  /// Repeats solicitations for hosts that packets wait for, and gives up on hosts that do not answer.
  void tend(Timer& timer);
  void refuse(Packet* p, Reason reason);
  void forget_headers();

  Ip6Address ip_;
  EtherAddress ether_;
  Interval poll_timeout_ = Interval::from_sec(60);
  Interval wait_ = Interval::from_sec(3);
  Table table_;
  Timer timer_{this};
  Timer tend_timer_{this, [this](Timer& timer) { tend(timer); }};
  PerThread<Cache> caches_;
  ThreadCounters counts_{kCounts};
};

HEADRACE_ELEMENT(IP6NDSolicitor)

}  // namespace headrace
