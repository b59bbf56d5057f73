#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Prevents a router from running: a placeholder for a required part of the configuration.
///
///     Error(...)
///
/// Any ports and any arguments.
class Error final : public Element {
 public:
  static constexpr Ports kPorts{"-/-"};

  Status configure(Args& args) override {
    std::vector<std::string> ignored;
    return args.consume_rest(ignored).complete();
  }
  Status initialize(Errors& errors) override { return errors.error("this configuration is not meant to run"); }
};

HEADRACE_ELEMENT(Error)

}  // namespace headrace
