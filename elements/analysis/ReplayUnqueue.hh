#pragma once
#include "elements/analysis/replay.hh"

namespace headrace {

/// Loads packets into memory, then sends them repeatedly.
///
///     ReplayUnqueue([keyword STOP, STOP_TIME, TIMING, TIMING_FNT, BURST, LIMIT, ACTIVE, VERBOSE, FREEONTERMINATE,
///                   USE_SIGNAL, QUICK_CLONE])
///
/// One or more inputs, pull; as many outputs, push, of which only output 0 is used. Packets of several inputs are
/// sorted by timestamp; their paint annotation is the number of the input. Loading ends when an input has no more
/// packets.
///
/// STOP: number of loops, after which the router stops; negative: loops forever. Default -1.
/// STOP_TIME: seconds after which sending also ends; 0: no limit. Default 0.
/// TIMING: speed in percent of the original speed, as given by the timestamps; 0: as fast as possible. Default 0.
/// TIMING_FNT: FastClick's expressions are not supported: only `@0`, a constant TIMING, is accepted.
/// BURST: packets sent in a row. Default 64.
/// LIMIT: maximum number of packets loaded; negative: no limit. Default -1.
/// ACTIVE false: does nothing. Default true.
/// VERBOSE true: reports loading and loops. Default false.
/// FREEONTERMINATE true: the last loop sends the packets themselves instead of copies. Default true.
/// USE_SIGNAL true: an input is at its end when the upstream queue signals that it is empty; false: as soon as a pull
/// returns no packet. Default true.
/// QUICK_CLONE: accepted but ignored: packets that are sent are always copies.
///
/// Handlers: `active` (rw); `stop` (rw) loops left; `timing` (rw); `loaded` (r) whether loading has ended; `reset` (w)
/// drops the packets and loads again.
class ReplayUnqueue final : public Replay {
 public:
  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;

 protected:
  int output_for(int) const override { return 0; }
};

HEADRACE_ELEMENT(ReplayUnqueue)

}  // namespace headrace
