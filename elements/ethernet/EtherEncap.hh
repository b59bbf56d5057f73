#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Puts an Ethernet header in front of packets.
///
///     EtherEncap(ETHERTYPE, SRC, DST)
///
/// The MAC header annotation points to the new header. A packet whose buffer has no room is dropped and counted. For IP
/// packets to hosts on a link, ARPQuerier finds the destination.
///
/// ETHERTYPE: a number, such as 0x0800.
/// SRC, DST: Ethernet addresses.
///
/// Handlers: `ethertype` (also `etht`), `src`, `dst` (rw).
struct EtherEncap : Shader<EtherEncap> {
  static constexpr auto kRegions =
      regions(ReadWrite{meta::data}, ReadWrite{meta::length}, Write{meta::mac_header}, Write{eth::header});
  enum { kNoRoom };
  static constexpr auto kCounters = counters(reason("no room in front"));

  EtherHeaderBytes header{};

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  void move(Offsets& at) const { at.mac = at.data -= 14; }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (!p.push(14)) {
      p.count(kNoRoom);
      return kDrop;
    }
    p.set_mac_header();
    p.set(eth::header, header);
    return 0;
  }
};

HEADRACE_ELEMENT(EtherEncap)

}  // namespace headrace
