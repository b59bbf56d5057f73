#pragma once
#include <headrace/element.hh>
#include <memory>

#include "tables/mac/mac_table.hh"

namespace headrace {

/// A learning Ethernet switch.
///
///     EtherSwitch([keyword TIMEOUT, CAPACITY])
///
/// Input i and output i, push, two or more of each: the frames of one network. The switch learns the port of an
/// Ethernet address from the source addresses of frames. A frame for a known address leaves by that port, or is dropped
/// if it came from there; a frame for an unknown or a group address leaves by all outputs except the one of its input.
///
/// TIMEOUT: seconds of silence after which an address is forgotten; 0: no learning. Default 300.
/// CAPACITY: maximum number of addresses; without room, a new address replaces the one in the same hash bucket that has
/// been silent for the longest time. Default 16384.
///
/// Handlers: `table` (r) one line "address port" per known address; `timeout` (rw); `count` (r) known addresses;
/// `flush` (w) forgets all.
class EtherSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"2-/="};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"#/[^#]"};

  Status configure(Args& args) override;
  void push(int port, Batch& batch) override;
  void add_handlers(Handlers& handlers) override;
  void take_state(Element& old, Errors& errors) override;

 private:
  void flood(int from, Batch& batch);

  std::unique_ptr<MacTable> table_;
};

HEADRACE_ELEMENT(EtherSwitch)

}  // namespace headrace
