#pragma once
#include <headrace/element.hh>

#include "elements/standard/single_writer.hh"
#include "elements/standard/token_bucket.hh"

namespace headrace {

/// Pulls packets at a rate and pushes them on.
///
///     RatedUnqueue(RATE [, keyword BURST_DURATION, BURST_SIZE])
///
/// Input 0, pull; output 0, push. A token bucket sets the pace.
///
/// RATE: packets a second.
/// BURST_DURATION: the bucket holds what comes in this time. Default 20 ms.
/// BURST_SIZE: the bucket holds this many packets. Not together with BURST_DURATION.
///
/// Handlers: `rate`, `active` (rw); `calls` (r) how often it ran, how often in vain, packets moved and fruitless pulls.
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
  /// Tokens that must be there before a packet is pulled.
  virtual uint64_t threshold() const { return 1; }
  virtual uint64_t cost(const Packet&) const { return 1; }
  virtual Args& read_rate(Args& args, uint64_t& rate, Bandwidth&) {
    return args.read_mp("RATE", rate, Between{0, UINT32_MAX});
  }
  virtual const char* burst_keyword() const { return "BURST_SIZE"; }
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
