#pragma once
/// \file
/// Draws the headers of frames inside rules, and outside of all but those of everything.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "io/memory/traffic.hh"
#include "io/memory/traffic_header.hh"
#include "io/memory/traffic_random.hh"

namespace headrace {

class AclTable;

class RuleDraw {
 public:
  /// Without rules: TCP from and to where other synthetic frames go. `spec` must outlive this.
  RuleDraw(const TrafficSpec& spec, TrafficRandom& random);
  ~RuleDraw();

  /// Whether NarrowHeader is enough for all frames.
  bool is_narrow() const { return narrow_; }
  WideHeader next(uint32_t length);
  /// A frame was to be outside of all rules, but none was found.
  bool misses_failed() const { return misses_failed_; }

 private:
  const KeyMatch& choose();
  bool draw_miss(uint32_t length, WideHeader& header);

  const TrafficSpec& spec_;
  TrafficRandom& random_;
  TrafficHeaderOptions options_;
  std::vector<KeyMatch> usual_;  // without rules
  std::span<const KeyMatch> rules_;
  std::optional<ZipfSampler> zipf_;
  std::unique_ptr<AclTable> table_;  // finds what is inside, if something is to be outside
  bool narrow_ = true;
  bool misses_failed_ = false;
};

}  // namespace headrace
