#pragma once
/// \file
/// Annotations that elements on one path use for different things. Pure functions over values.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hh"
#include "headrace/fields.hh"

namespace headrace::graph {

/// One element writes bytes of an annotation, and an element after it reads them as another annotation.
struct AnnotationClash {
  int writer = -1, reader = -1;  // nodes
  RegionInfo written, read;
};

/// Finds the clashes, ordered by reader. A write hides earlier writes of the same byte. A node that reads bytes without
/// a name (chosen by an argument) accepts whatever is there. A node that writes such bytes clashes with a reader,
/// unless they are exactly the bytes that the reader reads.
/// \param annotations what each node reads and writes, see Element::annotations()
std::vector<AnnotationClash> find_annotation_clashes(const std::vector<Node>& nodes, const std::vector<Edge>& edges,
                                                     const std::vector<std::vector<RegionInfo>>& annotations);

/// For each node, the bytes of annotations (bit i: byte i) of a packet that arrives there that it, or a node behind it, may
/// read before something else is written to them. Bytes behind the 48 of Click are a node's own, so nobody reads them.
std::vector<uint64_t> live_annotations(const std::vector<Edge>& edges,
                                       const std::vector<std::vector<RegionInfo>>& annotations);

/// "FIRST_TIMESTAMP (bytes 32 to 39)", or only the bytes if they have no name.
std::string annotation_text(const RegionInfo& region);

}  // namespace headrace::graph
