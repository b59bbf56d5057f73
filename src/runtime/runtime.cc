#include "runtime/runtime.hh"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "headrace/worker.hh"
#include "offload/placement.hh"

namespace headrace {

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

namespace {

std::vector<std::unique_ptr<WorkerThread>> make_threads(int count) {
  std::vector<std::unique_ptr<WorkerThread>> threads;
  for (int i = 0; i < count; ++i) threads.push_back(std::make_unique<WorkerThread>());
  return threads;
}

}  // namespace

Runtime::Runtime(const Options& options)
    : options_(options), threads_(make_threads(options.threads)), signals_({threads_[0].get(), &control_}) {
  // The sizes of per-thread state depend on this, so it comes before any element is created. One more than the number
  // of workers: the control thread, whether or not there is one.
  detail::g_thread_count = options.threads + 1;
  detail::t_thread_id = options.control_thread ? options.threads : 0;
  std::vector<int> nodes;
  for (int id = 0; id < options.threads; ++id) nodes.push_back(offload::node_of_cpu(cpu_of(id)));
  PacketPool::instance().set_nodes(nodes);
  if (options.control_thread) {
    provide_packets();
    leave_cpus_to_workers();
  }
  if (options.time_steps)
    for (int id = 0; id < options.threads; ++id)
      threads_[static_cast<size_t>(id)]->steps = std::make_unique<StepMeter>(id);
}

void Runtime::provide_packets() {
  PacketPool::instance().prepare();
  std::vector<std::thread> threads;
  for (int id = 0; id < this->threads(); ++id)
    threads.emplace_back([this, id] {
      pin(id);
      PacketPool::instance().settle(id);
    });
  for (std::thread& t : threads) t.join();
}

void Runtime::leave_cpus_to_workers() {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (options_.cpus.empty() || sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t rest = all;
  for (int id = 0; id < threads(); ++id) CPU_CLR(cpu_of(id), &rest);
  if (CPU_COUNT(&rest) > 0 && sched_setaffinity(0, sizeof rest, &rest) == 0) cpus_before_ = all;
}

Runtime::~Runtime() {
  if (cpus_before_) (void)sched_setaffinity(0, sizeof *cpus_before_, &*cpus_before_);
  detail::t_thread_id = 0;
  detail::g_thread_count = 1;
}

int64_t Runtime::replace(std::unique_ptr<Router> next) {
  if (simulated_) {
    const int me = thread_id();
    for (int id = 0; id < threads(); ++id) {
      detail::t_thread_id = id;
      current_.load()->drain();
    }
    detail::t_thread_id = me;
  }
  const int64_t stood_ns = barrier_.swap([&] {
    next->take_over(*current());
    current_.store(next.get(), std::memory_order_release);
  });
  const uint64_t generation = barrier_.generation();
  std::swap(*owner_, next);
  // A thread that slept may still be in the old router's Worker.
  for (auto& t : threads_) {
    t->wake();
    while (t->generation.load(std::memory_order_acquire) < generation && !simulated_) usleep(20);
  }
  (*owner_)->remember(*next);
  signals_.forget(*next);
  // Until the swap, workers of the old router may have changed tables that both routers share. Only the old router's
  // devices have these changes.
  Errors errors(Errors::Output::kStderr);
  (void)(*owner_)->update_devices(errors);
  replaced_.push_back(std::move(next));
  swaps_ = {swaps_.count + 1, stood_ns, std::max(swaps_.most_ns, stood_ns)};
  return stood_ns;
}

void Runtime::post(std::function<void()> action) {
  if (on_control_thread())
    action();
  else
    post_later(std::move(action));
}

void Runtime::post_later(std::function<void()> action, Urgency urgency) {
  {
    const std::lock_guard guard(control_lock_);
    posted_.push_back({std::move(action), urgency});
  }
  control_.wake();
}

void Runtime::watch(int fd, std::function<void()> ready, short events, Urgency urgency) {
  control_wanted_.store(true);
  {
    std::unique_lock guard(control_lock_);
    std::erase_if(watches_, [&](const Watch& w) { return w.fd == fd; });
    called_.wait(guard, [&] { return calling_.fd != fd || calling_.thread == std::this_thread::get_id(); });
    if (ready) watches_.push_back({fd, std::move(ready), events, urgency});
  }
  control_.wake();
}

}  // namespace headrace
