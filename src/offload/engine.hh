#pragma once
/// \file
/// Offloading in one router: its plans, its devices, and the elements in front of chains.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "headrace/device/chain_entry.hh"
#include "headrace/offload_options.hh"
#include "offload/balance/loop.hh"
#include "offload/job_queue.hh"
#include "offload/program.hh"

namespace headrace::offload {

/// Everything about offloading in one router.
class Engine final : public ChainGate {
 public:
  /// Opens devices and compiles plans. Returns null without an error if nothing is to be offloaded; packets are then
  /// processed on the CPU as if there were no engine.
  /// \param elements, edges, resolved the graph, by node
  /// \param worker_nodes the NUMA node of each worker, -1 where it is not known
  /// \param before the engine of the router that the new one is to replace, or null
  static std::unique_ptr<Engine> create(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                                        const graph::Resolved& resolved, const OffloadOptions& options,
                                        const std::vector<int>& worker_nodes, const Engine* before, Errors& errors);
  /// What the engine needs of its router's runtime.
  struct Host {
    /// Runs something on the control thread, soon.
    std::function<void(std::function<void()>)> post;
    /// Runs something while all workers stand.
    std::function<void(const std::function<void()>&)> quiesce;
    /// Measures from now on what a worker does. While it stands.
    std::function<void(int worker, LoadMeter* meter)> measure;
  };
  /// Lets workers poll their jobs, or begins to open devices if that was put off. Call when the entries that the engine
  /// made are part of the router.
  void start(Host host);
  /// Null while devices are opened, and if there is none.
  BalanceLoop* balance() { return loop_.get(); }
  const BalanceLoop* balance() const { return loop_.get(); }
  /// True until it is known whether there are devices.
  bool opening() const { return state_ == State::kOpening; }
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::vector<Plan>& plans() const { return plans_; }
  /// Size of a block with the images of all plans.
  size_t images() const { return images_; }
  /// The entry that the engine made on a connection, or null.
  ChainEntry* entry(int edge) const;
  const Program& program() const { return program_; }
  /// An entry that the engine made. The output of edge `edge` is to be connected to it.
  struct Shim {
    int edge;
    ChainEntry* element;
  };
  std::vector<Shim> shims() const;

  JobQueue& queue(int worker) { return *queues_[static_cast<size_t>(worker)]; }
  /// Call on the worker's thread. When it returns, all jobs of the worker are done and released.
  void drain(int worker);
  /// True if something that shaders see has changed since the last update, an update is under way, or a worker would
  /// like to use another device.
  bool behind();
  /// See Router::stale_secrets().
  bool stale_secrets() const;
  /// Brings all devices up to date after something that shaders see may have changed. When it returns, new jobs see it.
  /// \param standing no worker is running
  Status update(bool standing, Errors& errors);

  /// Changes the mode of every entry; false if the text is not a mode. Call while workers stand.
  bool set_mode(std::string_view text);
  std::string mode() const;

  /// Lines "key: value" about the devices and the options in use.
  std::string describe() const;
  /// One line for the start-up message.
  std::string summary() const;
  const OffloadOptions& options() const { return options_; }
  uint64_t event(Event e) const;
  /// Of one plan or, with -1, of all.
  Histogram doorbell_latency(int plan = -1) const;
  Histogram arrival_latency(int plan = -1) const;
  void reset_statistics();
  void add_handlers(Handlers& handlers);
  Device& device(int i) { return *devices_[static_cast<size_t>(i)]; }

 private:
  Engine(const OffloadOptions& options, int workers) : options_(options), workers_(workers) {}
  /// Finds devices and makes them ready for the program. Nobody uses them yet. Any thread.
  /// \param found where they go; none is no error
  Status open_devices(std::vector<std::unique_ptr<Device>>& found, Errors& errors);
  Status make_queues(Errors& errors);
  /// What a balancer must know. When the devices are there.
  BalanceSetup balance_setup() const;
  /// Sends packets to the queues, which workers poll from now on. While they stand.
  void join();
  /// The devices that were opened aside become the router's. On the control thread.
  void take_devices(std::string problem);
  /// Gives workers lanes that they would like to have. Call while workers stand.
  void open_wanted_lanes(Errors& errors);
  /// Of all workers.
  Histogram sum(const Histogram& (JobQueue::*latency)(int) const, int plan) const;
  /// The update of one device.
  struct DeviceUpdate {
    Device* device;
    Parameters::Update parameters{};
    int64_t since = 0;   // workers run, or stand
    bool stood = false;  // they stand
  };
  /// Nothing, if it has to be called again.
  std::optional<Status> go_on(DeviceUpdate& update, Errors& errors);
  /// Changes tunings as the text says: "worker=1 chain=0 job=256"; without worker or chain those of all.
  Status tune(std::string_view text, Errors& errors);
  void arrive(ChainEntry& entry, Batch& batch) override;

  /// kOpening: packets take the CPU. kNone: for ever.
  enum class State : uint8_t { kOpening, kReady, kNone };

  OffloadOptions options_;
  const int workers_;
  State state_ = State::kReady;  // changed on the control thread, while workers stand
  bool balanced_ = false;        // some entry began with the mode kAuto
  Host host_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  std::thread opener_;
  std::vector<BalanceLoop::Learnt> learnt_;  // by balancers of the engine before
  std::unique_ptr<BalanceLoop> loop_;
  double cycles_per_us_ = 1e3;
  std::mutex updating_;
  std::atomic<int> standing_{0};  // threads in update() for which all workers stand
  std::vector<Plan> plans_;
  std::vector<std::string> on_cpu_;
  Program program_;
  size_t images_ = 0;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Device>> opened_;  // aside, by opener_
  std::vector<int> first_device_;                // by worker
  std::vector<int> worker_nodes_;
  std::vector<std::unique_ptr<JobQueue>> queues_;
  std::vector<std::unique_ptr<Task>> polls_;                       // by worker
  std::vector<std::unique_ptr<Timer>> wakeups_;                    // by worker
  std::vector<std::pair<int, std::unique_ptr<ChainEntry>>> made_;  // with their edges
  std::vector<ChainEntry*> entries_;
  std::vector<std::pair<Element*, uint64_t>> feeders_;  // with the gates of the plans that they feed
};

}  // namespace headrace::offload
