#include "elements/userlevel/ToDevice.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "elements/standard/chatter.hh"
#include "elements/standard/value_handlers.hh"
#include "src/io/pcap/link_type.hh"

namespace headrace {

namespace {
constexpr std::string_view kFilePrefix = "pcap:";
constexpr int64_t kLongestBackoffUs = 256;
}  // namespace

ToDevice::~ToDevice() {
  for (; held_next_ < held_.size(); ++held_next_) held_[held_next_]->kill();
}

Status ToDevice::configure(Args& args) {
  count_reasons({"not sent"});
  std::string method = "PCAP", encap = "ETHER";
  bool quiet = false;
  args.read_mp("DEVNAME", device_)
      .read("DEBUG", debug_)
      .read("METHOD", method, WordArg{})
      .read("ENCAP", encap, WordArg{});
  args.read("BURST", burst_, Between{1, Batch::kCapacity}).read("QUIET", quiet);
  if (!args.complete()) return Status::failed();
  if (device_.empty()) return args.errors().error("interface not set");
  if (method != "PCAP" && method != "LINUX") return args.errors().error("bad METHOD");
  file_options_.link_type = io::parse_link_type(encap);
  return file_options_.link_type < 0 ? args.errors().error("bad encapsulation type") : Status();
}

Status ToDevice::initialize(Errors& errors) {
  if (device_.starts_with(kFilePrefix)) {
    const std::string name = device_.substr(kFilePrefix.size());
    file_options_.pcapng = name.ends_with(".pcapng") || name.ends_with(".pcapng.gz");
    if (!file_.open(name, file_options_, errors)) return Status::failed();
  } else {
    io::LiveInterface::Options options;
    options.capture = false;
    live_ = io::LiveInterface::open(device_, options, errors);
    if (!live_) return Status::failed();
  }
  task_.initialize(true);
  timer_.initialize();
  signal_ = Signal::upstream_nonempty(this, 0, &task_);
  return {};
}

ToDevice::Sent ToDevice::send(const Packet& p) {
  std::string error;
  if (live_) {
    if (live_->send(p)) return Sent::kYes;
    if (errno == EAGAIN || errno == ENOBUFS) return Sent::kLater;
    error = std::strerror(errno);
  } else if (file_.write(p, error)) {
    unflushed_ = true;
    return Sent::kYes;
  }
  // Once: an interface that is down would fill the screen.
  if (!std::exchange(complained_, true)) chatter("ToDevice({}): {}", device_, error);
  return Sent::kNo;
}

void ToDevice::done(Packet* p, bool sent) {
  if (sent) {
    complained_ = false;
    counts_.add(kPackets, 1);
    counts_.add(kBytes, p->length());
    if (noutputs() > 0)
      output(0).push(p);
    else
      p->kill();
    return;
  }
  counts_.add(kFailed, 1);
  if (noutputs() > 1)
    output(1).push(p);
  else
    drop(p);
}

void ToDevice::back_off() {
  if (backoff_us_ == 0) {
    // The socket mostly tells when it has room again; if it does so too early, wait longer and longer.
    backoff_us_ = 1;
    select(live_->fd(), 2);
    return;
  }
  timer_.schedule_after(Timestamp::from_us(backoff_us_));
  backoff_us_ = std::min(backoff_us_ * 2, kLongestBackoffUs);
  if (debug_) chatter("{} backing off for {} us", declaration(), backoff_us_);
}

bool ToDevice::run_task(Task& task) {
  if (held_next_ == held_.size()) {
    held_.clear();
    held_next_ = 0;
    counts_.add(kPulls, 1);
    input(0).pull(held_, burst_);
  }
  bool worked = false;
  for (; held_next_ < held_.size(); ++held_next_) {
    const Sent sent = send(*held_[held_next_]);
    if (sent == Sent::kLater) {
      back_off();
      return worked;
    }
    backoff_us_ = 0;
    worked = true;
    done(held_[held_next_], sent == Sent::kYes);
  }
  if (!worked && unflushed_) {
    // Whoever looks at the file while the router runs shall see what it has.
    file_.flush();
    unflushed_ = false;
  }
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

void ToDevice::selected(int fd, int) {
  select(fd, 0);
  task_.reschedule();
}

PortTotals ToDevice::totals(int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

void ToDevice::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("drops", [this] { return std::to_string(counts_.sum(kFailed)); });
  handlers.read("pulls", [this] { return std::to_string(counts_.sum(kPulls)); });
  handlers.button("reset_counts", [this] { counts_.reset(); });
  read_write_value(handlers, "debug", debug_);
}

}  // namespace headrace
