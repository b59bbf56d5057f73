#pragma once
#include <functional>
#include <headrace/element.hh>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "tables/memory/device_array.hh"
#include "tables/sa/association.hh"
#include "tables/sa/esp_key_material.hh"
#include "tables/sa/esp_library.hh"
#include "tables/sa/secgw_file.hh"
#include "tables/sa/security_policy.hh"

namespace headrace {

/// Holds the associations and policies of IPsec (RFC 4301) that other elements use.
///
///     IPsecDatabase([keyword CONFIG, STATE, CAPACITY])
///
/// Has no ports. IPsecPolicy, IPsecESPEncap, IPsecESPLookup, IPsecAES, IPsecAuthHMACSHA1, IPsecESPUnencap and IPsecRoute
/// take its name. IPsecGateway has all of them.
///
/// CONFIG: a file in the format of DPDK's ipsec-secgw: `sp` and `sa` lines are for the database, `rt` and `neigh` lines
/// for IPsecRoute. Several files: CONFIG once for each. Associations without authentication are left out, with a warning.
/// STATE: a file in which the process keeps the bound of all initialization vectors it may have used, so that none
/// repeats under a key after a restart, whatever the clock says. Without it the clock has to go forward.
/// CAPACITY: how many associations there may be. Default 4096.
///
/// An association that is in the old and in the new configuration of a hot swap keeps its numbers. Keys are never shown;
/// they are erased on the host and on devices when an association is removed.
///
/// Handlers: `associations`, `policies` (r) a line for each, without keys; `counts` (r) what each association has done
/// and dropped; `add` (w) lines `sp` and `sa` as in CONFIG, with workers running; `remove` (w) `in SPI DESTINATION`, `in SPI` in
/// transport mode, or `out SPI`; `remove_policy` (w) a line as `policies` shows it; `instructions` (r) of the
/// library that works on the CPU.
class IPsecDatabase : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  IPsecDatabase();
  ~IPsecDatabase() override;

  int configure_phase() const override { return kInfoPhase; }
  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  std::string note() const override;
  void run_timer(Timer&) override;

  /// What packets carry of an association: its index, and some bits that tell it from those that have the index later.
  class Tag {
   public:
    static constexpr uint32_t kIndexBits = 20;
    static uint32_t of(const Association& a) { return make(a.index, static_cast<uint32_t>(a.serial)); }
    static uint32_t make(uint32_t index, uint32_t serial) { return index | serial << kIndexBits; }
    static uint32_t index(uint32_t tag) { return tag & ((1u << kIndexBits) - 1); }
  };
  /// The keys as shaders see them, by index. Shared with associations that wait for readers.
  struct Keys {
    explicit Keys(uint32_t capacity);
    ~Keys();
    void set(uint32_t index, const ESPKeys& keys, const ESPHostKeys* host, uint32_t tag);
    /// Nobody finds the keys by a tag any more.
    void withdraw(uint32_t index);

    mutable std::mutex lock;  // against mirrors
    DeviceArray<ESPKeys> keys;
    DeviceArray<uint32_t> tags;  // kNoTag: no association
    std::vector<const ESPHostKeys*> hosts;
    mutable ChangedPages keys_changed, tags_changed;
  };
  static constexpr uint32_t kNoTag = ~0u;
  /// What the outer IPv4 headers of a tunnel have in common (RFC 4301, section 5.1.2.1).
  struct OuterHeader4 {
    uint32_t source = 0, destination = 0;  ///< as in memory
    uint32_t sum = 0;                      ///< of the checksum's words that do not change
    uint8_t protocol = 0;
  };
  static constexpr uint8_t kOuterTTL = 64;
  /// Beside an association.
  struct Extra : AssociationExtra {
    ~Extra() override;
    void withdraw() override;

    uint32_t hash = 0;  ///< for packets: it chooses their worker and their processor
    uint32_t index = 0;
    OuterHeader4 outer;
    std::shared_ptr<Keys> keys;
    ESPHostKeys host;
    /// Of outer IPv4 headers. Its worker writes it, while all read what is above.
    alignas(128) SingleWriter<uint32_t> next_id;
  };
  static Extra& extra(Association& a) { return static_cast<Extra&>(*a.extra); }

  /// Valid until the worker's next quiescent state.
  AssociationView associations() const { return table_->view(); }
  PolicyView policies() const { return policies_.view(); }
  /// The association that a packet's tag names, or null if it has gone. Does not look into the association, which may be
  /// in no cache.
  Association* find(const AssociationView& view, uint32_t tag) const {
    const uint32_t index = Tag::index(tag);
    return index < capacity() && __atomic_load_n(&keys_->tags[index], __ATOMIC_ACQUIRE) == tag ? view.at(index)
                                                                                               : nullptr;
  }
  /// Has what packets need of the association that a tag names loaded into the first-level cache, without what it points
  /// to: that can be asked for when it is there, by prefetch_state().
  void prefetch(const AssociationView& view, uint32_t tag) const {
    const Association* const a = find(view, tag);
    if (a == nullptr) return;
    __builtin_prefetch(a);
    __builtin_prefetch(&a->config.spi);
    __builtin_prefetch(&a->config.outer_df);
    __builtin_prefetch(&keys_->keys[Tag::index(tag)]);
  }
  void prefetch_state(const AssociationView& view, uint32_t tag) const {
    const Association* const a = find(view, tag);
    if (a == nullptr) return;
    for (size_t at = 0; at < sizeof(AssociationState); at += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(a->state.get()) + at, 1);
    __builtin_prefetch(a->extra.get());
  }
  /// The library of the running thread.
  ESPLibrary& library() const { return *libraries_.local(); }

  Status initialize(Errors& errors) override;

  struct RouteLine {
    SecgwConfig::Route route;
    Landmark where;
  };
  struct NeighborLine {
    SecgwConfig::Neighbor neighbor;
    Landmark where;
  };
  /// The `rt` and `neigh` lines of all files, in order; from configure() on.
  const std::vector<RouteLine>& routes() const { return routes_; }
  const std::vector<NeighborLine>& neighbors() const { return neighbors_; }
  /// Whether the files had no mistakes, so that no line is missing.
  bool files_are_whole() const { return files_are_whole_; }

  /// For elements that take associations and policies from elsewhere. Any thread but workers.
  /// The index of the new association, or AssociationTable::kNone with the reason.
  uint32_t add_association(const AssociationConfig& config, std::string& reason);
  /// Readers no longer find the association. Its keys are erased by erase_removed(), which waits for readers.
  void remove_association(uint32_t index) { (void)table_->remove(index); }
  void erase_removed();
  /// Removes policies and adds others in one step.
  void change_policies(std::span<const Policy> gone, std::span<const Policy> fresh) { policies_.change(gone, fresh); }
  /// Calls visit(const Association&) for each, by index.
  void for_each(const std::function<void(const Association&)>& visit) const { table_->for_each(visit); }

  /// For packets that carry tags of the database of the router before: gives each that of the association here that has
  /// the same state, and its hash; returns false if there is none. While no worker runs.
  std::function<bool(Packet&)> adopter(const IPsecDatabase& before) const;

  /// What shaders look up.
  struct View {
    const ESPKeys* keys;
    const uint32_t* tags;
  };
  View view() const { return {keys_->keys.data(), keys_->tags.data()}; }
  /// By index; valid for associations that find() finds.
  const ESPHostKeys* host_keys(uint32_t index) const { return keys_->hosts[index]; }
  uint32_t capacity() const { return static_cast<uint32_t>(keys_->keys.size()); }
  /// The same of a device's copies.
  View mirror(Mirror& mirror) const;

 private:
  std::unique_ptr<AssociationExtra> make_extra(const Association& association);
  Status take(const SecgwConfig& config, const std::string& path, Errors& errors);
  Status add(const std::string& text, Errors& errors);
  Status remove(const std::string& text, Errors& errors);
  Status remove_policy(const std::string& text, Errors& errors);
  std::string counts() const;

  std::shared_ptr<Keys> keys_;
  PolicyTable policies_;
  std::vector<RouteLine> routes_;
  std::vector<NeighborLine> neighbors_;
  bool files_are_whole_ = false;
  std::unique_ptr<AssociationTable> table_;
  mutable PerThread<std::unique_ptr<ESPLibrary>> libraries_;
  Timer again_{this};
  Timestamp look_after_;
};

}  // namespace headrace
