#include "tables/pattern/pattern_matcher.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace headrace {

namespace {

constexpr std::array<std::pair<PatternEngine, std::string_view>, 4> kEngines{
    {{PatternEngine::kNone, "auto"},
     {PatternEngine::kDfa, "dfa"},
     {PatternEngine::kCompressed, "compressed"},
     {PatternEngine::kPrefilter, "prefilter"}}};

PatternView whole(const FullDfaView& dfa) {
  PatternView view;
  view.engine = PatternEngine::kDfa;
  view.dfa = dfa;
  return view;
}
PatternView whole(const CompressedDfaView& compressed) {
  PatternView view;
  view.engine = PatternEngine::kCompressed;
  view.compressed = compressed;
  return view;
}
PatternView whole(const PrefilterView& prefilter) {
  PatternView view;
  view.engine = PatternEngine::kPrefilter;
  view.prefilter = prefilter;
  return view;
}

}  // namespace

std::optional<PatternEngine> parse_engine(std::string_view word) {
  for (const auto& [engine, name] : kEngines)
    if (name == word) return engine;
  return {};
}

std::string_view engine_name(PatternEngine engine) { return kEngines[static_cast<size_t>(engine)].second; }

template <typename Engine, typename Limits>
Status PatternMatcher::build_engine(const Limits& limits, Errors& errors) {
  const Status made = engine_.emplace<Engine>().build(set_, limits, errors);
  if (made) view_ = whole(std::get<Engine>(engine_).view());
  return made;
}

Status PatternMatcher::choose_engine(const PatternMatcherOptions& options, Errors& errors) {
  switch (options.engine) {
    case PatternEngine::kDfa:
      return build_engine<FullDfa>(options.dfa, errors);
    case PatternEngine::kCompressed:
      return build_engine<CompressedDfa>(options.dfa, errors);
    case PatternEngine::kPrefilter:
      return build_engine<Prefilter>(options.prefilter, errors);
    case PatternEngine::kNone:
      break;
  }
  Errors unheard;
  if (options.automaton)
    return build_engine<FullDfa>(options.dfa, unheard) ? Status() : build_engine<CompressedDfa>(options.dfa, errors);
  if (build_engine<Prefilter>(options.prefilter, unheard)) return {};
  if (build_engine<CompressedDfa>(options.dfa, unheard)) return {};
  return build_engine<FullDfa>(options.dfa, errors);
}

Status PatternMatcher::build(PatternSet set, const PatternMatcherOptions& options, Errors& errors) {
  set_ = std::move(set);
  view_ = PatternView();
  engine_.emplace<std::monostate>();
  storm_ = options.storm;
  Status status = scanner_.build(set_, errors);
  if (!set_.empty()) status &= choose_engine(options, errors);
  return status;
}

FirstMatch PatternMatcher::first(const PayloadBytes& bytes) const {
  FirstMatch first;
  (void)scanner_.scan(bytes, [&](uint32_t pattern, uint32_t end) {
    if (first.found() && end > first.end()) return false;
    first.key = std::min(first.key, uint64_t{end} << 32 | pattern);
    return true;
  });
  return first;
}

bool PatternMatcher::any(const PayloadBytes& bytes) const {
  return !scanner_.scan(bytes, [](uint32_t, uint32_t) { return false; });
}

PatternView PatternMatcher::mirror(Mirror& mirror) const {
  if (const auto* dfa = std::get_if<FullDfa>(&engine_)) return whole(dfa->mirror(mirror));
  if (const auto* compressed = std::get_if<CompressedDfa>(&engine_)) return whole(compressed->mirror(mirror));
  if (const auto* prefilter = std::get_if<Prefilter>(&engine_)) return whole(prefilter->mirror(mirror));
  return PatternView();
}

size_t PatternMatcher::device_bytes() const {
  if (const auto* dfa = std::get_if<FullDfa>(&engine_)) return dfa->memory();
  if (const auto* compressed = std::get_if<CompressedDfa>(&engine_)) return compressed->memory();
  if (const auto* prefilter = std::get_if<Prefilter>(&engine_)) return prefilter->memory();
  return 0;
}

std::string PatternMatcher::text() const {
  size_t shortest = set_.longest();
  for (const Pattern& pattern : set_) shortest = std::min(shortest, pattern.bytes.size());
  std::string text = fmt::format("patterns: {}, {} to {} bytes\n", set_.size(), shortest, set_.longest());
  if (set_.empty()) return text;
  text += fmt::format("CPU: {}\n", scanner_.description());
  std::string device;
  if (const auto* dfa = std::get_if<FullDfa>(&engine_)) device = dfa->description();
  if (const auto* compressed = std::get_if<CompressedDfa>(&engine_)) device = compressed->description();
  if (const auto* prefilter = std::get_if<Prefilter>(&engine_)) device = prefilter->description();
  return text + fmt::format("device: {}\n", device);
}

}  // namespace headrace
