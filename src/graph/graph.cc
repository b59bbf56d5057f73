#include "graph/graph.hh"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string_view>

namespace headrace::graph {

namespace {

constexpr int kMany = std::numeric_limits<int>::max();

/// Reads "2", "1-", "1-2", "-" from the front of `text`.
bool read_range(std::string_view& text, int& low, int& high) {
  const auto number = [&text](int& n) {
    if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return false;
    n = 0;
    while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) && n < 100000) {
      n = n * 10 + (text[0] - '0');
      text.remove_prefix(1);
    }
    return true;
  };
  const bool has_low = number(low);
  if (!has_low) low = 0;
  if (text.empty() || text[0] != '-') {
    high = low;
    return has_low;
  }
  text.remove_prefix(1);
  if (!number(high)) high = kMany;
  return true;
}

int within(int n, int low, int high) { return std::min(std::max(n, low), high); }

/// The code of port `port` in one side of a processing or flow text, whose last code repeats.
char code_at(std::string_view side, int port) {
  if (side.empty()) return 'a';
  return side[std::min<size_t>(port, side.size() - 1)];
}

/// The letters that one side of a flow code gives to a port: one letter or, in brackets, several letters, or all but
/// these. `#` stands for the port's own number.
struct FlowSet {
  bool complement = false;
  std::string_view letters;
  int port = 0;

  bool contains(char letter, int of_port) const {
    return (letters.find(letter) != std::string_view::npos && (letter != '#' || of_port == port)) != complement;
  }
};

FlowSet flow_set_at(std::string_view side, int port) {
  FlowSet set{false, "x", port};
  for (int i = 0; i <= port && !side.empty(); ++i) {
    const size_t end = side[0] == '[' ? side.find(']') : 0;
    set.letters = side[0] == '[' ? side.substr(1, end - 1) : side.substr(0, 1);
    set.complement = set.letters.starts_with('^');
    if (set.complement) set.letters.remove_prefix(1);
    side.remove_prefix(std::min(end, side.size() - 1) + 1);
  }
  return set;
}

void split_sides(std::string_view text, std::string_view& left, std::string_view& right) {
  const size_t slash = text.find('/');
  left = text.substr(0, slash);
  right = slash == std::string_view::npos ? left : text.substr(slash + 1);
}

Mode mode_of(char code) {
  switch (std::tolower(static_cast<unsigned char>(code))) {
    case 'h':
      return Mode::kPush;
    case 'l':
      return Mode::kPull;
    default:
      return Mode::kAgnostic;
  }
}

const char* word(Mode m) { return m == Mode::kPull ? "pull" : "push"; }

class Resolver {
 public:
  Resolver(const std::vector<Node>& nodes, const std::vector<Edge>& edges, Resolved& out, Errors& errors)
      : nodes_(nodes), edges_(edges), out_(out), errors_(errors) {}

  Status run() {
    const int before = errors_.error_count();
    count();
    if (errors_.error_count() == before) spread();
    if (errors_.error_count() == before) check_reuse(), check_unused();
    if (errors_.error_count() != before) return Status::failed();
    find_back_edges();
    return {};
  }

 private:
  void count() {
    std::vector<int> ins(nodes_.size(), 0), outs(nodes_.size(), 0);
    for (const Edge& e : edges_) {
      outs[e.from.node] = std::max(outs[e.from.node], e.from.port + 1);
      ins[e.to.node] = std::max(ins[e.to.node], e.to.port + 1);
    }
    out_.nodes.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      int inputs = 0, outputs = 0;
      if (!count_ports(nodes_[i].ports, ins[i], outs[i], inputs, outputs)) {
        (void)errors_.error_at(nodes_[i].landmark, "'{}': bad port count", nodes_[i].declaration);
        continue;
      }
      std::string_view left, right;
      split_sides(nodes_[i].processing, left, right);
      for (int p = 0; p < inputs; ++p) out_.nodes[i].inputs.push_back(mode_of(code_at(left, p)));
      for (int p = 0; p < outputs; ++p) out_.nodes[i].outputs.push_back(mode_of(code_at(right, p)));
    }
    for (const Edge& e : edges_) {
      if (e.to.port >= static_cast<int>(out_.nodes[e.to.node].inputs.size()))
        (void)errors_.error_at(nodes_[e.to.node].landmark, "'{}' has no input {}", nodes_[e.to.node].declaration,
                               e.to.port);
      if (e.from.port >= static_cast<int>(out_.nodes[e.from.node].outputs.size()))
        (void)errors_.error_at(nodes_[e.from.node].landmark, "'{}' has no output {}", nodes_[e.from.node].declaration,
                               e.from.port);
    }
  }

  /// Gives agnostic ports the mode of the ports that they are connected to, and passes it on through elements as flow
  /// codes allow.
  void spread() {
    struct Link {
      End from, to;
      bool inner;  // from an element's output to its own input
      const Landmark& landmark;
      bool broken = false;
    };
    std::vector<Link> links;
    for (const Edge& e : edges_) links.push_back({e.from, e.to, false, e.landmark});
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const NodePorts& ports = out_.nodes[n];
      for (size_t i = 0; i < ports.inputs.size(); ++i)
        for (size_t o = 0; o < ports.outputs.size(); ++o)
          if (ports.inputs[i] == Mode::kAgnostic && ports.outputs[o] == Mode::kAgnostic &&
              flows(nodes_[n].flow, static_cast<int>(i), static_cast<int>(o)))
            links.push_back({{static_cast<int>(n), static_cast<int>(o)},
                             {static_cast<int>(n), static_cast<int>(i)},
                             true,
                             nodes_[n].landmark});
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (Link& link : links) {
        if (link.broken) continue;
        Mode& from = out_.nodes[link.from.node].outputs[link.from.port];
        Mode& to = out_.nodes[link.to.node].inputs[link.to.port];
        if (from == to) continue;
        if (from == Mode::kAgnostic) {
          from = to;
          changed = true;
        } else if (to == Mode::kAgnostic) {
          to = from;
          changed = true;
        } else {
          link.broken = true;
          if (link.inner)
            (void)errors_.error_at(link.landmark, "agnostic '{}' in mixed context: {} input {}, {} output {}",
                                   nodes_[link.from.node].declaration, word(to), link.to.port, word(from),
                                   link.from.port);
          else
            (void)errors_.error_at(link.landmark, "'{}' {} output {} connected to '{}' {} input {}",
                                   nodes_[link.from.node].declaration, word(from), link.from.port,
                                   nodes_[link.to.node].declaration, word(to), link.to.port);
        }
      }
    }
    for (NodePorts& ports : out_.nodes) {
      std::replace(ports.inputs.begin(), ports.inputs.end(), Mode::kAgnostic, Mode::kPush);
      std::replace(ports.outputs.begin(), ports.outputs.end(), Mode::kAgnostic, Mode::kPush);
    }
  }

  void check_reuse() {
    std::vector<std::vector<int>> ins(nodes_.size()), outs(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      ins[i].resize(out_.nodes[i].inputs.size());
      outs[i].resize(out_.nodes[i].outputs.size());
    }
    for (const Edge& e : edges_) {
      if (++ins[e.to.node][e.to.port] == 2 && out_.nodes[e.to.node].inputs[e.to.port] == Mode::kPull)
        (void)errors_.error_at(nodes_[e.to.node].landmark, "illegal reuse of '{}' pull input {}",
                               nodes_[e.to.node].declaration, e.to.port);
      if (++outs[e.from.node][e.from.port] == 2 && out_.nodes[e.from.node].outputs[e.from.port] == Mode::kPush)
        (void)errors_.error_at(nodes_[e.from.node].landmark, "illegal reuse of '{}' push output {}",
                               nodes_[e.from.node].declaration, e.from.port);
    }
    used_ins_ = std::move(ins);
    used_outs_ = std::move(outs);
  }

  void check_unused() {
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (size_t p = 0; p < used_ins_[i].size(); ++p)
        if (used_ins_[i][p] == 0)
          (void)errors_.error_at(nodes_[i].landmark, "'{}' input {} unused", nodes_[i].declaration, p);
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (size_t p = 0; p < used_outs_[i].size(); ++p)
        if (used_outs_[i][p] == 0)
          (void)errors_.error_at(nodes_[i].landmark, "'{}' output {} unused", nodes_[i].declaration, p);
  }

  /// Depth-first search over push ports; an edge to a port that is on the stack closes a cycle.
  void find_back_edges() {
    // One state for each node input, and the edges that leave each node.
    std::vector<std::vector<int>> leaving(nodes_.size());
    for (size_t e = 0; e < edges_.size(); ++e)
      if (out_.nodes[edges_[e].from.node].outputs[edges_[e].from.port] == Mode::kPush)
        leaving[edges_[e].from.node].push_back(static_cast<int>(e));
    enum : char { kNew, kOpen, kDone };
    std::vector<std::vector<char>> state(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) state[i].assign(out_.nodes[i].inputs.size(), kNew);

    struct Frame {
      End at;
      size_t next;
    };
    // First from where packets are pushed anew, so that a cycle is cut behind the element by which they enter it.
    std::vector<End> starts;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const std::vector<Mode>& inputs = out_.nodes[n].inputs;
      if (std::find(inputs.begin(), inputs.end(), Mode::kPush) != inputs.end()) continue;
      for (const int e : leaving[n]) starts.push_back(edges_[e].to);
    }
    for (size_t n = 0; n < nodes_.size(); ++n)
      for (size_t port = 0; port < state[n].size(); ++port)
        starts.push_back({static_cast<int>(n), static_cast<int>(port)});
    for (const End& start : starts) {
      if (state[start.node][start.port] != kNew) continue;
      std::vector<Frame> stack{{start, 0}};
      state[start.node][start.port] = kOpen;
      while (!stack.empty()) {
        Frame& top = stack.back();
        const std::vector<int>& out = leaving[top.at.node];
        if (top.next == out.size()) {
          state[top.at.node][top.at.port] = kDone;
          stack.pop_back();
          continue;
        }
        const int e = out[top.next++];
        const Edge& edge = edges_[e];
        if (!flows(nodes_[top.at.node].flow, top.at.port, edge.from.port)) continue;
        char& s = state[edge.to.node][edge.to.port];
        if (s == kOpen) {
          out_.back_edges.push_back(e);
        } else if (s == kNew) {
          s = kOpen;
          stack.push_back({edge.to, 0});
        }
      }
    }
    std::sort(out_.back_edges.begin(), out_.back_edges.end());
    out_.back_edges.erase(std::unique(out_.back_edges.begin(), out_.back_edges.end()), out_.back_edges.end());
  }

  const std::vector<Node>& nodes_;
  const std::vector<Edge>& edges_;
  Resolved& out_;
  Errors& errors_;
  std::vector<std::vector<int>> used_ins_, used_outs_;
};

}  // namespace

bool count_ports(const std::string& ports, int used_inputs, int used_outputs, int& inputs, int& outputs) {
  std::string_view text = ports;
  int in_low, in_high, out_low, out_high;
  if (!read_range(text, in_low, in_high)) return false;
  inputs = within(used_inputs, in_low, in_high);
  if (text.empty()) {
    outputs = within(used_outputs, in_low, in_high);
    return true;
  }
  if (text[0] != '/') return false;
  text.remove_prefix(1);
  if (!text.empty() && text[0] == '=') {
    // "=": as many outputs as inputs; each '+' one more.
    if (text.find_first_not_of('+', 1) != std::string_view::npos) return false;
    const int more = static_cast<int>(text.size()) - 1;
    outputs = inputs + more;
    return true;
  }
  if (!read_range(text, out_low, out_high) || !text.empty()) return false;
  outputs = within(used_outputs, out_low, out_high);
  return true;
}

bool flows(const std::string& flow, int input, int output) {
  std::string_view left, right;
  split_sides(flow, left, right);
  const FlowSet in = flow_set_at(left, input), out = flow_set_at(right, output);
  if (in.complement && out.complement) return true;
  const FlowSet& listed = in.complement ? out : in;
  const FlowSet& other = in.complement ? in : out;
  return std::any_of(listed.letters.begin(), listed.letters.end(),
                     [&](char letter) { return other.contains(letter, listed.port); });
}

Status resolve(const std::vector<Node>& nodes, const std::vector<Edge>& edges, Resolved& out, Errors& errors) {
  return Resolver(nodes, edges, out, errors).run();
}

}  // namespace headrace::graph
