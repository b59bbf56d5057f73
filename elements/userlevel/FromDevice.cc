#include "elements/userlevel/FromDevice.hh"

#include "headrace/router.hh"
#include "src/io/pcap/link_type.hh"

namespace headrace {

namespace {
constexpr std::string_view kFilePrefix = "pcap:";
constexpr int kMostComplaints = 5;
constexpr Timestamp kRetryAfter = Timestamp::from_ms(100);
}  // namespace

Status FromDevice::configure(Args& args) {
  count_reasons({"not IP"});
  std::string method = "PCAP", encap, up_call, down_call;
  bool quiet = false;
  uint32_t protocol = 0, length = 0;
  args.read_mp("DEVNAME", device_).read_p("PROMISC", options_.promiscuous);
  args.read_p("SNAPLEN", options_.snap_length, Between{14, 65535})
      .read("SNIFFER", sniffer_)
      .read("FORCE_IP", force_ip_);
  args.read("CAPTURE", method, WordArg{}).read("METHOD", method, WordArg{}).read("BPF_FILTER", options_.filter);
  args.read("OUTBOUND", options_.outbound)
      .read("HEADROOM", headroom_, Between{0, 1024})
      .read("ENCAP", encap, WordArg{});
  args.read("BURST", burst_, Between{1, Batch::kCapacity}).read("TIMESTAMP", timestamps_).read("STOP", stop_);
  args.read("ALLOW_NONEXISTENT", may_miss_);
  // Arguments of Click's other versions of this element that ask for nothing here.
  args.read("QUIET", quiet).read("LENGTH", length).read("PROTOCOL", protocol);
  args.read("UP_CALL", up_call, AnyArg{}).read("DOWN_CALL", down_call, AnyArg{});
  if (!args.complete()) return Status::failed();
  if (device_.empty()) return args.errors().error("interface not set");
  if (method != "PCAP" && method != "LINUX") return args.errors().error("bad METHOD");
  if (protocol != 0) args.errors().warning("PROTOCOL has no effect; use BPF_FILTER");
  if (!up_call.empty() || !down_call.empty()) args.errors().warning("UP_CALL and DOWN_CALL have no effect");
  if (!encap.empty() && (options_.link_type = io::parse_link_type(encap)) < 0)
    return args.errors().error("bad encapsulation type");
  return {};
}

Status FromDevice::open_file(const std::string& name, Errors& errors) {
  if (!file_.open(name, errors)) return Status::failed();
  task_.initialize(true);
  return {};
}

Status FromDevice::open_interface(Errors& errors) {
  Errors collected;
  live_ = io::LiveInterface::open(device_, options_, collected);
  for (const std::string& line : collected.lines()) {
    if (live_ || may_miss_)
      errors.warning("{}", line);
    else
      (void)errors.error("{}", line);
  }
  if (!live_) return may_miss_ ? Status() : Status::failed();
  if (!sniffer_ && !(silence_ = io::KernelSilence::begin(device_, errors))) return Status::failed();
  task_.initialize(false);
  retry_.initialize();
  select(live_->fd(), 1);
  return {};
}

Status FromDevice::initialize(Errors& errors) {
  const Status opened =
      device_.starts_with(kFilePrefix) ? open_file(device_.substr(kFilePrefix.size()), errors) : open_interface(errors);
  if (!opened) return opened;
  const int type = link_type();
  if (force_ip_ && type >= 0 && !io::can_find_ip(type))
    errors.warning("{}: strange data link type {}, FORCE_IP will not work", device_, type);
  return {};
}

int FromDevice::link_type() const { return live_ ? live_->link_type() : file_.link_type(); }

void FromDevice::receive_live(Batch& batch) {
  uint64_t missed = 0;
  const int got = live_->receive(batch, burst_, headroom_, timestamps_, missed);
  if (missed > 0) missed_ += missed;
  if (got > 0) failures_ = 0;
  if (got >= 0) return;
  if (++failures_ <= kMostComplaints) (void)complaints_.error("{}: {}", declaration(), live_->error());
  select(live_->fd(), 0);
  retry_.schedule_after(kRetryAfter);
}

bool FromDevice::receive(Batch& batch) {
  if (live_) {
    receive_live(batch);
    return true;
  }
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
  const int type = link_type();
  for (int i = 0; i < batch.size(); ++i) nexts[i] = io::mark_ip_header(*batch[i], type) ? 0 : 1;
  push_split(batch, nexts);
}

bool FromDevice::run_task(Task& task) {
  Batch batch;
  const bool more = receive(batch);
  const bool worked = !batch.empty();
  if (worked) emit(batch);
  if (!more) {
    file_.close();
    if (stop_) router().request_stop();
  } else if (worked || !live_) {
    // An interface that has nothing now is watched again.
    task.fast_reschedule();
  }
  return worked;
}

void FromDevice::selected(int, int) { task_.reschedule(); }

PortTotals FromDevice::totals(int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

uint64_t FromDevice::missed() const { return missed_ + (live_ ? live_->kernel_drops().value_or(0) : 0); }

void FromDevice::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.button("reset_counts", [this] { counts_.reset(); });
  handlers.read("kernel_drops", [this] {
    const auto drops = live_ ? live_->kernel_drops() : std::optional<uint64_t>();
    return drops ? std::to_string(*drops) : std::string(live_ ? "??" : "0");
  });
  handlers.read("encap", [this] { return io::link_type_name(link_type()); });
}

}  // namespace headrace
