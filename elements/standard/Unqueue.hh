#pragma once
#include <headrace/element.hh>

#include "headrace/single_writer.hh"

namespace headrace {

/// Pulls packets and pushes them on.
///
///     Unqueue([BURST, keyword ACTIVE, LIMIT])
///
/// Input 0, pull; output 0, push. Sleeps while there is nothing to pull.
///
/// BURST: maximum number of packets moved in a row; negative: no limit. Default 1.
/// ACTIVE false: does nothing. Default true.
/// LIMIT: packets to move in all; negative: no limit. Default -1.
///
/// Handlers: `count` (r) packets moved; `reset` (w) counts from 0 again; `active`, `burst`, `limit` (rw).
class Unqueue final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"l/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;

 private:
  int32_t burst_ = 1;
  bool active_ = true;
  int32_t limit_ = -1;
  SingleWriter<uint32_t> count_;
  Task task_{this};
  Signal signal_;
};

HEADRACE_ELEMENT(Unqueue)

}  // namespace headrace
