#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Holds styles for Clicky, Click's graphical user interface.
///
///     ClickyInfo(STYLE, ...)
///
/// No ports. A router ignores the arguments, whatever they are.
class ClickyInfo final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override {
    std::vector<std::string> ignored;
    return args.consume_rest(ignored).complete();
  }
};

HEADRACE_ELEMENT(ClickyInfo)

}  // namespace headrace
