#pragma once
/// \file
/// Files of rules.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"
#include "tables/acl/acl_rule.hh"
#include "tables/key/key_match.hh"

namespace headrace {

/// A rule with what becomes of its packets.
struct FlowRule {
  static constexpr int kDrop = -1;
  static constexpr int kUnsaid = -2;  ///< the format has no outputs

  KeyMatch match;
  uint32_t priority = 32768;
  int output = kUnsaid;
  int line = 0;
  uint32_t number = 0;  ///< among the ClassBench rules of its file

  bool operator==(const FlowRule&) const = default;
};

/// The priority of a ClassBench rule: above all of OpenFlow's, and falling from rule to rule.
inline constexpr uint32_t kClassBenchPriority = 0x80000000u;

/// Reads one rule, which may be in either format:
///
/// - ClassBench's filter sets (D. E. Taylor, J. S. Turner, "ClassBench: A Packet Classification Benchmark", ToN 2007):
///   `@SRC/LENGTH DST/LENGTH LOW : HIGH LOW : HIGH PROTOCOL/MASK [FLAGS/MASK]`, about IPv4. FLAGS are checked and ignored,
///   as other readers of these sets do.
/// - ovs-ofctl's flows: `[priority=N,] MATCH [,] actions=ACTION`, where ACTION is `output:PORT`, `PORT` or `drop`. MATCH is
///   as for add_to_match(). `cookie=`, `table=0`, `idle_timeout=0` and `hard_timeout=0`, and the statistics that
///   `ovs-ofctl dump-flows` prints, are ignored.
///
/// Returns what is wrong, or an empty text. `rule.number` says how many ClassBench rules came before.
std::string parse_flow_rule(std::string_view text, FlowRule& rule);
/// The same without `actions`, and with nothing that is not a match or the priority: a flow to be removed.
std::string parse_flow_match(std::string_view text, FlowRule& rule);

/// In ovs-ofctl's format.
std::string unparse_flow_rule(const FlowRule& rule);

/// Appends the rules of a file, which may be compressed. `#` starts a comment. What is wrong with bad lines is in
/// `problems`, as "FILE:LINE: reason". Returns why the file cannot be read, or an empty text.
std::string read_flow_rules(const std::string& path, std::vector<FlowRule>& rules, std::vector<std::string>& problems);
/// Reads a text as if it was that file.
void read_flow_rules_text(std::string_view text, const std::string& path, std::vector<FlowRule>& rules,
                          std::vector<std::string>& problems);

/// For a table.
AclRule acl_rule(const FlowRule& rule, uint32_t data);

}  // namespace headrace
