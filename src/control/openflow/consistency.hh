#pragma once
/// \file
/// Whether the actions of a flow entry fit the packets that it matches.

#include <vector>

#include "control/openflow/actions.hh"

namespace headrace::openflow {

/// Follows the actions of an entry of 1.3 in the order in which they run: an action on a header that the match, and the
/// actions before it, do not promise is BAD_ACTION/MATCH_INCONSISTENT (ONF TS-023, sections 5.12 and 7.4.4). kNone if all fit.
/// Entries of 1.0 need no check: their actions change nothing in packets without the header.
ErrorCode check_consistency(const KeyMatch& match, const std::vector<Instruction>& instructions);

}  // namespace headrace::openflow
