/// \file
/// What FlowClassifier costs beside the lookups in its table: reading headers, results, counters, choosing outputs.
///
///     HEADRACE_CLASSBENCH=sets build/headrace_micro --benchmark_filter=flow_classifier --benchmark_repetitions=5

#include <benchmark/benchmark.h>
#include <netinet/in.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/micro/acl_workload.hh"
#include "headrace/packet.hh"
#include "headrace/router.hh"
#include "headrace/shader_host.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"
#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_table.hh"

namespace headrace::acl_bench {
namespace {

/// Packets that sources hand on together, and those of a source.
constexpr int kPackets = 128;
constexpr size_t kBuffers = 8192;

/// Writes a key into a packet's headers of IPv4 and of TCP or UDP, as a source does. Keys of other protocols become TCP; so
/// some of them match another rule.
void write_headers(Packet& p, const Key& key) {
  uint8_t* const h = p.network_header();
  const auto store = [h](size_t at, uint32_t word) {
    word = __builtin_bswap32(word);
    std::memcpy(h + at, &word, sizeof word);
  };
  const uint32_t protocol = key[3] >> 8 & 0xff;
  store(0, 0x45000000 | p.length());
  store(4, 0);
  store(8, 0x40000000 | (protocol == IPPROTO_UDP ? IPPROTO_UDP : IPPROTO_TCP) << 16);
  store(12, key[0]);
  store(16, key[1]);
  store(20, key[2]);
}

/// The key that FlowClassifier reads from a packet of write_headers().
Key key_of(const Key& key) {
  const uint32_t protocol = key[3] >> 8 & 0xff;
  return {key[0], key[1], key[2], 0x08000000u | (protocol == IPPROTO_UDP ? IPPROTO_UDP : IPPROTO_TCP) << 8};
}

/// The element, in a router that does not run.
class Classifier {
 public:
  explicit Classifier(const std::string& file) : runtime_(Runtime::Options{.threads = 1, .cpus = {}}) {
    lang::Configuration configuration;
    const std::string text = "Idle -> c :: FlowClassifier(" + file +
                             ", FIELDS ip); c[0] -> Discard; c[1] -> Discard; c[2] -> Discard; c[3] -> Discard;";
    Errors errors;
    if (lang::parse(text, "flow_classifier_bench", lang::Options(), configuration, errors))
      router_ = Router::create(configuration, runtime_, errors, RouterOptions());
    if (router_) element_ = dynamic_cast<ShaderElementBase*>(router_->find("c"));
  }
  ShaderElementBase* element() const { return element_; }

 private:
  Runtime runtime_;
  std::unique_ptr<Router> router_;
  ShaderElementBase* element_ = nullptr;
};

/// In turn, all keys through the body of the element, from packets to outputs, and through a table of the same rules, in
/// batches of kPackets. Before each batch the headers are written into packets, which is not measured, so that the
/// element finds them in the caches, as behind an element that has checked them, and the table shares the caches with
/// them as well. The reported time is that of the element.
void flow_classifier(benchmark::State& state) {
  const std::vector<FlowRule>& rules = rules_of(state, state.range(0));
  if (rules.empty()) return;
  const Classifier classifier(path_of(state.range(0)));
  if (classifier.element() == nullptr) return state.SkipWithError("no router");
  AclTable table(AclOptions{});
  for (uint32_t i = 0; i < rules.size(); ++i) table.insert(i, acl_rule(rules[i], i % 4));
  table.commit();
  const AclView view = table.view();
  const std::vector<Key> keys = keys_for(rules, state.range(1) != 0);
  std::vector<Packet*> packets;
  for (size_t i = 0; i < kBuffers; ++i) {
    Packet* const p = Packet::make(64);
    if (p == nullptr) break;
    p->set_network_header(0, 20);
    packets.push_back(p);
  }
  if (packets.size() < kBuffers) return state.SkipWithError("no packets");

  using Clock = std::chrono::steady_clock;
  Key read[kPackets];
  AclMatch matches[kPackets];
  Next nexts[kPackets];
  // Nanoseconds of a pass over all keys.
  const auto pass = [&](auto&& body) {
    Clock::duration spent{};
    for (size_t i = 0; i < keys.size(); i += kPackets) {
      Packet** const batch = &packets[i % kBuffers];
      for (int j = 0; j < kPackets; ++j) {
        write_headers(*batch[j], keys[i + static_cast<size_t>(j)]);
        read[j] = key_of(keys[i + static_cast<size_t>(j)]);
      }
      const auto begin = Clock::now();
      body(batch);
      spent += Clock::now() - begin;
      benchmark::ClobberMemory();
    }
    return std::chrono::duration<double, std::nano>(spent).count();
  };
  double element_ns = 0, table_ns = 0;
  for (auto _ : state) {
    const double ns = pass([&](Packet** batch) { classifier.element()->decide(batch, kPackets, nexts); });
    table_ns += pass([&](Packet**) { acl_find_batch(view, read[0].data(), matches, kPackets); });
    element_ns += ns;
    state.SetIterationTime(ns * 1e-9);
  }
  for (Packet* const p : packets) p->kill();
  const double packets_seen = static_cast<double>(state.iterations()) * static_cast<double>(keys.size());
  state.SetItemsProcessed(static_cast<int64_t>(packets_seen));
  state.SetLabel(kSets[state.range(0)]);
  state.counters["element_ns"] = element_ns / packets_seen;
  state.counters["table_ns"] = table_ns / packets_seen;
  state.counters["ratio"] = table_ns / element_ns;
}
BENCHMARK(flow_classifier)->ArgNames({"set", "inside"})->ArgsProduct({{0, 1, 2}, {1, 0}})->UseManualTime();

}  // namespace
}  // namespace headrace::acl_bench
