#pragma once
#include <headrace/element.hh>

#include "elements/standard/token_bucket.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Pulls packets at a rate and pushes them on.
///
///     RatedUnqueue(RATE [, keyword BURST_DURATION, BURST_SIZE])
///
/// Input 0, pull; output 0, push. A token bucket sets the pace.
///
/// RATE: packets per second.
/// BURST_DURATION: the bucket holds the tokens of this time. Default 20 ms.
/// BURST_SIZE: the bucket holds this many packets. Not together with BURST_DURATION.
///
/// Handlers: `rate`, `active` (rw); `calls` (r) number of runs, runs without work, packets moved and failed pulls.
class RatedUnqueue : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"l/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;

 protected:
  /// RATE is a bandwidth, and a packet costs its length.
  virtual bool is_bandwidth() const { return false; }
  virtual uint64_t cost(const Packet&) const { return 1; }
  virtual std::string unparse_rate() const { return std::to_string(bucket_.rate()); }
  /// Packets moved in a row.
  virtual int most() const;

  TokenBucket bucket_;

 private:
  bool active_ = true;
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
  Signal signal_;
  SingleWriter<uint64_t> runs_, pushes_, failed_pulls_, empty_runs_;
};

HEADRACE_ELEMENT(RatedUnqueue)

}  // namespace headrace
