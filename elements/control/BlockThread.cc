#include "elements/control/BlockThread.hh"

#include <chrono>
#include <thread>

namespace headrace {

void BlockThread::add_handlers(Handlers& handlers) {
  handlers.write(
      "block",
      [](const std::string& text, Errors& errors) {
        Interval time;
        if (!parse_argument(text, time, ArgContext())) return errors.error("expected a time");
        std::this_thread::sleep_for(std::chrono::nanoseconds(clock::real_delay(time.timestamp()).ns));
        return Status();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
