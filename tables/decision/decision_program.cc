#include "tables/decision/decision_program.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace headrace {

namespace {

using decision::Graph;
using decision::is_test;
using decision::Node;
using decision::Target;
using decision::Test;

static_assert(std::endian::native == std::endian::little, "DecisionView::follow_checked builds little-endian words");

constexpr std::align_val_t kImageAlignment{64};
/// A program with more of them fills the cache for instructions.
constexpr size_t kMostStepsAsCode = 128, kMostCasesAsCode = 512;

/// A word in network order, as it lies in memory and is loaded from there.
uint32_t as_loaded(uint32_t word) { return __builtin_bswap32(word); }

/// The place of a test's word, free of Click's numbering.
struct Place {
  uint8_t section;
  uint16_t offset;
  uint32_t mask;  // network order
  int shift;      // bits by which mask and value moved up
};

Place place_of(const Test& test, DecisionProgram::Space space) {
  int offset = test.offset;
  uint32_t section = decision_section::kFrame;
  if (space == DecisionProgram::Space::kIp) {
    if (offset >= decision::kTransportBase) {
      section = decision_section::kTransport;
      offset -= decision::kTransportBase;
    } else if (offset >= decision::kNetworkBase) {
      section = decision_section::kNetwork;
      offset -= decision::kNetworkBase;
    } else {
      section = decision_section::kMac;
      offset -= decision::kMacBase;
    }
  }
  // The word may begin in the padding before the header, where nothing is tested.
  const int before = std::max(0, -offset);
  return {static_cast<uint8_t>(section), static_cast<uint16_t>(offset + before), test.mask << (8 * before), 8 * before};
}

/// Compiles nodes to steps: a chain of tests that compare one word under one mask becomes one step with cases.
class Compiler {
 public:
  Compiler(const Graph& graph, DecisionProgram::Space space) : nodes_(graph.nodes()), space_(space) {
    std::vector<int> entries(nodes_.size());
    for (const Node& node : nodes_) {
      for (Target target : node.next) {
        if (is_test(target)) ++entries[target];
      }
    }
    inside_chain_.resize(nodes_.size());
    // Only a node that the chain alone leads to is absorbed: others need their own step.
    for (const Node& node : nodes_) {
      if (continues(node) && entries[node.no()] == 1) inside_chain_[node.no()] = true;
    }
    step_of_.resize(nodes_.size(), -1);
    int32_t steps = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!inside_chain_[i]) step_of_[i] = steps++;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!inside_chain_[i]) add_step(nodes_[i]);
    }
  }

  std::vector<DecisionStep> steps;
  std::vector<DecisionCase> cases;
  uint32_t enough[decision_section::kCount] = {};

 private:
  bool continues(const Node& node) const {
    if (!is_test(node.no())) return false;
    const Test& next = nodes_[node.no()].test;
    return next.offset == node.test.offset && next.mask == node.test.mask;
  }

  int32_t target_of(Target target) const {
    if (is_test(target)) return step_of_[target];
    if (decision::is_output(target)) return DecisionView::kFirstOutput - decision::output_of(target);
    return DecisionView::kNowhere;
  }

  void add_step(const Node& head) {
    const Place place = place_of(head.test, space_);
    auto value_of = [&](const Node& node) { return as_loaded(node.test.value << place.shift); };
    std::vector<DecisionCase> chain;
    const Node* node = &head;
    const Node* on_short = nullptr;
    for (;;) {
      chain.push_back({value_of(*node), target_of(node->yes())});
      if (on_short == nullptr && node->test.short_yes) on_short = node;
      if (!is_test(node->no()) || !inside_chain_[node->no()] || !continues(*node)) break;
      node = &nodes_[node->no()];
    }
    DecisionStep step{};
    step.mask = as_loaded(place.mask);
    step.value = chain[0].value;
    step.yes = chain[0].target;
    step.no = target_of(node->no());
    step.on_short = on_short != nullptr ? target_of(on_short->yes()) : step.no;
    step.offset = place.offset;
    step.section = place.section;
    step.needed = static_cast<uint8_t>(4 - std::countr_zero(place.mask) / 8);
    if (chain.size() > 1) {
      // Where a value is tested twice, the first test has the answer.
      std::stable_sort(chain.begin(), chain.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
      chain.erase(
          std::unique(chain.begin(), chain.end(), [](const auto& a, const auto& b) { return a.value == b.value; }),
          chain.end());
      step.first_case = static_cast<uint32_t>(cases.size());
      step.case_count = static_cast<uint32_t>(chain.size());
      cases.insert(cases.end(), chain.begin(), chain.end());
    }
    enough[step.section] = std::max<uint32_t>(enough[step.section], step.offset + 4u);
    steps.push_back(step);
  }

  const std::vector<Node>& nodes_;
  DecisionProgram::Space space_;
  std::vector<bool> inside_chain_;
  std::vector<int32_t> step_of_;
};

}  // namespace

void DecisionProgram::Deleter::operator()(std::byte* bytes) const { ::operator delete(bytes, kImageAlignment); }

DecisionProgram::DecisionProgram(decision::Graph graph, Space space) : graph_(std::move(graph)), space_(space) {
  compile();
}

void DecisionProgram::compile() {
  const Compiler compiled(graph_, space_);
  cases_offset_ = compiled.steps.size() * sizeof(DecisionStep);
  image_size_ = cases_offset_ + compiled.cases.size() * sizeof(DecisionCase);
  image_.reset(static_cast<std::byte*>(::operator new(std::max<size_t>(image_size_, 1), kImageAlignment)));
  if (!compiled.steps.empty()) std::memcpy(image_.get(), compiled.steps.data(), cases_offset_);
  if (!compiled.cases.empty()) {
    std::memcpy(image_.get() + cases_offset_, compiled.cases.data(), image_size_ - cases_offset_);
  }
  std::copy(std::begin(compiled.enough), std::end(compiled.enough), enough_);
  if (!graph_.nodes().empty()) {
    entry_ = 0;
  } else {
    const Target target = graph_.everything().value_or(decision::kNever);
    entry_ =
        decision::is_output(target) ? DecisionView::kFirstOutput - decision::output_of(target) : DecisionView::kNowhere;
  }
}

DecisionView DecisionProgram::view_at(const void* base) const {
  const auto* bytes = static_cast<const std::byte*>(base);
  DecisionView view{};
  view.steps = reinterpret_cast<const DecisionStep*>(bytes);
  view.cases = reinterpret_cast<const DecisionCase*>(bytes + cases_offset_);
  view.entry = entry_;
  std::copy(std::begin(enough_), std::end(enough_), view.enough);
  return view;
}

namespace {

/// The tested bits of a step's word. Of one byte no more is read: a load that reaches beyond what another shader has just
/// written, such as a checksum beside the protocol, waits until that is in the cache.
std::string word_of(const DecisionStep& step) {
  for (uint32_t byte = 0; byte < 4; ++byte)
    if ((step.mask & ~(0xffu << 8 * byte)) == 0)
      return fmt::format("uint32_t{{words.byte({}, {})}}{} & {:#x}u", step.section, step.offset + byte,
                         byte == 0 ? "" : fmt::format(" << {}", 8 * byte), step.mask);
  return fmt::format("words.load({}, {}) & {:#x}u", step.section, step.offset, step.mask);
}

}  // namespace

std::string DecisionProgram::code() const {
  const DecisionView view = this->view();
  const size_t steps = cases_offset_ / sizeof(DecisionStep);
  if (steps > kMostStepsAsCode || (image_size_ - cases_offset_) / sizeof(DecisionCase) > kMostCasesAsCode) return {};
  const auto go = [](int32_t target) {
    return target >= 0 ? fmt::format("goto s{};", target)
                       : fmt::format("return {};", DecisionView::kFirstOutput - target);
  };
  std::string out = fmt::format(
      "  struct Code {{\n    const DecisionView& program;\n    static constexpr uint32_t enough[] = {{{}, {}, {}}};\n"
      "    template <class Words>\n    HEADRACE_SHADER int match(const Words& words) const {{\n",
      enough_[0], enough_[1], enough_[2]);
  for (uint32_t section = 0; section < decision_section::kCount; ++section)
    if (enough_[section] > 0)
      out += fmt::format("      if (words.length({}) < {}) [[unlikely]] return program.match(words);\n", section,
                         enough_[section]);
  out += fmt::format("      {}\n", go(entry_));
  for (size_t i = 0; i < steps; ++i) {
    const DecisionStep& step = view.steps[i];
    out += fmt::format("    s{}:\n      switch ({}) {{\n        case {:#x}u: {}\n", i, word_of(step), step.value,
                       go(step.yes));
    for (uint32_t c = 0; c < step.case_count; ++c)
      if (const DecisionCase& other = view.cases[step.first_case + c]; other.value != step.value)
        out += fmt::format("        case {:#x}u: {}\n", other.value, go(other.target));
    out += fmt::format("        default: {}\n      }}\n", go(step.no));
  }
  return out + "    }\n  };\n";
}

std::string shade_by_code(const DecisionProgram& program) {
  std::string code = program.code();
  if (!code.empty()) code += "  HEADRACE_SHADER Next shade(auto& p) const { return shade_by(Code{program}, p); }\n";
  return code;
}

}  // namespace headrace
