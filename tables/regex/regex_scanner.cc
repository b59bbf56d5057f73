#include "tables/regex/regex_scanner.hh"

#include <fmt/format.h>
#include <hs/hs.h>

#include <bit>

namespace headrace {

namespace {

/// Steps that PCRE2 may take in a text.
constexpr uint64_t kPcreSteps = 4000, kPcreStepsPerByte = 40;

unsigned vectorscan_flags(RegexFlags flags) {
  return (flags.nocase ? HS_FLAG_CASELESS : 0) | (flags.dotall ? HS_FLAG_DOTALL : 0) |
         (flags.multiline ? HS_FLAG_MULTILINE : 0);
}

hs_database_t* compile_vectorscan(const std::vector<std::string>& texts, const std::vector<unsigned>& flags,
                                  const std::vector<unsigned>& numbers, std::string& why_not) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  hs_database_t* database = nullptr;
  hs_compile_error_t* fault = nullptr;
  if (hs_compile_multi(pointers.data(), flags.data(), numbers.data(), static_cast<unsigned>(pointers.size()),
                       HS_MODE_BLOCK, nullptr, &database, &fault) != HS_SUCCESS) {
    why_not = fault->message;
    hs_free_compile_error(fault);
    return nullptr;
  }
  return database;
}

}  // namespace

void RegexScanner::FreeDatabase::operator()(hs_database* database) const { hs_free_database(database); }
void RegexScanner::FreeScratch::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

RegexScanner::RegexScanner() = default;
RegexScanner::RegexScanner(const RegexTable::Limits& limits) : table_(limits) {}
RegexScanner::~RegexScanner() = default;

bool RegexScanner::vectorscan_is_sound() {
  static const bool sound = [] {
    std::string why_not;
    const std::unique_ptr<hs_database, FreeDatabase> database(compile_vectorscan({"\\dc+"}, {0}, {0}, why_not));
    hs_scratch_t* made = nullptr;
    if (!database || hs_alloc_scratch(database.get(), &made) != HS_SUCCESS) return false;
    const Scratch scratch(made);
    const auto on_match = [](unsigned, unsigned long long, unsigned long long, unsigned, void* found) {
      *static_cast<bool*>(found) = true;
      return 0;
    };
    for (size_t n = 0; n < 130; ++n) {
      const std::string text = std::string(n, 'a') + "1c";
      bool found = false;
      hs_scan(database.get(), text.data(), static_cast<unsigned>(text.size()), 0, scratch.get(), on_match, &found);
      if (!found) return false;
    }
    return true;
  }();
  return sound;
}

std::string RegexScanner::add(std::string_view text, RegexFlags flags) {
  const uint32_t number = static_cast<uint32_t>(size());
  PcreExpression pcre;
  // PCRE2's word is final; what the automata's parser does not understand is left to it.
  std::string fault = pcre.compile(text, {.flags = flags, .counted = true});
  if (!fault.empty()) return fault;
  pcre.translate();
  pcres_.push_back(std::move(pcre));
  table_.add_anyhow(text, flags, number);
  return {};
}

Status RegexScanner::build(Errors&) {
  table_.build();
  always_.clear();
  for (const RegexTable::Expression& e : table_.expressions()) {
    if (e.place == RegexTable::Place::kElsewhere) always_.push_back(e.number);
  }
  for (int thread = 0; thread < candidates_.size(); ++thread) candidates_[thread].assign((size() + 63) / 64, 0);
  database_.reset();
  scratch_.reset();
  if (!vectorscan_is_sound()) {
    const std::string_view version = hs_version();
    library_ =
        fmt::format("automata on the CPU, too: Vectorscan {} misses matches", version.substr(0, version.find(' ')));
  } else if (build_vectorscan()) {
    library_ = fmt::format("Vectorscan {}", hs_version());
  }
  return {};
}

/// False, with the reason in library_, if the automata must do its work.
bool RegexScanner::build_vectorscan() {
  std::vector<std::string> texts;
  std::vector<unsigned> flags, numbers;
  for (const RegexTable::Expression& e : table_.expressions()) {
    if (e.place == RegexTable::Place::kElsewhere) continue;
    if (e.place == RegexTable::Place::kCandidate || e.text.find('\0') != std::string::npos) {
      library_ = fmt::format("automata on the CPU, too: expression {} has candidates", e.number);
      return false;
    }
    texts.push_back(e.flags.extended ? "(?x)" + e.text : e.text);
    flags.push_back(vectorscan_flags(e.flags));
    numbers.push_back(e.number);
  }
  if (texts.empty()) return false;
  std::string why_not;
  std::unique_ptr<hs_database, FreeDatabase> database(compile_vectorscan(texts, flags, numbers, why_not));
  if (!database) {
    library_ = "automata on the CPU, too: Vectorscan: " + why_not;
    return false;
  }
  auto scratch = std::make_unique<PerThread<Scratch>>();
  for (int thread = 0; thread < scratch->size(); ++thread) {
    hs_scratch_t* made = nullptr;
    if (hs_alloc_scratch(database.get(), &made) != HS_SUCCESS) {
      library_ = "automata on the CPU, too: Vectorscan: no memory for its scratch";
      return false;
    }
    (*scratch)[thread].reset(made);
  }
  database_ = std::move(database);
  scratch_ = std::move(scratch);
  return true;
}

struct RegexScanner::Search {
  uint64_t key;
};

RegexScanner::First RegexScanner::first(const PayloadBytes& bytes) const {
  First first;
  if (database_) {
    // Ends come in order, so that nothing behind the first one matters.
    Search search{FirstMatch::kNone};
    const auto on_match = [](unsigned number, unsigned long long, unsigned long long end, unsigned, void* context) {
      Search& search = *static_cast<Search*>(context);
      if (end > search.key >> 32) return 1;
      search.key = std::min(search.key, uint64_t{end} << 32 | number);
      return 0;
    };
    if (bytes.length > 0) {
      hs_scan(database_.get(), reinterpret_cast<const char*>(bytes.data), bytes.length, 0, scratch_->local().get(),
              on_match, &search);
    }
    first.match.key = search.key;
  } else if (table_.automata() > 0) {
    struct State {
      uint64_t key;
      std::vector<uint64_t>* candidates;
      bool any;
    };
    using Team = HostTeam<1>;
    const Team team;
    Team::Lanes<State> states{{{FirstMatch::kNone, &candidates_.local(), false}}};
    const bool whole =
        table_.view().scan<Team, State>(team, bytes, states, [](State& state, uint32_t number, uint32_t end) {
          if (number & RegexView::kCandidate) {
            number &= ~RegexView::kCandidate;
            (*state.candidates)[number / 64] |= uint64_t{1} << (number % 64);
            state.any = true;
          } else {
            state.key = std::min(state.key, uint64_t{end} << 32 | number);
          }
          return static_cast<uint32_t>(state.key >> 32);
        });
    first.match.key = states.of[0].key;
    first.cut = !whole;
    if (states.of[0].any) {
      for (size_t i = 0; i < states.of[0].candidates->size(); ++i) {
        uint64_t& bits = (*states.of[0].candidates)[i];
        for (; bits; bits &= bits - 1) {
          try_expression(static_cast<uint32_t>(i * 64) + static_cast<uint32_t>(std::countr_zero(bits)), bytes, first);
        }
      }
    }
  }
  for (const uint32_t number : always_) try_expression(number, bytes, first);
  return first;
}

void RegexScanner::try_expression(uint32_t number, const PayloadBytes& bytes, First& first) const {
  PcreExpression::Found found;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data), bytes.length);
  switch (pcres_[number].search(text, 0, {.steps = kPcreSteps + kPcreStepsPerByte * bytes.length}, found)) {
    case PcreExpression::Result::kYes:
      first.match.key = std::min(first.match.key, uint64_t{found.end} << 32 | number);
      break;
    case PcreExpression::Result::kCut:
      first.cut = true;
      break;
    case PcreExpression::Result::kNo:
      break;
  }
}

std::string RegexScanner::list() const {
  std::string lines;
  for (const RegexTable::Expression& e : table_.expressions()) {
    static constexpr const char* kPlaces[] = {"automaton", "automaton, then PCRE2", "PCRE2, every packet"};
    lines += fmt::format("{}\t/{}/{}\t{}", e.number, e.text, regex_flag_letters(e.flags),
                         kPlaces[static_cast<size_t>(e.place)]);
    if (e.states) lines += fmt::format(", {} states", e.states);
    if (!e.reason.empty()) lines += "\t" + e.reason;
    lines += '\n';
  }
  return lines;
}

std::string RegexScanner::text() const {
  std::string lines = table_.note() + '\n';
  if (!library_.empty()) lines += library_ + '\n';
  return lines;
}

}  // namespace headrace
