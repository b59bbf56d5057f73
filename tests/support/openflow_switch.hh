#pragma once
/// \file
/// A small OpenFlow switch for tests: programs as words, a datapath that holds them, and a slow switch without tables that
/// does the same to frames made of fields.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/openflow_frame.hh"
#include "tables/acl/acl_table.hh"
#include "tables/openflow/datapath.hh"

namespace headrace::testing {

using OpenFlowOp = std::vector<uint32_t>;

OpenFlowOp op_output(uint32_t port, uint32_t max_length = 0xffff);
OpenFlowOp op_group(uint32_t slot);
/// An operation without a value, or with one of 8 or 16 bits.
OpenFlowOp op_plain(openflow::Op op, uint32_t value = 0);
/// Sets a field by its OXM number; `value` is right-aligned.
OpenFlowOp op_set(uint32_t field, uint64_t low, uint64_t high = 0);

struct OpenFlowProgram {
  std::vector<OpenFlowOp> apply, write;
  bool clears = false;
  int goto_table = -1;
  uint64_t metadata = 0, metadata_mask = 0;
  uint32_t meter = 0;  ///< place + 1
  bool table_miss = false;

  /// No host is needed for what it does, unless for its group.
  bool simple() const;
  std::vector<uint32_t> words() const;
};

struct OpenFlowEntry {
  int table = 0;
  AclRule match;  ///< with the priority
  OpenFlowProgram program;
};

struct OpenFlowGroup {
  struct Bucket {
    std::vector<OpenFlowOp> actions;
    uint32_t weight = 1;
    uint32_t watch = openflow::LiveView::kAlways;
  };
  openflow::GroupKind kind = openflow::GroupKind::kIndirect;
  std::vector<Bucket> buckets;
};

/// What a switch is made of. Slots of groups and numbers of entries are places in the vectors.
struct OpenFlowRules {
  std::vector<OpenFlowEntry> entries;
  std::vector<OpenFlowGroup> groups;
  std::vector<uint32_t> dead_ports;
  bool miss_to_controller = false;
};

/// What happened to a packet, or to many.
struct OpenFlowEvents {
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> entries, groups, buckets, missed;  ///< packets and bytes by number
  struct In {
    uint32_t port, entry;
    int table, reason;
    std::string bytes;
    bool operator==(const In&) const = default;
  };
  std::vector<In> packet_ins;
  bool operator==(const OpenFlowEvents&) const = default;
};

/// Holds rules, which do not change, and notes what is counted.
class TestDatapath final : public openflow::Datapath {
 public:
  explicit TestDatapath(const OpenFlowRules& rules);

  openflow::OpenFlowView view() const override { return openflow::OpenFlowView(&tables_); }
  openflow::OpenFlowView mirror(Mirror& mirror) const override;
  bool drops_fragments() const override { return drop_fragments; }
  bool stands_alone() const override { return alone; }
  openflow::ClosedPorts closed_ports() const override { return closed; }
  bool wants_invalid_ttl() const override { return invalid_ttl; }
  bool floods(uint32_t port) const override { return port != quiet_port; }
  bool may_change_frames() const override { return edits; }
  openflow::EntryCounters& entry_counters() override { return entry_counters_; }
  int64_t now() const override { return 0; }
  void count_more(const openflow::Visits& met) override;
  Verdict meter(uint32_t place, uint32_t) override { return verdicts.at(place); }
  void packet_in(const openflow::PacketForController& in) override;
  uint32_t normal(const Packet&, uint32_t) override { return normal_port; }

  bool drop_fragments = false, invalid_ttl = false, alone = false, edits = true;
  openflow::ClosedPorts closed;
  uint32_t quiet_port = 0, normal_port = 0;
  std::map<uint32_t, Verdict> verdicts;

  OpenFlowEvents take_events();

 private:
  std::map<int, std::unique_ptr<AclTable>> entries_;
  std::vector<uint32_t> words_, groups_, live_;
  openflow::OpenFlowTables tables_{};
  openflow::EntryCounters entry_counters_;  // of the first entries that packets meet
  std::mutex lock_;
  OpenFlowEvents events_;
};

/// The switch without tables.
class NaiveSwitch {
 public:
  explicit NaiveSwitch(const OpenFlowRules& rules, uint32_t ports) : rules_(rules), ports_(ports) {}

  struct Out {
    uint32_t port;
    std::string bytes;
    bool operator==(const Out&) const = default;
    auto operator<=>(const Out&) const = default;
  };
  /// The frames that leave, in order. \param undefined set if actions did what the model does not define
  std::vector<Out> process(const OpenFlowFrame& frame, uint32_t in_port, bool& undefined);
  OpenFlowEvents events;

 private:
  struct Work;
  bool act(Work& work, const OpenFlowOp& op, int depth);
  void output(Work& work, uint32_t port);
  void group(Work& work, uint32_t slot, int depth);
  bool alive(uint32_t watch) const;

  const OpenFlowRules& rules_;
  uint32_t ports_;
};

}  // namespace headrace::testing
