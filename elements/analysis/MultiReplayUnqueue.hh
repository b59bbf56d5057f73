#pragma once
#include "elements/analysis/replay.hh"

namespace headrace {

/// Loads packets into memory, then sends them repeatedly, each by the output with the number of its input.
///
///     MultiReplayUnqueue([keyword STOP, STOP_TIME, BURST, LIMIT, ACTIVE, VERBOSE, FREEONTERMINATE, USE_SIGNAL,
///                        QUICK_CLONE])
///
/// One or more inputs, pull; as many outputs, push. All packets are sorted by timestamp; their paint annotation is the
/// number of the input. Loading ends when an input has no more packets.
///
/// The keywords are those of ReplayUnqueue.
///
/// Handlers: `active` (rw); `stop` (rw) loops left; `loaded` (r) whether loading has ended; `reset` (w) drops the
/// packets and loads again.
class MultiReplayUnqueue final : public Replay {
 protected:
  int output_for(int input) const override { return input; }
};

HEADRACE_ELEMENT(MultiReplayUnqueue)

}  // namespace headrace
