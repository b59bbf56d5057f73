#pragma once
/// \file
/// The host's part of shaders: the view of a packet in memory, and the element made from a shader.

#include <cstring>
#include <type_traits>

#include "headrace/element.hh"
#include "headrace/lane_view.hh"
#include "headrace/mirror.hh"
#include "headrace/payload_shader.hh"

namespace headrace {

namespace detail {
template <typename T>
HEADRACE_SHADER T from_network(T value) {
  if constexpr (sizeof(T) == 2 && std::is_integral_v<T>) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4 && std::is_integral_v<T>) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) return __builtin_bswap64(value);
  return value;
}
}  // namespace detail

/// A packet as scans of its payload see it.
inline PacketBytes bytes_of(const Packet& p) {
  PacketBytes bytes;
  bytes.data = p.data();
  bytes.length = p.length();
  if (p.has_network_header()) bytes.network = p.network_header_offset();
  return bytes;
}

/// The packet that a shader of type `S` sees when it runs on the CPU, in place.
template <typename S>
class CpuView {
 public:
  HEADRACE_SHADER CpuView(Packet* p, uint64_t* counters) : p_(p), counters_(counters) {}

  /// A declared field's value; integers in host order.
  template <typename F>
  HEADRACE_SHADER typename F::Value get(F) const {
    static_assert(S::kRegions.template readable<F>(), "this shader does not declare that it reads this field");
    typename F::Value value;
    std::memcpy(&value, at(F::kAnchor) + F::kOffset, sizeof value);
    return convert<F>(value);
  }
  template <typename F>
  HEADRACE_SHADER void set(F, const std::type_identity_t<typename F::Value>& value) {
    static_assert(S::kRegions.template writable<F>(), "this shader does not declare that it writes this field");
    if constexpr (std::is_integral_v<typename F::Value>) {
      const typename F::Value ordered = convert<F>(value);
      std::memcpy(at(F::kAnchor) + F::kOffset, &ordered, sizeof ordered);
    } else {
      std::memcpy(at(F::kAnchor) + F::kOffset, &value, sizeof value);
    }
  }

  /// Integers at an offset known only at run time, within a declared Span of that anchor; host order.
  HEADRACE_SHADER uint8_t load8(Anchor anchor, int offset) const { return at(anchor)[offset]; }
  HEADRACE_SHADER uint16_t load16(Anchor anchor, int offset) const { return load<uint16_t>(anchor, offset); }
  HEADRACE_SHADER uint32_t load32(Anchor anchor, int offset) const { return load<uint32_t>(anchor, offset); }
  /// The same in memory order, for masks prepared that way.
  HEADRACE_SHADER uint32_t load32_raw(Anchor anchor, int offset) const {
    uint32_t value;
    std::memcpy(&value, at(anchor) + offset, sizeof value);
    return value;
  }
  HEADRACE_SHADER uint64_t load64_raw(Anchor anchor, int offset) const {
    uint64_t value;
    std::memcpy(&value, at(anchor) + offset, sizeof value);
    return value;
  }
  HEADRACE_SHADER void store8(Anchor anchor, int offset, uint8_t value) { at(anchor)[offset] = value; }
  HEADRACE_SHADER void store16(Anchor anchor, int offset, uint16_t value) {
    value = __builtin_bswap16(value);
    std::memcpy(at(anchor) + offset, &value, sizeof value);
  }
  HEADRACE_SHADER void store32(Anchor anchor, int offset, uint32_t value) {
    value = __builtin_bswap32(value);
    std::memcpy(at(anchor) + offset, &value, sizeof value);
  }

  /// Bytes of the packet; declare meta::length.
  HEADRACE_SHADER uint32_t length() const {
    static_assert(S::kRegions.template readable<std::remove_const_t<decltype(meta::length)>>(),
                  "declare Read{meta::length}");
    return p_->length();
  }
  /// Bytes from a header to the end of the packet; negative if the header is not there.
  HEADRACE_SHADER int length_from(Anchor anchor) const {
    static_assert(S::kRegions.template readable<std::remove_const_t<decltype(meta::length)>>(),
                  "declare Read{meta::length}");
    switch (anchor) {
      case Anchor::kMac:
        return p_->has_mac_header() ? static_cast<int>(p_->length()) - p_->mac_header_offset() : -1;
      case Anchor::kNetwork:
        return p_->has_network_header() ? p_->network_length() : -1;
      case Anchor::kTransport:
        return p_->has_transport_header() ? p_->transport_length() : -1;
      default:
        return static_cast<int>(p_->length());
    }
  }
  HEADRACE_SHADER bool has_network_header() const { return p_->has_network_header(); }
  HEADRACE_SHADER bool has_mac_header() const { return p_->has_mac_header(); }
  /// Header length in bytes, as the element that marked the network header said.
  HEADRACE_SHADER int network_header_length() const { return p_->network_header_length(); }

  /// Moves the beginning of the packet; false if it is too short, or the buffer has no room. Declare Write{meta::data}.
  HEADRACE_SHADER bool pull(uint32_t n) {
    moves();
    return p_->pull(n);
  }
  HEADRACE_SHADER bool push(uint32_t n) {
    moves();
    return p_->push(n);
  }
  /// Removes bytes from the end. Declare Write{meta::length}.
  HEADRACE_SHADER bool take(uint32_t n) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::length)>>(),
                  "declare Write{meta::length}");
    return p_->take(n);
  }
  /// Header positions, from the beginning of the packet.
  HEADRACE_SHADER void set_mac_header(int offset = 0) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::mac_header)>>(),
                  "declare Write{meta::mac_header}");
    p_->set_mac_header(offset);
  }
  HEADRACE_SHADER void set_network_header(int offset, int header_length) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::network_header)>>(),
                  "declare Write{meta::network_header}");
    p_->set_network_header(offset, header_length);
  }

  HEADRACE_SHADER uint8_t packet_type() const {
    static_assert(S::kRegions.template readable<std::remove_const_t<decltype(meta::packet_type)>>(),
                  "declare Read{meta::packet_type}");
    return static_cast<uint8_t>(p_->packet_type());
  }
  HEADRACE_SHADER void set_packet_type(PacketType type) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::packet_type)>>(),
                  "declare Write{meta::packet_type}");
    p_->set_packet_type(type);
  }

  /// Adds to the shader's counter number `index`.
  HEADRACE_SHADER void count(int index, uint64_t n = 1) { counters_[index] += n; }

 private:
  template <typename F>
  HEADRACE_SHADER static typename F::Value convert(typename F::Value value) {
    // The destination address lies in its annotation as it lay in the packet.
    if constexpr (F::kAnchor == Anchor::kAnno && F::kOffset != 0) return value;
    return detail::from_network(value);
  }
  template <typename T>
  HEADRACE_SHADER T load(Anchor anchor, int offset) const {
    T value;
    std::memcpy(&value, at(anchor) + offset, sizeof value);
    return detail::from_network(value);
  }
  HEADRACE_SHADER void moves() const {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::data)>>(),
                  "declare Write{meta::data}");
  }
  HEADRACE_SHADER uint8_t* at(Anchor anchor) const {
    switch (anchor) {
      case Anchor::kMac:
        return p_->mac_header();
      case Anchor::kNetwork:
        return p_->network_header();
      case Anchor::kTransport:
        return p_->transport_header();
      case Anchor::kAnno:
        return p_->anno();
      default:
        return p_->data();
    }
  }

  Packet* p_;
  uint64_t* counters_;
};

/// What all shader elements share, whatever their type.
class ShaderElementBase : public Element {
 public:
  /// Sum over workers of a counter of the shader.
  uint64_t counter(int index) const { return counters_.sum(index); }
  uint64_t counter_of_thread(int thread, int index) const { return counters_.of_thread(thread, index); }
  int counter_count() const { return counters_.count(); }
  void reset_counters() { counters_.reset(); }
  /// Adds to a counter of the shader from a host body, on the thread that runs it.
  void count_event(int index, uint64_t n = 1) { counters_.add(index, n); }
  std::vector<DropCount> drop_counts() const override;

  // What a plan needs to run the shader elsewhere.

  /// The shader as an object of bytes: its size, and the alignment it needs.
  virtual size_t image_size() const = 0;
  virtual size_t image_alignment() const = 0;
  /// Writes the shader as it is now to `to`, addresses replaced by those that `mirror` gives.
  virtual void image(void* to, Mirror& mirror) = 0;
  /// False if it points to what no mirror can copy.
  virtual bool can_mirror() const = 0;
  /// Its declarations, spans narrowed to what it looks at as configured.
  virtual std::vector<RegionInfo> regions() const = 0;
  /// True if it scans payloads, which a device reads where packets lie.
  virtual bool scans() const = 0;
  /// Foresees where headers lie behind it.
  virtual void move(Offsets& at) const = 0;
  /// Runs the shader whose image is given on the slots whose header says that they are at element `at`; nexts of the
  /// others stay.
  virtual void shade_slots(const void* image, uint16_t at, Slot* slots, int n, const RowLayout& row, int first_counter,
                           Next* nexts) const = 0;
  /// Takes packets for which a plan chose `next` here: runs the host body for kEscape, counts kDrop, pushes the others.
  void leave(Batch& batch, Next next);
  /// A job that counted `counts` for this element has succeeded.
  virtual void add_counts(const uint64_t* counts) = 0;
  /// The router has stopped: what its owner still has to write is written now.
  virtual void write_out() = 0;

 protected:
  ShaderElementBase(const CounterInfo* infos, int count) : infos_(infos), counters_(count) {}
  virtual Next escape(Packet*& p, Emitter& emit) = 0;
  /// Runs the host body for the slots that ask for it, then pushes every slot to its next, in order.
  void finish(Batch& batch, Next* nexts);
  /// As finish, for a pull: what goes to output 0 stays in `batch`.
  void finish_pull(Batch& batch, const Next* nexts);

  const CounterInfo* infos_;
  ThreadCounters counters_;
};

namespace detail {
struct NoOwner {};
template <typename S>
struct OwnerOf {
  using Type = NoOwner;
};
template <typename S>
requires requires { typename S::Owner; }
struct OwnerOf<S> {
  using Type = typename S::Owner;
};
}  // namespace detail

/// The element made from shader `S`.
template <typename S>
class ShaderElement final : public ShaderElementBase {
  static_assert(std::is_trivially_copyable_v<S>, "a shader holds only what can be copied byte by byte");
  using Owner = typename detail::OwnerOf<S>::Type;

 public:
  ShaderElement() : ShaderElementBase(S::kCounters.info, S::kCounters.kCount) {}

  S& shader() { return shader_; }
  Owner& owner() { return *owner_; }

  /// A shader says by kKeepsOwner that it has no state but its owner, which a new configuration takes over as it is
  /// (routes that were added, too) where the element's arguments are the same and `Owner::current()` holds.
  Status configure(Args& args) override {
    if constexpr (requires { S::kKeepsOwner; }) {
      // The same ElementInfo means the same class.
      const auto* before = static_cast<const ShaderElement*>(predecessor());
      if (before && before->configuration() == configuration() && before->noutputs() == noutputs() &&
          before->owner_->current()) {
        owner_ = before->owner_;
        return {};
      }
    }
    return configure_into(args, shader_, *owner_);
  }
  /// A shader with an owner says by kLiveReconfigure that a failed configure leaves the owner as it was.
  bool can_live_reconfigure() const override {
    return std::is_same_v<Owner, detail::NoOwner> || requires { S::kLiveReconfigure; };
  }
  Status live_reconfigure(Args& args) override {
    S fresh{};
    Status status = configure_into(args, fresh, *owner_);
    if (status.ok()) shader_ = fresh;
    return status;
  }
  Status initialize(Errors& errors) override {
    if constexpr (requires { shader_.initialize(errors, *owner_, *this); }) {
      return shader_.initialize(errors, *owner_, *this);
    } else if constexpr (requires { shader_.initialize(errors, *owner_); }) {
      return shader_.initialize(errors, *owner_);
    } else if constexpr (requires { shader_.initialize(errors); }) {
      return shader_.initialize(errors);
    }
    return {};
  }
  void add_handlers(Handlers& handlers) override {
    if constexpr (requires { shader_.add_handlers(handlers, *owner_, *this); }) {
      shader_.add_handlers(handlers, *owner_, *this);
    } else if constexpr (requires { shader_.add_handlers(handlers, *owner_); }) {
      shader_.add_handlers(handlers, *owner_);
    } else if constexpr (requires { shader_.add_handlers(handlers, *this); }) {
      shader_.add_handlers(handlers, *this);
    } else if constexpr (requires { shader_.add_handlers(handlers); }) {
      shader_.add_handlers(handlers);
    }
  }
  std::string note() const override {
    if constexpr (requires { shader_.note(*owner_); }) return shader_.note(*owner_);
    return {};
  }
  int configure_phase() const override {
    if constexpr (requires { S::kConfigurePhase; }) return S::kConfigurePhase;
    return kDefaultPhase;
  }

  size_t image_size() const override { return sizeof(S); }
  size_t image_alignment() const override { return alignof(S); }
  void image(void* to, Mirror& mirror) override {
    S copy = shader_;
    if constexpr (requires { copy.mirror(mirror, *owner_); }) {
      copy.mirror(mirror, *owner_);
    } else if constexpr (requires { copy.mirror(mirror); }) {
      copy.mirror(mirror);
    }
    std::memcpy(to, &copy, sizeof copy);
  }
  bool can_mirror() const override {
    constexpr bool refreshes = requires(S s, Owner & o) { s.refresh(o); };
    constexpr bool mirrors = requires(S s, Owner & o, Mirror & m) { s.mirror(m, o); }
    || requires(S s, Mirror & m) { s.mirror(m); };
    return mirrors || !refreshes;
  }
  std::vector<RegionInfo> regions() const override {
    std::vector<RegionInfo> all;
    S shader = shader_;
    if constexpr (requires { shader.refresh(*owner_); }) shader.refresh(*owner_);
    add_regions(shader, S::kRegions, all);
    return all;
  }
  void move(Offsets& at) const override {
    if constexpr (requires { shader_.move(at); }) {
      shader_.move(at);
    } else {
      if (detail::kSetsNetwork<S>) at.network = at.transport = Offsets::kUnknown;
      if (detail::kSetsMac<S>) at.mac = Offsets::kUnknown;
      if (detail::kMovesData<S>) at.data = Offsets::kUnknown;
    }
  }
  bool scans() const override { return scans_payload<S>(); }
  void shade_slots(const void* image, uint16_t at, Slot* slots, int n, const RowLayout& row, int first_counter,
                   Next* nexts) const override {
    struct HostLayout {
      const RowLayout& layout;
      const RowLayout& row() const { return layout; }
    };
    S shader;
    std::memcpy(static_cast<void*>(&shader), image, sizeof shader);
    const HostLayout layout{row};
    for (int i = 0; i < n; ++i)
      if (slots[i].header.at == at) {
        if constexpr (scans_payload<S>()) {
          nexts[i] = scan_slot(&shader, slots[i], true, layout, first_counter);
        } else {
          nexts[i] = shade_slot(shader, slots[i], layout, first_counter);
        }
      }
  }
  void add_counts(const uint64_t* counts) override {
    if constexpr (requires(S s) { s.refresh(*owner_); }) {
      // Rates and the like are brought up to date where a batch on the CPU would do it: before it counts.
      S copy = shader_;
      copy.refresh(*owner_);
    }
    for (int i = 0; i < S::kCounters.kCount; ++i)
      if (counts[i] != 0) counters_.add(i, counts[i]);
  }

  void write_out() override {
    if constexpr (requires { owner_->write_out(); }) owner_->write_out();
  }

  void push(int, Batch& batch) override {
    Next nexts[Batch::kCapacity];
    const int n = batch.size();
    if (n == 0) return;
    const NextSet set = shade(batch.begin(), n, nexts);
    // Most batches leave whole by one port.
    if (set.any == set.all && set.any < noutputs()) {
      output(set.any).push(batch);
      return;
    }
    finish(batch, nexts);
  }

  int pull(int, Batch& batch, int max) override {
    Batch pulled;
    const int n = input(0).pull(pulled, max);
    if (n == 0) return 0;
    Next nexts[Batch::kCapacity];
    shade(pulled.begin(), n, nexts);
    finish_pull(pulled, nexts);
    for (Packet* p : pulled) batch.push_back(p);
    return pulled.size();
  }

 protected:
  Next escape(Packet*& p, Emitter& emit) override {
    if constexpr (requires { shader_.escape(p, emit, *owner_); }) {
      return shader_.escape(p, emit, *owner_);
    } else if constexpr (requires { shader_.escape(p, emit); }) {
      return shader_.escape(p, emit);
    }
    return kDrop;
  }

 private:
  /// The bits that some, and that all nexts of a batch have; equal when all nexts are.
  struct NextSet {
    Next any = 0;
    Next all = 0xffff;
    HEADRACE_SHADER void add(Next next) {
      any |= next;
      all &= next;
    }
  };
  NextSet shade(Packet** packets, int n, Next* nexts) {
    uint64_t* counters = counters_.local();
    // A copy on the stack: stores to packets cannot change it, so its members stay in registers.
    S shader = shader_;
    NextSet set;
    if constexpr (requires { shader.refresh(*owner_); }) shader.refresh(*owner_);
    if constexpr (requires { shader.shade_batch(packets, n, nexts, counters); }) {
      shader.shade_batch(packets, n, nexts, counters);
      for (int i = 0; i < n; ++i) set.add(nexts[i]);
      return set;
    }
    for (int i = 0; i < n; ++i) {
      Next next = kDrop;
      if (has_headers(*packets[i])) [[likely]] {
        CpuView<S> view(packets[i], counters);
        if constexpr (scans_payload<S>()) {
          if (i + 1 < n) prefetch_payload(*packets[i + 1]);
          next = shader.shade(view, scan(shader, *packets[i]));
        } else {
          next = shader.shade(view);
        }
      }
      nexts[i] = next;
      set.add(next);
    }
    return set;
  }
  static void prefetch_payload(const Packet& p) {
    constexpr uint32_t kLine = 64, kMost = 256;
    for (uint32_t at = 0; at < p.length() && at < kMost; at += kLine) __builtin_prefetch(p.data() + at);
  }
  auto scan(const S& shader, const Packet& p) {
    const PacketBytes packet = bytes_of(p);
    const PayloadBytes payload = detail::payload_of(shader, packet);
    if constexpr (requires { shader.scan_on_cpu(payload, packet, *owner_); }) {
      return shader.scan_on_cpu(payload, packet, *owner_);
    } else if constexpr (requires { shader.scan_on_cpu(payload, *owner_); }) {
      return shader.scan_on_cpu(payload, *owner_);
    } else {
      return detail::scan_packet(shader, HostTeam<1>{}, payload, packet);
    }
  }
  /// A graph may send packets here whose headers nobody has marked; their bytes must not be looked for.
  static bool has_headers(const Packet& p) {
    constexpr auto uses = [](Anchor anchor) {
      bool any = false;
      S::kRegions.each([&](const RegionInfo& r) { any |= r.anchor == anchor; });
      return any;
    };
    constexpr bool sets_network = S::kRegions.covers(Anchor::kMeta, decltype(meta::network_header)::kOffset, 0, true);
    constexpr bool sets_mac = S::kRegions.covers(Anchor::kMeta, decltype(meta::mac_header)::kOffset, 0, true);
    constexpr bool checks = requires { S::kChecksHeaders; };
    if constexpr (uses(Anchor::kMac) && !sets_mac && !checks)
      if (!p.has_mac_header()) return false;
    if constexpr (uses(Anchor::kNetwork) && !sets_network && !checks)
      if (!p.has_network_header()) return false;
    if constexpr (uses(Anchor::kTransport) && !sets_network && !checks)
      if (!p.has_transport_header()) return false;
    return true;
  }
  template <typename... D>
  static void add_regions(const S& shader, const Regions<D...>&, std::vector<RegionInfo>& all) {
    (add_region<D>(shader, all), ...);
  }
  template <typename D>
  static void add_region(const S& shader, std::vector<RegionInfo>& all) {
    using W = typename D::Where;
    RegionInfo r{W::kAnchor, W::kOffset, W::kSize, D::kReads, D::kWrites};
    if constexpr (
        !requires { typename W::Value; } && requires { shader.extent(W::kAnchor); }) {
      const Extent used = shader.extent(W::kAnchor);
      r.offset = used.first;
      r.size = used.last - used.first;
    }
    all.push_back(r);
  }
  static Status configure_into(Args& args, S& shader, Owner& owner) {
    if constexpr (requires { shader.configure(args, owner); }) {
      return shader.configure(args, owner);
    } else if constexpr (requires { shader.configure(args); }) {
      return shader.configure(args);
    } else {
      return args.complete();
    }
  }

  S shader_{};
  std::shared_ptr<Owner> owner_ = std::make_shared<Owner>();
};

namespace detail {
template <typename S>
std::unique_ptr<Element> make_shader_element() {
  return std::make_unique<ShaderElement<S>>();
}
template <typename S>
ElementInfo shader_element_info(const char* name) {
  ElementInfo info{name, S::kPorts.text, "a/ah", "x/x", name, true, &make_shader_element<S>};
  if constexpr (requires { S::kProcessing; }) info.processing = S::kProcessing.text;
  if constexpr (requires { S::kFlow; }) info.flow = S::kFlow.text;
  return info;
}
}  // namespace detail

}  // namespace headrace
