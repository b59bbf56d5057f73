#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <utility>

#include "headrace/alarm.hh"
#include "headrace/element.hh"
#include "headrace/real_clock.hh"
#include "headrace/router.hh"
#include "offload/balance/load_meter.hh"
#include "runtime/router_shims.hh"
#include "runtime/runtime.hh"

namespace headrace {

namespace {

constexpr int kTasksPerRound = 128;
/// A round ends when it has taken so long: what waits for all workers to have ended theirs, such as a change of tables, waits
/// as long. The clock is looked at after every few tasks, since it takes as long as a packet or two.
constexpr int64_t kRoundNs = 50'000;
constexpr int kTasksPerLook = 8;
constexpr int kRoundsPerSelect = 64;
constexpr uint64_t kStride1 = uint64_t{1} << 26;
/// Rounds without work before a polling worker sleeps, and how long it then sleeps.
constexpr unsigned kQuietRounds = 256;
constexpr int64_t kPollingSleepNs = 50'000;
constexpr int64_t kLongestSleepNs = 1'000'000'000;
/// How often worker 0 checks the run count, which falls to zero on any thread.
constexpr int64_t kStopPeriodNs = 50'000'000;
constexpr int64_t kNever = INT64_MAX;
/// How long one of several workers stays awake after work or an alarm, so that packets handed over by another worker
/// find it awake. Waking takes 50 us and more.
constexpr int64_t kLingerNs = 100'000;
/// Minimum time between alarms: steady traffic of other workers must not keep a worker awake.
constexpr int64_t kAlarmRestNs = 5'000'000;

}  // namespace

Worker::Worker(Runtime& runtime, int id)
    : runtime_(runtime), thread_(runtime.thread(id)), id_(id), next_expiry_(kNever) {}

void Worker::attach(Task* task) {
  std::lock_guard guard(lock_);
  tasks_.push_back(task);
  if (meter_) task->bursts_ = &meter_->bursts();
}

void Worker::set_meter(offload::LoadMeter* meter) {
  std::lock_guard guard(lock_);
  meter_ = meter;
  for (Task* task : tasks_) task->bursts_ = meter ? &meter->bursts() : nullptr;
}

void Worker::detach(Task* task) {
  std::lock_guard guard(lock_);
  std::erase(tasks_, task);
  if (std::erase(heap_, task)) {
    std::vector<Task*> rest;
    rest.swap(heap_);
    for (Task* t : rest) push_heap(t);
  }
  task->listed_ = false;
}

void Worker::notice() {
  noticed_.store(true, std::memory_order_seq_cst);
  if (thread_.sleeping()) thread_.wake();
}

bool Worker::later(const Task* a, const Task* b) {
  return a->pass_ != b->pass_ ? a->pass_ > b->pass_ : a->sequence_ > b->sequence_;
}

void Worker::push_heap(Task* task) {
  task->listed_ = true;
  heap_.push_back(task);
  std::push_heap(heap_.begin(), heap_.end(), &Worker::later);
}

void Worker::list_noticed() {
  if (!noticed_.exchange(false, std::memory_order_seq_cst)) return;
  std::lock_guard guard(lock_);
  for (Task* task : tasks_) {
    if (!task->scheduled() || task->listed_) continue;
    task->pass_ = pass_;
    task->sequence_ = sequence_++;
    push_heap(task);
  }
}

bool Worker::run_tasks() {
  bool worked = false;
  const int64_t begin = heap_.size() > 1 ? now_ns() : 0;
  for (int n = 0; n < kTasksPerRound; ++n) {
    if (noticed_.load(std::memory_order_acquire)) list_noticed();
    if (heap_.empty()) break;
    std::pop_heap(heap_.begin(), heap_.end(), &Worker::later);
    Task* task = heap_.back();
    heap_.pop_back();
    task->listed_ = false;
    pass_ = task->pass_;
    if (task->gates_ & closed_gates_) [[unlikely]] {
      // It stays scheduled and takes its turn later.
      task->pass_ = pass_ + kStride1 / static_cast<uint64_t>(task->tickets_);
      task->sequence_ = sequence_++;
      push_heap(task);
      continue;
    }
    if (!task->scheduled_.exchange(false, std::memory_order_acq_rel)) continue;
    worked |= run_task(*task);
    if (thread_.steps) [[unlikely]]
      thread_.steps->note(task->owner());
    if (task->scheduled() && !task->listed_) {
      task->pass_ = pass_ + kStride1 / static_cast<uint64_t>(task->tickets_);
      task->sequence_ = sequence_++;
      push_heap(task);
    }
    if (runtime_.barrier_.wanted() || runtime_.stopping()) break;
    // A lone polling task ends its round soon, so that timers and the control thread do not wait.
    if (heap_.size() <= 1 && n >= 8) break;
    if (begin != 0 && n % kTasksPerLook == kTasksPerLook - 1 && now_ns() - begin > kRoundNs) break;
  }
  return worked;
}

bool Worker::run_task(Task& task) {
  if (!meter_ || !meter_->begin_task(task.looked_, task.source_)) [[likely]]
    return task.run();
  const bool worked = task.run();
  meter_->end_task(worked, task.source_);
  return worked;
}

void Worker::schedule(Timer* timer, Timestamp expiry) {
  std::lock_guard guard(lock_);
  if (timer->index_ >= 0) std::erase(timers_, timer);
  timer->expiry_ = expiry;
  // Sorted by expiry, then by order of scheduling; a router has few timers at a time.
  const auto at = std::upper_bound(timers_.begin(), timers_.end(), timer,
                                   [](const Timer* a, const Timer* b) { return a->expiry_ < b->expiry_; });
  timers_.insert(at, timer);
  timer->index_ = 0;
  next_expiry_.store(timers_.front()->expiry_.ns, std::memory_order_release);
  if (thread_.sleeping()) thread_.wake();
}

void Worker::unschedule(Timer* timer) {
  std::lock_guard guard(lock_);
  if (timer->index_ < 0) return;
  std::erase(timers_, timer);
  timer->index_ = -1;
  next_expiry_.store(timers_.empty() ? kNever : timers_.front()->expiry_.ns, std::memory_order_release);
}

Timestamp Worker::next_expiry() const { return {next_expiry_.load(std::memory_order_acquire)}; }

bool Worker::run_timers() {
  if (next_expiry_.load(std::memory_order_acquire) == kNever) return false;
  const Timestamp now = clock::steady();
  bool worked = false;
  // One at a time, because a timer may unschedule or destroy another. At most as many as there are now, so that a timer
  // that lags behind and reschedules itself cannot keep the worker here.
  size_t most = SIZE_MAX;
  for (size_t n = 0; n < most; ++n) {
    Timer* timer;
    {
      std::lock_guard guard(lock_);
      if (n == 0) most = timers_.size();
      if (timers_.empty() || timers_.front()->expiry_ > now) break;
      timer = timers_.front();
      timers_.erase(timers_.begin());
      timer->index_ = -1;
      next_expiry_.store(timers_.empty() ? kNever : timers_.front()->expiry_.ns, std::memory_order_release);
    }
    worked = true;
    timer->fire();
  }
  return worked;
}

void Worker::select(Element* element, int fd, int mask) {
  std::lock_guard guard(lock_);
  std::erase_if(watches_, [&](const Watch& w) { return w.element == element && w.fd == fd; });
  if (mask) watches_.push_back({element, fd, mask});
  have_watches_.store(!watches_.empty(), std::memory_order_release);
  if (thread_.sleeping()) thread_.wake();
}

void Worker::alarm(int fd, bool on) {
  std::lock_guard guard(lock_);
  std::erase(alarms_, fd);
  if (on) alarms_.push_back(fd);
  if (thread_.sleeping()) thread_.wake();
}

void set_alarm(Router& router, int worker, int fd, bool on) { router.worker(worker).alarm(fd, on); }

int Worker::poll_watches(int64_t timeout_ns, bool alarmed) {
  const int64_t now = alarmed ? now_ns() : 0;
  fds_.clear();
  fds_.push_back({thread_.wake_fd(), POLLIN, 0});
  {
    std::lock_guard guard(lock_);
    polled_ = watches_;
    for (const Watch& w : polled_)
      fds_.push_back({w.fd, static_cast<short>((w.mask & 1 ? POLLIN : 0) | (w.mask & 2 ? POLLOUT : 0)), 0});
    if (alarmed && !alarms_.empty()) {
      if (now >= alarmed_again_)
        for (const int fd : alarms_) fds_.push_back({fd, POLLIN, 0});
      else
        timeout_ns = std::min(timeout_ns, alarmed_again_ - now);
    }
  }
  timespec ts{static_cast<time_t>(timeout_ns / 1000000000), static_cast<long>(timeout_ns % 1000000000)};
  const int n = ppoll(fds_.data(), fds_.size(), &ts, nullptr);
  if (n > 0 && fds_[0].revents) thread_.clear_wake();
  if (n > 0 && std::any_of(fds_.begin() + 1 + static_cast<ptrdiff_t>(polled_.size()), fds_.end(),
                           [](const pollfd& fd) { return fd.revents != 0; })) {
    moved_ = true;
    alarmed_again_ = now_ns() + kAlarmRestNs;
  }
  return n;
}

bool Worker::run_selected() {
  bool worked = false;
  for (size_t i = 0; i < polled_.size(); ++i) {
    const short events = fds_[i + 1].revents;
    if (!events) continue;
    const int mask = ((events & (POLLIN | POLLHUP | POLLERR)) ? 1 : 0) | ((events & POLLOUT) ? 2 : 0);
    worked = moved_ = true;
    polled_[i].element->selected(polled_[i].fd, mask & polled_[i].mask);
  }
  return worked;
}

bool Worker::step() {
  ++thread_.rounds;
  bool worked = run_tasks();
  moved_ |= worked;
  if (id_ == 0) runtime_.run_signals();
  worked |= run_timers();
  if (have_watches_.load(std::memory_order_relaxed) && thread_.rounds % kRoundsPerSelect == 0)
    worked |= poll_watches(0, false) > 0 && run_selected();
  thread_.quiet_rounds = worked ? 0 : thread_.quiet_rounds + 1;
  if (thread_.steps) [[unlikely]]
    thread_.steps->note(nullptr);
  return worked;
}

bool Worker::lingers() {
  if (runtime_.threads() == 1) return false;
  if (!moved_ && awake_until_ == 0) return false;
  const int64_t now = now_ns();
  if (std::exchange(moved_, false)) awake_until_ = now + kLingerNs;
  if (now < awake_until_) return true;
  awake_until_ = 0;
  return false;
}

void Worker::idle(rcu::Reader& reader) {
  const bool polling = has_runnable();
  if (polling && thread_.quiet_rounds < kQuietRounds) {
    __builtin_ia32_pause();
    return;
  }
  if (!polling && lingers()) {
    // Spin instead of calling sched_yield(): on a busy machine a thread that yields resumes several time slices later,
    // whereas one that sleeps is woken at once.
    __builtin_ia32_pause();
    if (have_watches_.load(std::memory_order_relaxed) && poll_watches(0, false) > 0) (void)run_selected();
    return;
  }
  int64_t wait = id_ == 0 ? kStopPeriodNs : kLongestSleepNs;
  const Timestamp expiry = next_expiry();
  if (expiry.ns != kNever) wait = std::min(wait, clock::real_delay(expiry - clock::steady()).ns);
  if (polling) wait = std::min(wait, kPollingSleepNs);
  if (wait <= 0) return;
  if (thread_.steps) [[unlikely]]
    thread_.steps->begin();
  const uint64_t generation = runtime_.barrier_.generation();
  reader.offline();
  const bool may_sleep = polling ? runtime_.barrier_.nap(thread_) : runtime_.barrier_.fall_asleep(thread_);
  // A thread that schedules something from now on sees that this one sleeps, and wakes it. Earlier changes show here.
  const bool stop_now = !may_sleep || runtime_.stopping() || (!polling && noticed_.load(std::memory_order_seq_cst)) ||
                        next_expiry() != expiry;
  const uint64_t asleep = meter_ ? offload::LoadMeter::now() : 0;
  const int ready = stop_now ? 0 : poll_watches(wait, !polling);
  if (meter_) meter_->slept(offload::LoadMeter::now() - asleep);
  if (polling)
    thread_.napping.store(false, std::memory_order_seq_cst);
  else
    runtime_.barrier_.wake_up(thread_);
  reader.online();
  // If a new router has taken over meanwhile, these descriptors are those of the old one.
  if (ready > 0 && generation == runtime_.barrier_.generation()) (void)run_selected();
}

// --- Task and Timer

Task::~Task() {
  if (worker_) worker_->detach(this);
}

bool Task::run() {
  if (profile_) [[unlikely]]
    offload::CycleAccount::charge(profile_->local() + Probe::kCycles);
  const bool worked = body_ ? body_(*this) : owner_->run_task(*this);
  if (profile_) [[unlikely]]
    offload::CycleAccount::charge(nullptr);
  return worked;
}

void Task::reschedule() {
  if (!worker_ || scheduled_.exchange(true, std::memory_order_acq_rel)) return;
  worker_->notice();
}

void Task::note_burst(bool full) {
  source_ = true;
  bursts_->all += 1;
  bursts_->full += full;
}

int Task::home_thread() const { return worker_ ? worker_->id() : -1; }

void Task::close_chain_gates(uint64_t gates) { worker_->close_chain_gates(gates); }

void Task::set_gate(int gate, bool closed) { worker_->set_gate(gate, closed); }

void Task::set_tickets(int n) { tickets_ = std::clamp(n, 1, 32768); }

Timer::~Timer() { unschedule(); }

void Timer::fire() {
  if (body_)
    body_(*this);
  else
    owner_->run_timer(*this);
}

void Timer::schedule_at(Timestamp expiry) {
  if (worker_) worker_->schedule(this, expiry);
}
void Timer::schedule_after(Timestamp delay) { schedule_at(clock::steady() + delay); }
void Timer::reschedule_after(Timestamp delay) { schedule_at(expiry_ + delay); }
void Timer::unschedule() {
  if (worker_) worker_->unschedule(this);
}

}  // namespace headrace
