#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Accepts FastClick's clock that counts jiffies.
///
///     JiffieClock([VERBOSE, MINPRECISION])
///
/// No ports. In FastClick it spares elements that need only a coarse time from reading the processor's counter.
/// Headrace reads the time once per batch, so it is not needed, and configurations with it run.
///
/// VERBOSE, MINPRECISION: accepted but ignored.
///
/// Handlers: `jiffies` (r) milliseconds of the monotonic clock; `status` (r) false: this element does not replace it.
class JiffieClock final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override {
    bool verbose = false;
    int32_t precision = 0;
    return args.read_p("VERBOSE", verbose).read_p("MINPRECISION", precision).complete();
  }
  void add_handlers(Handlers& handlers) override {
    handlers.read("jiffies", [] { return std::to_string(clock::steady().ns / 1000000); });
    handlers.read("status", [] { return std::string("false"); });
  }
};

HEADRACE_ELEMENT(JiffieClock)

}  // namespace headrace
