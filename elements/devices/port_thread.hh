#pragma once
#include "elements/control/StaticThreadSched.hh"
#include "headrace/router.hh"

namespace headrace {

/// Gives the ports of Linux interfaces to the workers in turn: the n-th element of class `Port` to the n-th worker,
/// unless a StaticThreadSched says where elements run. In initialize, before the home thread is used.
template <typename Port>
void take_turn(Port& port) {
  Router& router = port.router();
  if (router.first<StaticThreadSched>()) return;
  int n = 0;
  for (const auto& e : router.elements()) {
    if (e.get() == &port) break;
    n += dynamic_cast<const Port*>(e.get()) != nullptr;
  }
  router.set_home_thread(&port, n % router.threads());
}

}  // namespace headrace
