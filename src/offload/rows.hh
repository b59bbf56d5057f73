#pragma once
/// \file
/// Packing packets into rows and taking them out again, made for the size of a plan's window.

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/packet.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// What a worker does with the rows of one plan.
class Rows {
 public:
  explicit Rows(const Plan& plan);

  /// Writes packets that are to begin at step `step` into rows. One whose bytes cannot travel gets a row that the
  /// device passes by.
  void pack(uint16_t step, Packet* const* packets, int n, uint8_t* rows) const {
    pack_(*this, step, plan_->resume_at(step), packets, n, rows);
  }
  /// Gives packets what has become of their rows, and says how each left: codes of Plan::exits(). A row that the device
  /// has passed by, or spoilt, leaves its packet as it was: its code is then `untouched`, which it has at its step.
  /// \returns true if the host has more to do for any of them than to pass it on
  bool apply(const uint8_t* rows, Packet* const* packets, const uint16_t* untouched, int n, uint16_t* codes) const {
    return apply_(*this, rows, packets, untouched, n, codes);
  }
  /// True for a code by which the host must resume or escape.
  bool for_host(uint16_t code) const { return for_host_[static_cast<size_t>(code - kExit)]; }

 private:
  template <int kWindow>
  static void pack_rows(const Rows& self, uint16_t step, uint16_t untouched, Packet* const* packets, int n,
                        uint8_t* rows);
  template <int kWindow>
  static bool apply_rows(const Rows& self, const uint8_t* rows, Packet* const* packets, const uint16_t* untouched,
                         int n, uint16_t* codes);
  template <int kWindow>
  void choose(int window);

  const Plan* plan_;
  RowLayout layout_;
  int annotations_ = 0;
  std::array<uint8_t, Packet::kAnnoCapacity / 4> offsets_{};  // of the annotations that travel
  std::vector<uint8_t> for_host_;
  decltype(&pack_rows<0>) pack_ = nullptr;
  decltype(&apply_rows<0>) apply_ = nullptr;
};

}  // namespace headrace::offload
