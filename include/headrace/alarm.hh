#pragma once
/// \file
/// Waking a worker early, when another worker is about to hand packets to it.

namespace headrace {

class Router;

/// Makes the worker wake up when `fd` becomes readable, even though another worker reads it. What that worker hands
/// over then finds this one awake; waking the two one after the other would take twice as long. There is no callback.
/// An alarm occurs only after a pause, not for each of many packets in a row. It lasts until set_alarm() is called with
/// `on` false, or until the router is destroyed.
void set_alarm(Router& router, int worker, int fd, bool on);

}  // namespace headrace
