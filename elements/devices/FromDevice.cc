#include "elements/devices/FromDevice.hh"

#include <cerrno>

#include "elements/devices/device_watch.hh"
#include "elements/devices/port_thread.hh"
#include "headrace/chatter.hh"
#include "headrace/control_watch.hh"
#include "headrace/router.hh"
#include "src/io/pcap/link_type.hh"
#include "src/io/pcap/live.hh"

namespace headrace {

Status FromDevice::configure(Args& args) {
  count_reasons({"not IP", "longer than the MTU (GRO, GSO)", "ring to its worker full"});
  std::string method, encap, up_call, down_call;
  bool quiet = false, sniffer = true, sniffer_given = false;
  uint32_t protocol = 0, length = 0;
  args.read_mp("DEVNAME", device_).read_p("PROMISC", request_.promiscuous);
  args.read_p("SNAPLEN", request_.snap_length, Between{14, 65535})
      .read_status("SNIFFER", sniffer, sniffer_given)
      .read("FORCE_IP", force_ip_);
  args.read("CAPTURE", method, WordArg{}).read("METHOD", method, WordArg{}).read("BPF_FILTER", request_.filter);
  args.read("OUTBOUND", request_.outbound)
      .read("HEADROOM", headroom_, Between{0, 1024})
      .read("ENCAP", encap, WordArg{});
  args.read("BURST", burst_, Between{1, Batch::kCapacity}).read("TIMESTAMP", timestamps_).read("STOP", stop_);
  args.read("ALLOW_NONEXISTENT", may_miss_).read("SPREAD", spread_);
  // Arguments of Click's other versions of this element that ask for nothing here.
  args.read("QUIET", quiet).read("LENGTH", length).read("PROTOCOL", protocol);
  args.read("UP_CALL", up_call, AnyArg{}).read("DOWN_CALL", down_call, AnyArg{});
  if (!args.complete()) return Status::failed();
  if (device_.empty()) return args.errors().error("interface not set");
  if (!method.empty() && !(request_.method = io::parse_port_method(method)))
    return args.errors().error("bad METHOD: expected AF_XDP, AF_PACKET, LINUX or PCAP");
  if (protocol != 0) args.errors().warning("PROTOCOL has no effect; use BPF_FILTER");
  if (!up_call.empty() || !down_call.empty()) args.errors().warning("UP_CALL and DOWN_CALL have no effect");
  if (!encap.empty() && (request_.link_type = io::parse_link_type(encap)) < 0)
    return args.errors().error("bad encapsulation type");
  request_.sniffer = request_.method == io::PortMethod::kAfXdp && !sniffer_given ? false : sniffer;
  live_ = !device_.starts_with(kFilePrefix);
  if (!live_ && args.scope())
    device_ = std::string(kFilePrefix) + args.scope()->find_file(device_.substr(kFilePrefix.size()));
  request_.device = device_;
  return {};
}

Status FromDevice::open_file(const std::string& name, Errors& errors) {
  if (!file_.open(name, errors)) return Status::failed();
  link_type_ = file_.link_type();
  task_.initialize(true);
  return {};
}

void FromDevice::set_port(std::shared_ptr<io::PortReceiver> port) {
  std::lock_guard guard(port_lock_);
  port_.swap(port);
}

bool FromDevice::open_port(Errors& errors) {
  std::shared_ptr<io::PortReceiver> port = io::open_receiver(request_, &router(), errors);
  if (!port) return false;
  link_type_ = port->link_type();
  set_port(std::move(port));
  return true;
}

Status FromDevice::check_others(Errors& errors) const {
  const auto takes = [](const FromDevice& f) { return f.port_ && f.port_->method() == io::PortMethod::kAfXdp; };
  for (const auto& e : router().elements()) {
    const auto* other = dynamic_cast<const FromDevice*>(e.get());
    if (other && other != this && other->device_ == device_ && other->port_ && (takes(*this) || takes(*other)))
      return errors.error("{}: AF_XDP gives the frames to one element only; '{}' has the interface, too", device_,
                          other->name());
  }
  return {};
}

Status FromDevice::open_interface(Errors& errors) {
  if (!request_.filter.empty() && !io::check_filter(request_.filter, errors)) return Status::failed();
  look_.initialize();
  const std::shared_ptr<io::LinkWatch> watch_of_all = io::LinkWatch::at(control_watch(router()), errors);
  if (!watch_of_all) return Status::failed();
  link_ = watch_of_all->subscribe(device_, [this] { look_.schedule_after({}); });
  Errors collected;
  const bool opened = open_port(collected);
  for (const std::string& line : collected.lines()) {
    if (opened || may_miss_)
      errors.warning("{}", line);
    else
      (void)errors.error("{}", line);
  }
  if (!opened && !may_miss_) return Status::failed();
  if (!check_others(errors)) return Status::failed();
  // Frames wait for the router from now on, unless a configuration that runs would get them twice. The kernel has them
  // no longer: it may have the router's addresses by a KernelTap, and would answer ARP requests for them here, too.
  taken_over_ = io::is_received(device_);
  if (port_ && !taken_over_ && !start_port(errors)) return Status::failed();
  task_.initialize(true);
  rss_.initialize({home_thread()}, kRingFull, SoftwareRss::kDefaultCapacity, spread_);
  if (port_) watch(true);
  return {};
}

Status FromDevice::initialize(Errors& errors) {
  if (live_) take_turn(*this);
  const Status opened = live_ ? open_interface(errors) : open_file(device_.substr(kFilePrefix.size()), errors);
  if (!opened) return opened;
  const int type = link_type_;
  if (force_ip_ && type >= 0 && !io::can_find_ip(type))
    errors.warning("{}: strange data link type {}, FORCE_IP will not work", device_, type);
  return {};
}

std::string FromDevice::note() const {
  if (!live_) return {};
  if (!port_) return device_ + ", which is not there yet";
  const bool kernel_too = request_.sniffer && port_->method() != io::PortMethod::kAfXdp;
  return device_ + " by " + port_->description() + port_->refusal() +
         (kernel_too ? ", the kernel receives the frames as well" : "");
}

void FromDevice::watch(bool on) {
  for (const int fd : port_->descriptors()) {
    select(fd, on ? 1 : 0);
    rss_.wake_all(fd, on);
  }
}

Status FromDevice::start_port(Errors& errors) {
  started_ = true;
  // AF_XDP takes the frames before the kernel has them. An old kernel that cannot be kept out is no error: it may have no
  // address there.
  if (!request_.sniffer && port_->method() != io::PortMethod::kAfXdp)
    silence_ = io::KernelSilence::begin(device_, complaints_);
  return port_->start(request_, errors);
}

void FromDevice::look_after_interface() {
  if (port_ && port_->gone()) {
    chatter("{}: {} is gone; waiting for it", declaration(), device_);
    earlier_drops_ += port_->kernel_drops().value_or(0) - first_drops_;
    first_drops_ = 0;
    watch(false);
    set_port(nullptr);
    silence_.reset();
  }
  const std::optional<DeviceState> link = link_->state();
  const bool up = link && link->enabled;
  if (port_) {
    if (up != up_) chatter("{}: {} is {}", declaration(), device_, up ? "up" : "down");
    up_ = up;
  } else if (Errors unused; open_port(unused)) {
    chatter("{}: {} is there, by {}{}", declaration(), device_, port_->description(), port_->refusal());
    up_ = true;
    started_ = false;
    watch(true);
    task_.reschedule();
  } else if (up) {
    look_.schedule_after(kRetryAfter);
  }
}

void FromDevice::receive_live(Batch& batch) {
  if (!started_) {
    (void)start_port(complaints_);
    // What was lost before belongs to the configuration that ran before.
    if (taken_over_) first_drops_ = port_->kernel_drops().value_or(0);
  }
  io::ReceiveLosses losses;
  if (rest_) {
    rest_->receive(batch, burst_, headroom_, timestamps_, losses);
    if (batch.empty()) rest_.reset();
  }
  port_->receive(batch, burst_ - batch.size(), headroom_, timestamps_, losses);
  if (losses.no_buffer > 0) missed_ += losses.no_buffer;
  if (losses.too_long > 0) {
    count_drops(losses.too_long, kTooLong);
    counts_.add(kPackets, losses.too_long);
    if (!std::exchange(said_too_long_, true))
      chatter("{}: frames longer than the MTU of {} come, and are dropped: ethtool -K DEV tso off gso off gro off",
              declaration(), device_);
  }
  // Reading the error takes it away; otherwise the descriptor would stay readable.
  if (batch.empty() && woken_) (void)port_->take_error();
  woken_ = false;
}

bool FromDevice::receive_file(Batch& batch) {
  while (batch.size() < burst_) {
    io::CaptureReader::Record record;
    if (file_.next(record, complaints_) != io::CaptureReader::Got::kRecord) return false;
    if (Packet* p = io::make_packet(record, headroom_)) {
      if (!timestamps_) p->set_timestamp({});
      p->set_packet_type(io::packet_type_of(*p, file_.link_type(), std::nullopt));
      batch.push_back(p);
    } else {
      missed_ += 1;
    }
  }
  return true;
}

void FromDevice::emit(Batch& batch) {
  uint64_t bytes = 0;
  for (const Packet* p : batch) bytes += p->length();
  counts_.add(kPackets, static_cast<uint64_t>(batch.size()));
  counts_.add(kBytes, bytes);
  if (!force_ip_) {
    output(0).push(batch);
    return;
  }
  Next nexts[Batch::kCapacity];
  const int type = link_type_;
  for (int i = 0; i < batch.size(); ++i) nexts[i] = io::mark_ip_header(*batch[i], type) ? 0 : 1;
  push_split(batch, nexts);
}

bool FromDevice::run_task(Task& task) {
  Batch batch;
  if (!live_) {
    const bool more = receive_file(batch);
    const bool worked = !batch.empty();
    if (worked) emit(batch);
    if (more) {
      task.fast_reschedule();
    } else {
      file_.close();
      if (stop_) router().request_stop();
    }
    return worked;
  }
  if (!port_) return false;
  receive_live(batch);
  if (batch.empty()) {
    if (++quiet_rounds_ < kQuietRounds) task.fast_reschedule();
    return false;
  }
  quiet_rounds_ = 0;
  task.received(batch.size(), burst_);
  task.fast_reschedule();
  static const int kEthernet = io::parse_link_type("ETHER");
  const SoftwareRss::Lost lost =
      rss_.spread(batch, link_type_ == kEthernet ? SoftwareRss::Begin::kEthernet : SoftwareRss::Begin::kIp);
  if (lost.packets > 0) {
    counts_.add(kPackets, lost.packets);
    counts_.add(kBytes, lost.bytes);
  }
  return true;
}

void FromDevice::selected(int, int) {
  woken_ = true;
  task_.reschedule();
}

void FromDevice::take_state(Element& old, Errors&) {
  auto& from = static_cast<FromDevice&>(old);
  rss_.take_state(from.rss_);
  if (!from.live_ || from.port_ == port_ || !from.port_) return;
  from.port_->stop();
  rest_ = from.port_;
}

PortTotals FromDevice::totals(Direction, int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

std::shared_ptr<io::PortReceiver> FromDevice::shared_port() const {
  std::lock_guard guard(port_lock_);
  return port_;
}

std::optional<uint64_t> FromDevice::kernel_drops() const {
  const std::shared_ptr<io::PortReceiver> port = shared_port();
  if (!port) return earlier_drops_;
  const std::optional<uint64_t> now = port->kernel_drops();
  if (!now) return std::nullopt;
  return *now + earlier_drops_ - first_drops_;
}

std::optional<DeviceState> FromDevice::device_state() const {
  if (link_) return link_->state();
  DeviceState file;
  file.name = device_.substr(device_.find_last_of(":/") + 1);
  return file;
}

DeviceCounters FromDevice::device_counters() const {
  const DeviceCounters kernel = link_ ? link_->counters().value_or(DeviceCounters()) : DeviceCounters();
  DeviceCounters counters;
  counters.rx_packets = counts_.sum(kPackets);
  counters.rx_bytes = counts_.sum(kBytes);
  counters.rx_dropped = kernel.rx_dropped + missed();
  for (const DropCount& d : drop_counts()) counters.rx_dropped += d.packets;
  counters.rx_errors = kernel.rx_errors;
  counters.rx_frame_errors = kernel.rx_frame_errors;
  counters.rx_overruns = kernel.rx_overruns;
  counters.rx_crc_errors = kernel.rx_crc_errors;
  return counters;
}

uint64_t FromDevice::missed() const { return missed_ + kernel_drops().value_or(0); }

void FromDevice::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("byte_count", [this] { return std::to_string(counts_.sum(kBytes)); });
  handlers.button("reset_counts", [this] { counts_.reset(); });
  handlers.read("kernel_drops", [this] {
    const auto drops = kernel_drops();
    return drops ? std::to_string(*drops) : std::string("??");
  });
  handlers.read("drops", [this] {
    uint64_t n = missed();
    for (const DropCount& d : drop_counts()) n += d.packets;
    return std::to_string(n);
  });
  handlers.read("method", [this] {
    const std::shared_ptr<io::PortReceiver> port = shared_port();
    return port ? port->description() : std::string(live_ ? "none" : "file");
  });
  handlers.read("encap", [this] { return io::link_type_name(link_type_); });
}

}  // namespace headrace
