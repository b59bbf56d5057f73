#pragma once
/// \file
/// Finds elements by the connections of the graph, for elements that must know their neighborhood.

#include <functional>
#include <vector>

namespace headrace {

class Element;

/// The nearest elements after output `output` of `from` (before input `input`) for which `wanted` holds, each once. The
/// walk follows packets as flow codes allow, and stops at each element that it finds. Call in initialize().
std::vector<Element*> nearest_downstream(const Element& from, int output, const std::function<bool(Element&)>& wanted);
std::vector<Element*> nearest_upstream(const Element& from, int input, const std::function<bool(Element&)>& wanted);

}  // namespace headrace
