#pragma once
/// \file
/// Other devices in the place of those of this machine.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "offload/backend.hh"

namespace headrace::offload {

using FindDevices =
    std::function<std::vector<std::unique_ptr<Backend>>(const OffloadOptions& options, std::string& why_not)>;

/// From now on find_devices() asks `find`; an empty function brings back the machine's devices. For tests, while no
/// router is being made.
void replace_devices(FindDevices find);

}  // namespace headrace::offload
