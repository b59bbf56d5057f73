#pragma once
/// \file
/// The tables, groups and meters of an OpenFlow switch, as messages change them and packets find them.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "control/openflow/pipeline/flow_table.hh"
#include "control/openflow/pipeline/groups.hh"
#include "control/openflow/pipeline/meters.hh"
#include "control/openflow/pipeline/table_configs.hh"
#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/openflow/openflow_view.hh"

namespace headrace::openflow {

struct PipelineOptions {
  /// Numbers of the ports that there are, or may be, each below LiveView::kPorts. LOCAL is one, too, if it is named.
  std::vector<uint32_t> ports;
  /// Entries of a table.
  uint32_t most_entries = 1u << 21;
  /// Words of programs and groups.
  uint32_t most_words = 1u << 25;
};

/// The control side of a switch, with the semantics of OpenFlow 1.0.0 and 1.3.5. One thread at a time calls it, while
/// workers and devices use views.
///
/// A function that gets a message returns kNone, or an error, and then nothing has changed. Changes become visible to
/// readers in the order of the messages: those of one table together, at the latest with commit(). No function waits for
/// readers, except that AclTable::commit() does when a table has doubled.
///
/// What was removed goes on to count until no packet can meet it any more; then settle() makes its FlowRemoved.
class OpenFlowPipeline {
 public:
  explicit OpenFlowPipeline(PipelineOptions options);
  OpenFlowPipeline(const OpenFlowPipeline&) = delete;
  OpenFlowPipeline& operator=(const OpenFlowPipeline&) = delete;

  /// Errors: FLOW_MOD_FAILED with its codes; those of check_instructions() and check_consistency(). The buffer is not looked
  /// at. In 1.0 a change or a removal is for all tables, and an addition for table 0.
  ErrorCode flow_mod(const FlowMod& mod, Version version, Time now);
  /// Many entries that a message is about, in pieces between which others have their turns.
  class Pieces {
   public:
    bool done() const { return next_ == entries_.size(); }

   private:
    friend OpenFlowPipeline;
    std::vector<std::pair<uint32_t, uint64_t>> entries_;  // numbers, and which addition they were
    size_t next_ = 0;
  };
  /// A removal of entries.
  class Removal : public Pieces {};
  /// Entries of a piece. It takes milliseconds.
  static constexpr size_t kPiece = 4096;
  /// As flow_mod() for a deletion, which is over when `removal` is done: go_on() removes the entries that are there now, a
  /// piece at a time. What is added meanwhile stays. Both throw std::bad_alloc, and go_on() can be called again then.
  ErrorCode begin_removal(const FlowMod& mod, Version version, Removal& removal) const;
  void go_on(Removal& removal, Time now);
  /// A modification of entries.
  class Modification : public Pieces {
   private:
    friend OpenFlowPipeline;
    Program *for_entries_ = nullptr, *for_misses_ = nullptr;  // taken as long as it is not done
    uint64_t order_ = 0;                                      // among modifications
    std::optional<uint64_t> cookie_;                          // of 1.0
    bool resets_counts_ = false;
  };
  /// As flow_mod() for a modification, which is over when `modification` is done. An entry that is added or modified anew
  /// meanwhile stays as it is then. Until it is done no group and no meter may be deleted. Memory as with a removal.
  ErrorCode begin_modification(const FlowMod& mod, Version version, Time now, Modification& modification);
  void go_on(Modification& modification);
  /// Groups or meters that are deleted together with the entries that use them, in pieces as a Removal.
  class Departure {
   public:
    bool done() const { return groups_.empty() && meters_.empty(); }

   private:
    friend OpenFlowPipeline;
    std::vector<uint32_t> groups_, meters_;
    size_t next_ = 0;  // those before it have no users any more
  };
  /// As group_mod() and meter_mod() for a deletion, which is over when `departure` is done. From the beginning no message
  /// can name what leaves; packets find it until no entry uses it. Meanwhile groups and meters may not change otherwise. Memory as
  /// with a removal.
  ErrorCode begin_departure(const GroupMod& mod, Departure& departure);
  ErrorCode begin_departure(const MeterMod& mod, Departure& departure);
  void go_on(Departure& departure, Time now);
  ErrorCode group_mod(const GroupMod& mod, Time now);
  ErrorCode meter_mod(const MeterMod& mod, Time now);
  ErrorCode table_mod(const TableMod& mod) { return configs_.table_mod(mod); }
  /// The program of a packet-out. Groups have the places there that they have now. Errors: those of check_actions(),
  /// TOO_MANY.
  ErrorCode packet_out(const std::vector<Action>& actions, std::vector<uint32_t>& program) const;
  /// Names the ports anew. Entries and groups that name one that has gone stay.
  void set_ports(const std::vector<uint32_t>& ports) { ports_ = {ports.begin(), ports.end()}; }

  /// Makes all changes visible. Returns a point in time: see seen().
  rcu::Epoch commit();
  /// Whether no packet can meet what was there before a commit(). A barrier's answer waits for this, and then for what
  /// settle() returns: never by blocking.
  static bool seen(rcu::Epoch point) { return rcu::returned(point); }

  /// Removes entries whose time has come, kPiece at most. Call it every 100 ms or at next_expiry().
  void expire(Time now);
  /// When the next entry has to be looked at; kNoTime: never.
  Time next_expiry() const { return due_.empty() ? kNoTime : due_.begin()->first; }
  /// What has become of removed entries that no packet can meet any more: messages for those that asked for one, in the
  /// order of removal within a table, with exact counts. One call settles about `most` entries.
  std::vector<FlowRemoved> settle(size_t most = SIZE_MAX);
  /// Whether settle() has left something that it could settle now.
  bool behind() const;
  /// Removed entries that settle() has not settled.
  size_t unsettled() const;

  /// A port has come to life or died: its link, or its configuration. At first all are dead.
  void set_port_alive(uint32_t port, bool alive) { groups_.set_port_alive(port, alive); }
  /// Whether a packet that misses goes to a controller: somebody speaks 1.0.
  void set_miss_to_controller(bool on);

  static constexpr uint32_t kMostLookedAt = 1u << 16;
  /// Appends the statistics of at most `most` entries that the request names, from entry `cursor` on, which begins with 0
  /// and is changed. One call looks at kMostLookedAt entries, so that it takes milliseconds at most. False if these were
  /// the last ones. An entry that stays meanwhile is shown once.
  bool flow_stats(const FlowRequest<MultipartType::kFlow>& request, Time now, uint32_t& cursor, size_t most,
                  std::vector<FlowStats>& stats) const;
  /// A sum over the entries that a request names, as far as it has been made.
  struct AggregateWalk {
    FlowRequest<MultipartType::kAggregate> request;
    uint32_t cursor = 0;
    AggregateStats stats;
  };
  /// Goes on with the next kMostLookedAt entries. False if these were the last ones. An entry that stays meanwhile is in the
  /// sum once.
  bool aggregate(AggregateWalk& walk) const;
  class TableWalk;
  /// Errors: GROUP_MOD_FAILED/UNKNOWN_GROUP never: a group that does not exist has no statistics.
  std::vector<GroupStats> group_stats(uint32_t group, Time now) const;
  std::vector<GroupDescription> group_descriptions() const;
  /// Errors: METER_MOD_FAILED/UNKNOWN_METER.
  ErrorCode meter_stats(uint32_t meter, Time now, std::vector<MeterStats>& stats) const;
  ErrorCode meter_configurations(uint32_t meter, std::vector<MeterConfig>& configs) const;
  std::vector<TableFeatures> table_features() const { return configs_.features(); }
  /// Errors: TABLE_FEATURES_FAILED with its codes; EPERM if a table with entries would go.
  ErrorCode set_table_features(const std::vector<TableFeatures>& features);
  /// How many tables there are.
  uint32_t tables() const { return configs_.count(); }

  /// Of an entry that a packet has met, by its number, until settle() has settled it.
  uint64_t cookie_of(uint32_t number) const { return entries_[number].cookie; }

  /// For readers on the host.
  OpenFlowView view() const { return OpenFlowView(tables_.get()); }
  /// The view of a device's copy. Nobody may change the pipeline meanwhile.
  OpenFlowView mirror(Mirror& mirror) const;
  /// Of the longest keys that tables have.
  uint32_t key_words() const;

  /// For workers, when packets leave: entries by AclMatch::number, and what found nothing, by table.
  EntryCounters& entry_counters() { return entry_counters_; }
  EntryCounters& miss_counters() { return miss_counters_; }
  Groups& groups() { return groups_; }
  Meters& meters() { return meters_; }

  size_t size() const { return size_; }
  /// Whether an action of an entry or a bucket changes frames.
  bool changes_frames() const { return programs_.change_frames(); }

 private:
  using Visit = std::function<void(uint32_t)>;

  FlowTable* table(uint32_t number) const { return flow_tables_[number].get(); }
  FlowTable& make_table(uint32_t number);
  /// The next change is to a table; null: to something else, or visible at once. What came before becomes visible first.
  void before_change(FlowTable* table);
  uint32_t take_number();
  void settle_tables(size_t most);
  void settle_entry(uint32_t number);

  ErrorCode add(const FlowMod& mod, Version version, Time now);
  void release_programs(Modification& modification);
  ErrorCode check(const FlowMod& mod, Version version) const;
  /// The tables that a message is for; false if there is no such one.
  bool tables_of(uint8_t table, Version version, uint32_t& first, uint32_t& last) const;
  /// The entry that a strict message of a version is for.
  uint32_t find(const FlowTable& table, const FlowMod& mod, Version version) const;
  /// Calls `visit` with the entries that a modification or removal is for.
  void each_named(const FlowMod& mod, Version version, bool strict, const Visit& visit) const;
  template <MultipartType kType>
  bool is_named(const FlowRequest<kType>& request, const FlowEntry& entry) const;

  void use(uint32_t number);
  void stop_using(uint32_t number);
  void set_program(uint32_t number, Program* program);
  void set_timer(uint32_t number, Time now);
  void remove_entry(uint32_t number, FlowRemovedReason reason, Time now, bool silent = false);
  Count count_of(uint32_t number) const;
  /// Of an entry, however often they have been reset.
  uint64_t matches_of(uint32_t number) const { return entry_counters_.sum(number).packets; }
  FlowStats stats_of(uint32_t number, Time now) const;
  /// Removes `most` of the entries with these numbers, of which each removal takes its own away. Returns how many.
  size_t remove_some(const std::unordered_set<uint32_t>& numbers, size_t most, FlowRemovedReason reason, Time now);

  const PipelineOptions options_;
  std::set<uint32_t> ports_;
  const uint64_t seed_;
  const std::unique_ptr<OpenFlowTables> tables_;
  WordStore store_;
  Programs programs_{store_};
  Groups groups_{store_, programs_};
  Meters meters_;
  TableConfigs configs_;
  SwitchNames switch_names_;
  ProgramNames program_names_;

  std::vector<FlowEntry> entries_;  // by number
  std::array<std::unique_ptr<FlowTable>, kMostTables> flow_tables_;
  FlowTable* changing_ = nullptr;  // the table with changes that are not visible yet
  size_t size_ = 0;
  uint64_t additions_ = 0, modifications_ = 0;
  std::vector<uint32_t> free_numbers_;
  std::set<std::pair<Time, uint32_t>> due_;
  std::unordered_map<uint32_t, FlowRemoved> removing_;  // by number, of entries that may still count
  std::vector<FlowRemoved> removed_;                    // for settle()
  EntryCounters entry_counters_, miss_counters_;
  std::array<uint64_t, kMostTables> past_matches_{};  // of numbers that have been settled
  std::vector<TableWalk*> table_walks_;
};

/// Statistics of all tables, as far as they have been made. In 1.3 they are counts; 1.0 has names and sizes, too.
class OpenFlowPipeline::TableWalk {
 public:
  /// \param pipeline lives longer, and is used by one thread at a time with its walks
  explicit TableWalk(OpenFlowPipeline& pipeline);
  ~TableWalk();
  TableWalk(const TableWalk&) = delete;
  TableWalk& operator=(const TableWalk&) = delete;

  /// Goes on with the next kMostLookedAt entries. False if these were the last ones.
  bool step();
  /// When step() has returned false. A match that was counted before this walk began is there once, one that was counted
  /// meanwhile once or not at all.
  std::vector<TableStats> statistics() const;

 private:
  friend OpenFlowPipeline;
  /// The counts of a number are about to be cleared.
  void settles(uint32_t number);

  OpenFlowPipeline& pipeline_;
  uint32_t cursor_ = 0;
  std::array<uint64_t, kMostTables> matches_;
};

}  // namespace headrace::openflow
