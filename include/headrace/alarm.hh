#pragma once
/// \file
/// Waking a worker for what another one is about to hand to it.

namespace headrace {

class Router;

/// A worker that sleeps also wakes when `fd` is readable, though another one reads it: what that one hands over finds
/// it awake, where waking one after the other would take twice as long. Nothing is called. Such a wake-up comes after a
/// pause only, not for each of many packets in a row. Until called again with `on` false, or as long as the router
/// lives.
void set_alarm(Router& router, int worker, int fd, bool on);

}  // namespace headrace
