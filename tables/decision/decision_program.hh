#pragma once
/// \file
/// A decision program: which output does a packet belong to? Shared by Classifier, IPClassifier and IPFilter.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tables/decision/decision_graph.hh"
#include "tables/decision/decision_view.hh"

namespace headrace {

/// Owns a program: the graph that was built from patterns, and its compiled image for shaders.
///
/// Build one with compile_classifier() (classifier_patterns.hh), compile_ip_filter() or compile_ip_classifier()
/// (ip_filter.hh). A program does not change; to reconfigure, build another and swap.
class DecisionProgram {
 public:
  /// What the offsets of the graph's tests count from.
  enum class Space {
    kFrame,  // the packet's data
    kIp,     // MAC, network and transport header, at decision::kMacBase, kNetworkBase, kTransportBase
  };

  /// Drops every packet.
  DecisionProgram() : DecisionProgram(decision::Graph(), Space::kFrame) {}
  /// `graph` is optimized and has no kFailure left.
  DecisionProgram(decision::Graph graph, Space space);

  const decision::Graph& graph() const { return graph_; }
  Space space() const { return space_; }

  /// The text of the `program` handler, as Click prints it.
  std::string text() const { return graph_.text(space_ == Space::kIp); }
  /// The outputs below `count` that no packet can reach.
  std::vector<int> unused_outputs(int count) const { return graph_.unused_outputs(count); }

  /// The view for this host; valid while the program lives, also after a move.
  DecisionView view() const { return view_at(image_.get()); }
  /// The compiled program as bytes, to be copied to a device.
  const std::byte* image() const { return image_.get(); }
  size_t image_size() const { return image_size_; }
  /// The view of a copy of the image that begins at `base`, an address on the processor where the view is used, aligned
  /// to 32 bytes.
  DecisionView view_at(const void* base) const;
  /// The program as C++: the struct `Code`, made from a DecisionView, which matches as that does. Empty if the program is
  /// so long that it is better walked through in memory.
  std::string code() const;

 private:
  void compile();

  decision::Graph graph_;
  Space space_;
  struct Deleter {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Deleter> image_;
  size_t image_size_ = 0;
  size_t cases_offset_ = 0;
  int32_t entry_ = DecisionView::kNowhere;
  uint32_t enough_[decision_section::kCount] = {};
};

/// The hook `specialize` of a shader with a member `program` and a function `shade_by(decide, p)`.
std::string shade_by_code(const DecisionProgram& program);

}  // namespace headrace
