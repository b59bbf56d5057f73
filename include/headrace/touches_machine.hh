#pragma once

namespace headrace {

/// Base of an element whose initialize() opens, creates, takes or overwrites something outside the router: a device, a
/// socket, a file. A dry run leaves such elements uninitialized.
class TouchesMachine {
 protected:
  ~TouchesMachine() = default;
};

}  // namespace headrace
