#pragma once
#include <headrace/element.hh>

#include "elements/ethernet/neighbor_table.hh"

namespace headrace {

/// An ARP table for several ARPQueriers.
///
///     ARPTable([keyword CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, CAPACITY_SLIM_FACTOR, TIMEOUT])
///
/// It has no ports; ARPQuerier(..., TABLE name) uses it.
///
/// CAPACITY: maximum number of waiting packets. Default 2048; 0: any number.
/// ENTRY_CAPACITY: maximum number of entries; the oldest are removed first. Default 65536; 0: any number.
/// ENTRY_PACKET_CAPACITY: maximum number of packets waiting for one address. Default 0: any number.
/// CAPACITY_SLIM_FACTOR: when CAPACITY is exceeded, one of every CAPACITY_SLIM_FACTOR waiting packets is dropped.
/// Default 2.
/// TIMEOUT: the time after which an entry expires. Default 5 minutes; 0: never.
///
/// Handlers: `table` (r) one address per line: IP address, 1 if known, Ethernet address, seconds since it was
/// confirmed;
/// `drops` (r) packets dropped while waiting; `count` (r) addresses; `length` (r) waiting packets; `insert` (w) "IP
/// ETH"; `delete` (w) IP; `clear` (w).
class ARPTable final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  void run_timer(Timer& timer) override;
  void take_state(Element& old, Errors&) override { table_.take(static_cast<ARPTable&>(old).table_); }
  uint64_t held_packets() const override { return table_.waiting(); }
  std::vector<DropCount> drop_counts() const override;

  ArpTable& table() { return table_; }

 private:
  ArpTable table_;
  Timer timer_{this};
};

HEADRACE_ELEMENT(ARPTable)

}  // namespace headrace
