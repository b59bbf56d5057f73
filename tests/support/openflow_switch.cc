#include "support/openflow_switch.hh"

#include <algorithm>

#include "tables/key/key_fields.hh"
#include "tables/key/packet_key_view.hh"

namespace headrace::testing {

using openflow::GroupKind;
using openflow::Op;
using openflow::Visits;
namespace reserved_port = openflow::reserved_port;

OpenFlowOp op_output(uint32_t port, uint32_t max_length) {
  return {static_cast<uint32_t>(Op::kOutput) | max_length << 16, port};
}
OpenFlowOp op_group(uint32_t slot) { return {static_cast<uint32_t>(Op::kGroup) | slot << 8}; }

OpenFlowOp op_plain(Op op, uint32_t value) {
  const bool byte = op == Op::kSetNwTtl || op == Op::kSetMplsTtl;
  return {static_cast<uint32_t>(op) | value << (byte ? 8 : 16)};
}

OpenFlowOp op_set(uint32_t number, uint64_t low, uint64_t high) {
  const KeyField& field = key_fields()[number];
  std::array<uint32_t, 32> value{}, mask{};
  set_key_field(value, field, {high, low});
  set_key_field(mask, field, key_field_ones(field));
  OpenFlowOp op = {static_cast<uint32_t>(Op::kSetField) | number << 8 | field.word() << 16 | field.words() << 24};
  for (uint32_t i = 0; i < field.words(); ++i) {
    op.push_back(value[field.word() + i]);
    op.push_back(mask[field.word() + i]);
  }
  return op;
}

namespace {

bool is_simple_port(uint32_t port) {
  return port < 0xffffff00 || port == reserved_port::kInPort || port == reserved_port::kLocal;
}

bool is_simple(const OpenFlowOp& op) {
  switch (openflow::op_of(op[0])) {
    case Op::kOutput:
      return is_simple_port(op[1]);
    case Op::kSetField:
      return openflow::stays_on_device(openflow::op_byte(op[0]));
    case Op::kGroup:
    case Op::kSetNwTtl:
    case Op::kDecNwTtl:
    case Op::kPushVlan:
    case Op::kPopVlan:
    case Op::kSetVlanVid:
    case Op::kSetVlanPcp:
      return true;
    default:
      return false;
  }
}

bool goes_out(const OpenFlowOp& op) {
  return openflow::op_of(op[0]) == Op::kOutput || openflow::op_of(op[0]) == Op::kGroup;
}
bool is_group(const OpenFlowOp& op) { return openflow::op_of(op[0]) == Op::kGroup; }

/// The order of ONF TS-012, section 5.10; types that 1.0 has besides come with those that they resemble.
int naive_rank(const OpenFlowOp& op) {
  static constexpr Op kOrder[] = {Op::kCopyTtlIn,  Op::kPopVlan,    Op::kPopMpls,    Op::kPopPbb,     Op::kPushMpls,
                                  Op::kPushPbb,    Op::kPushVlan,   Op::kCopyTtlOut, Op::kDecMplsTtl, Op::kDecNwTtl,
                                  Op::kSetVlanVid, Op::kSetVlanPcp, Op::kSetPort,    Op::kSetMplsTtl, Op::kSetNwTtl,
                                  Op::kSetField,   Op::kGroup,      Op::kOutput};
  const auto at = std::find(std::begin(kOrder), std::end(kOrder), openflow::op_of(op[0])) - std::begin(kOrder);
  const bool many = openflow::op_of(op[0]) == Op::kSetField || openflow::op_of(op[0]) == Op::kSetPort;
  return static_cast<int>(at) * 256 + (many ? static_cast<int>(openflow::op_byte(op[0])) : 0);
}

}  // namespace

bool OpenFlowProgram::simple() const {
  if (meter != 0) return false;
  for (size_t i = 0; i < apply.size(); ++i)
    if (!is_simple(apply[i]) || (goes_out(apply[i]) && (i + 1 != apply.size() || goto_table >= 0 || !write.empty())))
      return false;
  return std::all_of(write.begin(), write.end(), is_simple) && std::count_if(write.begin(), write.end(), goes_out) <= 1;
}

std::vector<uint32_t> OpenFlowProgram::words() const {
  uint32_t flags = 0, port = 0;
  if (goto_table >= 0) flags |= openflow::program_flag::kGoto | static_cast<uint32_t>(goto_table) << 24;
  if (metadata_mask != 0) flags |= openflow::program_flag::kWritesMetadata;
  if (clears) flags |= openflow::program_flag::kClears;
  if (!simple()) flags |= openflow::program_flag::kNeedsHost;
  if (table_miss) flags |= openflow::program_flag::kTableMiss;
  if (std::any_of(apply.begin(), apply.end(), is_group) || std::any_of(write.begin(), write.end(), is_group))
    flags |= openflow::program_flag::kHasGroup;
  if (simple() && flags == 0 && apply.size() + write.size() == 1) {
    const OpenFlowOp& only = apply.empty() ? write[0] : apply[0];
    if (openflow::op_of(only[0]) == Op::kOutput) {
      flags |= openflow::program_flag::kOnlyOutput;
      port = only[1];
    }
  }
  const auto is_of_router = [](const OpenFlowOp& op) {
    const uint32_t field = openflow::op_byte(op[0]);
    return openflow::op_of(op[0]) == Op::kDecNwTtl ||
           (openflow::op_of(op[0]) == Op::kSetField && (field == 3 || field == 4));
  };
  const auto is_decrement = [](const OpenFlowOp& op) { return openflow::op_of(op[0]) == Op::kDecNwTtl; };
  if (simple() && flags == 0 && write.empty() && apply.size() > 1 && openflow::op_of(apply.back()[0]) == Op::kOutput &&
      std::all_of(apply.begin(), apply.end() - 1, is_of_router) &&
      std::count_if(apply.begin(), apply.end(), is_decrement) <= 1) {
    flags |= openflow::program_flag::kRoutes;
    port = apply.back()[1];
  }
  std::vector<OpenFlowOp> set = write;
  std::stable_sort(set.begin(), set.end(),
                   [](const OpenFlowOp& a, const OpenFlowOp& b) { return naive_rank(a) < naive_rank(b); });
  uint32_t apply_words = 0, write_words = 0;
  for (const OpenFlowOp& op : apply) apply_words += static_cast<uint32_t>(op.size());
  for (const OpenFlowOp& op : set) write_words += static_cast<uint32_t>(op.size());
  std::vector<uint32_t> w = {flags, meter, apply_words | write_words << 16, port};
  if (metadata_mask != 0) {
    const uint64_t value = metadata & metadata_mask;
    for (const uint64_t x : {value, metadata_mask}) {
      w.push_back(static_cast<uint32_t>(x >> 32));
      w.push_back(static_cast<uint32_t>(x));
    }
  }
  for (const OpenFlowOp& op : apply) w.insert(w.end(), op.begin(), op.end());
  for (const OpenFlowOp& op : set) w.insert(w.end(), op.begin(), op.end());
  return w;
}

TestDatapath::TestDatapath(const OpenFlowRules& rules) : words_(1), live_(openflow::LiveView::kWords, 0xffffffff) {
  const auto append = [this](const std::vector<uint32_t>& w) {
    const auto at = static_cast<uint32_t>(words_.size());
    words_.insert(words_.end(), w.begin(), w.end());
    return at;
  };
  uint32_t counter = 0;
  for (const OpenFlowGroup& group : rules.groups) {
    uint32_t total = 0;
    bool host = group.kind == GroupKind::kAll;
    std::vector<uint32_t> record(openflow::group_word::kHead);
    for (const OpenFlowGroup::Bucket& bucket : group.buckets) {
      OpenFlowProgram program;
      program.apply = bucket.actions;
      host = host || !program.simple() || std::any_of(bucket.actions.begin(), bucket.actions.end(), is_group);
      total += bucket.weight;
      for (const uint32_t word : {append(program.words()), total, bucket.watch, openflow::LiveView::kNever, counter++})
        record.push_back(word);
    }
    record[openflow::group_word::kKind] = static_cast<uint32_t>(group.kind) |
                                          (host ? openflow::group_word::kNeedsHost : 0) |
                                          static_cast<uint32_t>(group.buckets.size()) << 16;
    record[openflow::group_word::kWeight] = total;
    groups_.push_back(append(record));
  }
  groups_.push_back(0);
  for (const uint32_t port : rules.dead_ports) live_[port / 32] &= ~(1u << port % 32);
  for (size_t i = 0; i < rules.entries.size(); ++i) {
    const OpenFlowEntry& entry = rules.entries[i];
    std::unique_ptr<AclTable>& table = entries_[entry.table];
    if (!table) {
      AclOptions options;
      options.words = 32;
      table = std::make_unique<AclTable>(options);
    }
    AclRule rule = entry.match;
    rule.data = append(entry.program.words());
    table->insert(static_cast<uint32_t>(i), rule);
  }
  entry_counters_.reserve(static_cast<uint32_t>(rules.entries.size()));
  for (auto& [number, table] : entries_) {
    table->commit();
    tables_.tables[number] = table->view().generation();
  }
  tables_.words = words_.data();
  tables_.groups = groups_.data();
  tables_.live = live_.data();
  tables_.miss_to_controller = rules.miss_to_controller ? 1 : 0;
}

openflow::OpenFlowView TestDatapath::mirror(Mirror& mirror) const {
  openflow::OpenFlowTables tables = tables_;
  for (const auto& [number, table] : entries_) tables.tables[number] = table->mirror(mirror).generation();
  tables.words = mirror.array(words_.data(), words_.size());
  tables.groups = mirror.array(groups_.data(), groups_.size());
  tables.live = mirror.array(live_.data(), live_.size());
  return openflow::OpenFlowView(mirror.object(tables));
}

void TestDatapath::count_more(const Visits& met) {
  const std::lock_guard guard(lock_);
  const auto add = [&](auto& counts, uint32_t number) {
    if (number == Visits::kNone) return;
    ++counts[number].first;
    counts[number].second += met.length();
  };
  for (uint32_t k = 1; k < Visits::kMost; ++k) add(events_.entries, met.entry(k));
  add(events_.groups, met.group());
  add(events_.buckets, met.bucket());
  add(events_.missed, met.missed());
}

void TestDatapath::packet_in(const openflow::PacketForController& in) {
  const std::lock_guard guard(lock_);
  const auto* const data = reinterpret_cast<const char*>(in.packet.data());
  events_.packet_ins.push_back({in.in_port, in.entry, in.table, static_cast<int>(in.reason),
                                std::string(data, std::min<uint32_t>(in.packet.length(), in.max_length))});
}

OpenFlowEvents TestDatapath::take_events() {
  const std::lock_guard guard(lock_);
  for (uint32_t number = 0; number < entry_counters_.reserved(); ++number) {
    const openflow::Count count = entry_counters_.sum(number);
    if (count.packets == 0) continue;
    auto& [packets, bytes] = events_.entries[number];
    packets += count.packets;
    bytes += count.bytes;
    entry_counters_.clear(number);
  }
  return std::exchange(events_, {});
}

struct NaiveSwitch::Work {
  OpenFlowFrame frame;
  PacketKeyContext context;
  uint64_t length;
  int table = 0;
  uint32_t entry = Visits::kNone;
  std::vector<Out>& outs;
  bool& undefined;
};

bool NaiveSwitch::alive(uint32_t watch) const {
  if (watch >= openflow::LiveView::kAlways) return watch == openflow::LiveView::kAlways;
  return std::find(rules_.dead_ports.begin(), rules_.dead_ports.end(), watch) == rules_.dead_ports.end();
}

namespace {

PacketKey key_of(const OpenFlowFrame& frame, const PacketKeyContext& context) {
  const std::string text = frame.bytes();
  PacketBytes bytes;
  bytes.data = reinterpret_cast<const uint8_t*>(text.data());
  bytes.length = static_cast<uint32_t>(text.size());
  return parse_frame(bytes, static_cast<int32_t>(text.size()), context);
}

/// A frame that has become shorter than Ethernet's shortest is filled up.
std::string as_sent(const OpenFlowFrame& frame, uint64_t came) {
  std::string bytes = frame.bytes();
  if (came >= 60 && bytes.size() < 60) bytes.resize(60, '\0');
  return bytes;
}

}  // namespace

void NaiveSwitch::output(Work& work, uint32_t port) {
  const uint32_t in_port = work.context.in_port;
  const auto send = [&](uint32_t to) {
    work.undefined = work.undefined || work.frame.undefined;
    if (to <= ports_) work.outs.push_back({to, as_sent(work.frame, work.length)});
  };
  if (port == reserved_port::kInPort) return send(in_port);
  if (port == reserved_port::kAll || port == reserved_port::kFlood) {
    for (uint32_t to = 1; to <= ports_; ++to)
      if (to != in_port) send(to);
    return;
  }
  if (port == reserved_port::kController) {
    work.undefined = work.undefined || work.frame.undefined;
    events.packet_ins.push_back({in_port, work.entry, work.table, 1, as_sent(work.frame, work.length)});
    return;
  }
  if (port != in_port) send(port);
}

void NaiveSwitch::group(Work& work, uint32_t slot, int depth) {
  if (depth >= 8 || slot >= rules_.groups.size()) return;
  const OpenFlowGroup& group = rules_.groups[slot];
  uint32_t first_counter = 0;
  for (uint32_t i = 0; i < slot; ++i) first_counter += static_cast<uint32_t>(rules_.groups[i].buckets.size());
  const auto add = [&](auto& counts, uint32_t number) {
    ++counts[number].first;
    counts[number].second += work.length;
  };
  add(events.groups, slot);
  std::vector<size_t> chosen;
  if (group.kind == GroupKind::kAll) {
    for (size_t i = 0; i < group.buckets.size(); ++i) chosen.push_back(i);
  } else if (group.kind == GroupKind::kSelect) {
    // Which bucket a flow gets is free, but the same for both processors; distribution is another test.
    const uint32_t hash = openflow::select_hash(key_of(work.frame, work.context));
    uint64_t total = 0, low = 0;
    for (const auto& bucket : group.buckets) total += bucket.weight;
    for (size_t i = 0; i < group.buckets.size(); ++i) {
      const uint64_t high = low + group.buckets[i].weight;
      const uint64_t at = uint64_t{hash} * total >> 32;
      if (at >= low && at < high) chosen.push_back(i);
      low = high;
    }
  } else {
    for (size_t i = 0; i < group.buckets.size() && chosen.empty(); ++i)
      if (alive(group.buckets[i].watch)) chosen.push_back(i);
  }
  for (const size_t i : chosen) {
    add(events.buckets, first_counter + static_cast<uint32_t>(i));
    Work copy = work;
    for (const OpenFlowOp& op : group.buckets[i].actions)
      if (!act(copy, op, depth + 1)) break;
  }
}

bool NaiveSwitch::act(Work& work, const OpenFlowOp& op, int depth) {
  if (openflow::op_of(op[0]) == Op::kOutput) {
    output(work, op[1]);
  } else if (openflow::op_of(op[0]) == Op::kGroup) {
    group(work, openflow::op_slot(op[0]), depth);
  } else {
    return work.frame.act(op.data()) == OpenFlowFrame::Done::kYes;
  }
  return true;
}

std::vector<NaiveSwitch::Out> NaiveSwitch::process(const OpenFlowFrame& frame, uint32_t in_port, bool& undefined) {
  std::vector<Out> outs;
  Work work{frame, {}, frame.bytes().size(), 0, Visits::kNone, outs, undefined};
  work.context.in_port = work.context.in_phy_port = in_port;
  std::map<int, OpenFlowOp> set;
  for (int table = 0; table >= 0;) {
    undefined = undefined || work.frame.undefined;
    const PacketKey key = key_of(work.frame, work.context);
    const OpenFlowEntry* best = nullptr;
    for (const OpenFlowEntry& entry : rules_.entries) {
      if (entry.table != table || (best != nullptr && entry.match.priority <= best->match.priority)) continue;
      bool matches = true;
      for (uint32_t i = 0; i < key_word::kCount; ++i)
        matches = matches && ((key.w[i] ^ entry.match.value[i]) & entry.match.mask[i]) == 0;
      if (matches) best = &entry;
    }
    work.table = table;
    work.entry = best == nullptr ? Visits::kNone : static_cast<uint32_t>(best - rules_.entries.data());
    auto& count = best == nullptr ? events.missed[static_cast<uint32_t>(table)] : events.entries[work.entry];
    ++count.first;
    count.second += work.length;
    if (best == nullptr) {
      if (rules_.miss_to_controller)
        events.packet_ins.push_back({in_port, Visits::kNone, table, 0, as_sent(work.frame, work.length)});
      return outs;
    }
    const OpenFlowProgram& program = best->program;
    for (const OpenFlowOp& op : program.apply)
      if (!act(work, op, 0)) return outs;
    if (program.clears) set.clear();
    for (const OpenFlowOp& op : program.write) set[naive_rank(op)] = op;
    work.context.metadata =
        (work.context.metadata & ~program.metadata_mask) | (program.metadata & program.metadata_mask);
    table = program.goto_table;
  }
  const bool has_group = std::any_of(set.begin(), set.end(), [](const auto& x) { return is_group(x.second); });
  for (const auto& [rank, op] : set)
    if (!(has_group && openflow::op_of(op[0]) == Op::kOutput) && !act(work, op, 0)) return outs;
  return outs;
}

}  // namespace headrace::testing
