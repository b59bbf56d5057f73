/// \file
/// What pattern matching costs on the host: to build, and to search by each engine with a team of one lane, beside
/// Vectorscan.
///
/// Patterns: synthetic ones, words of 4 to 23 letters and digits, a third for both cases; and the contents of four
/// bytes and more of the rules in ../shared/data/rules. Payloads: HTTP-like text and random bytes. A search asks for
/// the first match (`first`) or for all of the candidates (`candidates`).

#include <benchmark/benchmark.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tables/pattern/pattern_matcher.hh"
#include "tests/support/rule_contents.hh"

namespace headrace {
namespace {

using testing::http_text;
using testing::rule_contents;

/// Sets by their numbers: of synthetic patterns, or -1 and -2 for rules.
constexpr int kSnort = -1;
constexpr int kEmergingThreats = -2;

PatternSet synthetic(int count) {
  std::mt19937 random(17);
  constexpr std::string_view kLetters = "etaoinshrdlucmfwypvbgkqjxz0123456789/._-=%";
  PatternSet set;
  Errors errors;
  for (int i = 0; i < count; ++i) {
    std::string bytes(4 + random() % 20, '\0');
    for (char& c : bytes) c = kLetters[std::min(random() % kLetters.size(), random() % kLetters.size())];
    (void)set.add({bytes, random() % 3 == 0}, errors);
  }
  return set;
}

const PatternSet& patterns(int which) {
  static std::map<int, PatternSet> sets;
  const auto [at, made] = sets.try_emplace(which);
  if (made) {
    at->second = which == kSnort             ? rule_contents("../shared/data/rules/snort-community-2022-02.tar.xz", 4)
                 : which == kEmergingThreats ? rule_contents("../shared/data/rules/et-open-2019-04.tar.xz", 4)
                                             : synthetic(which);
  }
  return at->second;
}

template <typename Engine, typename Limits>
void build(benchmark::State& state) {
  const PatternSet& set = patterns(static_cast<int>(state.range(0)));
  if (set.empty()) return state.SkipWithError("../shared/data/rules is not there");
  Limits limits;
  limits.bytes = size_t{4} << 30;
  Engine engine;
  for (auto _ : state) {
    Errors errors;
    if (!engine.build(set, limits, errors)) return state.SkipWithError(errors.str().c_str());
  }
  state.counters["patterns"] = static_cast<double>(set.size());
  state.counters["MB"] = static_cast<double>(engine.memory()) / 1e6;
  state.SetLabel(engine.description());
}

void build_cpu(benchmark::State& state) {
  const PatternSet& set = patterns(static_cast<int>(state.range(0)));
  if (set.empty()) return state.SkipWithError("../shared/data/rules is not there");
  LiteralScanner scanner;
  for (auto _ : state) {
    Errors errors;
    if (!scanner.build(set, errors)) return state.SkipWithError(errors.str().c_str());
  }
  state.counters["patterns"] = static_cast<double>(set.size());
  state.counters["MB"] = static_cast<double>(scanner.database_bytes()) / 1e6;
  state.SetLabel(scanner.description());
}

const PatternMatcher& matcher(int which, PatternEngine engine) {
  static std::map<std::pair<int, PatternEngine>, PatternMatcher> matchers;
  const auto [at, made] = matchers.try_emplace({which, engine});
  if (made) {
    Errors errors;
    PatternMatcherOptions options;
    options.engine = engine;
    (void)at->second.build(patterns(which), options, errors);
  }
  return at->second;
}

const std::string& payloads(bool text) {
  static const std::string random = [] {
    std::mt19937 generator(5);
    std::string bytes(1460 * 700, '\0');
    for (char& c : bytes) c = static_cast<char>(generator());
    return bytes;
  }();
  static const std::string http = http_text(1460 * 700, 9);
  return text ? http : random;
}

/// Arguments: the set, 1 for text or 0 for random bytes, bytes of a payload.
template <typename Search>
void search(benchmark::State& state, PatternEngine engine, Search&& one) {
  const PatternMatcher& found = matcher(static_cast<int>(state.range(0)), engine);
  if (found.patterns().empty()) return state.SkipWithError("../shared/data/rules is not there");
  const std::string& bytes = payloads(state.range(1) != 0);
  const auto length = static_cast<uint32_t>(state.range(2));
  size_t at = 0;
  uint64_t all = 0, hits = 0, cut = 0;
  for (auto _ : state) {
    const auto answer = one(found, PayloadBytes{reinterpret_cast<const uint8_t*>(bytes.data()) + at, length});
    cut += answer.cut();
    hits += !(answer == decltype(answer)());
    ++all;
    at = at + 2 * length <= bytes.size() ? at + length : 0;
  }
  state.SetBytesProcessed(static_cast<int64_t>(all * length));
  state.counters["gbps"] = benchmark::Counter(static_cast<double>(all) * length * 8 / 1e9, benchmark::Counter::kIsRate);
  state.counters["hits"] = static_cast<double>(hits) / static_cast<double>(all);
  state.counters["cut"] = static_cast<double>(cut) / static_cast<double>(all);
}

template <PatternEngine Engine>
void search_first(benchmark::State& state) {
  search(state, Engine, [](const PatternMatcher& matcher, const PayloadBytes& bytes) {
    const PatternView view = matcher.view();
    if constexpr (Engine == PatternEngine::kDfa) return first_match(view.dfa, HostTeam<1>(), bytes);
    if constexpr (Engine == PatternEngine::kCompressed) return first_match(view.compressed, HostTeam<1>(), bytes);
    if constexpr (Engine == PatternEngine::kPrefilter) return first_match(view.prefilter, HostTeam<1>(), bytes);
    if constexpr (Engine == PatternEngine::kNone) return matcher.first(bytes);
  });
}
template <PatternEngine Engine>
void search_candidates(benchmark::State& state) {
  search(state, Engine, [](const PatternMatcher& matcher, const PayloadBytes& bytes) {
    const PatternView view = matcher.view();
    if constexpr (Engine == PatternEngine::kDfa) return candidates(view.dfa, HostTeam<1>(), bytes);
    if constexpr (Engine == PatternEngine::kCompressed) return candidates(view.compressed, HostTeam<1>(), bytes);
    if constexpr (Engine == PatternEngine::kPrefilter) return candidates(view.prefilter, HostTeam<1>(), bytes);
    if constexpr (Engine == PatternEngine::kNone) return matcher.candidates(bytes);
  });
}

/// All that hs_scan() itself takes, with a function that does nothing.
void search_vectorscan_alone(benchmark::State& state) {
  search(state, PatternEngine::kNone, [](const PatternMatcher& matcher, const PayloadBytes& bytes) {
    uint64_t matches = 0;
    (void)matcher.scan(bytes, [&](uint32_t, uint32_t) { ++matches; });
    benchmark::DoNotOptimize(matches);
    return FirstMatch();
  });
}

void sets(benchmark::internal::Benchmark* benchmark) {
  for (const int set : {1000, 10000, 30000, kSnort, kEmergingThreats}) benchmark->Arg(set);
  benchmark->Unit(benchmark::kMillisecond)->Iterations(1);
}
void payload_kinds(benchmark::internal::Benchmark* benchmark) {
  for (const int set : {1000, 10000, 30000, kSnort, kEmergingThreats})
    for (const int text : {0, 1})
      for (const int length : {512, 1460}) benchmark->Args({set, text, length});
}

BENCHMARK(build_cpu)->Name("pattern/build/vectorscan")->Apply(sets);
BENCHMARK(build<FullDfa, DfaLimits>)->Name("pattern/build/dfa")->Apply(sets);
BENCHMARK(build<CompressedDfa, DfaLimits>)->Name("pattern/build/compressed")->Apply(sets);
BENCHMARK(build<Prefilter, PrefilterLimits>)->Name("pattern/build/prefilter")->Apply(sets);
BENCHMARK(search_vectorscan_alone)->Name("pattern/all/vectorscan")->Apply(payload_kinds);
BENCHMARK(search_first<PatternEngine::kNone>)->Name("pattern/first/cpu")->Apply(payload_kinds);
BENCHMARK(search_first<PatternEngine::kDfa>)->Name("pattern/first/dfa")->Apply(payload_kinds);
BENCHMARK(search_first<PatternEngine::kCompressed>)->Name("pattern/first/compressed")->Apply(payload_kinds);
BENCHMARK(search_first<PatternEngine::kPrefilter>)->Name("pattern/first/prefilter")->Apply(payload_kinds);
BENCHMARK(search_candidates<PatternEngine::kNone>)->Name("pattern/candidates/cpu")->Apply(payload_kinds);
BENCHMARK(search_candidates<PatternEngine::kDfa>)->Name("pattern/candidates/dfa")->Apply(payload_kinds);
BENCHMARK(search_candidates<PatternEngine::kCompressed>)->Name("pattern/candidates/compressed")->Apply(payload_kinds);
BENCHMARK(search_candidates<PatternEngine::kPrefilter>)->Name("pattern/candidates/prefilter")->Apply(payload_kinds);

}  // namespace
}  // namespace headrace
