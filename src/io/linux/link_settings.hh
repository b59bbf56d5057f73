#pragma once
/// \file
/// What the driver of a network interface says about speeds (ethtool(8)).

#include "headrace/device_state.hh"

namespace headrace::io {

/// Sets the speeds and modes of the interface `state.name`; to 0 where the driver does not tell.
void read_link_settings(DeviceState& state);

}  // namespace headrace::io
