#include "graph/annotations.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace headrace::graph {

namespace {

bool covers_byte(const RegionInfo& r, int byte) { return r.offset <= byte && byte < r.offset + r.size; }

bool clashes(const RegionInfo& written, const RegionInfo& read) {
  if (!read.name) return false;
  if (!written.name) return written.offset != read.offset || written.size != read.size;
  return std::string_view(written.name) != read.name;
}

/// Follows each byte that a node writes to the nodes that read it.
class ClashSearch {
 public:
  ClashSearch(const std::vector<Node>& nodes, const std::vector<Edge>& edges,
              const std::vector<std::vector<RegionInfo>>& annotations)
      : nodes_(nodes), annotations_(annotations), edges_from_(nodes.size()) {
    for (const Edge& e : edges) edges_from_[static_cast<size_t>(e.from.node)].push_back(e);
  }

  std::vector<AnnotationClash> run() {
    for (size_t writer = 0; writer < nodes_.size(); ++writer)
      for (const RegionInfo& written : annotations_[writer])
        for (int byte = written.offset; written.writes && byte < written.offset + written.size; ++byte)
          if (someone_clashes(written, byte)) follow(static_cast<int>(writer), written, byte);
    const auto key = [](const AnnotationClash& c) {
      return std::tuple(c.reader, c.writer, c.read.offset, c.written.offset, c.read.size, c.written.size);
    };
    std::sort(found_.begin(), found_.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    found_.erase(
        std::unique(found_.begin(), found_.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); }),
        found_.end());
    return std::move(found_);
  }

 private:
  /// A quick check that saves most configurations the walk.
  bool someone_clashes(const RegionInfo& written, int byte) const {
    for (const std::vector<RegionInfo>& of_node : annotations_)
      for (const RegionInfo& r : of_node)
        if (r.reads && covers_byte(r, byte) && clashes(written, r)) return true;
    return false;
  }
  void follow(int writer, const RegionInfo& written, int byte) {
    std::vector<End> seen, todo;
    const auto leave = [&](int node, int input) {
      for (const Edge& e : edges_from_[static_cast<size_t>(node)]) {
        if (input >= 0 && !flows(nodes_[static_cast<size_t>(node)].flow, input, e.from.port)) continue;
        if (std::find(seen.begin(), seen.end(), e.to) != seen.end()) continue;
        seen.push_back(e.to);
        todo.push_back(e.to);
      }
    };
    leave(writer, -1);
    while (!todo.empty()) {
      const End at = todo.back();
      todo.pop_back();
      bool overwritten = false;
      for (const RegionInfo& r : annotations_[static_cast<size_t>(at.node)]) {
        if (!covers_byte(r, byte)) continue;
        if (r.reads && clashes(written, r)) found_.push_back({writer, at.node, written, r});
        overwritten |= r.writes;
      }
      if (!overwritten) leave(at.node, at.port);
    }
  }

  const std::vector<Node>& nodes_;
  const std::vector<std::vector<RegionInfo>>& annotations_;
  std::vector<std::vector<Edge>> edges_from_;
  std::vector<AnnotationClash> found_;
};

}  // namespace

std::vector<AnnotationClash> find_annotation_clashes(const std::vector<Node>& nodes, const std::vector<Edge>& edges,
                                                     const std::vector<std::vector<RegionInfo>>& annotations) {
  return ClashSearch(nodes, edges, annotations).run();
}

std::vector<uint64_t> live_annotations(const std::vector<Edge>& edges,
                                       const std::vector<std::vector<RegionInfo>>& annotations) {
  static constexpr int kShared = 48;
  const auto bytes_of = [](const RegionInfo& r) {
    uint64_t bytes = 0;
    for (int byte = r.offset; byte < std::min(r.offset + r.size, kShared); ++byte) bytes |= uint64_t{1} << byte;
    return bytes;
  };
  std::vector<uint64_t> live(annotations.size(), 0), set(annotations.size(), 0);
  for (size_t node = 0; node < annotations.size(); ++node)
    for (const RegionInfo& r : annotations[node]) {
      if (r.reads) live[node] |= bytes_of(r);
      if (r.sets) set[node] |= bytes_of(r);
    }
  // Backwards along connections until nothing is added.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& e : edges) {
      const auto from = static_cast<size_t>(e.from.node);
      const uint64_t more = live[static_cast<size_t>(e.to.node)] & ~(e.from.port == 0 ? set[from] : 0);
      changed |= (more & ~live[from]) != 0;
      live[from] |= more;
    }
  }
  return live;
}

std::string annotation_text(const RegionInfo& r) {
  const std::string bytes =
      r.size == 1 ? fmt::format("byte {}", r.offset) : fmt::format("bytes {} to {}", r.offset, r.offset + r.size - 1);
  return r.name ? fmt::format("{} ({})", r.name, bytes) : bytes;
}

}  // namespace headrace::graph
