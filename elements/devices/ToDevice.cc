#include "elements/devices/ToDevice.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "elements/devices/device_watch.hh"
#include "elements/devices/port_thread.hh"
#include "headrace/chatter.hh"
#include "headrace/control_watch.hh"
#include "headrace/router.hh"
#include "src/io/pcap/link_type.hh"

namespace headrace {

namespace {
constexpr int64_t kLongestBackoffUs = 256;
constexpr Timestamp kFlushAfter = Timestamp::from_us(100);
constexpr int kBurstsPerRun = 8;
}  // namespace

ToDevice::~ToDevice() {
  for (; held_next_ < held_.size(); ++held_next_) held_[held_next_]->kill();
}

Status ToDevice::configure(Args& args) {
  count_reasons({"not sent"});
  std::string method, encap = "ETHER";
  bool quiet = false;
  args.read_mp("DEVNAME", device_)
      .read("DEBUG", debug_)
      .read("METHOD", method, WordArg{})
      .read("ENCAP", encap, WordArg{});
  args.read("BURST", burst_, Between{1, Batch::kCapacity}).read("QUIET", quiet).read("ALLOW_NONEXISTENT", may_miss_);
  if (!args.complete()) return Status::failed();
  if (device_.empty()) return args.errors().error("interface not set");
  if (!method.empty() && !(request_.method = io::parse_port_method(method)))
    return args.errors().error("bad METHOD: expected AF_XDP, AF_PACKET, LINUX or PCAP");
  live_ = !device_.starts_with(kFilePrefix);
  request_.device = device_;
  file_options_.link_type = io::parse_link_type(encap);
  return file_options_.link_type < 0 ? args.errors().error("bad encapsulation type") : Status();
}

Status ToDevice::initialize(Errors& errors) {
  if (live_) take_turn(*this);
  if (live_) {
    look_.initialize();
    const std::shared_ptr<io::LinkWatch> watch = io::LinkWatch::at(control_watch(router()), errors);
    if (!watch) return Status::failed();
    link_ = watch->subscribe(device_, [this] { look_.schedule_after({}); });
    Errors collected;
    const bool opened = open_port(collected);
    for (const std::string& line : collected.lines()) {
      if (opened || may_miss_)
        errors.warning("{}", line);
      else
        (void)errors.error("{}", line);
    }
    if (!opened && !may_miss_) return Status::failed();
  } else {
    const std::string name = device_.substr(kFilePrefix.size());
    file_options_.buffered = false;
    file_options_.pcapng = name.ends_with(".pcapng") || name.ends_with(".pcapng.gz");
    if (!file_.open(name, file_options_, errors)) return Status::failed();
  }
  task_.initialize(true);
  timer_.initialize();
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

bool ToDevice::open_port(Errors& errors) {
  std::shared_ptr<io::PortSender> port = io::open_sender(request_, &router(), errors);
  const bool opened = port != nullptr;
  if (opened) set_port(std::move(port));
  return opened;
}

void ToDevice::set_port(std::shared_ptr<io::PortSender> port) {
  std::lock_guard guard(port_lock_);
  port_.swap(port);
}

std::shared_ptr<io::PortSender> ToDevice::shared_port() const {
  std::lock_guard guard(port_lock_);
  return port_;
}

std::string ToDevice::note() const {
  if (!live_) return {};
  return port_ ? device_ + " by " + port_->description() + port_->refusal() : device_ + ", which is not there yet";
}

void ToDevice::look_after_interface() {
  if (port_ && port_->gone()) {
    chatter("{}: {} is gone; waiting for it", declaration(), device_);
    select(port_->descriptor(), 0);
    set_port(nullptr);
    task_.reschedule();
  }
  const std::optional<DeviceState> link = link_->state();
  const bool up = link && link->enabled;
  if (port_) {
    if (up != up_) chatter("{}: {} is {}", declaration(), device_, up ? "up" : "down");
    up_ = up;
  } else if (Errors unused; open_port(unused)) {
    chatter("{}: {} is there, by {}{}", declaration(), device_, port_->description(), port_->refusal());
    up_ = true;
    task_.reschedule();
  } else if (up) {
    look_.schedule_after(kRetryAfter);
  }
}

int ToDevice::send_some(int& error) {
  if (!live_) {
    const int n = file_.write(held_.begin() + held_next_, held_.size() - held_next_);
    error = file_.error();
    return n;
  }
  if (!port_) {
    error = ENODEV;
    return 0;
  }
  const int n = port_->send(held_.begin() + held_next_, held_.size() - held_next_);
  error = errno;
  return n;
}

void ToDevice::sent(int n) {
  if (n == 0) return;
  complained_ = false;
  uint64_t bytes = 0;
  Batch batch;
  for (int i = 0; i < n; ++i) {
    Packet* p = held_[held_next_++];
    bytes += p->length();
    batch.push_back(p);
  }
  counts_.add(kPackets, static_cast<uint64_t>(n));
  counts_.add(kBytes, bytes);
  if (noutputs() > 0)
    output(0).push(batch);
  else
    batch.kill();
}

void ToDevice::fail(const char* error) {
  // Once: an interface that is down would fill the screen.
  if (!std::exchange(complained_, true)) chatter("ToDevice({}): {}", device_, error);
  Packet* p = held_[held_next_++];
  counts_.add(kFailed, 1);
  if (noutputs() > 1)
    output(1).push(p);
  else
    drop(p);
}

bool ToDevice::send_held() {
  while (held_next_ < held_.size()) {
    int error = 0;
    sent(send_some(error));
    if (held_next_ == held_.size()) break;
    if (live_ && (error == EAGAIN || error == ENOBUFS)) return false;
    fail(live_ ? io::explain_errno(error).c_str() : std::strerror(error));
  }
  return true;
}

void ToDevice::back_off() {
  if (backoff_us_ == 0) {
    // The socket mostly tells when it has room again; if it does so too early, wait longer and longer.
    backoff_us_ = 1;
    select(port_->descriptor(), 2);
    return;
  }
  timer_.schedule_after(Timestamp::from_us(backoff_us_));
  backoff_us_ = std::min(backoff_us_ * 2, kLongestBackoffUs);
  if (debug_) chatter("{} backing off for {} us", declaration(), backoff_us_);
}

bool ToDevice::run_task(Task& task) {
  bool worked = false, all = true;
  // Several bursts while there are full ones: what has cost the work of the whole router shall leave before more is
  // received, or an overloaded router does it for packets that a full queue then drops.
  for (int n = 0; n < kBurstsPerRun && all; ++n) {
    if (held_next_ == held_.size()) {
      held_.clear();
      held_next_ = 0;
      counts_.add(kPulls, 1);
      input(0).pull(held_, burst_);
    }
    const int before = held_next_;
    all = send_held();
    worked |= held_next_ > before;
    if (held_.size() < burst_) break;
  }
  const bool left = !port_ || port_->flush();
  if (!all) {
    back_off();
    return worked;
  }
  if (worked) backoff_us_ = 0;
  if (!left) timer_.schedule_after(kFlushAfter);
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

void ToDevice::selected(int fd, int) {
  select(fd, 0);
  task_.reschedule();
}

void ToDevice::take_state(Element& old, Errors&) {
  auto& from = static_cast<ToDevice&>(old);
  while (from.held_next_ < from.held_.size() && !held_.full()) held_.push_back(from.held_[from.held_next_++]);
  task_.reschedule();
}

PortTotals ToDevice::totals(Direction, int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

std::optional<DeviceState> ToDevice::device_state() const {
  if (link_) return link_->state();
  DeviceState file;
  file.name = device_.substr(device_.find_last_of(":/") + 1);
  return file;
}

DeviceCounters ToDevice::device_counters() const {
  const DeviceCounters kernel = link_ ? link_->counters().value_or(DeviceCounters()) : DeviceCounters();
  DeviceCounters counters;
  counters.tx_packets = counts_.sum(kPackets);
  counters.tx_bytes = counts_.sum(kBytes);
  counters.tx_dropped = kernel.tx_dropped + counts_.sum(kFailed);
  counters.tx_errors = kernel.tx_errors;
  counters.collisions = kernel.collisions;
  return counters;
}

void ToDevice::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("byte_count", [this] { return std::to_string(counts_.sum(kBytes)); });
  handlers.read("drops", [this] { return std::to_string(counts_.sum(kFailed)); });
  handlers.read("pulls", [this] { return std::to_string(counts_.sum(kPulls)); });
  handlers.read("method", [this] {
    const std::shared_ptr<io::PortSender> port = shared_port();
    return port ? port->description() : std::string(live_ ? "none" : "file");
  });
  handlers.button("reset_counts", [this] { counts_.reset(); });
  handlers.value("debug", debug_);
}

}  // namespace headrace
