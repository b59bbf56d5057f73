#pragma once
/// \file
/// Random frames, and random rules for an OpenFlow switch that have something to do with them.

#include <random>

#include "support/openflow_switch.hh"

namespace headrace::testing {

/// Frames of all kinds that OpenFlow knows, with values from small sets, so that rules match them.
OpenFlowFrame random_openflow_frame(std::mt19937& random);

struct RandomRulesOptions {
  int tables = 4, entries = 24, groups = 4;
  bool simple = false;  ///< only programs that a device can do
};
OpenFlowRules random_openflow_rules(std::mt19937& random, uint32_t ports, const RandomRulesOptions& options);

}  // namespace headrace::testing
