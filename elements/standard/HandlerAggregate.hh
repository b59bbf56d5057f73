#pragma once
#include <headrace/element.hh>
#include <headrace/router.hh>

namespace headrace {

/// Reads and writes a handler of several elements at once.
///
///     HandlerAggregate(keyword ELEMENT, ...)
///
/// No ports.
///
/// ELEMENT: an element; given once for each.
///
/// Handlers: `add HANDLER [PARAMETERS]`, `avg HANDLER [PARAMETERS]` (r) the sum and the average of what HANDLER of all
/// elements reads; values that are not numbers count as 0. `write` HANDLER [VALUE] (w) writes VALUE to HANDLER of all.
class HandlerAggregate final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;

 private:
  Status sum(const std::string& handler, double& sum, Errors& errors) const;

  std::vector<Element*> elements_;
};

HEADRACE_ELEMENT(HandlerAggregate)

}  // namespace headrace
