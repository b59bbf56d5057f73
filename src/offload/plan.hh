#pragma once
/// \file
/// A plan: a chain prepared to run over rows.

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
    kResume,  ///< the host processes element `step` and all after it; the slot is as it was before that element
    kDrop,    ///< element `step` dropped it
    kEscape,  ///< element `step` calls its host body
    kPort     ///< leaves by output `port` of element `step`
  };
  Kind kind;
  uint16_t step;
  Next port;
  bool whole = false;  ///< the host needs all of the row
};

/// One shader of a plan.
struct Step {
  ShaderElementBase* element = nullptr;
  int level = 0;          ///< length of the longest path from where packets enter
  size_t image = 0;       ///< where its image lies in a parameter block
  int first_counter = 0;  ///< its first one among the plan's counters
  int result = 0;         ///< the number of its result in a row, if its element has one
  /// For each output: the next step, or an exit code.
  std::vector<uint16_t> targets;
  uint16_t resume = 0, drop = 0, escape = 0;  ///< exit codes
  bool newer = false;                         ///< a row's window may be newer than the packet's memory
  bool more = false;                          ///< steps behind this one may read the payload
  bool again = false;                         ///< steps behind this one may rewrite the whole packet

  bool reads_payload() const { return element->scans() || element->rewrites(); }
  bool rewrites_as_team() const { return element->rewrites() && !element->is_serial(); }
};

/// Where packets enter: the connection (an index into the graph's edges), and the step that it leads to.
struct Entry {
  int edge;
  uint16_t step;
};

/// A chain as an object that runs over the packets of a job. The steps are in an order in which each comes after all
/// that lead to it; steps of one class at one level are adjacent. A slot carries the number of its next step; a step
/// processes only slots that carry its own number (predication).
class Plan {
 public:
  /// \param elements the elements of the graph, by node; those of the chain are shader elements
  /// \param live by node: see graph::live_annotations()
  /// \param images size of the parameter block so far, over all plans; increased here
  Plan(const graph::Chain& chain, const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
       const std::vector<int>& back_edges, const std::vector<uint64_t>& live, size_t& images);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Exit>& exits() const { return exits_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const RowLayout& row() const { return row_; }
  int counters() const { return counters_; }
  /// True if a hook may take packets away when they have come back.
  bool takes_packets() const;
  /// True if one of its shaders scans payloads or rewrites packets.
  bool reads_payloads() const { return row_.address_size != 0; }
  /// True if a packet may meet several of these.
  bool reads_payloads_again() const;
  /// True if one of its shaders rewrites packets.
  bool rewrites() const { return row_.address_size == 16; }
  uint16_t resume_at(uint16_t step) const { return steps_[step].resume; }
  /// For the code of an exit, or the number of a step.
  bool comes_back_whole(uint16_t code) const {
    return code >= kExit && exits_[static_cast<size_t>(code - kExit)].whole;
  }

  /// Runs slots through all steps on the CPU, with the images of a parameter block. This is the reference for every
  /// other processor.
  void run(Slot* slots, int n, const uint8_t* parameters) const;

  /// "12 shaders (c0 paint ...), rows of 64 bytes there and 48 back"
  std::string describe() const;

 private:
  void find_writes();
  void number_results();
  void lay_out(const std::vector<std::vector<Offsets>>& offsets);
  /// Finds out which annotations travel.
  /// \param there those bytes that shaders may read, or that come back, as they were
  /// \param back by exit: those bytes that someone may read behind it
  void place_annotations(uint64_t there, const std::vector<uint64_t>& back);
  void foresee(std::vector<std::vector<Offsets>>& offsets) const;
  /// From the sizes of the parts.
  static void finish_layout(RowLayout& row);

  std::vector<Step> steps_;
  std::vector<Exit> exits_;
  std::vector<Entry> entries_;
  RowLayout row_;
  int counters_ = 0;
};

/// What keeps an element off devices, in a few words; null if it can be part of a chain.
const char* obstacle_to_offload(const Element& element);

}  // namespace headrace::offload
