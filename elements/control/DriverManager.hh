#pragma once
#include "elements/control/Script.hh"

namespace headrace {

/// Decides when the router stops: a Script of TYPE DRIVER.
///
///     DriverManager(INSTRUCTION, ...)
///
/// A source with STOP true that has finished, a handler `stop`, or a script's `stop` asks the router to stop. Without a
/// DriverManager the router then stops. With one, the request resumes the script at the `pause` (or `wait_stop`, or
/// `wait`) where it waits; the router stops when the script ends or reaches `stop`.
///
///     DriverManager(pause, write k.cleanup, wait 0.1s, stop);
///
/// gives `k` a tenth of a second to clean up. An empty script waits for one request, as if there were no DriverManager.
/// For instructions and handlers see Script.
class DriverManager final : public Script {
 public:
  DriverManager() : Script(Type::kDriver) {}
};

HEADRACE_ELEMENT(DriverManager)

}  // namespace headrace
