#pragma once
/// \file
/// Packs packets into rows and unpacks them, with code specialized for the size of a plan's window.

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/packet.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// Writes and reads the rows of one plan.
class Rows {
 public:
  explicit Rows(const Plan& plan);

  /// Writes what goes of packets that enter at step `step`: RowLayout::there bytes each. If the bytes of a packet cannot
  /// be sent, its row makes the device skip it.
  /// \param outputs their output buffers (null for one that has none), if the plan rewrites packets
  void pack(uint16_t step, Packet* const* packets, Packet* const* outputs, int n, uint8_t* rows) const {
    pack_(*this, step, plan_->resume_at(step), packets, outputs, n, rows);
  }
  /// Copies what came back in rows to their packets, and tells how each packet left: codes of Plan::exits(). If the device
  /// skipped or damaged a row, the packet is unchanged and its code is `untouched`, the resume code of the step at
  /// which it entered. A packet that the device has rewritten changes places with its output buffer.
  /// \param rows RowLayout::back bytes each
  /// \param whole the same rows, RowLayout::stride bytes each; only those that came back whole are there
  /// \param outputs the packets' output buffers, if the plan rewrites packets
  /// \returns true if the host has more to do for one of them than to pass it on
  bool apply(const uint8_t* rows, const uint8_t* whole, Packet** packets, Packet** outputs, const uint16_t* untouched,
             int n, uint16_t* codes) const {
    return apply_(*this, rows, whole, packets, outputs, untouched, n, codes);
  }
  /// True for a code that makes the host resume or escape.
  bool for_host(uint16_t code) const { return for_host_[static_cast<size_t>(code - kExit)]; }

 private:
  /// \tparam kWindow bytes of the packet that go or come
  /// \tparam kMore rows hold addresses, too
  template <int kWindow, bool kMore>
  static void pack_rows(const Rows& self, uint16_t step, uint16_t untouched, Packet* const* packets,
                        Packet* const* outputs, int n, uint8_t* rows);
  template <int kWindow, bool kMore>
  static bool apply_rows(const Rows& self, const uint8_t* rows, const uint8_t* whole, Packet** packets,
                         Packet** outputs, const uint16_t* untouched, int n, uint16_t* codes);
  template <int kWindow, bool kMore>
  void choose();
  /// Copies all of a row that the device may have changed.
  void apply_whole(const uint8_t* row, Packet& p, uint32_t window_at) const;

  /// Where an annotation lies in a packet, and in its row.
  struct Place {
    uint8_t anno, row;
  };
  /// At most as many as there are annotations.
  struct Places {
    int n = 0;
    std::array<Place, Packet::kAnnoCapacity / 4> of{};
    void add(const RowLayout& row, int32_t groups);
  };

  const Plan* plan_;
  RowLayout layout_;
  Places sent_, received_, all_;
  std::vector<uint8_t> for_host_;
  bool all_annotations_ = false;  // elements of the plan use some from Packet::kAnnoSize on
  decltype(&pack_rows<0, false>) pack_ = nullptr;
  decltype(&apply_rows<0, false>) apply_ = nullptr;
};

}  // namespace headrace::offload
