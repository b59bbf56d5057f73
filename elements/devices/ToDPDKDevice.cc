#include "elements/devices/ToDPDKDevice.hh"

#include <sched.h>

#include <chrono>

#include "elements/devices/dpdk_handlers.hh"
#include "headrace/control_watch.hh"
#include "headrace/router.hh"
#include "src/io/dpdk/eal.hh"

namespace headrace {

using DpdkPort = io::dpdk::Port;

namespace {
/// How long a worker waits for a port that takes nothing: longer than a card at 100 Mb/s needs for some descriptors,
/// but the far side of a virtual port may itself wait for us.
constexpr std::chrono::milliseconds kRingPatience{10};
/// Attempts before it yields the CPU, for instance to the thread that will make room.
constexpr int kAttempts = 200;
}  // namespace

ToDPDKDevice::~ToDPDKDevice() {
  for (int t = 0; gathered_ && t < gathered_->size(); ++t) (*gathered_)[t].batch.kill();
}

Status ToDPDKDevice::configure(Args& args) {
  count_reasons({"no room", "too long or too short", "no port"});
  Args own(join_device_arguments(arguments()), args.scope(), args.errors());
  int queue = -1, verbose = 0;
  own.read_mp("PORT", device_).read_p("QUEUE", queue).read_p("N_QUEUES", wants_.queues, Between{-1, 1024});
  own.read("IQUEUE", wants_.backlog, Between{0, 1 << 20})
      .read("BLOCKING", blocking_)
      .read("BURST", burst_, Between{1, Batch::kCapacity})
      .read("TIMEOUT", timeout_ms_, Between{-1.0, 1e6})
      .read("NDESC", wants_.descriptors, Between{0, 65535})
      .read("MTU", wants_.mtu, Between{68, 65535})
      .read("IPCO", wants_.ip_checksums)
      .read("TCO", wants_.l4_checksums)
      .read("ALLOW_NONEXISTENT", may_miss_)
      .read("VERBOSE", verbose);
  // All arguments were given to `args`, too.
  std::vector<std::string> ignored;
  args.consume_rest(ignored);
  if (!own.complete()) return Status::failed();
  if (device_.empty()) return own.errors().error("PORT: no port given");
  if (wants_.queues == 0) return own.errors().error("N_QUEUES: at least 1 queue, or -1");
  if (queue >= 0) own.errors().warning("QUEUE has no effect: workers choose their queues");
  wants_.ip_checksums |= wants_.l4_checksums;
  plan_ = io::dpdk::Plan::of(&router());
  number_ = plan_->send(device_, wants_);
  return {};
}

Status ToDPDKDevice::initialize(Errors& errors) {
  const std::shared_ptr<io::LinkWatch> links = io::LinkWatch::at(control_watch(router()), errors);
  if (!links) return Status::failed();
  Errors collected;
  io::dpdk::Plan::Grant grant = plan_->grant(number_, router().worker_count(), links, may_miss_ ? collected : errors);
  for (const std::string& line : collected.lines()) errors.warning("{}", line);
  plan_ = nullptr;
  if (!grant.port && !may_miss_) return Status::failed();
  port_ = std::move(grant.port);
  if (input_is_pull(0)) {
    pull_task_ = std::make_unique<Task>(this);
    pull_task_->initialize(true);
    signal_ = Signal::upstream_nonempty(this, 0, pull_task_.get());
  }
  if (!port_) return {};
  const int workers = router().worker_count();
  if (workers <= port_->settings().transmit_queues) owners_ = workers;
  // Scheduled, for what a configuration before this one left to be sent.
  for (int w = 0; w < workers; ++w) {
    flush_tasks_.push_back(std::make_unique<Task>(this, [this](Task& task) { return flush(task); }));
    flush_tasks_.back()->initialize(true, w);
  }
  if (timeout_ms_ == 0 || burst_ == 1) return {};
  gathered_ = std::make_unique<PerThread<Gathered>>();
  for (int w = 0; timeout_ms_ > 0 && w < workers; ++w) {
    Gathered& g = (*gathered_)[w];
    g.timer = std::make_unique<Timer>(this, [this](Timer&) { send_gathered(); });
    g.timer->initialize(w);
  }
  return {};
}

int ToDPDKDevice::queue() const {
  const int id = thread_id();
  return id < owners_ ? id : id % port_->settings().transmit_queues;
}

DpdkPort::Sender ToDPDKDevice::sender() const {
  if (owners_ == 0) return DpdkPort::Sender::kAny;
  // Other threads, such as the control thread, use the queue of some worker.
  return thread_id() < owners_ ? DpdkPort::Sender::kOwner : DpdkPort::Sender::kGuest;
}

void ToDPDKDevice::count(DpdkPort::Transmitted done) {
  uint64_t* counts = counts_.local();
  counts[kPackets] += static_cast<uint64_t>(done.packets);
  counts[kBytes] += done.bytes;
  if (done.unfit > 0) [[unlikely]]
    count_drops(static_cast<uint64_t>(done.unfit), kUnfit);
}

bool ToDPDKDevice::wait_for_room(int queue, Packet** packets, int& n) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::now() + kRingPatience;
  for (int attempts = 0; port_->link_up() && !stuck_.load(std::memory_order_relaxed); ++attempts) {
    const bool any = port_->flush(queue, sender());
    const DpdkPort::Transmitted done = port_->transmit(queue, packets, n, sender());
    count(done);
    n = done.left;
    if (n == 0) return true;
    if (any || done.packets > 0) {
      attempts = 0;
      end = Clock::now() + kRingPatience;
    } else if (attempts < kAttempts) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
      if (Clock::now() > end) stuck_ = true;
    }
  }
  return false;
}

void ToDPDKDevice::send(Packet** packets, int n) {
  io::dpdk::attach_thread();
  const int q = queue();
  const DpdkPort::Sender self = sender();
  const DpdkPort::Transmitted done = port_->transmit(q, packets, n, self);
  count(done);
  if (done.left > 0 || done.waiting) [[unlikely]]
    finish(q, packets, done, self);
  else if (stuck_.load(std::memory_order_relaxed)) [[unlikely]]
    stuck_ = false;
}

/// What is left to do where the port has not taken all packets, or some wait.
void ToDPDKDevice::finish(int queue, Packet** packets, DpdkPort::Transmitted done, DpdkPort::Sender self) {
  bool waiting = done.waiting;
  int left = done.left;
  if (left == 0) {
    if (stuck_.load(std::memory_order_relaxed)) stuck_ = false;
  } else {
    if (!blocking_ || self == DpdkPort::Sender::kGuest || !wait_for_room(queue, packets, left))
      for (int i = 0; i < left; ++i) drop(packets[i], kNoRoom);
    waiting = port_->waiting(queue);
  }
  if (!waiting) return;
  // What a guest has left is for the worker whose queue it is.
  const auto worker = static_cast<size_t>(self == DpdkPort::Sender::kGuest ? queue : thread_id());
  if (worker < flush_tasks_.size()) flush_tasks_[worker]->reschedule();
}

void ToDPDKDevice::push(int, Batch& batch) {
  if (!port_) [[unlikely]]
    drop(batch, kNoPort);
  else if (gathered_)
    gather(batch);
  else
    send(batch.begin(), batch.size());
}

void ToDPDKDevice::gather(Batch& batch) {
  Gathered& g = gathered_->local();
  for (Packet* p : batch) {
    g.batch.push_back(p);
    if (g.batch.size() >= burst_) send_gathered();
  }
  if (!g.batch.empty() && g.timer && !g.timer->scheduled())
    g.timer->schedule_after(Timestamp::from_ns(static_cast<int64_t>(timeout_ms_ * 1e6)));
}

void ToDPDKDevice::send_gathered() {
  Gathered& g = gathered_->local();
  send(g.batch.begin(), g.batch.size());
  g.batch.clear();
  if (g.timer) g.timer->unschedule();
}

bool ToDPDKDevice::flush(Task& task) {
  io::dpdk::attach_thread();
  const bool any = port_->flush(queue(), sender());
  if (port_->waiting(queue())) task.fast_reschedule();
  return any;
}

bool ToDPDKDevice::run_task(Task& task) {
  Batch batch;
  // What waits is sent first; as long as there is no room, packets are better off upstream.
  if (!port_ || !port_->waiting(queue())) input(0).pull(batch, burst_);
  const bool worked = !batch.empty();
  if (worked) push(0, batch);
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

void ToDPDKDevice::take_state(Element& old, Errors&) {
  auto& before = static_cast<ToDPDKDevice&>(old);
  if (!port_ || !before.gathered_) return;
  for (int t = 0; t < before.gathered_->size(); ++t) {
    Batch& batch = (*before.gathered_)[t].batch;
    if (!batch.empty()) send(batch.begin(), batch.size());
    batch.clear();
  }
}

uint64_t ToDPDKDevice::held_packets() const {
  uint64_t n = 0;
  for (int t = 0; gathered_ && t < gathered_->size(); ++t) n += static_cast<uint64_t>((*gathered_)[t].batch.size());
  return n;
}

PortTotals ToDPDKDevice::totals(Direction, int thread) const {
  return {counts_.of_thread(thread, kPackets), counts_.of_thread(thread, kBytes)};
}

std::optional<DeviceState> ToDPDKDevice::device_state() const { return port_ ? port_->device_state() : std::nullopt; }

DeviceCounters ToDPDKDevice::device_counters() const {
  DeviceCounters counters;
  counters.tx_packets = counts_.sum(kPackets);
  counters.tx_bytes = counts_.sum(kBytes);
  for (const DropCount& d : drop_counts()) counters.tx_dropped += d.packets;
  if (port_) counters.tx_errors = port_->stats().send_errors;
  return counters;
}

void ToDPDKDevice::add_handlers(Handlers& handlers) {
  add_port_handlers(handlers, port_);
  for (const char* name : {"count", "n_sent"})
    handlers.read(name, [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("bytes", [this] { return std::to_string(counts_.sum(kBytes)); });
  for (const char* name : {"dropped", "n_dropped"})
    handlers.read(name, [this] {
      uint64_t n = 0;
      for (const DropCount& d : drop_counts()) n += d.packets;
      return std::to_string(n);
    });
  handlers.button("reset_counts", [this] { counts_.reset(); });
  const auto hardware = [&](const char* name, uint64_t io::dpdk::PortStats::*value) {
    handlers.read(name, [this, value] { return std::to_string(port_ ? port_->stats().*value : 0); });
  };
  hardware("hw_count", &io::dpdk::PortStats::sent);
  hardware("hw_bytes", &io::dpdk::PortStats::sent_bytes);
  hardware("hw_errors", &io::dpdk::PortStats::send_errors);
}

}  // namespace headrace
