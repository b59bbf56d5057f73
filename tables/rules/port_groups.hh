#pragma once
/// \file
/// The owner of groups of ports.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tables/memory/device_array.hh"
#include "tables/rules/port_groups_view.hh"
#include "tables/rules/rule_program.hh"

namespace headrace::rules {

/// By protocol and port, which patterns of a program may be of interest. Does not change once it has been made.
class PortGroups {
 public:
  static constexpr size_t kMostBytes = size_t{16} << 20;

  PortGroups() = default;
  /// \param most_bytes of bitmaps: ports for which there is no room left share one that has all patterns of their
  ///   protocol and side. Lower ports come first.
  explicit PortGroups(const RuleProgram& program, size_t most_bytes = kMostBytes);

  PortGroupsView view() const;
  PortGroupsView mirror(Mirror& mirror) const;

  size_t groups() const { return groups_; }
  /// Bytes of all that a scan may read.
  size_t memory() const { return by_port_.bytes() + bitmaps_.bytes(); }
  /// "port groups: 87, 0.6 MB"
  std::string description() const;

 private:
  DeviceArray<uint16_t> by_port_;
  DeviceArray<uint32_t> bitmaps_;
  PortGroupsView view_;  // without its addresses
  size_t groups_ = 0;
};

}  // namespace headrace::rules
