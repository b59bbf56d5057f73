#include "headrace/control_watch.hh"

#include "headrace/router.hh"
#include "runtime/runtime.hh"

namespace headrace {

std::function<void(int fd, std::function<void()> ready)> control_watch(Router& router) {
  return [&runtime = router.runtime()](int fd, std::function<void()> ready) {
    runtime.watch(fd, std::move(ready), POLLIN, Runtime::Urgency::kUrgent);
  };
}

}  // namespace headrace
