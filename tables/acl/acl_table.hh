#pragma once
/// \file
/// A table of masked entries with priorities: the owner, on the host.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/mirror.hh"
#include "headrace/rcu.hh"
#include "tables/acl/acl_groups.hh"
#include "tables/acl/acl_rule.hh"
#include "tables/acl/acl_view.hh"

namespace headrace {

/// Entries with masks, port ranges and priorities; acl_view.hh tells how they are found. One thread at a time changes the
/// table, while readers go on with views.
///
/// insert() and remove() take effect together, with commit(): a lookup, or a batch of them, sees all changes of a commit or
/// none. What was removed is taken out when every rcu::Reader that is online has passed a quiescent state; later changes,
/// and settle(), see to that. Its number is free when no job of a device can bring it back, either (rcu::returned()).
///
/// Changes are made in place. When they have doubled the table, or made it as coarse as if they had, commit() makes the
/// structure anew, which takes about a microsecond an entry, while readers go on with the old one. Where only the tries
/// have become coarse, they alone are made anew: readers find the rest in their caches.
///
/// Functions that need memory throw std::bad_alloc; take_back() then leaves the table as it was at the last commit.
class AclTable {
 public:
  static constexpr uint32_t kNone = AclMatch::kNone;

  explicit AclTable(const AclOptions& options);
  ~AclTable();
  AclTable(const AclTable&) = delete;
  AclTable& operator=(const AclTable&) = delete;

  /// Adds an entry under a number that no other one has; numbers should be dense. Any rule is accepted.
  void insert(uint32_t number, const AclRule& rule);
  /// False if there is no such entry, or it has been removed.
  bool remove(uint32_t number);
  /// Gives an entry other data, at once. False if there is no such entry.
  bool set_data(uint32_t number, uint32_t data);
  /// What was inserted and removed takes effect.
  void commit();
  /// What was inserted and removed since the last commit does not take effect.
  void take_back();

  /// Takes out what was removed, as far as no reader can see it any more. Returns the numbers that have become free since
  /// the last call, at most `most`, in the order of removal. One call settles that many entries, too.
  std::vector<uint32_t> settle(size_t most = SIZE_MAX);
  /// Whether settle() has left something that it could settle now.
  bool behind() const;
  /// Numbers that were removed and are not free yet.
  size_t resting() const { return resting_; }

  /// The same rule as rule() returns it: the mask of ports has all that their bounds have in common, the value has no bits
  /// beside the mask, and the bounds of a port whose mask is full are that port.
  static AclRule tightened(const AclRule& rule);
  /// An entry's rule, tightened().
  std::optional<AclRule> rule(uint32_t number) const;
  /// Entries as of the last change, and without those that are removed.
  size_t size() const { return size_; }
  const AclGroups& groups() const { return *groups_; }
  size_t memory_bytes() const { return groups_->memory_bytes() + entries_.capacity() * sizeof(Entry); }

  /// What a reader looks up in, from any thread; take it anew after each quiescent state.
  AclView view() const { return AclView(current_.load(std::memory_order_acquire)); }
  /// Keeps what view() leads to in a word of the owner's as well, for readers who load it there; null: does not any more.
  void publish_at(const AclGeneration** place);
  /// The view of a device's copy. The table must not change meanwhile.
  AclView mirror(Mirror& mirror) const { return AclView(mirror.object(groups_->mirror(mirror))); }

 private:
  /// What is known of an entry by number.
  struct Entry {
    AclGroups::Handle handle;
    enum class State : uint8_t { kFree, kNew, kThere, kLeaving } state = State::kFree;
  };
  /// A commit that some readers may not have seen yet.
  struct Unsettled {
    rcu::Epoch grace;
    std::vector<uint32_t> born, dead;
    size_t settled = 0;  ///< of both
  };

  bool has(uint32_t number) const {
    return number < entries_.size() &&
           (entries_[number].state == Entry::State::kNew || entries_[number].state == Entry::State::kThere);
  }
  AclGroups::Entry make_entry(uint32_t number, const AclRule& rule) const;
  void make_room();
  /// \param made room for what is published
  void publish_generation(std::unique_ptr<AclGeneration> made);
  void take_out(uint32_t number, rcu::Epoch grace);
  void set_life(uint32_t number, uint32_t keep, uint32_t set);
  void settle_seen(size_t most = SIZE_MAX);
  void make_anew();
  void make_tries_anew();

  const AclOptions options_;
  std::unique_ptr<AclGroups> groups_;
  std::unique_ptr<AclGeneration> generation_;
  std::atomic<const AclGeneration*> current_{nullptr};
  const AclGeneration** place_ = nullptr;

  std::vector<Entry> entries_;
  size_t size_ = 0;
  size_t made_with_ = 0;               // entries when the structure was made
  std::vector<uint32_t> born_, dead_;  // since the last commit
  std::deque<Unsettled> unsettled_;
  struct Freed {
    rcu::Epoch grace;
    uint32_t number;
  };
  std::deque<Freed> freed_;  // that were taken out
  size_t resting_ = 0;
};

}  // namespace headrace
