#include "tables/acl/acl_table.hh"

#include <algorithm>
#include <bit>
#include <utility>

namespace headrace {

namespace {

/// Commits that may be unsettled at a time: acl_alive() compares 15 bits.
constexpr size_t kMostUnsettled = 0x2000;
/// A structure is not made anew for fewer changes.
constexpr size_t kFewChanges = 1024;

uint32_t born_with(uint32_t version) { return (version << 1 | 1) & 0xffff; }
uint32_t dead_with(uint32_t version) { return born_with(version) << 16; }

/// The leading bits that all values from `low` to `high` have in common, as a mask of 16 bits.
uint32_t common_mask(uint32_t low, uint32_t high) {
  const int varying = 32 - std::countl_zero(low ^ high);
  return 0xffffu << varying & 0xffffu;
}

}  // namespace

AclTable::AclTable(const AclOptions& options) : options_(options) {
  std::vector<AclGroups::Handle> handles;
  groups_ = std::make_unique<AclGroups>(
      options_, 0, [](size_t) { return AclGroups::Entry(); }, handles);
  publish_generation(std::make_unique<AclGeneration>());
}

AclTable::~AclTable() {
  rcu::retire([old = std::shared_ptr<AclGeneration>(std::move(generation_))] {});
}

void AclTable::publish_generation(std::unique_ptr<AclGeneration> made) {
  *made = groups_->generation();
  current_.store(made.get(), std::memory_order_release);
  if (place_ != nullptr) __atomic_store_n(place_, made.get(), __ATOMIC_RELEASE);
  std::swap(generation_, made);
  if (made) rcu::retire([old = std::shared_ptr<AclGeneration>(std::move(made))] {});
}

void AclTable::publish_at(const AclGeneration** place) {
  place_ = place;
  if (place_ != nullptr) __atomic_store_n(place_, generation_.get(), __ATOMIC_RELEASE);
}

void AclTable::make_room() {
  if (!groups_->needs_room()) return;
  // Before anything is retired, here and below: what follows must not fail.
  auto next = std::make_unique<AclGeneration>();
  {
    const rcu::Retirements until_published;
    groups_->make_room();
    publish_generation(std::move(next));
  }
  rcu::reclaim();
}

AclRule AclTable::tightened(const AclRule& rule) {
  AclRule tight = rule;
  const uint32_t ports =
      common_mask(rule.low >> 16, rule.high >> 16) << 16 | common_mask(rule.low & 0xffff, rule.high & 0xffff);
  // A value that contradicts the bounds matches nothing, with the mask as it is.
  if (((rule.value[kAclPortWord] ^ rule.low) & rule.mask[kAclPortWord] & ports) == 0) {
    tight.value[kAclPortWord] |= rule.low & ports;
    tight.mask[kAclPortWord] |= ports;
  }
  for (uint32_t i = 0; i < AclRule::kMostWords; ++i) tight.value[i] &= tight.mask[i];
  // One port, however it is given.
  for (const uint32_t half : {0xffffu, 0xffff0000u}) {
    const uint32_t port = tight.value[kAclPortWord] & half;
    if ((tight.mask[kAclPortWord] & half) != half || port < (rule.low & half) || port > (rule.high & half)) continue;
    tight.low = (tight.low & ~half) | port;
    tight.high = (tight.high & ~half) | port;
  }
  return tight;
}

AclGroups::Entry AclTable::make_entry(uint32_t number, const AclRule& rule) const {
  const uint32_t words = options_.words;
  // What all ports of a range have in common can be hashed.
  const AclRule tight = tightened(rule);
  AclGroups::Entry entry{};
  std::copy_n(tight.value.begin(), words, entry.begin());
  std::copy_n(tight.mask.begin(), words, entry.begin() + words);
  uint32_t* const more = &entry[2 * words];
  more[kAclLow] = tight.low;
  more[kAclHigh] = tight.high;
  more[kAclPriority] = rule.priority;
  more[kAclNumber] = number;
  more[kAclLife] = born_with(groups_->version() + 1);
  more[kAclData] = rule.data;
  return entry;
}

void AclTable::insert(uint32_t number, const AclRule& rule) {
  settle_seen();
  make_room();
  if (number >= entries_.size()) entries_.resize(std::max<size_t>(number + size_t{1}, entries_.size() * 3 / 2));
  born_.push_back(number);
  entries_[number] = {groups_->insert(make_entry(number, rule)), Entry::State::kNew};
  ++size_;
}

/// Takes an entry out of the structure, which no reader sees any more, or none has seen. `grace` began when it went.
void AclTable::take_out(uint32_t number, rcu::Epoch grace) {
  make_room();
  groups_->erase(number, entries_[number].handle);
  entries_[number] = {};
  freed_.push_back({grace, number});
}

void AclTable::set_life(uint32_t number, uint32_t keep, uint32_t set) {
  const AclGroups::Handle handle = entries_[number].handle;
  const uint32_t life = groups_->get(number, handle, kAclLife);
  groups_->set(number, handle, kAclLife, (life & keep) | set);
}

bool AclTable::remove(uint32_t number) {
  if (!has(number)) return false;
  dead_.push_back(number);
  set_life(number, 0xffff, dead_with(groups_->version() + 1));
  entries_[number].state = Entry::State::kLeaving;
  --size_;
  ++resting_;
  return true;
}

bool AclTable::set_data(uint32_t number, uint32_t data) {
  if (!has(number)) return false;
  groups_->set(number, entries_[number].handle, kAclData, data);
  return true;
}

void AclTable::commit() {
  if (born_.empty() && dead_.empty()) return;
  for (const uint32_t number : born_)
    if (entries_[number].state == Entry::State::kNew) entries_[number].state = Entry::State::kThere;
  groups_->publish_version(groups_->version() + 1);
  unsettled_.push_back({rcu::start_grace(), std::exchange(born_, {}), std::exchange(dead_, {})});
  const size_t limit = std::max(kFewChanges, made_with_);
  const bool anew = groups_->coarsenings() > limit || size_ > made_with_ + limit || groups_->outgrown(size_);
  if (anew || unsettled_.size() > kMostUnsettled) {
    rcu::synchronize();
    settle_seen();
  }
  if (anew) make_anew();
  // What comes and goes leaves much behind in the tries, and all else is as it was.
  if (groups_->trie_coarsenings() > limit) make_tries_anew();
}

void AclTable::make_tries_anew() {
  AclGroups::TrieItems items;
  for (uint32_t number = 0; number < entries_.size(); ++number)
    if (entries_[number].state == Entry::State::kThere) groups_->add_items(number, entries_[number].handle, items);
  auto next = std::make_unique<AclGeneration>();
  {
    const rcu::Retirements until_published;
    groups_->renew_tries(items);
    publish_generation(std::move(next));
  }
  rcu::reclaim();
}

/// Makes the structure of all entries, which are settled.
void AclTable::make_anew() {
  std::vector<std::pair<uint32_t, uint32_t>> order;  // ~priority, number
  order.reserve(size_);
  for (uint32_t number = 0; number < entries_.size(); ++number)
    if (entries_[number].state == Entry::State::kThere)
      order.emplace_back(~groups_->get(number, entries_[number].handle, kAclPriority), number);
  std::sort(order.begin(), order.end());
  std::vector<AclGroups::Handle> handles;
  const auto entry = [&](size_t i) { return groups_->find(order[i].second, entries_[order[i].second].handle); };
  auto made = std::make_unique<AclGroups>(options_, order.size(), entry, handles);
  auto next = std::make_unique<AclGeneration>();
  made->publish_version(groups_->version());
  for (size_t i = 0; i < order.size(); ++i) entries_[order[i].second].handle = handles[i];
  std::swap(groups_, made);
  made_with_ = size_;
  publish_generation(std::move(next));
  made.reset();
  rcu::reclaim();
}

void AclTable::take_back() {
  for (const uint32_t number : dead_) {
    if (entries_[number].state != Entry::State::kLeaving) continue;
    set_life(number, 0xffff, 0);
    entries_[number].state = Entry::State::kThere;
    ++size_;
    --resting_;
  }
  dead_.clear();
  for (const uint32_t number : born_) {
    if (entries_[number].state == Entry::State::kFree) continue;
    take_out(number, 0);
    --size_;
    ++resting_;
  }
  born_.clear();
}

/// Settles the commits that all readers have seen, up to `most` entries.
void AclTable::settle_seen(size_t most) {
  while (!unsettled_.empty() && rcu::elapsed(unsettled_.front().grace)) {
    Unsettled& next = unsettled_.front();
    const size_t born = next.born.size(), all = born + next.dead.size();
    for (; next.settled < all && most > 0; ++next.settled, --most) {
      if (next.settled < born) {
        set_life(next.born[next.settled], 0xffff0000, 0);
      } else {
        take_out(next.dead[next.settled - born], next.grace);
      }
    }
    if (next.settled < all) return;
    unsettled_.pop_front();
  }
}

std::vector<uint32_t> AclTable::settle(size_t most) {
  settle_seen(most);
  rcu::reclaim();
  std::vector<uint32_t> free;
  rcu::Epoch back = 0;
  for (; !freed_.empty() && free.size() < most; freed_.pop_front()) {
    const Freed& next = freed_.front();
    if (next.grace > back && !rcu::returned(next.grace)) break;
    back = std::max(back, next.grace);
    free.push_back(next.number);
  }
  resting_ -= free.size();
  return free;
}

bool AclTable::behind() const {
  return (!unsettled_.empty() && rcu::elapsed(unsettled_.front().grace)) ||
         (!freed_.empty() && rcu::returned(freed_.front().grace));
}

std::optional<AclRule> AclTable::rule(uint32_t number) const {
  if (!has(number)) return std::nullopt;
  const AclGroups::Entry entry = groups_->find(number, entries_[number].handle);
  AclRule rule;
  std::copy_n(entry.begin(), options_.words, rule.value.begin());
  std::copy_n(entry.begin() + options_.words, options_.words, rule.mask.begin());
  const uint32_t* const more = &entry[2 * options_.words];
  rule.low = more[kAclLow];
  rule.high = more[kAclHigh];
  rule.priority = more[kAclPriority];
  rule.data = more[kAclData];
  return rule;
}

}  // namespace headrace
