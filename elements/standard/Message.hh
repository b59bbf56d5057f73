#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Prints a message when the router is configured.
///
///     Message(MESSAGE [, TYPE])
///
/// No ports.
///
/// TYPE: MESSAGE, WARNING or ERROR; with ERROR the router does not run. Default MESSAGE.
class Message final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override {
    std::string text, type = "MESSAGE";
    if (!args.read_mp("MESSAGE", text).read_p("TYPE", type, WordArg{}).complete()) return Status::failed();
    if (type == "ERROR") return args.errors().error("{}", text);
    if (type == "MESSAGE")
      args.errors().message("{}", text);
    else if (type == "WARNING")
      args.errors().warning("{}", text);
    else
      return args.errors().error("unrecognized message type");
    return {};
  }
};

HEADRACE_ELEMENT(Message)

}  // namespace headrace
