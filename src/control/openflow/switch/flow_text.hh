#pragma once
/// \file
/// Flow entries in the syntax of ovs-ofctl(8).

#include <string>
#include <string_view>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"

namespace headrace::openflow {

/// Reads a flow to be added: `[table=T,] [priority=P,] [cookie=C,] [idle_timeout=S,] [hard_timeout=S,] [FLAGS,] MATCH
/// [,] actions=ACTIONS`. MATCH is as for add_to_match(), and ports may have the names of reserved ones. FLAGS:
/// send_flow_rem, check_overlap, reset_counts, no_packet_counts, no_byte_counts. Statistics that `ovs-ofctl dump-flows`
/// prints are ignored. ACTIONS have the form of ovs-actions(7), as far as OpenFlow 1.0 and 1.3 have such actions and
/// instructions. Returns what is wrong, or an empty text. Whether ports, groups and meters exist is not checked.
std::string parse_flow(std::string_view text, FlowMod& mod);

/// A flow of a file.
struct FlowLine {
  FlowMod mod;
  std::string where;  ///< "FILE:LINE"
};

/// Appends the flows of a file, which may be compressed. `#` starts a comment. What is wrong with bad lines is in
/// `problems`, as "FILE:LINE: reason". Returns why the file cannot be read, or an empty text.
std::string read_flows(const std::string& path, std::vector<FlowLine>& flows, std::vector<std::string>& problems);

/// A line as `ovs-ofctl dump-flows` prints it, without its end; parse_flow() reads it.
std::string unparse_flow(const FlowStats& flow);
std::string unparse_actions(const std::vector<Action>& actions);
std::string unparse_instructions(const std::vector<Instruction>& instructions);
/// "LOCAL", "CONTROLLER", "7".
std::string unparse_port(uint32_t port);

}  // namespace headrace::openflow
