#pragma once
/// \file
/// The element made from a shader.

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <type_traits>

#include "headrace/cpu_view.hh"
#include "headrace/device/lane_view.hh"
#include "headrace/element.hh"
#include "headrace/mirror.hh"
#include "headrace/payload_shader.hh"
#include "headrace/scratch.hh"
#include "headrace/shader_hooks.hh"

namespace headrace {

/// A packet as payload scans see it.
inline PacketBytes bytes_of(const Packet& p) {
  PacketBytes bytes;
  bytes.data = p.data();
  bytes.length = p.length();
  if (p.has_network_header()) bytes.network = p.network_header_offset();
  return bytes;
}

/// What all shader elements share, whatever their type.
class ShaderElementBase : public Element {
 public:
  /// Sum over workers of a counter of the shader.
  uint64_t counter(int index) const { return counters_.sum(index); }
  uint64_t counter_of_thread(int thread, int index) const { return counters_.of_thread(thread, index); }
  int counter_count() const { return counters_.count(); }
  void reset_counters() { counters_.reset(); }
  /// Adds to a counter of the shader from a host body, on the thread that runs the host body.
  void count_event(int index, uint64_t n = 1) { counters_.add(index, n); }
  std::vector<DropCount> drop_counts() const override;

  // What a plan needs to run the shader elsewhere.

  /// Size and alignment of the shader as an object of bytes.
  virtual size_t image_size() const = 0;
  virtual size_t image_alignment() const = 0;
  /// Writes the current shader to `to`, with addresses replaced by those that `mirror` gives.
  virtual void image(void* to, Mirror& mirror) = 0;
  /// False if the shader points to something that no mirror can copy.
  virtual bool can_mirror() const = 0;
  /// The shader's declarations, with spans narrowed to the bytes that it uses as configured.
  virtual std::vector<RegionInfo> regions() const = 0;
  std::vector<RegionInfo> annotations() const override;
  /// True if the shader scans payloads, which a device reads in place.
  virtual bool scans() const = 0;
  /// True if the shader rewrites packets.
  virtual bool rewrites() const = 0;
  /// True if a device does so with a lane for each.
  virtual bool is_serial() const = 0;
  /// Bytes of a device's shared memory that the shader fills.
  virtual uint32_t block_bytes() const = 0;
  /// The value of the shader's kFixed, if it has one.
  virtual std::optional<uint32_t> fixed() const = 0;
  /// Predicts where headers lie after the shader.
  virtual void move(Offsets& at) const = 0;
  /// Runs the shader with the given image on the slots whose header says that they are at element `at`. The nexts of
  /// other slots do not change.
  virtual void shade_slots(const void* image, uint16_t at, Slot* slots, int n, const RowLayout& row, int first_counter,
                           int result, Next* nexts) const = 0;
  /// Bytes of the shader's Result; 0 if it has none.
  virtual size_t result_size() const = 0;
  /// True if the shader's `release` may take packets away. Then the host decides what goes on behind it.
  virtual bool takes_packets() const = 0;
  /// Gives packets' results to the shader's `release`. The results lie `stride` bytes apart; at most Batch::kCapacity.
  /// Packets that the shader takes away are null afterwards.
  virtual void release(Packet** packets, const uint8_t* results, size_t stride, int n) = 0;
  /// Takes packets for which a plan chose `next` here: runs the host body for kEscape, counts kDrop, pushes all others.
  void leave(Batch& batch, Next next);
  // What a chain that was compiled for the CPU needs.

  /// True if `shade` alone says what the shader does with a packet on the CPU: no other body is better there, and no
  /// hook sees its results.
  virtual bool runs_by_packet() const = 0;
  /// True if the shader's bytes say all that it is: it has no tables.
  virtual bool is_plain() const = 0;
  /// True if handlers may change it.
  virtual bool may_change() const = 0;
  /// What the shader is as long as the owner does not change.
  virtual ShaderCode specialize() const = 0;
  /// Writes the shader as it is to `to`, with the addresses of this process, and zeros for padding.
  virtual void copy_image(void* to) const = 0;
  /// True if `refresh_image` has something to do.
  virtual bool refreshes() const = 0;
  /// Brings the tables of a copy up to date, as before each batch.
  virtual void refresh_image(void* image) const = 0;
  /// Chooses the nexts of `n` packets. Those that a hook takes away get kConsumed.
  virtual void decide(Packet** packets, int n, Next* nexts) = 0;
  /// The counters of a thread, for it to use.
  uint64_t* counters_of(int thread) { return counters_.of(thread); }

  /// True if the shader has the hook `prefetch`.
  virtual bool prefetches() const = 0;
  /// Asks for what the shader will read for these packets. The headers that it needs may be missing still.
  virtual void prefetch(Packet* const* packets, int n) const = 0;
  /// Lets `element`, which this one pushes to, prefetch as soon as this one is done with a packet.
  void prefetch_for(const ShaderElementBase& element) { behind_ = &element; }
  /// Called when a job has succeeded, with what it counted for this element.
  virtual void add_counts(const uint64_t* counts) = 0;
  /// Called when the router has stopped: the owner writes what it still has to write.
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
  const ShaderElementBase* behind_ = nullptr;  // that it prefetches for
};

/// The element made from shader `S`.
template <typename S>
class ShaderElement final : public ShaderElementBase {
  static_assert(std::is_trivially_copyable_v<S>, "a shader holds only what can be copied byte by byte");
  using Has = Hooks<S>;
  using Owner = typename detail::OwnerOf<S>::Type;
  using Result = typename detail::ResultOf<S>::Type;

 public:
  ShaderElement() : ShaderElementBase(S::kCounters.info, S::kCounters.kCount) {}

  /// Zeros what lies between the shader's members: see copy_image().
  static void* operator new(size_t size) {
    return std::memset(::operator new (size, std::align_val_t{alignof(ShaderElement)}), 0, size);
  }
  static void operator delete(void* p) { ::operator delete (p, std::align_val_t{alignof(ShaderElement)}); }

  S& shader() { return shader_; }
  Owner& owner() { return *owner_; }

  Status configure(Args& args) override {
    if constexpr (S::kKeepsOwner) {
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
  bool can_live_reconfigure() const override { return std::is_same_v<Owner, detail::NoOwner> || S::kLiveReconfigure; }
  Status live_reconfigure(Args& args) override {
    S fresh{};
    Status status = configure_into(args, fresh, *owner_);
    if (status.ok()) shader_ = fresh;
    return status;
  }
  Status initialize(Errors& errors) override {
    if constexpr (!Has::initialize) {
      return {};
    } else if constexpr (requires { shader_.initialize(errors, *owner_, *this); }) {
      return shader_.initialize(errors, *owner_, *this);
    } else if constexpr (requires { shader_.initialize(errors, *owner_); }) {
      return shader_.initialize(errors, *owner_);
    } else {
      return shader_.initialize(errors);
    }
  }
  void add_handlers(Handlers& handlers) override {
    if constexpr (!Has::add_handlers) {
    } else if constexpr (requires { shader_.add_handlers(handlers, *owner_, *this); }) {
      shader_.add_handlers(handlers, *owner_, *this);
    } else if constexpr (requires { shader_.add_handlers(handlers, *owner_); }) {
      shader_.add_handlers(handlers, *owner_);
    } else if constexpr (requires { shader_.add_handlers(handlers, *this); }) {
      shader_.add_handlers(handlers, *this);
    } else {
      shader_.add_handlers(handlers);
    }
  }
  std::string note() const override {
    if constexpr (Has::note) return shader_.note(*owner_);
    return {};
  }

  size_t image_size() const override { return sizeof(S); }
  size_t image_alignment() const override { return alignof(S); }
  void image(void* to, Mirror& mirror) override {
    S copy = shader_;
    if constexpr (requires { copy.mirror(mirror, *owner_); }) {
      copy.mirror(mirror, *owner_);
    } else if constexpr (Has::mirror) {
      copy.mirror(mirror);
    }
    std::memcpy(to, &copy, sizeof copy);
  }
  bool can_mirror() const override { return Has::mirror || !Has::refresh; }
  std::vector<RegionInfo> regions() const override {
    std::vector<RegionInfo> all;
    S shader = shader_;
    if constexpr (Has::refresh) shader.refresh(*owner_);
    add_regions(shader, S::kRegions, all);
    return all;
  }
  void move(Offsets& at) const override {
    if constexpr (Has::move) {
      shader_.move(at);
    } else {
      if (detail::kSetsNetwork<S>) at.network = at.transport = Offsets::kUnknown;
      if (detail::kSetsMac<S>) at.mac = Offsets::kUnknown;
      if (detail::kMovesData<S>) at.data = Offsets::kUnknown;
    }
  }
  bool scans() const override { return scans_payload<S>(); }
  bool rewrites() const override { return rewrites_packet<S>(); }
  bool is_serial() const override { return S::kSerial; }
  uint32_t block_bytes() const override { return S::kBlockBytes; }
  std::optional<uint32_t> fixed() const override {
    if constexpr (std::is_null_pointer_v<decltype(S::kFixed)>) {
      return std::nullopt;
    } else {
      static_assert(std::is_same_v<std::remove_cvref_t<decltype(shader_.*S::kFixed)>, uint32_t>,
                    "kFixed names a uint32_t");
      return shader_.*S::kFixed;
    }
  }
  void shade_slots(const void* image, uint16_t at, Slot* slots, int n, const RowLayout& row, int first_counter,
                   int result, Next* nexts) const override {
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
          nexts[i] = scan_slot(&shader, slots[i], true, layout, first_counter, result);
        } else if constexpr (rewrites_packet<S>()) {
          nexts[i] = rewrite_slot(&shader, slots[i], true, layout, first_counter, result);
        } else {
          nexts[i] = shade_slot(shader, slots[i], layout, first_counter, result);
        }
      }
  }
  bool takes_packets() const override {
    if constexpr (Has::release) {
      return requires(void(S::*hook)(Packet**, Results<Result>, int) const) { hook = &S::release; }
      || requires(void(S::*hook)(Packet**, Results<Result>, int, Owner&) const) { hook = &S::release; }
      || requires(void(S::*hook)(Packet**, Results<Result>, int, Owner&, ShaderElementBase&) const) {
        hook = &S::release;
      };
    } else {
      return false;
    }
  }
  size_t result_size() const override { return detail::ResultOf<S>::kExists ? sizeof(Result) : 0; }
  void release(Packet** packets, const uint8_t* results, size_t stride, int n) override {
    if constexpr (Has::release) release(packets, Results<Result>(results, stride), n);
  }
  void add_counts(const uint64_t* counts) override {
    if constexpr (Has::refresh) {
      // Brings rates and the like up to date before counting, as a batch on the CPU does.
      S copy = shader_;
      copy.refresh(*owner_);
    }
    for (int i = 0; i < S::kCounters.kCount; ++i)
      if (counts[i] != 0) counters_.add(i, counts[i]);
  }

  bool runs_by_packet() const override {
    return !Has::shade_batch && !Has::release && !reads_payload<S>() && can_mirror();
  }
  bool is_plain() const override { return !Has::mirror && !Has::refresh; }
  bool may_change() const override { return can_live_reconfigure() || handlers().writable(); }
  ShaderCode specialize() const override {
    if constexpr (requires { shader_.specialize(); })
      return shader_.specialize();
    else if constexpr (Has::specialize)
      return shader_.specialize(*owner_);
    else
      return {};
  }
  void copy_image(void* to) const override {
    // Equal shaders must have equal bytes, or no program would be found again: not every compiler clears the padding,
    // nor keeps what was zero before the constructor.
    S copy;
    std::memcpy(static_cast<void*>(&copy), static_cast<const void*>(&shader_), sizeof copy);
    if constexpr (requires { __builtin_clear_padding(&copy); }) __builtin_clear_padding(&copy);
    // The byte of an empty shader means nothing.
    if constexpr (std::is_empty_v<S>)
      std::memset(to, 0, sizeof copy);
    else
      std::memcpy(to, static_cast<const void*>(&copy), sizeof copy);
  }
  bool refreshes() const override { return Has::refresh; }
  void refresh_image(void* image) const override {
    if constexpr (Has::refresh) static_cast<S*>(image)->refresh(*owner_);
  }
  void decide(Packet** packets, int n, Next* nexts) override { shade(packets, n, nexts); }
  bool prefetches() const override { return Has::prefetch; }
  void prefetch(Packet* const* packets, int n) const override {
    if constexpr (Has::prefetch) {
      S shader = shader_;
      if constexpr (Has::refresh) shader.refresh(*owner_);
      for (int i = 0; i < n; ++i)
        if (detail::has_headers<S>(*packets[i])) [[likely]]
          shader.prefetch(CpuView<S>(packets[i], nullptr));
    }
  }

  void write_out() override {
    if constexpr (requires { owner_->write_out(); }) owner_->write_out();
  }

  void push(int, Batch& batch) override {
    Next nexts[Batch::kCapacity];
    const int n = batch.size();
    if (n == 0) return;
    const NextSet set = shade(batch.begin(), n, nexts);
    // Most batches leave as a whole by one port.
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
    } else if constexpr (Has::escape) {
      return shader_.escape(p, emit);
    } else {
      return kDrop;
    }
  }

 private:
  /// The bits set in any and in all nexts of a batch. The two are equal if all nexts are the same.
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
    if constexpr (Has::refresh) shader.refresh(*owner_);
    if constexpr (Has::release) {
      shade_with_results(shader, packets, n, nexts, counters);
      for (int i = 0; i < n; ++i) set.add(nexts[i]);
      return set;
    }
    if constexpr (Has::shade_batch && !Has::release) {
      shader.shade_batch(packets, n, nexts, counters);
      for (int i = 0; i < n; ++i) set.add(nexts[i]);
      return set;
    }
    // By pieces, so that the element behind waits for memory while this one computes.
    constexpr int kPiece = 16;
    int piece_end = behind_ && n >= kPiece ? kPiece : 0;
    for (int i = 0; i < n; ++i) {
      Next next = kDrop;
      if (detail::has_headers<S>(*packets[i])) [[likely]] {
        CpuView<S> view(packets[i], counters);
        if constexpr (reads_payload<S>()) {
          if (i + 1 < n) prefetch_payload(*packets[i + 1]);
          next = shader.shade(view, find(shader, *packets[i]));
        } else {
          next = shader.shade(view);
        }
      }
      nexts[i] = next;
      set.add(next);
      if (i + 1 == piece_end) [[unlikely]] {
        behind_->prefetch(packets + i + 1 - kPiece, kPiece);
        piece_end += kPiece;
      }
    }
    // The last piece may be smaller.
    if (const int left = n + kPiece - piece_end; piece_end > 0 && left > 0) behind_->prefetch(packets + n - left, left);
    return set;
  }
  void shade_with_results(const S& shader, Packet** packets, int n, Next* nexts, uint64_t* counters) {
    Scratch<Result, Batch::kCapacity> room;
    Result* const results = room.data();
    std::fill_n(results, n, Result());
    bool complete[Batch::kCapacity];
    for (int i = 0; i < n; ++i) complete[i] = detail::has_headers<S>(*packets[i]);
    if constexpr (Has::shade_batch) {
      shader.shade_batch(packets, n, nexts, counters, results);
    } else {
      for (int i = 0; i < n; ++i) {
        CpuView<S> view(packets[i], counters);
        if (!complete[i])
          nexts[i] = kDrop;
        else if constexpr (reads_payload<S>())
          nexts[i] = shader.shade(view, find(shader, *packets[i]));
        else
          nexts[i] = shader.shade(view);
        results[i] = view.result();
      }
    }
    if (!takes_packets()) {
      bool all = true;
      for (int i = 0; i < n; ++i) all &= nexts[i] != kEscape && complete[i];
      if (all) return release(packets, Results<Result>(results), n);
    }
    // What the host body takes, or what lacks headers, has no result.
    Packet* passed[Batch::kCapacity];
    int of[Batch::kCapacity], m = 0;
    for (int i = 0; i < n; ++i) {
      if (nexts[i] == kEscape || !complete[i]) continue;
      passed[m] = packets[i];
      of[m] = i;
      if (m != i) results[m] = results[i];
      ++m;
    }
    if (m > 0) release(passed, Results<Result>(results), m);
    for (int i = 0; i < m; ++i)
      if (passed[i] == nullptr) nexts[of[i]] = kConsumed;
  }
  void release(Packet** packets, const Results<Result>& results, int n) {
    if constexpr (requires { shader_.release(packets, results, n, *owner_, *this); }) {
      shader_.release(packets, results, n, *owner_, *this);
    } else if constexpr (requires { shader_.release(packets, results, n, *owner_); }) {
      shader_.release(packets, results, n, *owner_);
    } else {
      shader_.release(packets, results, n);
    }
  }
  static void prefetch_payload(const Packet& p) {
    constexpr uint32_t kLine = 64, kMost = 256;
    for (uint32_t at = 0; at < p.length() && at < kMost; at += kLine) __builtin_prefetch(p.data() + at);
  }
  /// What `scan` or `rewrite` returns for a packet.
  auto find(const S& shader, Packet& p) {
    if constexpr (rewrites_packet<S>()) {
      EditInPlace edit(p);
      const auto found =
          detail::rewrite_packet(shader, HostTeam<1>{}, edit, detail::about_of(shader, CpuView<S>(&p, nullptr)));
      edit.finish();
      return found;
    } else {
      const PacketBytes packet = bytes_of(p);
      const PayloadBytes payload = detail::payload_of(shader, packet);
      if constexpr (requires { shader.scan_on_cpu(payload, packet, *owner_); }) {
        return shader.scan_on_cpu(payload, packet, *owner_);
      } else if constexpr (Has::scan_on_cpu) {
        return shader.scan_on_cpu(payload, *owner_);
      } else {
        return detail::scan_packet(shader, HostTeam<1>{}, payload, packet);
      }
    }
  }
  template <typename... D>
  static void add_regions(const S& shader, const Regions<D...>&, std::vector<RegionInfo>& all) {
    (add_region<D>(shader, all), ...);
  }
  template <typename D>
  static void add_region(const S& shader, std::vector<RegionInfo>& all) {
    using W = typename D::Where;
    RegionInfo r = Regions<D>::template info<D>();
    if constexpr (Has::extent && !requires { typename W::Value; }) {
      const Extent used = shader.extent(W::kAnchor);
      r.offset = used.first;
      r.size = used.last - used.first;
    }
    if constexpr (Has::usually_written && !requires { typename W::Value; })
      r.usual = std::max(shader.usually_written(W::kAnchor).last - r.offset, 0);
    all.push_back(r);
  }
  static Status configure_into(Args& args, S& shader, Owner& owner) {
    if constexpr (!Has::configure) {
      return args.complete();
    } else if constexpr (requires { shader.configure(args, owner); }) {
      return shader.configure(args, owner);
    } else {
      return shader.configure(args);
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
  return {name, S::kPorts.text, S::kProcessing.text, S::kFlow.text, name, true, &make_shader_element<S>};
}
}  // namespace detail

}  // namespace headrace
