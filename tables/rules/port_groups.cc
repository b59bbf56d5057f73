#include "tables/rules/port_groups.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace headrace::rules {

namespace {

using Bitmap = std::vector<uint32_t>;

/// Bitmaps of one size with their numbers; equal ones have the same.
class Bitmaps {
 public:
  uint16_t add(const Bitmap& bitmap) {
    const auto [known, is_new] = numbers_.try_emplace(key(bitmap), static_cast<uint16_t>(numbers_.size()));
    if (is_new) words_.insert(words_.end(), bitmap.begin(), bitmap.end());
    return known->second;
  }
  bool contains(const Bitmap& bitmap) const { return numbers_.count(key(bitmap)) != 0; }
  size_t size() const { return numbers_.size(); }
  const std::vector<uint32_t>& words() const { return words_; }

 private:
  static std::string key(const Bitmap& bitmap) {
    return {reinterpret_cast<const char*>(bitmap.data()), bitmap.size() * sizeof(uint32_t)};
  }

  std::unordered_map<std::string, uint16_t> numbers_;
  std::vector<uint32_t> words_;
};

void set(Bitmap& bitmap, uint32_t pattern) { bitmap[pattern >> 5] |= uint32_t{1} << (pattern & 31); }

/// A packet without ports matches rules that ask for none.
bool asks_for_no_port(const Rule& rule) { return rule.sports->is_all() && rule.dports->is_all(); }

bool is_about_others(const Rule& rule) {
  for (int p = 0; p < 256; ++p)
    if (p != kTcp && p != kUdp && p != kIcmp && p != kIcmp6 && rule.is_about(static_cast<uint8_t>(p))) return true;
  return false;
}

class Builder {
 public:
  Builder(const RuleProgram& program, size_t most_bytes)
      : program_(program), patterns_(static_cast<uint32_t>(program.patterns().size())), words_((patterns_ + 31) / 32) {
    most_ = std::min<size_t>(65535, most_bytes / std::max<size_t>(1, words_ * sizeof(uint32_t)));
    bitmaps_.add(Bitmap(words_));  // PortGroupsView::kNothing
  }

  const Bitmaps& bitmaps() const { return bitmaps_; }
  size_t words() const { return words_; }

  /// The group of the patterns with a rule for which `holds`.
  template <typename F>
  uint16_t group_of(F&& holds) {
    Bitmap bitmap(words_);
    for (uint32_t pattern = 0; pattern < patterns_; ++pattern)
      program_.each_of_pattern(pattern, [&](uint32_t rule) {
        if (holds(program_.rules()[rule])) set(bitmap, pattern);
      });
    return bitmaps_.add(bitmap);
  }

  /// The groups of all ports of one side.
  void fill(uint8_t protocol, bool is_source, uint16_t* groups) {
    struct Change {
      uint32_t port, pattern;
    };
    std::vector<Change> changes;
    for (uint32_t pattern = 0; pattern < patterns_; ++pattern) {
      const PortSet set = ports(pattern, protocol, is_source);
      for (const auto& interval : set.intervals()) {
        changes.push_back({interval.first, pattern});
        changes.push_back({uint32_t{interval.last} + 1, pattern});
      }
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.port < b.port; });
    const uint16_t all = group_of([&](const Rule& rule) { return rule.is_about(protocol); });
    Bitmap here(words_);
    size_t next = 0;
    for (uint32_t port = 0; port < PortGroupsView::kPorts;) {
      for (; next < changes.size() && changes[next].port == port; ++next) {
        const uint32_t pattern = changes[next].pattern;
        here[pattern >> 5] ^= uint32_t{1} << (pattern & 31);
      }
      const uint32_t end = next < changes.size() ? changes[next].port : PortGroupsView::kPorts;
      const bool has_room = bitmaps_.size() < most_ || bitmaps_.contains(here);
      std::fill(groups + port, groups + end, has_room ? bitmaps_.add(here) : all);
      port = end;
    }
  }

 private:
  PortSet ports(uint32_t pattern, uint8_t protocol, bool is_source) const {
    PortSet set;
    program_.each_of_pattern(pattern, [&](uint32_t number) {
      const Rule& rule = program_.rules()[number];
      if (!rule.is_about(protocol)) return;
      if (is_source || rule.both_ways) set.append(*rule.sports);
      if (!is_source || rule.both_ways) set.append(*rule.dports);
    });
    set.normalize();
    return set;
  }

  const RuleProgram& program_;
  uint32_t patterns_;
  size_t words_;
  size_t most_;
  Bitmaps bitmaps_;
};

}  // namespace

PortGroups::PortGroups(const RuleProgram& program, size_t most_bytes)
    : by_port_(size_t{PortGroupsView::kTables} * PortGroupsView::kPorts) {
  Builder builder(program, most_bytes);
  view_.without_ports[PortGroupsView::kTcp] =
      builder.group_of([](const Rule& rule) { return rule.is_about(kTcp) && asks_for_no_port(rule); });
  view_.without_ports[PortGroupsView::kUdp] =
      builder.group_of([](const Rule& rule) { return rule.is_about(kUdp) && asks_for_no_port(rule); });
  view_.without_ports[PortGroupsView::kIcmp] = builder.group_of(
      [](const Rule& rule) { return (rule.is_about(kIcmp) || rule.is_about(kIcmp6)) && asks_for_no_port(rule); });
  // SCTP has ports, which are checked when rules are confirmed.
  view_.without_ports[PortGroupsView::kOther] = builder.group_of(is_about_others);
  for (uint32_t table = 0; table < PortGroupsView::kTables; ++table)
    builder.fill(table == PortGroupsView::kTcpSource || table == PortGroupsView::kTcpDestination ? kTcp : kUdp,
                 table == PortGroupsView::kTcpSource || table == PortGroupsView::kUdpSource,
                 by_port_.data() + size_t{table} * PortGroupsView::kPorts);
  view_.words = static_cast<uint32_t>(builder.words());
  groups_ = builder.bitmaps().size();
  const std::vector<uint32_t>& words = builder.bitmaps().words();
  bitmaps_ = DeviceArray<uint32_t>(words.size());
  std::copy(words.begin(), words.end(), bitmaps_.data());
}

PortGroupsView PortGroups::view() const {
  PortGroupsView view = view_;
  view.by_port = by_port_.data();
  view.bitmaps = bitmaps_.data();
  return view;
}

PortGroupsView PortGroups::mirror(Mirror& mirror) const {
  PortGroupsView view = view_;
  view.by_port = by_port_.mirror(mirror);
  view.bitmaps = bitmaps_.mirror(mirror);
  return view;
}

std::string PortGroups::description() const {
  return fmt::format("port groups: {}, {:.1f} MB", groups_, static_cast<double>(memory()) / 1e6);
}

}  // namespace headrace::rules
