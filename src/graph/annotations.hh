#pragma once
/// \file
/// Annotations that elements of one path use for different things. Pure functions over values.

#include <string>
#include <vector>

#include "graph/graph.hh"
#include "headrace/fields.hh"

namespace headrace::graph {

/// One element writes bytes of an annotation that another one, behind it, takes for another annotation.
struct AnnotationClash {
  int writer = -1, reader = -1;  // nodes
  RegionInfo written, read;
};

/// Finds the clashes, ordered by reader. What a node writes hides what was written in front of it. A node that reads
/// bytes without a name, chosen by an argument, wants what is there; one that writes such bytes clashes with a reader
/// unless these are the whole of what that one reads.
/// \param annotations for each node what it reads and writes, as Element::annotations()
std::vector<AnnotationClash> find_annotation_clashes(const std::vector<Node>& nodes, const std::vector<Edge>& edges,
                                                     const std::vector<std::vector<RegionInfo>>& annotations);

/// "FIRST_TIMESTAMP (bytes 32 to 39)", or the bytes where they have no name.
std::string annotation_text(const RegionInfo& region);

}  // namespace headrace::graph
