#pragma once
#include <headrace/element.hh>

#include "elements/standard/shared_bucket.hh"

namespace headrace {

/// Passes packets up to a rate and diverts the rest.
///
///     RatedSplitter(RATE [, keyword BURST_DURATION, BURST_SIZE])
///
/// Input 0, push. Output 0, push: up to RATE packets per second, regardless of the load. Output 1 (optional), push: the
/// others; without it they are dropped and counted. A token bucket shared by all workers decides.
///
/// RATE: packets per second.
/// BURST_DURATION: the bucket holds the tokens of this time. Default 20 ms.
/// BURST_SIZE: the bucket holds this many packets. Not together with BURST_DURATION.
///
/// Handlers: `rate` (rw).
class RatedSplitter : public Element {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;

 protected:
  /// RATE is a bandwidth, and a packet costs its length.
  virtual bool is_bandwidth() const { return false; }

 private:
  std::string unparse_rate() const;

  SharedBucket bucket_;
};

HEADRACE_ELEMENT(RatedSplitter)

}  // namespace headrace
