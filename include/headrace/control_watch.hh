#pragma once
/// \file
/// File descriptors that the control thread looks after, for parts that outlive an element.

#include <functional>

namespace headrace {

class Router;

/// A function that makes the control thread call `ready` whenever `fd` is readable; an empty `ready` ends that. It may be
/// called by any thread, as long as the process's runtime lives: longer than all elements. While the control thread makes
/// the router that is to replace the running one, another thread calls `ready` in its place.
std::function<void(int fd, std::function<void()> ready)> control_watch(Router& router);

}  // namespace headrace
