#pragma once
/// \file
/// A running configuration: its elements, their names and handlers.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/compile_options.hh"
#include "headrace/device_port.hh"
#include "headrace/element.hh"
#include "headrace/offload_options.hh"

namespace headrace {

namespace lang {
struct Configuration;
}
namespace offload {
class CpuChains;
struct ChainPlans;
class Engine;
}  // namespace offload
class ChainEntry;
class Runtime;
class Worker;

/// Options of a router, fixed before it is built.
struct RouterOptions {
  /// Count cycles and packets per element.
  bool profile = false;
  /// Where chains run, unless an Offload element says otherwise.
  OffloadOptions offload;
  /// Whether chains are compiled for the CPU.
  CompileOptions compile = {};
  /// Only configure: open, create and start nothing. For commands that examine the graph and its chains.
  bool only_configure = false;
  /// Replaces the running configuration by this text (handler `hotconfig`). Without it, that is not allowed.
  std::function<Status(const std::string& text, Errors& errors)> hotconfig = {};
};

/// Packets that passed a device port, including those of earlier configurations.
struct PortRecord {
  std::string name;
  DevicePort::Direction direction;
  std::vector<PortTotals> of_thread;
  uint64_t missed = 0;
};

/// Cycles and work of one element since the start, summed over workers (RouterOptions::profile).
struct ElementProfile {
  uint64_t cycles = 0;  // without those of the elements that it pushes to or pulls from
  uint64_t packets = 0;
  uint64_t batches = 0;
};

class Router {
 public:
  /// Checks, configures and initializes a configuration. If it cannot run, reports everything that is wrong and returns
  /// null.
  /// \param predecessor the running router that this one is to replace (Runtime::replace)
  static std::unique_ptr<Router> create(const lang::Configuration& configuration, Runtime& runtime, Errors& errors,
                                        const RouterOptions& options = {}, Router* predecessor = nullptr);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  const std::vector<std::unique_ptr<Element>>& elements() const { return elements_; }
  /// The element called `name`, seen from `context`: its compound first, then the enclosing ones.
  Element* find(std::string_view name, const Element* context = nullptr) const;
  /// The first element of class `T`, or null.
  template <typename T>
  T* first() const {
    for (const auto& e : elements_)
      if (T* t = dynamic_cast<T*>(e.get())) return t;
    return nullptr;
  }

  /// Splits "element.handler" (also "3.handler", counted from 1, and "handler" for the router's own), looks up both
  /// parts and returns the handler; errors name what is missing.
  const Handler* find_handler(std::string_view name, const Element* context, Element*& element, Errors& errors) const;
  /// Calls a write handler with workers at a quiescent point, unless it is marked thread-safe. Not on a thread without
  /// thread_id().
  Status call_write(const Handler& handler, const std::string& value, Errors& errors);
  Status call_read(const Handler& handler, const std::string& parameters, std::string& value, Errors& errors) const;
  Handlers& root_handlers() { return root_handlers_; }
  const Handlers& root_handlers() const { return root_handlers_; }

  /// Decrements the run count. At zero a DriverManager decides what happens; without one the router stops. Any thread.
  void request_stop() { run_count_.fetch_sub(1, std::memory_order_acq_rel); }
  void adjust_run_count(int by) { run_count_.fetch_add(by, std::memory_order_acq_rel); }
  int run_count() const { return run_count_.load(std::memory_order_acquire); }
  /// Called on worker 0 when the run count is zero or less. To continue, it raises the run count and returns true.
  void set_stop_listener(std::function<bool()> listener) { stop_listener_ = std::move(listener); }
  bool consult_stop_listener() { return stop_listener_ && stop_listener_(); }

  Runtime& runtime() const { return runtime_; }
  /// Dry run: elements open nothing outside the router (see also TouchesMachine).
  bool look_only() const;
  Worker& worker(int id) { return *workers_[static_cast<size_t>(id)]; }

  /// Takes over the state of `old`, element by element. No worker runs.
  void take_over(Router& old);
  /// Adds the counts of `old`, which has stopped, to this router's totals.
  void remember(const Router& old);
  /// Device ports, including those of earlier configurations.
  std::vector<PortRecord> ports() const;
  /// Number of workers. Home threads are below this number.
  int threads() const;
  /// Workers that run this router.
  int worker_count() const;
  const RouterOptions& options() const { return options_; }

  /// The thread on which an element's tasks and timers run; StaticThreadSched sets it during configuration.
  int home_thread(const Element* element) const;
  void set_home_thread(const Element* element, int thread);
  /// `name` is an element or a compound, as seen from `context`; false if there is none.
  bool set_home_thread(std::string_view name, const Element* context, int thread);

  /// The flattened configuration as text, with the current arguments.
  std::string flat_configuration() const;
  const std::string& source() const { return source_; }
  std::vector<std::string> requirements() const { return requirements_; }

  /// Connections, for programs that draw or search the graph.
  struct Connection {
    Element* from;
    int from_port;
    Element* to;
    int to_port;
  };
  const std::vector<Connection>& connections() const { return connections_; }

  ElementProfile profile(const Element* element) const;
  void reset_profile();
  /// Offloading, or null when everything is processed on the CPU.
  offload::Engine* engine() const { return engine_.get(); }
  /// Chains that are compiled for the CPU, or null if none is.
  offload::CpuChains* cpu_chains() const { return cpu_chains_.get(); }
  /// Brings devices up to date after something that shaders see may have changed.
  Status update_devices(Errors& errors);
  /// True while a device has copies of secrets (see ChangedPages) that have changed since, because jobs that are under
  /// way may read them. update_devices() erases them once it no longer has.
  bool stale_secrets() const;
  /// While it lives, thread-safe handlers that this thread writes do not bring devices up to date; its end does, once
  /// for all of them.
  class UpdatesTogether {
   public:
    explicit UpdatesTogether(Runtime& runtime);
    ~UpdatesTogether();
    UpdatesTogether(const UpdatesTogether&) = delete;
    UpdatesTogether& operator=(const UpdatesTogether&) = delete;

   private:
    friend class Router;
    Runtime& runtime_;
    UpdatesTogether* outer_;
    bool owed_ = false;
  };
  /// Waits until no packet of the calling worker is on a device.
  void drain();
  /// Before the router, which was replaced, is destroyed: see Element::leave_control().
  void leave_control();
  /// The chains as plans, whether or not they are offloaded. DOT output and the device program are made from them.
  struct Graph;
  const Graph& graph() const { return *graph_; }
  /// The scope in which names in the arguments of `element` are looked up.
  NameScope& scope(const Element* element);

  /// In Element::initialize, for an element that at times cannot take more packets. Returns the number of a gate at
  /// which the tasks that push packets to it wait, see Task; but not its own, nor those of elements to which it pushes
  /// packets, directly or through others. So no two elements can wait for each other. Returns -1 when
  /// all gates have been given away.
  int add_gate(const Element& element);

  /// Drops of all elements, including those of earlier configurations.
  struct Drop {
    std::string element;
    std::string reason;
    uint64_t packets;
  };
  std::vector<Drop> drops() const;
  /// Packets that neither left by a port nor were dropped: those that a PacketSink ended, also in earlier
  /// configurations, and those that elements hold. No worker runs.
  std::vector<Drop> kept_or_discarded() const;

 private:
  std::vector<Drop> discards() const;
  /// Adds the packets of `past` to those of the same element and reason.
  static void add_past(std::vector<Drop>& all, const std::vector<Drop>& past);
  /// True on the thread of a worker.
  bool on_worker() const;
  class Scope;
  struct Names;

  Router(Runtime& runtime, const RouterOptions& options, Router* predecessor);
  Status build(const lang::Configuration& configuration, Errors& errors);
  Status make_elements(const lang::Configuration& configuration, Errors& errors);
  Status connect(const lang::Configuration& configuration, Errors& errors);
  Status configure_all(Errors& errors);
  Status initialize_all(Errors& errors);
  void insert_back_edge_guards(const std::vector<int>& back_edges);
  void insert_probes();
  Status insert_engine(Errors& errors);
  void insert_cpu_chains();
  /// Sets the gates of all tasks that are there.
  void set_gates();
  /// Puts `entry`, which the router made, in front of the element behind a connection.
  void put_in_front(int connection, ChainEntry& entry);
  void add_element_handlers(Element& element);
  void add_root_handlers();

  Runtime& runtime_;
  RouterOptions options_;
  Router* predecessor_;
  std::vector<std::unique_ptr<Worker>> workers_;  // before everything that has tasks
  std::vector<PortRecord> past_ports_;
  std::vector<Drop> past_drops_, past_discards_;
  std::vector<std::unique_ptr<Element>> elements_;
  std::vector<int> order_;  // in which elements are configured
  std::map<std::string, Element*, std::less<>> by_name_;
  std::vector<Connection> connections_;
  std::map<int, std::unique_ptr<Element>> guards_;  // by connection
  std::vector<std::unique_ptr<Element>> probes_;
  std::vector<std::unique_ptr<ThreadCounters>> profiles_, entry_profiles_;
  std::vector<int> home_threads_;
  std::vector<const Element*> gated_;  // have called add_gate()
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::unique_ptr<Names> names_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<offload::Engine> engine_;
  std::unique_ptr<offload::ChainPlans> cpu_plans_;
  std::vector<std::unique_ptr<ChainEntry>> cpu_entries_;
  std::unique_ptr<offload::CpuChains> cpu_chains_;
  Handlers root_handlers_{nullptr};
  std::atomic<int> run_count_{1};
  std::function<bool()> stop_listener_;
  std::string source_;
  std::vector<std::string> requirements_;
};

}  // namespace headrace
