#pragma once
#include <string>

#include "headrace/args.hh"
#include "headrace/element.hh"
#include "headrace/router.hh"

namespace headrace {

/// What a source does when it has sent its last packet: nothing, stop the router, or write to a handler.
class EndCall {
 public:
  /// Reads the keywords STOP and END_CALL.
  Args& read(Args& args) {
    stop_ = false;
    text_.clear();
    return args.read("STOP", stop_).read("END_CALL", text_, AnyArg{});
  }
  /// Call after complete().
  Status check(Errors& errors) {
    if (stop_ && !text_.empty()) return errors.error("END_CALL and STOP are mutually exclusive");
    call_ = HandlerCall(stop_ ? "stop" : text_);
    return {};
  }
  Status initialize(Element& element, Errors& errors) {
    return call_.empty() ? Status() : call_.bind(element.router(), &element, true, errors);
  }
  bool empty() const { return call_.empty(); }
  /// True if the router is to stop at the end.
  bool stops() const { return stop_; }
  void operator()() const {
    if (!call_.bound()) return;
    Errors errors(Errors::Output::kStderr);
    (void)call_.write(errors);
  }

 private:
  bool stop_ = false;
  std::string text_;
  HandlerCall call_;
};

}  // namespace headrace
