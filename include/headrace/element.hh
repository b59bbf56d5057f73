#pragma once
/// \file
/// The element: what a configuration names and connects. Elements that process one packet at a time are better written
/// as shaders (shader.hh) or as SimpleElement; this header is for elements that queue, create or schedule packets.

#include <memory>
#include <string>
#include <vector>

#include "headrace/args.hh"
#include "headrace/batch.hh"
#include "headrace/error.hh"
#include "headrace/handlers.hh"
#include "headrace/notifier.hh"
#include "headrace/shader_base.hh"
#include "headrace/task.hh"
#include "headrace/value_handlers.hh"
#include "headrace/worker.hh"

namespace headrace {

class Element;
class Router;

/// Declarations as data, for Element::annotations().
template <typename... D>
std::vector<RegionInfo> declared(D...) {
  return {Regions<D>::template info<D>()...};
}

/// What the registry knows about an element class without creating an element.
struct ElementInfo {
  const char* name;
  const char* ports = "0/0";
  const char* processing = "a/a";
  const char* flow = "x/x";
  /// The class whose header contains the documentation: `name`, except for an alias.
  const char* documented_as;
  bool shader = false;
  std::unique_ptr<Element> (*make)() = nullptr;
};

/// The far end of a connection. A push output and a pull input have exactly one.
class Port {
 public:
  Port() = default;
  Port(Element* element, int port) : element_(element), port_(port) {}
  bool connected() const { return element_ != nullptr; }
  Element* element() const { return element_; }
  int port() const { return port_; }

  /// Passes on the packets of `batch`.
  inline void push(Batch& batch) const;
  inline void push(Packet* p) const;
  /// Appends up to `max` packets to `batch` (which must have room); returns how many.
  inline int pull(Batch& batch, int max) const;
  /// Pulls one packet; null if there is none.
  inline Packet* pull() const;

 private:
  Element* element_ = nullptr;
  int port_ = -1;
};

class Element {
 public:
  Element() = default;
  virtual ~Element() = default;
  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  /// Defaults for classes that do not define them.
  static constexpr Processing kProcessing{"a/a"};
  static constexpr Flow kFlow{"x/x"};

  const std::string& name() const { return name_; }
  const char* class_name() const { return info_->name; }
  const ElementInfo& info() const { return *info_; }
  /// "name :: Class", for messages.
  std::string declaration() const { return name_ + " :: " + info_->name; }
  const Landmark& landmark() const { return landmark_; }
  int index() const { return index_; }
  Router& router() const { return *router_; }
  /// The configuration string in effect.
  virtual std::string configuration() const { return configuration_; }
  const std::vector<std::string>& arguments() const { return arguments_; }

  int ninputs() const { return static_cast<int>(inputs_.size()); }
  int noutputs() const { return static_cast<int>(outputs_.size()); }
  const Port& input(int i) const { return inputs_[i]; }
  const Port& output(int i) const { return outputs_[i]; }
  bool input_is_push(int i) const { return input_push_[i]; }
  bool input_is_pull(int i) const { return !input_push_[i]; }
  bool output_is_push(int i) const { return output_push_[i]; }
  bool output_is_pull(int i) const { return !output_push_[i]; }

  /// Lower phases are configured first; kInfoPhase is for elements that define names for others.
  enum Phase { kInfoPhase = 0, kDefaultPhase = 100, kLastPhase = 2000 };
  virtual int configure_phase() const { return kDefaultPhase; }
  /// Reads the arguments. Ports are known; other elements may not be configured yet.
  virtual Status configure(Args& args) { return args.complete(); }
  /// Called when all elements are configured: find other elements, open files, schedule tasks.
  virtual Status initialize(Errors&) { return {}; }
  virtual void add_handlers(Handlers&) {}
  /// If true, writing the handler `config` calls live_reconfigure with workers at a quiescent point.
  virtual bool can_live_reconfigure() const { return false; }
  virtual Status live_reconfigure(Args& args) { return configure(args); }

  /// During set-up: the element of the same name and class in the running router that this configuration is about to
  /// replace, or null. It is still running: read only what is safe to read then (its configuration, shared handles).
  Element* predecessor() const { return predecessor_; }
  /// Called when a new configuration takes over: move what `old`, the predecessor, holds (packets, learned entries,
  /// open devices) to this element. No worker runs meanwhile, so be quick: swap pointers, do not copy tables. Not
  /// called if the old element of this name was of another class. Errors are warnings: the swap continues.
  virtual void take_state(Element& /*old*/, Errors&) {}
  /// Called on the control thread when another configuration has taken over and no worker is here any more. Elements are
  /// destroyed next, during which another thread does what is urgent (headrace/control_watch.hh): end here what would call
  /// this element from there, but for watches that the destructor ends.
  virtual void leave_control() {}
  /// The annotations that the element reads and writes as configured: `return declared(Read{anno::dst_ip});`. The
  /// router warns if elements use the same bytes for different things. For a shader they follow from its regions.
  virtual std::vector<RegionInfo> annotations() const { return {}; }

  /// Number of packets inside that would be lost with the element. When a new configuration takes over and no element
  /// has taken them, they count as drops. No worker runs.
  virtual uint64_t held_packets() const { return 0; }

  /// One line about what was built ("901,900 routes, 16-bit entries, 33 MB"), printed at start-up; may be empty.
  virtual std::string note() const { return {}; }

  /// Receives packets at a push input. The element owns them.
  virtual void push(int port, Batch& batch);
  /// Answers a pull from output `port`: appends up to `max` packets and returns how many.
  virtual int pull(int port, Batch& batch, int max);
  virtual bool run_task(Task&) { return false; }
  virtual void run_timer(Timer&) {}
  /// A file descriptor given to select() became readable (1), writable (2) or both (3).
  virtual void selected(int /*fd*/, int /*mask*/) {}
  /// Storage elements return their notifier for a port; the search for notifiers stops there.
  virtual Notifier* notifier(NotifierKind, bool /*output*/, int /*port*/) { return nullptr; }

  /// Watches a file descriptor on the home thread; mask: 1 readable, 2 writable, 0 stop watching.
  void select(int fd, int mask);
  int home_thread() const;

  /// Pushes each slot to its next, in order; drops and counts slots with kDrop or an unconnected port.
  void push_split(Batch& batch, Next* nexts);
  /// Drops packets and counts them under `reason`, an index into the names given to count_reasons().
  void drop(Packet* p, int reason = 0) {
    drops_.add(reason, 1);
    p->kill();
  }
  void drop(Batch& batch, int reason = 0) {
    drops_.add(reason, batch.size());
    batch.kill();
  }
  /// Counts packets that are already gone or could not be created.
  void count_drops(uint64_t n, int reason = 0) { drops_.add(reason, n); }
  /// Names the reasons that drop() counts. Reason 0 always exists ("dropped", or the first name given). In configure.
  void count_reasons(std::vector<std::string> names);
  struct DropCount {
    std::string reason;
    uint64_t packets;
  };
  /// Packets dropped here unintentionally, by reason; reasons without packets are omitted.
  virtual std::vector<DropCount> drop_counts() const;

  const Handlers& handlers() const { return handlers_; }
  /// Replaces the configuration of a live element. Workers must be at a quiescent point.
  Status reconfigure(const std::string& configuration, Errors& errors);
  /// The tasks of this element; the handlers `scheduled`, `tickets`, `home_thread` show the first one.
  const std::vector<Task*>& tasks() const { return tasks_; }

 private:
  friend class Router;
  friend class Task;

  const ElementInfo* info_ = nullptr;
  Router* router_ = nullptr;
  Element* predecessor_ = nullptr;
  int index_ = -1;
  std::string name_;
  std::string configuration_;
  std::vector<std::string> arguments_;
  Landmark landmark_;
  std::vector<Port> inputs_, outputs_;
  std::vector<bool> input_push_, output_push_;
  std::vector<std::string> reasons_{"dropped"};
  ThreadCounters drops_{1};
  Handlers handlers_{this};
  std::vector<Task*> tasks_;
};

inline void Port::push(Batch& batch) const { element_->push(port_, batch); }
inline void Port::push(Packet* p) const {
  Batch one(p);
  element_->push(port_, one);
}
inline int Port::pull(Batch& batch, int max) const { return element_->pull(port_, batch, max); }
inline Packet* Port::pull() const {
  Batch one;
  return element_->pull(port_, one, 1) ? one[0] : nullptr;
}

/// Collects packets with their nexts and pushes them in batches, in order.
class Emitter {
 public:
  explicit Emitter(Element& element) : element_(element) {}
  ~Emitter() { flush(); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  void operator()(Next port, Packet* p) {
    if (batch_.full()) flush();
    nexts_[batch_.size()] = port;
    batch_.push_back(p);
  }
  void flush() {
    if (!batch_.empty()) element_.push_split(batch_, nexts_);
    batch_.clear();
  }
  Element& element() const { return element_; }

 private:
  Element& element_;
  Batch batch_;
  Next nexts_[Batch::kCapacity];
};

/// An element that processes packets one by one on the host. Push and pull both call `act`.
class SimpleElement : public Element {
 public:
  /// Returns the packet to send to output 0, or null if it kept the packet; sends to other outputs through `emit`.
  virtual Packet* act(Packet* p, Emitter& emit) = 0;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;
};

/// Registers a class. Static objects of this type do so before main, or when a module is loaded.
struct ElementRegistration {
  explicit ElementRegistration(const ElementInfo& info);
};

/// The class called `name`, or null.
const ElementInfo* find_element_info(std::string_view name);
/// All classes, by name.
std::vector<const ElementInfo*> all_element_infos();

namespace detail {
template <typename T>
ElementInfo shader_element_info(const char* name);  // shader_host.hh

template <typename T>
std::unique_ptr<Element> make_element() {
  return std::make_unique<T>();
}
template <typename T>
ElementInfo element_info(const char* name) {
  if constexpr (std::is_base_of_v<Element, T>) {
    return {name, T::kPorts.text, T::kProcessing.text, T::kFlow.text, name, false, &make_element<T>};
  } else {
    return shader_element_info<T>(name);
  }
}
}  // namespace detail

}  // namespace headrace

/// Makes `Name` known to configurations. At namespace scope, once, in the element's header or source.
#define HEADRACE_ELEMENT(Name) \
  inline const ::headrace::ElementRegistration kRegister##Name{::headrace::detail::element_info<Name>(#Name)};
/// A second name for an element.
#define HEADRACE_ELEMENT_ALIAS(Alias, Name)                                        \
  inline const ::headrace::ElementRegistration kRegister##Alias{[] {               \
    ::headrace::ElementInfo info = ::headrace::detail::element_info<Name>(#Alias); \
    info.documented_as = #Name;                                                    \
    return info;                                                                   \
  }()};
