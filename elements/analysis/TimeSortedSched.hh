#pragma once
#include <headrace/element.hh>
#include <vector>

#include "headrace/single_writer.hh"

namespace headrace {

/// Merges streams of packets by their timestamps.
///
///     TimeSortedSched([keyword STOP, BUFFER])
///
/// Any number of inputs and one output, pull. A pull returns the available packet with the earliest timestamp; each
/// input should deliver packets in timestamp order. Elements that pull from it sleep while there is no packet.
///
/// STOP true: stops the router when no packet is left and none will come soon. Default false.
/// BUFFER: packets buffered per input, 1 to 65536; a larger buffer sorts more reordering. Default 1.
///
/// Handlers: `well_ordered` (r) false if a packet came too late to leave in order.
class TimeSortedSched final : public Element {
 public:
  static constexpr Ports kPorts{"-/1"};
  static constexpr Processing kProcessing{"l/l"};

  ~TimeSortedSched() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;
  uint64_t held_packets() const override { return heap_.size(); }

 private:
  struct Held {
    Packet* packet;
    int input;
    uint64_t sequence;  // the order in which packets came
  };
  static bool later(const Held& a, const Held& b);
  /// Fills the places of inputs that have free ones.
  void fill();
  bool inputs_active() const;

  bool stop_ = false;
  uint32_t buffer_ = 1;
  std::vector<Signal> signals_;
  std::vector<uint32_t> held_;  // by input
  std::vector<Held> heap_;      // the earliest first
  uint64_t sequence_ = 0;
  Timestamp last_;
  SingleWriter<bool> well_ordered_ = true;
  Notifier ready_;
  /// Runs when an input has packets again.
  Task relay_{this, [this](Task&) {
                ready_.wake();
                return false;
              }};
};

HEADRACE_ELEMENT(TimeSortedSched)

}  // namespace headrace
