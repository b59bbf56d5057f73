#pragma once
#include "elements/control/Script.hh"

namespace headrace {

/// Decides when the router stops: a Script of TYPE DRIVER.
///
///     DriverManager(INSTRUCTION, ...)
///
/// An element that has come to its end (a source with STOP true, a handler `stop`, a script's `stop`) asks the router
/// to stop. Without a DriverManager the router then stops. With one, the request lets the script pass the `pause` (or
/// `wait_stop`, or `wait`) that it waits at; the router stops when the script ends or comes to `stop`.
///
///     DriverManager(pause, write k.cleanup, wait 0.1s, stop);
///
/// gives `k` a tenth of a second to clean up. An empty script waits for one request, as if it were not there. For
/// instructions and handlers see Script.
class DriverManager final : public Script {
 public:
  DriverManager() : Script(Type::kDriver) {}
};

HEADRACE_ELEMENT(DriverManager)

}  // namespace headrace
