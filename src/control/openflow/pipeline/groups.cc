#include "control/openflow/pipeline/groups.hh"

#include <algorithm>
#include <utility>

#include "control/openflow/pipeline/duration.hh"
#include "tables/openflow/program_view.hh"

namespace headrace::openflow {

Groups::Groups(WordStore& store, Programs& programs) : store_(store), programs_(programs) {}

std::optional<uint32_t> Groups::port_bit(uint32_t port) {
  if (port == port::kLocal) return 0;
  if (port == 0 || port >= LiveView::kPorts) return std::nullopt;
  return port;
}

Group* Groups::find(uint32_t number) {
  const auto at = groups_.find(number);
  return at == groups_.end() ? nullptr : &at->second;
}

std::set<uint32_t> Groups::names_of(const std::vector<Bucket>& buckets) {
  std::set<uint32_t> named;
  for (const Bucket& bucket : buckets) {
    if (bucket.watch_group != group::kAny) named.insert(bucket.watch_group);
    for (const Action& action : bucket.actions)
      if (action.type == ActionType::kGroup) named.insert(action.value);
  }
  return named;
}

int Groups::chained_behind(uint32_t number, uint32_t end, std::unordered_map<uint32_t, int>& known) const {
  if (number == end) return kMostChained + 1;
  if (const auto at = known.find(number); at != known.end()) return at->second;
  int most = 0;
  for (const uint32_t next : names_of(groups_.at(number).buckets))
    most = std::max(most, chained_behind(next, end, known));
  return known[number] = most + 1;
}

int Groups::chained_in_front(uint32_t number, std::unordered_map<uint32_t, int>& known) const {
  if (const auto at = known.find(number); at != known.end()) return at->second;
  int most = 0;
  const auto at = groups_.find(number);
  if (at != groups_.end())
    for (const uint32_t other : at->second.named_by) most = std::max(most, chained_in_front(other, known) + 1);
  return known[number] = most;
}

void Groups::link(uint32_t number, const std::vector<Bucket>& buckets, bool add) {
  for (const uint32_t named : names_of(buckets)) {
    Group* const group = find(named);
    if (group == nullptr) continue;
    if (add) {
      group->named_by.insert(number);
    } else {
      group->named_by.erase(number);
    }
  }
}

ErrorCode Groups::check_bucket(const GroupMod& mod, const Bucket& bucket, const SwitchNames& switch_names) const {
  const bool watches_port = bucket.watch_port != port::kAny, watches_group = bucket.watch_group != group::kAny;
  // Fields that the type does not define (section 6.7).
  if (mod.type != GroupType::kSelect && bucket.weight != 0) return ErrorCode::kGroupModInvalidGroup;
  if ((mod.type == GroupType::kAll || mod.type == GroupType::kIndirect) && (watches_port || watches_group))
    return ErrorCode::kGroupModWatchUnsupported;
  if (mod.type == GroupType::kFastFailover && !watches_port && !watches_group) return ErrorCode::kGroupModInvalidGroup;
  if (watches_port && !(switch_names.has_port(bucket.watch_port) && port_bit(bucket.watch_port)))
    return ErrorCode::kGroupModBadWatch;
  if (bucket.watch_group == mod.group) return ErrorCode::kGroupModLoop;
  if (watches_group && !has(bucket.watch_group)) return ErrorCode::kGroupModBadWatch;
  for (const Action& action : bucket.actions)
    if (action.type == ActionType::kGroup && action.value == mod.group) return ErrorCode::kGroupModLoop;
  return check_actions(bucket.actions, switch_names);
}

ErrorCode Groups::check(const GroupMod& mod, const SwitchNames& switch_names) const {
  if (mod.group > group::kMax) return ErrorCode::kGroupModInvalidGroup;
  if (mod.type > GroupType::kFastFailover) return ErrorCode::kGroupModBadType;
  if (mod.type == GroupType::kIndirect && mod.buckets.size() != 1) return ErrorCode::kGroupModInvalidGroup;
  if (mod.buckets.size() > kMostBuckets) return ErrorCode::kGroupModOutOfBuckets;
  for (const Bucket& bucket : mod.buckets)
    if (const ErrorCode error = check_bucket(mod, bucket, switch_names); error != ErrorCode::kNone) return error;
  const std::set<uint32_t> names = names_of(mod.buckets);
  if (names.empty()) return ErrorCode::kNone;
  int behind = 0;
  std::unordered_map<uint32_t, int> known, known_in_front;
  for (const uint32_t name : names) behind = std::max(behind, chained_behind(name, mod.group, known));
  // A chain has been no longer than this before.
  if (behind > kMostChained) return ErrorCode::kGroupModLoop;
  if (behind + 1 + chained_in_front(mod.group, known_in_front) > kMostChained)
    return ErrorCode::kGroupModChainingUnsupported;
  return ErrorCode::kNone;
}

ErrorCode Groups::make(Group& group, const ProgramNames& names) {
  ErrorCode error = ErrorCode::kNone;
  std::vector<uint32_t> record(group_word::kHead);
  uint32_t up_to = 0;
  bool host = group.type == GroupType::kAll && group.buckets.size() > 1;
  for (const Bucket& bucket : group.buckets) {
    Program* program = nullptr;
    if (error = programs_.take_for_bucket(bucket.actions, names, program); error != ErrorCode::kNone) break;
    group.programs.push_back(program);
    const auto counter = counter_numbers_.take();
    if (!counter) {
      error = ErrorCode::kGroupModOutOfBuckets;
      break;
    }
    group.counters.push_back(*counter);
    bucket_counters_.reserve(*counter + 1);
    bucket_counters_.clear(*counter);
    host |= ProgramView(store_.data() + program->index).has(program_flag::kNeedsHost | program_flag::kHasGroup);
    up_to += bucket.weight;
    uint32_t watch = LiveView::kNever, watch_group = LiveView::kNever;
    if (bucket.watch_port != port::kAny) watch = *port_bit(bucket.watch_port);
    if (bucket.watch_group != group::kAny) watch_group = LiveView::group_bit(slot_of(bucket.watch_group));
    if (bucket.watch_port == port::kAny && bucket.watch_group == group::kAny) watch = LiveView::kAlways;
    record.insert(record.end(), {program->index, up_to, watch, watch_group, *counter});
  }
  record[group_word::kKind] = static_cast<uint32_t>(group.type) | (host ? group_word::kNeedsHost : 0) |
                              static_cast<uint32_t>(group.buckets.size() << 16);
  record[group_word::kWeight] = up_to;
  if (error == ErrorCode::kNone) {
    const auto index = store_.add(record);
    if (index) {
      group.record = *index;
      group.record_words = static_cast<uint32_t>(record.size());
      return ErrorCode::kNone;
    }
  }
  give_up(group, false);
  // No room for words.
  return error == ErrorCode::kNone || error == ErrorCode::kFlowModTableFull ? ErrorCode::kGroupModOutOfGroups : error;
}

void Groups::give_up(const Group& group, bool published) {
  for (Program* const program : group.programs) programs_.release(program);
  for (const uint32_t counter : group.counters) {
    if (published) {
      counter_numbers_.give_up(counter);
    } else {
      counter_numbers_.put_back(counter);
    }
  }
  if (group.record != 0) store_.give_up(group.record, group.record_words);
}

void Groups::publish(const Group& group) {
  slots_.changed(group.slot, 1);
  __atomic_store_n(&slots_[group.slot], group.record, __ATOMIC_RELEASE);
}

ErrorCode Groups::add(const GroupMod& mod, const SwitchNames& switch_names, const ProgramNames& names, Time now) {
  if (mod.group <= group::kMax && has(mod.group)) return ErrorCode::kGroupModGroupExists;
  if (const ErrorCode error = check(mod, switch_names); error != ErrorCode::kNone) return error;
  const auto slot = slot_numbers_.take();
  if (!slot) return ErrorCode::kGroupModOutOfGroups;
  Group group;
  group.type = mod.type;
  group.buckets = mod.buckets;
  group.slot = *slot;
  group.created = now;
  group_counters_.reserve(*slot + 1);
  group_counters_.clear(*slot);
  if (const ErrorCode error = make(group, names); error != ErrorCode::kNone) {
    slot_numbers_.put_back(*slot);
    return error;
  }
  const Group& added = groups_.emplace(mod.group, std::move(group)).first->second;
  link(mod.group, added.buckets, true);
  update_live(added);
  publish(added);
  return ErrorCode::kNone;
}

ErrorCode Groups::modify(const GroupMod& mod, const SwitchNames& switch_names, const ProgramNames& names) {
  if (mod.group > group::kMax) return ErrorCode::kGroupModInvalidGroup;
  Group* const group = find(mod.group);
  if (group == nullptr) return ErrorCode::kGroupModUnknownGroup;
  if (const ErrorCode error = check(mod, switch_names); error != ErrorCode::kNone) return error;
  Group changed;
  changed.type = mod.type;
  changed.buckets = mod.buckets;
  changed.slot = group->slot;
  changed.created = group->created;
  if (const ErrorCode error = make(changed, names); error != ErrorCode::kNone) return error;
  changed.entries = std::move(group->entries);
  changed.named_by = std::move(group->named_by);
  std::swap(*group, changed);
  link(mod.group, changed.buckets, false);
  link(mod.group, group->buckets, true);
  publish(*group);
  give_up(changed, true);
  if (update_live(*group) && !group->named_by.empty()) update_all_live();
  return ErrorCode::kNone;
}

ErrorCode Groups::check_remove(uint32_t number) const {
  const auto at = groups_.find(number);
  return at == groups_.end() || at->second.named_by.empty() ? ErrorCode::kNone : ErrorCode::kGroupModChainedGroup;
}

void Groups::remove(uint32_t number) {
  const auto at = groups_.find(number);
  if (at == groups_.end()) return;
  const Group gone = std::move(at->second);
  groups_.erase(at);
  link(number, gone.buckets, false);
  slots_.changed(gone.slot, 1);
  __atomic_store_n(&slots_[gone.slot], 0, __ATOMIC_RELEASE);
  give_up(gone, true);
  slot_numbers_.give_up(gone.slot);
  set_live(LiveView::group_bit(gone.slot), false);
}

void Groups::begin_grace() {
  slot_numbers_.begin_grace();
  counter_numbers_.begin_grace();
}

void Groups::set_live(uint32_t bit, bool alive) {
  const uint32_t mask = 1u << bit % 32, word = live_[bit / 32];
  const uint32_t changed = alive ? word | mask : word & ~mask;
  if (changed == word) return;
  live_.changed(bit / 32, 1);
  __atomic_store_n(&live_[bit / 32], changed, __ATOMIC_RELEASE);
}

bool Groups::update_live(const Group& group) {
  const LiveView live(live_.data());
  const GroupView view(store_.data() + group.record, live);
  bool alive = false;
  for (uint32_t i = 0; i < view.buckets() && !alive; ++i) alive = view.alive(i);
  const uint32_t bit = LiveView::group_bit(group.slot);
  const bool changed = alive != live.alive(bit);
  set_live(bit, alive);
  return changed;
}

void Groups::update_all_live() {
  // Groups are chained without loops, so that this comes to an end.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [number, group] : groups_) changed |= update_live(group);
  }
}

void Groups::set_port_alive(uint32_t port, bool alive) {
  const auto bit = port_bit(port);
  if (!bit) return;
  set_live(*bit, alive);
  update_all_live();
}

GroupStats Groups::statistics(uint32_t number, Time now) const {
  const Group& group = groups_.at(number);
  GroupStats stats;
  stats.group = number;
  stats.references = static_cast<uint32_t>(group.entries.size() + group.named_by.size());
  const Count count = group_counters_.sum(group.slot);
  stats.packets = count.packets;
  stats.bytes = count.bytes;
  set_duration(stats, now - group.created);
  for (const uint32_t counter : group.counters) {
    const Count bucket = bucket_counters_.sum(counter);
    stats.buckets.push_back({bucket.packets, bucket.bytes});
  }
  return stats;
}

GroupDescription Groups::description(uint32_t number) const {
  const Group& group = groups_.at(number);
  return {group.type, number, group.buckets};
}

GroupFeatures Groups::features() {
  // enum ofp_group_capabilities: weights, liveness in select groups, chaining, and checks of chains.
  constexpr uint32_t kCapabilities = 1 | 2 | 4 | 8;
  GroupFeatures features;
  features.capabilities = kCapabilities;
  for (const GroupType type : {GroupType::kAll, GroupType::kSelect, GroupType::kIndirect, GroupType::kFastFailover})
    features.types |= 1u << static_cast<uint32_t>(type);
  features.max_groups.fill(LiveView::kGroups);
  uint32_t actions = 0;
  for (size_t type = 0; type < action_types().size(); ++type) {
    const int64_t number = action_types()[type].number_1_3;
    if (number >= 0 && number < 32 && static_cast<ActionType>(type) != ActionType::kSetQueue)
      actions |= 1u << static_cast<uint32_t>(number);
  }
  features.actions.fill(actions);
  return features;
}

}  // namespace headrace::openflow
