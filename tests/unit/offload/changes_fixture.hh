#pragma once
/// \file
/// Tests of something that changes while packets of many flows are counted by it: on the CPU and on devices that are late,
/// hang, fail, and are replaced together with the configuration.

#include <cstdint>
#include <random>
#include <string>

#include "flow_elements.hh"
#include "offload_fixture.hh"

namespace headrace::testing {

class OffloadChanges : public OffloadTest {
 protected:
  static constexpr int kWorkers = 3, kFlows = 20;  // flows of each worker

  // What is tested

  /// Called before each router is made, and when it is there.
  virtual void prepare() {}
  virtual void begin(LiveRouter& r) = 0;
  /// A configuration from a FlowSource of kFlows flows to a FlowSink, with `more` in front of what counts.
  virtual std::string text(const std::string& more) const = 0;
  /// Some changes, as many in each step.
  virtual void change(LiveRouter& r, std::mt19937& random) = 0;
  /// Whether what compare() wants to see has happened. It goes on until then, on a busy machine.
  virtual bool enough(LiveRouter& r) = 0;
  /// Compares what was counted with what came. \param swaps of configurations
  virtual void compare(LiveRouter& r, int swaps) = 0;

  // The tests

  /// Everything on the device, then half of it.
  void count_while_it_changes();
  void count_from_late_jobs();
  void count_from_a_device_that_hangs_and_one_that_fails();
  void count_before_and_after_swaps();

 private:
  /// Makes so many steps, and swaps the configuration meanwhile if there is `second`; then compares.
  void run(const OffloadOptions& options, int least_steps, const std::string& second = "", uint64_t least_late = 0);
  OffloadOptions usual() const;
  /// Jobs have a deadline that some of them miss.
  OffloadOptions with_late_jobs();
};

}  // namespace headrace::testing
