#include "elements/devices/host_port.hh"

#include <algorithm>

#include "elements/devices/device_watch.hh"
#include "headrace/chatter.hh"
#include "headrace/control_watch.hh"
#include "headrace/router.hh"
#include "src/io/pcap/link_type.hh"
#include "src/io/pcap/live.hh"

namespace headrace {

namespace {
constexpr uint32_t kEtherHeader = 14, kTag = 4, kLongestIp = 65535;
}  // namespace

Status HostPort::check_common(Args& args) {
  if (options_.gateway && !(options_.address && options_.address->contains(options_.gateway)))
    return args.errors().error("bad GATEWAY");
  return {};
}

Status HostPort::initialize(Errors& errors) {
  device_ = io::HostDevice::open("element " + name(), options_, &router(), errors);
  if (!device_) return Status::failed();
  const std::shared_ptr<io::LinkWatch> watch = io::LinkWatch::at(control_watch(router()), errors);
  if (!watch) return Status::failed();
  link_ = watch->subscribe(device_->name(), [] {});
  task_.initialize(true);
  look_.initialize();
  rss_.initialize({home_thread()}, kRingFull);
  select(device_->fd(), 1);
  return {};
}

std::string HostPort::note() const {
  if (!device_) return {};
  std::string text = device_->name();
  if (options_.address) text += ", " + options_.address->unparse();
  return text + ", to the host";
}

void HostPort::look_after_device() {
  if (device_->reopen()) {
    chatter("{}: {} is there again", declaration(), device_->name());
    select(device_->fd(), 1);
    task_.reschedule();
  } else {
    look_.schedule_after(kRetryAfter);
  }
}

bool HostPort::receive_from_host(Task& task) {
  if (!std::exchange(started_, true)) {
    Errors errors(Errors::Output::kStderr);
    (void)device_->change(options_, errors);
  }
  Batch batch;
  uint64_t missed = 0;
  auto got = io::HostDevice::Got::kPacket;
  while (batch.size() < burst_ && got != io::HostDevice::Got::kNothing) {
    Packet* p = nullptr;
    got = device_->receive(headroom_, p);
    if (p) {
      batch.push_back(p);
    } else if (got == io::HostDevice::Got::kNoBuffer) {
      ++missed;
    } else if (got == io::HostDevice::Got::kGone) {
      chatter("{}: {} is gone; making it again", declaration(), device_->name());
      select(device_->fd(), 0);
      look_.schedule_after(kRetryAfter);
      break;
    }
  }
  if (missed > 0) counts_.add(kMissed, missed);
  if (batch.empty()) {
    if (got == io::HostDevice::Got::kNothing && ++quiet_rounds_ < kQuietRounds) task.fast_reschedule();
    return false;
  }
  quiet_rounds_ = 0;
  const Timestamp now = clock::now();
  uint64_t bytes = 0;
  static const int kEthernet = io::parse_link_type("ETHER");
  for (Packet* p : batch) {
    bytes += p->length();
    p->set_timestamp(now);
    if (!options_.tap) continue;
    p->set_mac_header();
    p->set_packet_type(io::packet_type_of(*p, kEthernet, std::nullopt));
  }
  counts_.add(kPackets, static_cast<uint64_t>(batch.size()));
  counts_.add(kBytes, bytes);
  (void)rss_.spread(batch, options_.tap ? SoftwareRss::Begin::kEthernet : SoftwareRss::Begin::kIp);
  if (got != io::HostDevice::Got::kGone) task.fast_reschedule();
  return true;
}

void HostPort::selected(int, int) { task_.reschedule(); }

void HostPort::take_state(Element& old, Errors&) { rss_.take_state(static_cast<HostPort&>(old).rss_); }

PortTotals HostPort::give_to_host(Batch& batch, Element& user, int reason) {
  // By a tun device Linux takes IP packets of any length, such as an IPReassembler makes.
  const uint32_t longest = options_.tap ? static_cast<uint32_t>(options_.mtu) + kEtherHeader + kTag : kLongestIp;
  PortTotals given;
  for (Packet* p : batch) {
    if (p->length() > longest) {
      user.drop(p, reason);
    } else if (!device_->send(*p)) {
      user.drop(p, reason + 1);
    } else {
      ++given.packets;
      given.bytes += p->length();
      p->kill();
    }
  }
  counts_.add(kGiven, given.packets);
  return given;
}

PortTotals HostPort::totals(Direction, int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

std::optional<DeviceState> HostPort::device_state() const { return link_ ? link_->state() : std::nullopt; }

DeviceCounters HostPort::device_counters() const {
  DeviceCounters counters;
  counters.rx_packets = counts_.sum(kPackets);
  counters.rx_bytes = counts_.sum(kBytes);
  // What the host sends and nobody has read in time.
  counters.rx_dropped = missed() + (link_ ? link_->counters().value_or(DeviceCounters()).tx_dropped : 0);
  const PortTotals given = to_host_.sum();
  counters.tx_packets = given.packets;
  counters.tx_bytes = given.bytes;
  const std::vector<std::string> to_host = host_reasons();
  for (const DropCount& d : drop_counts()) {
    const bool sent = std::find(to_host.begin(), to_host.end(), d.reason) != to_host.end();
    (sent ? counters.tx_dropped : counters.rx_dropped) += d.packets;
  }
  return counters;
}

void HostPort::add_handlers(Handlers& handlers) {
  handlers.read("dev_name", [this] { return device_name(); });
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("byte_count", [this] { return std::to_string(counts_.sum(kBytes)); });
  handlers.read("sent", [this] { return std::to_string(counts_.sum(kGiven)); });
  handlers.read("drops", [this] {
    uint64_t n = missed();
    for (const DropCount& d : drop_counts()) n += d.packets;
    return std::to_string(n);
  });
  handlers.button("reset_counts", [this] {
    counts_.reset();
    to_host_.reset();
  });
}

}  // namespace headrace
