#include "elements/devices/kernel_tun.hh"

namespace headrace {

namespace {
constexpr uint8_t kDefaultEther[6] = {0, 1, 2, 3, 4, 5};
constexpr int kIpHeader = 20;
}  // namespace

Status KernelDevice::configure_device(Args& args, uint32_t default_headroom) {
  std::vector<std::string> reasons = host_reasons();
  reasons.insert(reasons.end(), {"ring to its worker full", "not IP"});
  count_reasons(std::move(reasons));
  IpPrefix address;
  EtherAddress ether = EtherAddress::from_bytes(kDefaultEther);
  bool tap = options_.tap, ignore = false;
  headroom_ = default_headroom;
  args.read_mp("ADDR", address).read_p("GATEWAY", options_.gateway).read("TAP", tap);
  args.read("HEADROOM", headroom_, Between{0, 1024}).read("BURST", burst_, Between{1, Batch::kCapacity});
  args.read("ETHER", ether).read("IGNORE_QUEUE_OVERFLOWS", ignore);
  args.read("MTU", options_.mtu, Between{kIpHeader + 1, 65535}).read("DEV_NAME", options_.name);
  args.read("DEVNAME", options_.name);
  if (!args.complete()) return Status::failed();
  options_.tap = tap;
  if (tap) options_.ether = ether;
  if (address.address) options_.address = address;
  return check_common(args);
}

Status KernelDevice::initialize(Errors& errors) {
  const Status status = HostPort::initialize(errors);
  if (status && ninputs() > 0 && input_is_pull(0)) {
    pull_task_.initialize(true);
    signal_ = Signal::upstream_nonempty(this, 0, &pull_task_);
  }
  return status;
}

void KernelDevice::give(Batch& batch) {
  const PortTotals given = give_to_host(batch, *this, kTooLong);
  to_host_.add(given.packets, given.bytes);
}

void KernelDevice::push(int, Batch& batch) { give(batch); }

bool KernelDevice::pull_for_host(Task& task) {
  Batch batch;
  const bool worked = input(0).pull(batch, burst_) > 0;
  if (worked) give(batch);
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

}  // namespace headrace
