#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>

#include "headrace/end_call.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// Creates packets as fast as they are taken.
///
///     InfiniteSource([DATA, LIMIT, BURST, ACTIVE, keyword TIMESTAMP, LENGTH, STOP, END_CALL])
///
/// Output 0, push: sends BURST packets whenever its task runs, and sleeps while all downstream queues are full. Pull: a
/// packet for each pull.
///
/// DATA: the bytes of each packet. Default: a text of 69 bytes.
/// LIMIT: packets to send; negative: no limit. Default -1.
/// BURST: packets sent in a row, which downstream elements see as a batch. Default 1.
/// ACTIVE false: sends nothing. Default true.
/// TIMESTAMP false: packets get no timestamp. Default true.
/// LENGTH: length of each packet; DATA is cut or repeated. Default: as long as DATA.
/// STOP true: stops the router once LIMIT packets were sent. Default false.
/// END_CALL: a write handler called once LIMIT packets were sent. Not together with STOP.
///
/// Handlers: `count` (r) packets made; `reset` (w) counts from 0 again; `data`, `length`, `limit`, `burst`, `active`
/// (rw).
class InfiniteSource final : public Element, public OneWayPort {
 public:
  static constexpr Ports kPorts{"0/1"};

  InfiniteSource() : OneWayPort(Direction::kIn) {}
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool can_live_reconfigure() const override { return true; }
  Status live_reconfigure(Args& args) override;

  int pull(int port, Batch& batch, int max) override;
  bool run_task(Task& task) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 private:
  Status make_bytes(Errors& errors);
  /// The lesser of `n` and what LIMIT leaves.
  uint64_t remaining(uint64_t n) const;
  /// Appends up to `n` packets.
  int make(Batch& batch, int n);
  void changed();

  std::string data_;
  int64_t limit_ = -1;
  int burst_ = 1;
  int length_ = -1;
  bool active_ = true;
  bool timestamp_ = true;
  EndCall end_;

  std::string bytes_;
  SingleWriter<uint64_t> count_;
  Task task_{this};
  Signal nonfull_;
  Notifier nonempty_;
};

HEADRACE_ELEMENT(InfiniteSource)

}  // namespace headrace
