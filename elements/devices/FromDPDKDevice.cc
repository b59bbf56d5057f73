#include "elements/devices/FromDPDKDevice.hh"

#include <fmt/format.h>

#include "elements/devices/dpdk_handlers.hh"
#include "headrace/control_watch.hh"
#include "headrace/router.hh"
#include "src/io/dpdk/eal.hh"

namespace headrace {

using DpdkPort = io::dpdk::Port;

Status FromDPDKDevice::configure(Args& args) {
  count_reasons({"wrong checksum", "ring full"});
  Args own(join_device_arguments(arguments()), args.scope(), args.errors());
  bool active = true;
  own.read_mp("PORT", device_).read_p("QUEUE", wants_.queue, Between{-1, 1023});
  own.read_p("N_QUEUES", wants_.queues, Between{-1, 1024})
      .read("PROMISC", wants_.promiscuous)
      .read("BURST", burst_, Between{1, Batch::kCapacity})
      .read("NDESC", wants_.descriptors, Between{0, 65535})
      .read("MTU", wants_.mtu, Between{68, 65535})
      .read("MAC", wants_.mac)
      .read("MINQUEUES", wants_.least_queues, Between{1, 1024})
      .read("MAXQUEUES", wants_.most_queues, Between{1, 1024});
  own.read("MAXTHREADS", most_threads_).read("THREADOFFSET", first_thread_, Between{-1, kMaxThreads});
  own.read("CHECKSUM", wants_.verify_checksums).read("TIMESTAMP", timestamps_).read("ACTIVE", active);
  int verbose = 0;
  bool numa = true, rss = true;
  own.read("MODE", rss, Choice<bool>{{"rss", true}}).read("NUMA", numa);
  own.read("ALLOW_NONEXISTENT", may_miss_).read("SPREAD", spread_).read("VERBOSE", verbose);
  // All arguments were given to `args`, too.
  std::vector<std::string> ignored;
  args.consume_rest(ignored);
  if (!own.complete()) return Status::failed();
  active_ = active;
  if (device_.empty()) return own.errors().error("PORT: no port given");
  if (wants_.queues == 0) return own.errors().error("N_QUEUES: at least 1 queue, or -1");
  if (wants_.least_queues > wants_.most_queues) return own.errors().error("MINQUEUES is more than MAXQUEUES");
  plan_ = io::dpdk::Plan::of(&router());
  number_ = plan_->receive(device_, wants_);
  return {};
}

Status FromDPDKDevice::initialize(Errors& errors) {
  const std::shared_ptr<io::LinkWatch> links = io::LinkWatch::at(control_watch(router()), errors);
  if (!links) return Status::failed();
  Errors collected;
  io::dpdk::Plan::Grant grant = plan_->grant(number_, router().worker_count(), links, may_miss_ ? collected : errors);
  for (const std::string& line : collected.lines()) errors.warning("{}", line);
  plan_ = nullptr;
  if (!grant.port) return may_miss_ ? Status() : Status::failed();
  port_ = std::move(grant.port);
  first_queue_ = grant.first_queue;

  const int workers = router().worker_count();
  const int most = most_threads_ > 0 ? std::min(most_threads_, workers) : workers;
  int first = first_thread_ >= 0 ? first_thread_ : grant.queues == 1 ? home_thread() : 0;
  first %= workers;
  std::vector<int> receivers;
  for (int i = 0; i < grant.queues; ++i) {
    const int queue = first_queue_ + i;
    receivers.push_back((first + i % most) % workers);
    tasks_of_queues_.push_back(
        std::make_unique<Task>(this, [this, queue](Task& task) { return receive(task, queue); }));
    tasks_of_queues_.back()->initialize(active_, receivers.back());
  }
  rss_.initialize(receivers, kRingFull, SoftwareRss::kDefaultCapacity, spread_ && grant.queues < workers);
  return {};
}

bool FromDPDKDevice::receive(Task& task, int queue) {
  if (!active_.load(std::memory_order_relaxed)) return false;
  io::dpdk::attach_thread();
  if (!applied_.load(std::memory_order_relaxed) && !applied_.exchange(true)) {
    // This configuration runs now: what a running port can change is for it to say.
    io::dpdk::PortSettings settings;
    settings.promiscuous = wants_.promiscuous;
    settings.mac = wants_.mac;
    port_->apply(settings);
  }
  task.fast_reschedule();
  Batch batch;
  bool wrong[Batch::kCapacity];
  bool* const bad = wants_.verify_checksums ? wrong : nullptr;
  const DpdkPort::Received got = port_->receive(queue, batch.begin(), burst_, bad);
  if (got.lost > 0) counts_.add(kLost, static_cast<uint64_t>(got.lost));
  if (got.packets == 0) return false;
  task.received(got.packets, burst_);
  batch.resize(got.packets);
  uint64_t* counts = counts_.local();
  counts[kPackets] += static_cast<uint64_t>(got.packets);
  counts[kBytes] += got.bytes;
  if (timestamps_) {
    const Timestamp now = clock::now();
    for (Packet* p : batch) p->set_timestamp(now);
  }
  if (bad) sort_out(batch, bad);
  if (rss_.active())
    rss_.spread(batch);
  else if (!batch.empty())
    output(0).push(batch);
  return true;
}

void FromDPDKDevice::sort_out(Batch& batch, const bool* bad) {
  Batch wrong;
  int good = 0;
  for (int i = 0; i < batch.size(); ++i) {
    if (bad[i])
      wrong.push_back(batch[i]);
    else
      batch[good++] = batch[i];
  }
  batch.resize(good);
  if (wrong.empty()) return;
  if (noutputs() > 1)
    output(1).push(wrong);
  else
    drop(wrong, kWrongChecksum);
}

void FromDPDKDevice::take_state(Element& old, Errors&) { rss_.take_state(static_cast<FromDPDKDevice&>(old).rss_); }

PortTotals FromDPDKDevice::totals(Direction, int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

uint64_t FromDPDKDevice::missed() const {
  if (!port_) return 0;
  // Of elements that share a port one tells what the port missed.
  if (first_queue_ != 0) return counts_.sum(kLost);
  const io::dpdk::PortStats s = port_->stats();
  const uint64_t all = s.missed + s.no_buffers;
  return counts_.sum(kLost) + (all - std::min(all, missed_before_.load(std::memory_order_relaxed)));
}

std::optional<DeviceState> FromDPDKDevice::device_state() const { return port_ ? port_->device_state() : std::nullopt; }

DeviceCounters FromDPDKDevice::device_counters() const {
  DeviceCounters counters;
  counters.rx_packets = counts_.sum(kPackets);
  counters.rx_bytes = counts_.sum(kBytes);
  counters.rx_dropped = missed();
  for (const DropCount& d : drop_counts()) counters.rx_dropped += d.packets;
  if (port_) counters.rx_errors = port_->stats().receive_errors;
  return counters;
}

void FromDPDKDevice::reset_counts() {
  counts_.reset();
  if (!port_) return;
  const io::dpdk::PortStats s = port_->stats();
  missed_before_.store(s.missed + s.no_buffers, std::memory_order_relaxed);
}

std::string FromDPDKDevice::note() const {
  if (!port_) return "no port";
  const io::dpdk::PortInfo info = port_->info();
  const size_t queues = tasks_of_queues_.size();
  // Their sockets get copies.
  const bool kernel_too =
      info.driver == "net_af_packet" || (info.driver == "net_pcap" && device_.find(",iface=") != std::string::npos);
  return fmt::format("{}, driver {}, {} receive queue{}, {} descriptors, MTU {}{}", port_->name(), info.driver, queues,
                     queues == 1 ? "" : "s", info.receive_descriptors, port_->mtu(),
                     kernel_too ? ", the kernel receives the frames as well" : "");
}

void FromDPDKDevice::add_handlers(Handlers& handlers) {
  add_port_handlers(handlers, port_);
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("bytes", [this] { return std::to_string(counts_.sum(kBytes)); });
  handlers.button("reset_counts", [this] { reset_counts(); });
  const auto hardware = [&](const char* name, uint64_t io::dpdk::PortStats::*value) {
    handlers.read(name, [this, value] { return std::to_string(port_ ? port_->stats().*value : 0); });
  };
  hardware("hw_count", &io::dpdk::PortStats::received);
  hardware("hw_bytes", &io::dpdk::PortStats::received_bytes);
  hardware("hw_dropped", &io::dpdk::PortStats::missed);
  hardware("imissed", &io::dpdk::PortStats::missed);
  hardware("hw_errors", &io::dpdk::PortStats::receive_errors);
  hardware("nombufs", &io::dpdk::PortStats::no_buffers);

  handlers.read("queues", [this] {
    std::string s;
    for (size_t i = 0; i < tasks_of_queues_.size(); ++i)
      s += fmt::format("{} {}\n", first_queue_ + static_cast<int>(i), tasks_of_queues_[i]->home_thread());
    return s;
  });
  handlers.read("queue_count", [this] {
    std::string s;
    for (size_t i = 0; i < tasks_of_queues_.size(); ++i) {
      const int queue = first_queue_ + static_cast<int>(i);
      const int used = port_->receive_queue_fill(queue);
      s += fmt::format("{} {}\n", queue, used < 0 ? "??" : std::to_string(used));
    }
    return s;
  });

  handlers.read("active", [this] { return std::string(active_ ? "true" : "false"); });
  handlers.write(
      "active",
      [this](const std::string& value, Errors& errors) {
        bool on;
        if (!parse_argument(value, on, ArgContext(nullptr, &errors))) return errors.error("expected true or false");
        active_ = on;
        if (on)
          for (auto& task : tasks_of_queues_) task->reschedule();
        return Status();
      },
      Handler::kThreadSafe);
  handlers.read("promisc", [this] { return std::string(port_ && port_->promiscuous() ? "true" : "false"); });
  handlers.write("promisc", [this](const std::string& value, Errors& errors) {
    bool on;
    if (!parse_argument(value, on, ArgContext(nullptr, &errors))) return errors.error("expected true or false");
    return port_ ? port_->set_promiscuous(on, errors) : errors.error("no port");
  });
  handlers.write("mtu", [this](const std::string& value, Errors& errors) {
    int mtu;
    if (!parse_argument(value, mtu, ArgContext(nullptr, &errors)) || mtu < 68 || mtu > 65535)
      return errors.error("expected an MTU, 68 to 65535");
    return port_ ? port_->set_mtu(mtu, errors) : errors.error("no port");
  });
  const auto address = [&](const char* name, Status (DpdkPort::*action)(EtherAddress, Errors&)) {
    handlers.write(name, [this, action](const std::string& value, Errors& errors) {
      EtherAddress mac;
      if (!parse_argument(value, mac, ArgContext(nullptr, &errors)))
        return errors.error("expected an Ethernet address");
      return port_ ? (port_.get()->*action)(mac, errors) : errors.error("no port");
    });
  };
  address("mac", &DpdkPort::set_mac);
  address("add_mac", &DpdkPort::add_mac);
  address("remove_mac", &DpdkPort::remove_mac);
}

}  // namespace headrace
