#pragma once
#include <headrace/element.hh>
#include <vector>

#include "headrace/headers.hh"

namespace headrace {

/// Answers ARP requests (RFC 826), also for others (proxy ARP).
///
///     ARPResponder(IP/MASK [IP/MASK ...] ETH, IP2/MASK2 ETH2, ...)
///
/// Input: ARP requests with their Ethernet headers. Output 0: for each request for an address in one of the networks, a
/// reply with that network's ETH; if several networks match, the smallest is used. The VLAN TCI annotation of the
/// request is copied. Output 1 (optional): everything else; without it that is dropped and counted.
///
/// An argument may be one name that stands for both an IP address and an Ethernet address (see AddressInfo).
///
/// Handlers: `table` (r) one network per line; `lookup` (r, parameter IP address) its Ethernet address, if any;
/// `add` (w) networks and an address, as in an argument; `remove` (w) one network.
class ARPResponder final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(Read{Span<Anchor::kAnno, anno_offset::kVlanTci, 2>{}});
  }

 private:
  /// Networks, smaller ones before those that contain them.
  struct Entry {
    IpPrefix network;
    EtherAddress ether;
  };
  using Table = std::vector<Entry>;

  /// Adds the networks of one argument; errors that are to be reported begin with `context`.
  static Status add(Table& table, std::string_view argument, NameScope* scope, const std::string& context, bool warn,
                    Errors& errors);
  static void insert(Table& table, const Entry& entry, bool warn, Errors& errors);
  const EtherAddress* lookup(IpAddress address) const;

  Table table_;
};

HEADRACE_ELEMENT(ARPResponder)

}  // namespace headrace
