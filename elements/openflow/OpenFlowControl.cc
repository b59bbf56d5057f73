#include "elements/openflow/OpenFlowControl.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/openflow/switch/flow_text.hh"
#include "elements/openflow/datapath_number.hh"
#include "elements/openflow/interpreter.hh"
#include "headrace/device_state.hh"
#include "headrace/router.hh"
#include "runtime/runtime.hh"

namespace headrace {

using openflow::Channel;
using openflow::Switch;

namespace {

/// Packets of one run of the task.
constexpr int kInjectionBurst = 32;

/// Targets by which the switch connects, or at which it listens.
template <bool kPassive>
struct TargetArg {
  bool parse(std::string_view text, openflow::Target& target, const ArgContext& context) const {
    std::string error;
    if (!openflow::parse_target(text, target, error)) return context.error("{}", error);
    if (target.passive == kPassive) return true;
    return kPassive ? context.error("'{}': expected ptcp:, pssl: or punix:", text)
                    : context.error("'{}': expected tcp:, ssl: or unix:", text);
  }
};

struct FailMode {
  bool parse(std::string_view text, bool& standalone, const ArgContext& context) const {
    if (text != "secure" && text != "standalone") return context.expect("secure or standalone");
    standalone = text == "standalone";
    return true;
  }
};

struct VersionsArg {
  bool parse(std::string_view text, openflow::Versions& versions, const ArgContext& context) const {
    std::vector<std::string> words;
    (void)parse_argument(text, words, ArgContext());
    openflow::Versions found{false, false};
    for (const std::string& word : words) {
      if (word != "1.0" && word != "1.3") return context.expect("1.0, 1.3, or both");
      (word == "1.0" ? found.v1_0 : found.v1_3) = true;
    }
    if (words.empty()) return context.expect("1.0, 1.3, or both");
    versions = found;
    return true;
  }
};

}  // namespace

/// Sends what an interpreter makes of packet-outs.
class OpenFlowControl::Sink final : public openflow::PacketSink {
 public:
  Sink(OpenFlowControl& element, openflow::Datapath& datapath)
      : element_(element),
        closed_(datapath.closed_ports()),
        counters_(datapath.port_counters().mine()),
        emit_(element) {}

  void send(uint32_t port, Packet* packet) override {
    const uint32_t real = element_.options_.ports;
    if (port - 1 >= real && !(has_local() && port == openflow::reserved_port::kLocal))
      return element_.drop(packet, kNoPort);
    const uint32_t place = openflow::port_place(port);
    if (closed_.keeps_in(place)) {
      counters_.not_sent(place);
      return element_.drop(packet, kClosed);
    }
    counters_.sent(place, packet->length());
    packet->set_mac_header();
    emit_(static_cast<Next>(std::min(port - 1, real)), packet);
  }
  uint32_t ports() const override { return element_.options_.ports; }
  bool has_local() const override { return element_.options_.local; }
  void lose(Loss loss) override {
    static constexpr Reason kReasons[] = {kNoEntry, kDropped, kNoRoom, kMetered, kNoBuffer, kTooDeep, kInvalidTtl};
    element_.count_drops(1, kReasons[static_cast<size_t>(loss)]);
  }

 private:
  OpenFlowControl& element_;
  const openflow::ClosedPorts closed_;
  openflow::PortCounters::Mine counters_;
  Emitter emit_;
};

OpenFlowControl::OpenFlowControl() = default;

OpenFlowControl::~OpenFlowControl() {
  if (switch_) switch_->leave(this);
}

void OpenFlowControl::leave_control() {
  if (!switch_) return;
  switch_->leave(this);
  // If the switch ends, its tables go with the router.
  datapath_ = switch_->datapath();
  switch_.reset();
}

Status OpenFlowControl::configure(Args& args) {
  uint64_t number = 0;
  std::vector<openflow::Target> controllers, listeners;
  openflow::TlsFiles tls;
  openflow::Options& channel = options_.channel;
  Interval probe = Interval::from_sec(5), backoff = Interval::from_sec(8), lost = Interval::from_sec(15);
  std::string flows;
  uint64_t rate = 10000, burst = 1000;  // packets a second of each reason
  args.read_mp("DPID", number, DatapathNumber())
      .read_all("CONTROLLER", controllers, TargetArg<false>())
      .read_all("LISTEN", listeners, TargetArg<true>())
      .read("FAIL", options_.standalone, FailMode())
      .read("LOCAL", options_.local)
      .read("FLOWS", flows, InputFile())
      .read("VERSIONS", channel.versions, VersionsArg())
      .read("PRIVATE_KEY", tls.private_key, FileName())
      .read("CERTIFICATE", tls.certificate, FileName())
      .read("CA_CERTIFICATE", tls.ca_certificate, FileName())
      .read("PROBE", probe)
      .read("MAX_BACKOFF", backoff)
      .read("LOST_AFTER", lost)
      .read("AUXILIARY", channel.auxiliary, Between{0, 8})
      .read("BUFFERS", options_.buffers.places, Between{1u, openflow::PacketBuffers::kMostPlaces})
      .read("PACKET_IN_RATE", rate, Between{uint64_t{0}, openflow::RateLimit::kMostRate})
      .read("PACKET_IN_BURST", burst, Between{uint64_t{1}, openflow::RateLimit::kMostRate})
      .read("DESCRIPTION", options_.description);
  if (!args.complete()) return Status::failed();
  count_reasons({"no action sends it", "no such port", "the port is down", "no room in front", "above a meter's rate",
                 "no buffer for a copy", "groups or tables nested too deep", "TTL not valid", "no entry matches"});
  options_.ports = static_cast<uint32_t>(noutputs()) - (options_.local ? 1 : 0);
  if (!flows.empty()) {
    std::vector<std::string> problems;
    if (const std::string bad = openflow::read_flows(flows, options_.flows, problems); !bad.empty())
      return args.errors().error("FLOWS: {}", bad);
    for (const std::string& problem : problems) (void)args.errors().error("{}", problem);
    if (!problems.empty()) return Status::failed();
  }
  channel.targets = std::move(controllers);
  channel.targets.insert(channel.targets.end(), listeners.begin(), listeners.end());
  if (!tls.private_key.empty() || !tls.certificate.empty() || !tls.ca_certificate.empty()) channel.tls = tls;
  options_.packet_ins.rates.fill({rate, burst});
  channel.probe = probe.ns;
  channel.most_backoff = backoff.ns;
  channel.lost_after = lost.ns;
  if (options_.ports > openflow::kMostSwitchPorts)
    return args.errors().error("expected at most {} ports, {} are connected", openflow::kMostSwitchPorts,
                               options_.ports);
  if (options_.standalone && channel.targets.size() == listeners.size())
    return args.errors().error("FAIL: standalone is for switches with a CONTROLLER");
  for (const auto& other : router().elements())
    if (const auto* control = dynamic_cast<const OpenFlowControl*>(other.get());
        control != nullptr && control != this && control->switch_ && control->switch_->number() == number)
      return args.errors().error("DPID: '{}' has this one already", control->name());
  Runtime& runtime = router().runtime();
  switch_ = Switch::at(
      number, options_,
      {[&runtime](int fd, std::function<void()> ready) {
         runtime.watch(fd, std::move(ready), POLLIN, Runtime::Urgency::kUrgent);
       },
       [&runtime] {
         Router* const current = runtime.current();
         Errors errors(Errors::Output::kStderr);
         if (current != nullptr) (void)current->update_devices(errors);
       },
       [&runtime](std::function<void()> action) { runtime.post_later(std::move(action), Runtime::Urgency::kUrgent); }});
  return {};
}

Status OpenFlowControl::initialize(Errors& errors) {
  setup_ = switch_->prepare(options_, errors);
  options_.flows = {};  // the tables have them
  if (!setup_) return Status::failed();
  task_.initialize(false);
  router().runtime().want_control_thread();
  adopt_later();
  return {};
}

void OpenFlowControl::take_state(Element& old, Errors&) {
  if (static_cast<OpenFlowControl&>(old).switch_ == switch_) switch_->unbind();
  adopt_later();
}

openflow::SwitchPorts::Ends OpenFlowControl::ends_of(int place) const {
  // Frames come through an element of this name in front of the tables; see OpenFlowSwitch.
  const Element* const in = router().find(fmt::format("in{}", place), this);
  return {in != nullptr && in->ninputs() == 1 ? device_upstream(*in, 0) : nullptr, device_downstream(*this, place)};
}

std::vector<openflow::SwitchPorts::Ends> OpenFlowControl::ends() const {
  std::vector<openflow::SwitchPorts::Ends> all;
  for (uint32_t i = 0; i < options_.ports; ++i) all.push_back(ends_of(static_cast<int>(i)));
  return all;
}

void OpenFlowControl::adopt_later() {
  router().runtime().post_later([this, alive = std::weak_ptr<const bool>(alive_)] {
    if (!alive.expired() && setup_ && router().runtime().current() == &router())
      switch_->adopt(options_, std::move(setup_), this);
  });
}

bool OpenFlowControl::run_task(Task& task) {
  openflow::SwitchDatapath& datapath = *switch_->datapath();
  openflow::InjectionQueue& queue = datapath.injections();
  int taken;
  {
    Sink sink(*this, datapath);
    openflow::Interpreter interpreter(datapath, sink);
    taken = queue.take(kInjectionBurst, [&](openflow::InjectionQueue::Injection& injection) {
      const openflow::ProgramView program(injection.program.data());
      interpreter.act(injection.packet, injection.in_port, program.apply_actions());
    });
  }
  if (!queue.empty()) task.fast_reschedule();
  return taken > 0;
}

void OpenFlowControl::add_handlers(Handlers& handlers) {
  handlers.read("flows", [this] { return switch_->describe_flows(); })
      .read("groups", [this] { return switch_->describe_groups(); })
      .read("meters", [this] { return switch_->describe_meters(); })
      .read("addresses", [this] { return switch_->describe_addresses(); })
      .read("ports", [this] { return switch_->describe_ports(); });
  // The channel belongs to the control thread.
  const auto on_control_thread = [this, &handlers](const char* name, std::string (Switch::*describe)() const) {
    handlers.read_with(
        name,
        [this, describe](const std::string&, std::string& value, Errors& errors) {
          const Runtime& runtime = router().runtime();
          if (runtime.running() && !runtime.on_control_thread())
            return errors.error("can be read by the control thread only, as for a ControlSocket");
          value = (switch_.get()->*describe)();
          return Status();
        },
        0);
  };
  on_control_thread("controllers", &Switch::describe_controllers);
  on_control_thread("counters", &Switch::describe_counters);
}

}  // namespace headrace
