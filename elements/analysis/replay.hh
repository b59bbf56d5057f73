#pragma once
/// \file
/// What ReplayUnqueue and MultiReplayUnqueue share.

#include <vector>

#include "headrace/element.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Keeps all packets of its inputs in memory, in the order of their timestamps, and sends them in loops.
class Replay : public Element {
 public:
  static constexpr Ports kPorts{"1-/="};
  static constexpr Processing kProcessing{"l/h"};
  static constexpr Flow kFlow{"#/#"};

  ~Replay() override;
  /// Reads the common keywords, after those of a class of its own.
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  uint64_t held_packets() const override { return packets_.size() - first_; }

 protected:
  /// The output of a packet that came by input `input`.
  virtual int output_for(int input) const = 0;

  SingleWriter<uint32_t> timing_ = 0u;  // percent of the original speed; 0: as fast as possible

 private:
  struct Loaded {
    Packet* packet;
    int input;
  };
  /// Takes packets from the inputs; true when there are no more to take.
  bool load();
  /// Packets that were not sent are dropped; what the inputs then have is loaded.
  void forget();
  void begin_loop();
  /// How long the packet at `next_` is not yet due; 0 if it is.
  Timestamp wait(Timestamp now) const;
  bool out_of_time(Timestamp now) const;
  /// After the last packet of a loop.
  void end_loop(Timestamp now);
  void finish();

  SingleWriter<int32_t> loops_ = -1;  // left; negative: without end
  uint32_t stop_time_ = 0;
  uint32_t burst_ = 64;
  int32_t limit_ = -1;
  bool active_ = true;
  bool verbose_ = false;
  bool free_at_end_ = true;
  bool use_signal_ = true;

  SingleWriter<bool> loaded_ = false;
  std::vector<Packet*> heads_;  // of the inputs, while they are loaded
  std::vector<Signal> signals_;
  std::vector<Loaded> packets_;
  size_t first_ = 0;  // packets before this one were sent in the last loop, and are gone
  size_t next_ = 0;
  Timestamp loop_began_;        // steady time
  Timestamp first_loop_began_;  // steady time; 0: none yet
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
};

}  // namespace headrace
