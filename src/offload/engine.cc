#include "offload/engine.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "headrace/real_clock.hh"
#include "headrace/router.hh"
#include "headrace/thread_name.hh"
#include "headrace/worker.hh"
#include "offload/chain_plans.hh"
#include "offload/job_clock.hh"
#include "offload/placement.hh"

namespace headrace::offload {

namespace {

/// How long an update waits for a device's jobs with an old state of the tables before it gives up on the device.
constexpr int64_t kSettleNs = 500'000'000;
/// The same while workers run and poll these jobs themselves: a worker may not have been scheduled for a while.
constexpr int64_t kSettleRunningNs = 5'000'000'000;

/// How often an otherwise idle worker checks whether the device has finished late jobs.
constexpr Timestamp kLateJobsPoll = Timestamp::from_ms(1);

bool wants_device(const OffloadOptions& o) {
  return o.mode == OffloadOptions::Mode::kDevice || o.mode == OffloadOptions::Mode::kFixed;
}

/// For each node, the gates of the plans to which packets that it pushes may come.
std::vector<uint64_t> gates_of_nodes(const std::vector<Plan>& plans, const std::vector<graph::Edge>& edges,
                                     const graph::Resolved& resolved) {
  std::vector<uint64_t> gates(resolved.nodes.size(), 0);
  std::vector<std::vector<int>> arriving(gates.size());  // by push connections: the nodes that they come from
  for (const graph::Edge& e : edges)
    if (resolved.nodes[static_cast<size_t>(e.from.node)].outputs[static_cast<size_t>(e.from.port)] ==
        graph::Mode::kPush)
      arriving[static_cast<size_t>(e.to.node)].push_back(e.from.node);
  for (size_t p = 0; p < plans.size(); ++p) {
    const uint64_t gate = JobQueue::gate_of(static_cast<int>(p));
    std::vector<int> stack;
    for (const Entry& entry : plans[p].entries()) stack.push_back(edges[static_cast<size_t>(entry.edge)].from.node);
    while (!stack.empty()) {
      const auto node = static_cast<size_t>(stack.back());
      stack.pop_back();
      if (gates[node] & gate) continue;
      gates[node] |= gate;
      stack.insert(stack.end(), arriving[node].begin(), arriving[node].end());
    }
  }
  return gates;
}

}  // namespace

std::unique_ptr<Engine> Engine::create(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                                       const graph::Resolved& resolved, const OffloadOptions& options,
                                       const std::vector<int>& worker_nodes, const Engine* before, Errors& errors) {
  // A mistake is one without a device, too. Offload elements look at theirs.
  std::string why;
  if (!make_balancer(options.balancer, why)) {
    (void)errors.error("--balancer: {}", why);
    return nullptr;
  }
  const int workers = static_cast<int>(worker_nodes.size());
  const bool may = may_have_devices(options);
  const auto wants = [&](const OffloadOptions& o) {
    return wants_device(o) || (o.mode == OffloadOptions::Mode::kAuto && may);
  };
  bool any = wants(options),
       at_once = wants_device(options) || options.wait_for_devices || (before && !before->opening());
  for (const Element* e : elements) {
    const auto* entry = dynamic_cast<const ChainEntry*>(e);
    if (!entry) continue;
    OffloadOptions here = options;
    entry->adjust(here);
    any |= wants(here);
    at_once |= wants_device(here);
  }
  if (!any) {
    if (!options.balance_trace.empty())
      errors.message("--balance-trace: nothing is written, for packets are processed on the CPU only");
    return nullptr;
  }

  std::unique_ptr<Engine> engine(new Engine(options, workers));
  ChainPlans chains = plan_chains(elements, edges, resolved);
  engine->plans_ = std::move(chains.plans);
  engine->images_ = chains.images;
  engine->on_cpu_ = std::move(chains.on_cpu);
  engine->worker_nodes_ = worker_nodes;
  if (before && before->loop_) engine->learnt_ = before->loop_->learnt();
  for (size_t p = 0; p < engine->plans_.size(); ++p) {
    for (const Entry& way : engine->plans_[p].entries()) {
      auto* entry =
          dynamic_cast<ChainEntry*>(elements[static_cast<size_t>(edges[static_cast<size_t>(way.edge)].from.node)]);
      OffloadOptions here = options;
      if (entry) {
        entry->adjust(here);
      } else {
        if (!wants(options)) continue;
        engine->made_.emplace_back(way.edge, std::make_unique<ChainEntry>());
        entry = engine->made_.back().second.get();
      }
      entry->attach(nullptr, static_cast<int>(p), way.step, static_cast<uint16_t>(engine->entries_.size()), here);
      engine->entries_.push_back(entry);
      // Whoever asks for stream gets it.
      using Run = OffloadOptions::Run;
      if (engine->options_.run != Run::kStream && here.run != Run::kAuto) engine->options_.run = here.run;
      engine->balanced_ |= here.mode == OffloadOptions::Mode::kAuto;
    }
  }
  if (engine->entries_.empty()) return nullptr;
  // Before devices are open, so that it stops the router and not only their use.
  if (const std::string& file = options.balance_trace;
      !before && !file.empty() && !balance::TraceFile::may_write(file)) {
    (void)errors.error("--balance-trace: {}: cannot be written ({})", file, std::strerror(errno));
    return nullptr;
  }
  // Without a balancer nobody ever chooses the other one.
  if (engine->options_.run == OffloadOptions::Run::kAuto && !engine->balanced_)
    engine->options_.run = OffloadOptions::Run::kResident;
  for (ChainEntry* entry : engine->entries_) {
    OffloadOptions& here = entry->in_effect();
    here.run = engine->options_.run;
    const bool payloads = engine->plans_[static_cast<size_t>(entry->plan())].reads_payloads();
    here.job_bytes = here.bytes_of_job(payloads);
    here.job = here.job_size(payloads);
    engine->options_.job = std::max(engine->options_.job, here.job);
  }
  engine->options_.jobs = engine->options_.job_count(std::any_of(
      engine->entries_.begin(), engine->entries_.end(),
      [&](const ChainEntry* e) { return engine->plans_[static_cast<size_t>(e->plan())].reads_payloads(); }));
  const std::vector<uint64_t> gates = gates_of_nodes(engine->plans_, edges, resolved);
  for (size_t i = 0; i < elements.size(); ++i)
    if (gates[i] != 0) engine->feeders_.emplace_back(elements[i], gates[i]);
  engine->program_ = make_program(engine->plans_, engine->images_);
  if (!at_once) {
    engine->state_ = State::kOpening;
    return engine;
  }
  std::vector<std::unique_ptr<Device>> devices;
  if (!engine->open_devices(devices, errors).ok()) return nullptr;
  if (devices.empty()) return nullptr;
  engine->devices_ = std::move(devices);
  if (!engine->make_queues(errors).ok() || !engine->update(true, errors).ok()) return nullptr;
  return engine;
}

Status Engine::open_devices(std::vector<std::unique_ptr<Device>>& devices, Errors& errors) {
  std::string why_not;
  std::vector<std::unique_ptr<Backend>> found = find_devices(options_, why_not);
  if (found.empty()) {
    errors.message("no device to offload to ({}): packets are processed on the CPU", why_not);
    return {};
  }
  LaneOptions lanes;
  lanes.workers = workers_;
  lanes.jobs = options_.jobs;
  lanes.job_size = options_.job;
  lanes.resident = options_.run != OffloadOptions::Run::kStream;
  lanes.stream = options_.run != OffloadOptions::Run::kResident;
  int deadline_ms = 0;
  for (std::unique_ptr<Backend>& backend : found) {
    auto device = std::make_unique<Device>();
    if (!backend->open(program_, lanes, errors).ok()) return Status::failed();
    if (options_.deadline_ms == 0) deadline_ms = std::max(deadline_ms, backend->deadline_ms());
    device->parameters = std::make_unique<Parameters>(backend->memory(), plans_, images_, workers_);
    device->backend = std::move(backend);
    device->make_copy_known();
    devices.push_back(std::move(device));
  }
  if (options_.deadline_ms == 0) options_.deadline_ms = deadline_ms;
  std::vector<int> device_nodes;
  for (const auto& device : devices) device_nodes.push_back(device->backend->numa_node());
  first_device_ = place_workers(worker_nodes_, device_nodes, node_distance);
  // Lanes to other devices are opened when they are needed: each costs memory and the device's attention.
  for (size_t d = 0; d < devices.size(); ++d) {
    std::vector<Backend::LaneFor> all;
    for (int w = 0; w < workers_; ++w)
      if (balanced_ || first_device_[static_cast<size_t>(w)] == static_cast<int>(d))
        all.push_back({w, worker_nodes_[static_cast<size_t>(w)]});
    if (!devices[d]->backend->open_lanes(all, errors).ok()) return Status::failed();
  }
  return {};
}

BalanceSetup Engine::balance_setup() const {
  BalanceSetup setup;
  setup.workers = workers_;
  setup.cycles_per_second = cycles_per_us_ * 1e6;
  setup.first_device = first_device_;
  for (size_t d = 0; d < devices_.size(); ++d)
    setup.devices.push_back({.name = fmt::format("device {}", d),
                             .node = devices_[d]->backend->numa_node(),
                             .resident = devices_[d]->backend->offers(Run::kResident),
                             .stream = devices_[d]->backend->offers(Run::kStream),
                             .resident_idle_us = devices_[d]->backend->resident_idle_us()});
  for (size_t p = 0; p < plans_.size(); ++p) {
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [p](const ChainEntry* e) { return e->plan() == static_cast<int>(p); });
    BalanceSetup::Chain& chain = setup.chains.emplace_back();
    for (size_t s = 0; s < std::min<size_t>(plans_[p].steps().size(), 3); ++s)
      chain.name += (s == 0 ? "" : ", ") + plans_[p].steps()[s].element->name();
    chain.payload = plans_[p].reads_payloads();
    chain.bytes_there = plans_[p].row().there;
    chain.bytes_back = plans_[p].row().back;
    chain.most_places = options_.jobs;
    chain.balanced = entry != entries_.end();
    if (!chain.balanced) continue;
    const OffloadOptions& here = (*entry)->in_effect();
    chain.most_job = here.job;
    chain.job_bytes = here.job_bytes;
    chain.most_wait_us = here.max_wait_us;
    chain.p99_us = here.p99_us;
  }
  return setup;
}

Status Engine::make_queues(Errors& errors) {
  cycles_per_us_ = JobClock::measure_cycles_per_us();
  // Also where no entry has the mode kAuto: one may get it.
  std::vector<std::string> names(plans_.size(), options_.balancer);
  for (const ChainEntry* entry : entries_) names[static_cast<size_t>(entry->plan())] = entry->in_effect().balancer;
  loop_ = BalanceLoop::make(balance_setup(), names, errors);
  if (!loop_) return Status::failed();
  loop_->learn(learnt_);
  if (!options_.balance_trace.empty() && !loop_->write_trace(options_.balance_trace))
    return errors.error("--balance-trace: {}: cannot be written ({})", options_.balance_trace, std::strerror(errno));
  for (int w = 0; w < workers_; ++w) {
    const NearNode near(worker_nodes_[static_cast<size_t>(w)]);
    queues_.push_back(std::make_unique<JobQueue>(w, first_device_[static_cast<size_t>(w)], plans_, devices_, entries_,
                                                 options_, loop_->link(w), cycles_per_us_));
  }
  return {};
}

void Engine::open_wanted_lanes(Errors& errors) {
  if (queues_.empty()) return;
  for (const auto& q : queues_) q->look_for_lanes();
  for (size_t d = 0; d < devices_.size(); ++d) {
    std::vector<Backend::LaneFor> wanted;
    for (int w = 0; w < workers_; ++w)
      if (queue(w).wants_lane(static_cast<int>(d))) wanted.push_back({w, worker_nodes_[static_cast<size_t>(w)]});
    if (wanted.empty()) continue;
    // Without lanes these workers go on as they are, so that is no failure of whatever led here.
    Errors why_not;
    if (devices_[d]->well() && !devices_[d]->backend->open_lanes(wanted, why_not).ok()) {
      errors.warning("device {}: no lanes for {} worker{} ({})", d, wanted.size(), wanted.size() == 1 ? "" : "s",
                     fmt::join(why_not.lines(), "; "));
    }
  }
  for (const auto& q : queues_)
    if (q->wants_lanes()) q->settle_wanted_lanes();
}

Engine::~Engine() {
  if (opener_.joinable()) opener_.join();
  if (loop_) loop_->stop();
  for (auto* devices : {&devices_, &opened_})
    for (std::unique_ptr<Device>& device : *devices) device->stopped = device->backend->stop();
}

void Engine::start(Host host) {
  host_ = std::move(host);
  if (state_ == State::kReady) {
    join();
    return;
  }
  opener_ = std::thread([this, alive = std::weak_ptr<const bool>(alive_)] {
    name_thread("device opener");
    Errors errors;
    if (!open_devices(opened_, errors).ok()) opened_.clear();
    // The router may have ended by then, on that thread.
    host_.post([this, alive, problem = errors.str()] {
      if (!alive.expired()) take_devices(problem);
    });
  });
}

void Engine::take_devices(std::string problem) {
  opener_.join();
  Errors errors(Errors::Output::kStderr);
  while (problem.ends_with('\n')) problem.pop_back();
  if (!problem.empty()) errors.message("{}", problem);
  // Handlers of workers look at the devices.
  host_.quiesce([&] {
    devices_ = std::move(opened_);
    if (devices_.empty()) state_ = State::kNone;
  });
  if (devices_.empty()) return;
  const bool good = make_queues(errors).ok() && update(false, errors).ok();
  host_.quiesce([&] {
    state_ = good ? State::kReady : State::kNone;
    if (good && update(true, errors).ok()) join();
  });
}

void Engine::join() {
  for (ChainEntry* entry : entries_) entry->attach(this, entry->plan(), entry->step(), entry->id(), entry->in_effect());
  for (const auto& [element, gates] : feeders_)
    for (Task* task : element->tasks()) task->add_gates(gates);
  for (int w = 0; w < workers_; ++w) {
    polls_.push_back(std::make_unique<Task>(entries_.front(), [this, w](Task& task) {
      JobQueue& q = queue(w);
      const bool worked = q.poll();
      const bool idle = q.idle();
      if (q.wants_lanes() || std::any_of(devices_.begin(), devices_.end(),
                                         [](const auto& device) { return device->came_back(); })) [[unlikely]] {
        Errors errors(Errors::Output::kStderr);
        (void)entries_.front()->router().update_devices(errors);
      }
      // Always, because packets that were released may have closed a gate that the same poll opened again.
      task.close_chain_gates(q.closed_gates());
      // A worker that waits for a device does not sleep: the answer is microseconds away.
      if (!idle) task.fast_reschedule();
      // Late jobs occupy memory and tables until the device has finished them, even if no more traffic comes.
      Timer& wakeup = *wakeups_[static_cast<size_t>(w)];
      if (idle && q.has_late_jobs() && !wakeup.scheduled()) wakeup.schedule_after(kLateJobsPoll);
      return worked || !idle;
    }));
    polls_.back()->initialize(false, w);
    wakeups_.push_back(
        std::make_unique<Timer>(entries_.front(), [this, w](Timer&) { polls_[static_cast<size_t>(w)]->reschedule(); }));
    wakeups_.back()->initialize(w);
    if (host_.measure) host_.measure(w, queue(w).meter());
  }
  if (loop_) loop_->start();
}

std::vector<Engine::Shim> Engine::shims() const {
  std::vector<Shim> all;
  for (const auto& [edge, entry] : made_) all.push_back({edge, entry.get()});
  return all;
}

ChainEntry* Engine::entry(int edge) const {
  const auto made = std::find_if(made_.begin(), made_.end(), [edge](const auto& one) { return one.first == edge; });
  return made == made_.end() ? nullptr : made->second.get();
}

void Engine::arrive(ChainEntry& entry, Batch& batch) {
  const int worker = thread_id();
  if (worker < 0 || worker >= workers_) [[unlikely]] {
    // Only workers have a lane.
    entry.process(batch);
    return;
  }
  JobQueue& q = queue(worker);
  if (!q.arrive(entry, batch)) return;
  Task& poll = *polls_[static_cast<size_t>(worker)];
  if (!poll.scheduled()) poll.reschedule();
  poll.close_chain_gates(q.closed_gates());
}

void Engine::drain(int worker) {
  if (polls_.empty()) return;  // not yet joined
  JobQueue& q = queue(worker);
  q.drain();
  polls_[static_cast<size_t>(worker)]->close_chain_gates(q.closed_gates());
}

bool Engine::behind() {
  const int worker = thread_id();
  if (!queues_.empty() && worker >= 0 && worker < workers_ && queue(worker).wants_lanes()) return true;
  return std::any_of(devices_.begin(), devices_.end(), [](const std::unique_ptr<Device>& device) {
    return device->came_back() || (device->well() && device->parameters->behind());
  });
}

bool Engine::stale_secrets() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const std::unique_ptr<Device>& device) {
    return device->well() && device->parameters->stale_secrets();
  });
}

Status Engine::update(bool standing, Errors& errors) {
  if (standing) standing_.fetch_add(1);
  const std::lock_guard guard(updating_);
  if (standing) open_wanted_lanes(errors);
  std::vector<DeviceUpdate> updates;
  for (std::unique_ptr<Device>& device : devices_)
    if (device->well() || device->came_back()) updates.push_back({device.get()});
  Status status;
  // Side by side: a device that has to finish jobs first does not keep the others waiting.
  while (!updates.empty()) {
    std::erase_if(updates, [&](DeviceUpdate& update) {
      const std::optional<Status> done = go_on(update, errors);
      if (done) status &= *done;
      return done.has_value();
    });
    // With fewer CPUs than threads, a worker may need this thread's CPU to make progress.
    if (!updates.empty() && standing_.load() == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  // Under the lock: the next one to hold it must not take workers for standing that we are about to let go.
  if (standing) standing_.fetch_sub(1);
  return status;
}

std::optional<Status> Engine::go_on(DeviceUpdate& update, Errors& errors) {
  Device& device = *update.device;
  bool hangs = false;
  const std::optional<Status> status = device.parameters->go_on(update.parameters, errors, [&](int generation) {
    if (!device.well() && !device.came_back()) return Parameters::Settled::kFailed;
    const bool stand = standing_.load() > 0;
    if (std::exchange(update.stood, stand) != stand || update.since == 0) update.since = now_ns();
    if (stand) {
      // Standing workers do not notice that their jobs are done. They stand as long as we hold the lock, even if
      // another thread, which waits for the lock, made them stand.
      bool used = false;
      for (std::unique_ptr<JobQueue>& q : queues_) used |= q->uses(device, generation);
      if (!used) return Parameters::Settled::kNow;
    }
    hangs = now_ns() - update.since >= (stand ? kSettleNs : kSettleRunningNs);
    return hangs ? Parameters::Settled::kNever : Parameters::Settled::kWait;
  });
  if (!status) return status;
  // A device that was not updated would answer from old tables.
  using Health = Device::Health;
  if (status->ok())
    device.move(Health::kBack, Health::kWell);
  else if (!hangs || !(device.move(Health::kWell, Health::kHung) || device.move(Health::kBack, Health::kHung)))
    device.fail();
  return status;
}

}  // namespace headrace::offload
