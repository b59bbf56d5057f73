#pragma once
#include <headrace/element.hh>
#include <headrace/touches_machine.hh>
#include <memory>
#include <string>

#include "control/openflow/switch/switch.hh"

namespace headrace {

/// The control side of an OpenFlow switch; OpenFlowSwitch has it beside the tables.
///
///     OpenFlowControl(DPID [, keyword LOCAL, and the keywords of OpenFlowSwitch])
///
/// Output i: packets that controllers send by port i + 1 (packet-out). LOCAL true: the last output is the port LOCAL.
///
/// Tables, counters and connections belong to the process: the OpenFlowControl of the next configuration that has the same
/// DPID goes on with them. An OpenFlowTables whose NAME is the DPID, as 16 hexadecimal digits, looks packets up in them.
class OpenFlowControl final : public Element, public TouchesMachine, private openflow::SwitchHost {
 public:
  static constexpr Ports kPorts{"0/1-"};
  static constexpr Processing kProcessing{"h/h"};

  OpenFlowControl();
  ~OpenFlowControl() override;

  int configure_phase() const override { return kInfoPhase; }
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  void take_state(Element& old, Errors& errors) override;
  void leave_control() override;

 private:
  class Sink;
  enum Reason { kDropped, kNoPort, kClosed, kNoRoom, kMetered, kNoBuffer, kTooDeep, kInvalidTtl, kNoEntry };

  // SwitchHost
  void packets_wait() override { task_.reschedule(); }
  std::vector<openflow::SwitchPorts::Ends> ends() const override;
  openflow::SwitchPorts::Ends local_ends() const override { return ends_of(static_cast<int>(options_.ports)); }
  openflow::SwitchPorts::Ends ends_of(int place) const;

  /// Takes the switch over once this configuration runs: it may not come to that, and until then the one before has it.
  void adopt_later();

  openflow::SwitchOptions options_;
  std::unique_ptr<openflow::Channel::Setup> setup_;  // until then
  std::shared_ptr<openflow::Switch> switch_;
  std::shared_ptr<openflow::SwitchDatapath> datapath_;  // when the switch was left
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  Task task_{this};
};

HEADRACE_ELEMENT(OpenFlowControl)

}  // namespace headrace
