#pragma once
/// \file
/// The rules of a FlowClassifier, on the host.

#include <headrace/element.hh>
#include <headrace/mirror.hh>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "elements/ip/FlowClassifier.hh"
#include "tables/acl/acl_table.hh"
#include "tables/acl/rule_file.hh"
#include "tables/files/file_stamp.hh"
#include "tables/memory/entry_counters.hh"

namespace headrace {

/// What a rule has matched.
struct RuleCount {
  uint64_t packets = 0, bytes = 0;

  RuleCount& operator+=(const RuleCount& other) {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
};

class FlowRules {
 public:
  FlowRules() = default;
  FlowRules(const FlowRules&) = delete;
  FlowRules& operator=(const FlowRules&) = delete;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers, Element& element);
  std::string note() const;
  bool current() const { return file_.path.empty() || file_.unchanged(); }

  AclView view() const { return table_->view(); }
  AclView mirror(Mirror& mirror) const {
    const std::lock_guard guard(lock_);
    return table_->mirror(mirror);
  }
  uint32_t words() const { return words_; }
  void count(Results<FlowClassifier::Result> results, int n) const;

 private:
  enum class Command { kAdd, kModify, kRemove };
  struct Change {
    Command command;
    FlowRule rule;
  };

  /// The words that a rule matches on, as FIELDS has them.
  static uint32_t words_for(const FlowRule& rule);
  std::string why_not(const FlowRule& rule) const;
  /// The number of the entry with this match and priority; kNone if there is none.
  uint32_t find(const AclRule& rule) const;
  static uint64_t name_of(const AclRule& rule);
  uint32_t take_number();
  static uint32_t data_of(const FlowRule& rule);
  /// Returns the number of the new entry.
  uint32_t insert(const FlowRule& rule);
  /// No rule is known by this number any more.
  void forget(uint32_t number);
  Status parse(std::string_view text, Command command, std::vector<Change>& changes, Errors& errors) const;
  /// Makes all changes or none.
  Status apply(const std::vector<Change>& changes, Errors& errors);
  /// What is counted for a number, without what its rule still counts under others.
  RuleCount sum(uint32_t number) const;
  /// Under which number a rule goes on that was modified, maybe several times.
  uint32_t newest(uint32_t number) const;
  std::string text_of(uint32_t number) const;
  std::string lookup(std::string_view text, Errors& errors) const;
  std::string list_counts() const;
  std::string removed_counts() const;
  std::string describe() const;

  mutable std::mutex lock_;  // among those who change or list the table
  std::unique_ptr<AclTable> table_;
  uint32_t words_ = 4;
  int outputs_ = 0;
  FileStamp file_;
  size_t bad_lines_ = 0;
  std::unordered_multimap<uint64_t, uint32_t> numbers_;  // by what an entry is known by
  mutable EntryCounters<RuleCount> counts_;
  uint32_t next_number_ = 0;
  std::vector<uint32_t> free_;
  RuleCount removed_;  // of entries whose numbers have been free
  /// A rule that is modified goes on under another number. By the old one, until that is free: the new one.
  std::unordered_map<uint32_t, uint32_t> successors_;
  /// What modified rules counted under numbers that have been free, by the number that came next.
  std::unordered_map<uint32_t, RuleCount> carried_;
};

}  // namespace headrace
