#include "elements/devices/ToHost.hh"

#include "headrace/chatter.hh"
#include "headrace/router.hh"

namespace headrace {

Status ToHost::configure(Args& args) {
  std::vector<std::string> reasons{"no way to the host"};
  for (std::string& reason : HostPort::host_reasons()) reasons.push_back(std::move(reason));
  count_reasons(std::move(reasons));
  std::string type;
  bool sniffers = false, quiet = false;
  args.read_p("DEVNAME", device_).read("SNIFFERS", sniffers).read("TYPE", type, WordArg{}).read("QUIET", quiet);
  return args.complete();
}

Status ToHost::initialize(Errors& errors) {
  int candidates = 0;
  for (const auto& e : router().elements()) {
    auto* port = dynamic_cast<HostPort*>(e.get());
    if (!port || !port->is_tap()) continue;
    ++candidates;
    if (device_.empty() || port->device_name() == device_) host_ = port;
  }
  if (device_.empty() && candidates > 1)
    return errors.error("DEVNAME must say which: there are {} host devices", candidates);
  if (candidates > 0 && !host_) return errors.error("no FromHost or KernelTap has device '{}'", device_);
  if (!host_) chatter("{}: no device leads to the host; packets for it are dropped", declaration());
  return {};
}

void ToHost::push(int, Batch& batch) {
  if (!host_) {
    drop(batch, kNoWay);
    return;
  }
  const PortTotals given = host_->give_to_host(batch, *this, kHost);
  counts_.add(kPackets, given.packets);
  counts_.add(kBytes, given.bytes);
}

PortTotals ToHost::totals(Direction, int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

std::optional<DeviceState> ToHost::device_state() const { return host_ ? host_->device_state() : std::nullopt; }

DeviceCounters ToHost::device_counters() const {
  DeviceCounters counters;
  counters.tx_packets = counts_.sum(kPackets);
  counters.tx_bytes = counts_.sum(kBytes);
  counters.tx_dropped = dropped();
  return counters;
}

uint64_t ToHost::dropped() const {
  uint64_t n = 0;
  for (const DropCount& d : drop_counts()) n += d.packets;
  return n;
}

void ToHost::add_handlers(Handlers& handlers) {
  handlers.read("drops", [this] { return std::to_string(dropped()); });
  handlers.read("dev_name", [this] { return host_ ? host_->device_name() : device_; });
}

}  // namespace headrace
