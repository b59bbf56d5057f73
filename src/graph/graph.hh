#pragma once
/// \file
/// Facts about a configuration's graph: port counts, push and pull, reuse and completeness, cycles. Pure functions over
/// values.

#include <string>
#include <vector>

#include "headrace/error.hh"

namespace headrace::graph {

/// What the checks need to know about an element.
struct Node {
  std::string declaration;  // "name :: Class"
  std::string ports;        // "1/1-2"
  std::string processing;   // "a/ah"
  std::string flow;         // "x/x"
  Landmark landmark;
};

struct End {
  int node = -1;
  int port = -1;
  bool operator==(const End&) const = default;
};

struct Edge {
  End from, to;
  Landmark landmark = {};  // of the connection
};

enum class Mode : unsigned char { kAgnostic, kPush, kPull };

/// The outcome for one node.
struct NodePorts {
  std::vector<Mode> inputs, outputs;  // resolved: never kAgnostic
};

struct Resolved {
  std::vector<NodePorts> nodes;
  /// Edges (indices) that close a cycle of push connections.
  std::vector<int> back_edges;
};

/// Checks everything and reports every violation in Click's words. `edges` must be free of duplicates.
Status resolve(const std::vector<Node>& nodes, const std::vector<Edge>& edges, Resolved& out, Errors& errors);

/// The numbers of inputs and outputs that `ports` gives to an element with connections up to these ports. False if the
/// text is not a port count.
bool count_ports(const std::string& ports, int used_inputs, int used_outputs, int& inputs, int& outputs);

/// True if packets that enter `input` may leave by `output`, by a flow code such as "x/x", "xy/x" or "#/#".
bool flows(const std::string& flow, int input, int output);

}  // namespace headrace::graph
