/// \file
/// The header part of an IDS: groups of ports, as IDSMatcher has them, against a table of masked entries that has the headers
/// of the same rules. Packets are inside rules' ports, half of them, or anywhere.
///
///     HEADRACE_IDS_RULES=emerging-all.rules build/headrace_micro --benchmark_filter=ids_headers --benchmark_repetitions=5

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_table.hh"
#include "tables/key/packet_key_view.hh"
#include "tables/rules/port_groups.hh"
#include "tables/rules/rule_reader.hh"

namespace headrace::rules {
namespace {

constexpr size_t kPackets = 4096;
constexpr uint32_t kBatch = 128;
constexpr uint32_t kTcpTypes = 0x08000000 | kTcp << 8;

/// The beginning of a packet of TCP over IPv4.
using Headers = std::array<uint8_t, 64>;

/// What headers say about ports: protocol, bounds of source and destination port.
using PortHeader = std::array<uint32_t, 5>;

std::set<PortHeader> headers_of(const std::vector<Rule>& rules) {
  std::set<PortHeader> headers;
  for (const Rule& rule : rules)
    for (const uint8_t protocol : {kTcp, kUdp}) {
      if (!is_of(rule.protocol, 4, protocol)) continue;
      for (const auto& source : rule.sports->intervals())
        for (const auto& destination : rule.dports->intervals()) {
          headers.insert({protocol, source.first, source.last, destination.first, destination.last});
          if (rule.both_ways)
            headers.insert({protocol, destination.first, destination.last, source.first, source.last});
        }
    }
  return headers;
}

struct Fixture {
  RuleProgram program;
  PortGroups groups;
  AclTable table{AclOptions{}};
  std::vector<Headers> packets;
  std::vector<uint32_t> keys;  // four words each

  explicit Fixture(std::vector<Rule> rules) : program(std::move(rules)), groups(program) {
    const std::set<PortHeader> headers = headers_of(program.rules());
    uint32_t number = 0;
    for (const PortHeader& header : headers) {
      AclRule rule;
      rule.value[key_word::kTypes] = 0x08000000 | header[0] << 8;
      rule.mask[key_word::kTypes] = 0xff00ff00;
      rule.low = header[1] << 16 | header[3];
      rule.high = header[2] << 16 | header[4];
      rule.priority = static_cast<uint32_t>(headers.size()) - number;
      table.insert(number++, rule);
    }
    table.commit();
    const std::vector<PortHeader> all(headers.begin(), headers.end());
    std::mt19937 random(1);
    for (size_t i = 0; i < kPackets; ++i) {
      const PortHeader& header = all[random() % all.size()];
      const auto port = [&](uint32_t first, uint32_t last) {
        return i % 2 == 0 ? first + static_cast<uint32_t>(random()) % (last - first + 1)
                          : static_cast<uint32_t>(random()) & 0xffff;
      };
      const uint32_t ports = port(header[1], header[2]) << 16 | port(header[3], header[4]);
      Headers packet{0x45, 0, 0, 64};
      packet[8] = 64;
      packet[9] = kTcp;
      for (size_t b = 0; b < 4; ++b) packet[20 + b] = static_cast<uint8_t>(ports >> (24 - 8 * b));
      packet[32] = 0x50;
      packets.push_back(packet);
      keys.insert(keys.end(), {0, 0, ports, kTcpTypes});
    }
  }
};

Fixture* fixture(benchmark::State& state) {
  static std::unique_ptr<Fixture> made;
  const char* const file = std::getenv("HEADRACE_IDS_RULES");
  if (made == nullptr && file != nullptr) {
    RuleReader reader({.variables = {}, .disabled = true, .applications = true});
    if (const std::string fault = reader.read_rules(file); fault.empty())
      made = std::make_unique<Fixture>(reader.finish().rules);
  }
  if (made == nullptr) state.SkipWithError("HEADRACE_IDS_RULES names no file of rules");
  return made.get();
}

/// From packets: the headers are read, and the groups found.
void ids_headers_port_groups(benchmark::State& state) {
  const Fixture* const f = fixture(state);
  if (f == nullptr) return;
  const PortGroupsView view = f->groups.view();
  uint32_t sum = 0;
  for (auto _ : state) {
    for (const Headers& headers : f->packets) {
      PacketBytes packet;
      packet.data = headers.data();
      packet.length = headers.size();
      const PortPair ports = view.of(packet);
      sum += PortGroupsView::any(ports) ? ports.src : ports.dst;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPackets));
  state.counters["groups"] = static_cast<double>(f->groups.groups());
}
BENCHMARK(ids_headers_port_groups);

/// From keys that have been read: the best of the headers that match, though an IDS needs them all.
void ids_headers_acl(benchmark::State& state) {
  const Fixture* const f = fixture(state);
  if (f == nullptr) return;
  AclMatch matches[kBatch];
  for (auto _ : state)
    for (size_t i = 0; i < kPackets; i += kBatch) {
      acl_find_batch(f->table.view(), &f->keys[4 * i], matches, kBatch);
      benchmark::DoNotOptimize(matches);
      benchmark::ClobberMemory();
    }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPackets));
  state.counters["headers"] = static_cast<double>(f->table.size());
}
BENCHMARK(ids_headers_acl);

}  // namespace
}  // namespace headrace::rules
