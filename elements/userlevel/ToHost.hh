#pragma once
#include <headrace/element.hh>

#include "elements/standard/chatter.hh"

namespace headrace {

/// Takes packets meant for the host that the router runs on. Without a device that leads there it counts and drops
/// them, and says so when the router starts.
///
///     ToHost([DEVNAME, keyword SNIFFERS, TYPE, QUIET])
///
/// Input 0, push: packets with Ethernet headers.
///
/// Handlers: `drops` (r) packets dropped; `dev_name` (r).
class ToHost final : public Element {
 public:
  static constexpr Ports kPorts{"1/0"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override {
    count_reasons({"no way to the host"});
    std::string type;
    bool sniffers = false, quiet = false;
    args.read_p("DEVNAME", device_).read("SNIFFERS", sniffers).read("TYPE", type, WordArg{}).read("QUIET", quiet);
    return args.complete();
  }
  Status initialize(Errors&) override {
    chatter("{}: no device leads to the host; packets for it are dropped", declaration());
    return {};
  }
  void push(int, Batch& batch) override {
    drops_.add(0, static_cast<uint64_t>(batch.size()));
    drop(batch);
  }
  void add_handlers(Handlers& handlers) override {
    handlers.read("drops", [this] { return std::to_string(drops_.sum(0)); });
    handlers.read("dev_name", [this] { return device_; });
  }

 private:
  std::string device_;
  ThreadCounters drops_{1};
};

HEADRACE_ELEMENT(ToHost)
HEADRACE_ELEMENT_ALIAS(ToHostSniffers, ToHost)

}  // namespace headrace
