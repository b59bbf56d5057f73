#pragma once
/// \file
/// A plan: a chain made ready to run over rows.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/chains.hh"
#include "headrace/device/lane_view.hh"
#include "headrace/shader.hh"

namespace headrace::offload {

/// How a slot leaves a plan. Codes are kExit + an index into Plan::exits().
struct Exit {
  enum class Kind : uint8_t {
    kResume,  ///< the host does element `step` and all behind it; the slot is as it was before that element
    kDrop,    ///< element `step` dropped it
    kEscape,  ///< element `step` wants its host body
    kPort     ///< by output `port` of element `step`
  };
  Kind kind;
  uint16_t step;
  Next port;
};

/// One shader of a plan.
struct Step {
  ShaderElementBase* element = nullptr;
  int level = 0;          ///< the longest way from where packets come in
  size_t image = 0;       ///< where its image lies in a parameter block
  int first_counter = 0;  ///< of the plan's counters
  /// For each output: the next step, or kExit + an exit.
  std::vector<uint16_t> targets;
  uint16_t resume = 0, drop = 0, escape = 0;  ///< exit codes
  HeaderWrites writes = HeaderWrites::kNone;  ///< of the steps that packets have passed
};

/// How packets come in: by which connection (an index into the graph's edges) to which step.
struct Entry {
  int edge;
  uint16_t step;
};

/// A chain as an object that runs over the packets of a job: steps in an order in which each comes behind all that lead
/// to it, those of one class at one level together. A slot carries the number of its next step; a step looks only at
/// slots that carry its own (predication).
class Plan {
 public:
  /// \param elements of the graph, by node; those of the chain are shader elements
  /// \param images running total of the parameter block's bytes, over all plans
  Plan(const graph::Chain& chain, const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
       const std::vector<int>& back_edges, size_t& images);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Exit>& exits() const { return exits_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const RowLayout& row() const { return row_; }
  int counters() const { return counters_; }
  /// Some shader of it scans payloads.
  bool scans() const { return row_.address_size != 0; }
  uint16_t resume_at(uint16_t step) const { return steps_[step].resume; }

  /// Runs slots through all steps on this processor, with the images of a parameter block. The reference for every
  /// other processor.
  void run(Slot* slots, int n, const uint8_t* parameters) const;

  /// "c0 -> paint -> ... (12 shaders, 64-byte rows)"
  std::string describe() const;

 private:
  void find_writes();
  void lay_out(const std::vector<std::vector<Offsets>>& offsets);
  void foresee(std::vector<std::vector<Offsets>>& offsets) const;

  std::vector<Step> steps_;
  std::vector<Exit> exits_;
  std::vector<Entry> entries_;
  RowLayout row_;
  int counters_ = 0;
};

/// True if an element can be part of a chain.
bool can_offload(const Element& element);

}  // namespace headrace::offload
