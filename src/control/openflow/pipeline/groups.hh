#pragma once
/// \file
/// The groups of a switch (ONF TS-023, sections 5.6 and 6.7).

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "control/openflow/pipeline/checks.hh"
#include "control/openflow/pipeline/flow_entry.hh"
#include "control/openflow/pipeline/number_pool.hh"
#include "tables/memory/device_array.hh"
#include "tables/openflow/group_view.hh"

namespace headrace::openflow {

struct Group {
  GroupType type = GroupType::kAll;
  std::vector<Bucket> buckets;
  uint32_t slot = 0;
  uint32_t record = 0, record_words = 0;
  std::vector<Program*> programs;  ///< by bucket
  std::vector<uint32_t> counters;  ///< by bucket
  Time created = 0;
  std::unordered_set<uint32_t> entries{};  ///< flow entries that name it, by number
  std::set<uint32_t> named_by{};           ///< groups that name or watch it
  bool leaving = false;                    ///< its entries are being removed, then it is
};

class Groups {
 public:
  static constexpr uint32_t kMostBuckets = 1024;  ///< of a group
  static constexpr int kMostChained = 16;         ///< groups, one behind the other

  Groups(WordStore& store, Programs& programs);

  /// ADD and MODIFY. Errors: GROUP_MOD_FAILED with its codes, and those of check_actions() for the buckets' actions.
  /// Readers see the change at once.
  ErrorCode add(const GroupMod& mod, const SwitchNames& switch_names, const ProgramNames& names, Time now);
  ErrorCode modify(const GroupMod& mod, const SwitchNames& switch_names, const ProgramNames& names);
  /// Why a group cannot go: CHAINED_GROUP if another one names it.
  ErrorCode check_remove(uint32_t number) const;
  /// Removes a group that no flow entry names any more, whoever else does.
  void remove(uint32_t number);
  /// See NumberPool.
  void begin_grace();

  bool has(uint32_t number) const { return groups_.contains(number); }
  Group* find(uint32_t number);
  uint32_t slot_of(uint32_t number) const { return groups_.at(number).slot; }
  const std::map<uint32_t, Group>& all() const { return groups_; }

  /// A port has come to life, or died. Buckets follow, and groups of which they are.
  void set_port_alive(uint32_t port, bool alive);
  /// The bit of a port in the live words; nothing if it cannot be watched.
  static std::optional<uint32_t> port_bit(uint32_t port);

  GroupStats statistics(uint32_t number, Time now) const;
  GroupDescription description(uint32_t number) const;
  static GroupFeatures features();

  const uint32_t* slots() const { return slots_.data(); }
  const uint32_t* live() const { return live_.data(); }
  const uint32_t* mirror_slots(Mirror& mirror) const { return slots_.mirror(mirror); }
  const uint32_t* mirror_live(Mirror& mirror) const { return live_.mirror(mirror); }
  /// Of groups by slot, of buckets by what GroupView::counter() has.
  EntryCounters& counters() { return group_counters_; }
  EntryCounters& bucket_counters() { return bucket_counters_; }

 private:
  ErrorCode check(const GroupMod& mod, const SwitchNames& switch_names) const;
  ErrorCode check_bucket(const GroupMod& mod, const Bucket& bucket, const SwitchNames& switch_names) const;
  /// Groups that a list of buckets names or watches, each once.
  static std::set<uint32_t> names_of(const std::vector<Bucket>& buckets);
  /// Groups from this one on that are one behind the other, at most; more than kMostChained if `end` is among them.
  int chained_behind(uint32_t number, uint32_t end, std::unordered_map<uint32_t, int>& known) const;
  /// The same in front of it.
  int chained_in_front(uint32_t number, std::unordered_map<uint32_t, int>& known) const;
  void link(uint32_t number, const std::vector<Bucket>& buckets, bool add);
  /// Makes programs, counters and record of the group. On an error nothing has happened.
  ErrorCode make(Group& group, const ProgramNames& names);
  /// Gives up what make() has made.
  void give_up(const Group& group, bool published);
  void publish(const Group& group);
  void set_live(uint32_t bit, bool alive);
  /// Whether the group has come to life or died.
  bool update_live(const Group& group);
  void update_all_live();

  WordStore& store_;
  Programs& programs_;
  std::map<uint32_t, Group> groups_;
  DeviceArray<uint32_t> slots_{LiveView::kGroups};
  DeviceArray<uint32_t> live_{LiveView::kWords};
  NumberPool slot_numbers_{LiveView::kGroups};
  NumberPool counter_numbers_{EntryCounters::kMost};
  EntryCounters group_counters_, bucket_counters_;
};

}  // namespace headrace::openflow
