#include "offload/cpu_program.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "offload/equal_ways.hh"
#include "offload/program_text.hh"

namespace headrace::offload {

namespace {

/// More outputs than this of one step have no lists of their own.
constexpr size_t kMostWays = 64;
/// Shaders of at most so many bytes are copied for a loop, so that their members may stay in registers.
constexpr size_t kMostCopied = 128;

bool has_any_output(const Step& step) { return std::string_view(step.element->info().ports).ends_with('-'); }

/// Writes the functions of one plan.
class Writer {
 public:
  /// \param open shaders may hold something else than now
  Writer(const Plan& plan, size_t number, bool open, bool marks)
      : number_(number), open_(open), marks_(marks), plan_(plan), steps_(plan.steps()), starts_(steps_.size(), false) {
    for (const Step& step : steps_)
      special_.push_back(open && step.element->may_change() ? ShaderCode() : step.element->specialize());
    find_usual();
    ways_ = find_equal_ways(plan, [this](size_t s) { return by_packet(s) && !prefetches(s) && !deals(s); });
    for (const std::vector<size_t>& members : ways_.members)
      for (const size_t member : members)
        if (special_[member] != special_[members[0]]) special_[members[0]] = {};
    find_starts();
    number_lists();
  }

  void write(std::string& out) const {
    out += fmt::format("\nnamespace {} {{\n\n", space());
    for (size_t s = 0; s < steps_.size(); ++s)
      if (by_packet(s) && !special_[s].members.empty() && !ways_.is_member(s))
        out += fmt::format("// {} :: {}({})\nstruct {} : {} {{\n{}}};\n\n", as_comment(steps_[s].element->name()),
                           steps_[s].element->class_name(), as_comment(steps_[s].element->configuration()), type(s),
                           steps_[s].element->info().documented_as, special_[s].members);
    for (size_t s = 0; s < steps_.size(); ++s)
      if (starts_[s]) out += fmt::format("void {}(ChainRun& run, Batch& in);\n", function(s));
    for (size_t s = 0; s < steps_.size(); ++s)
      if (!ways_.is_member(s)) write_constants(out, s);
    for (size_t s = steps_.size(); s-- > 0;)
      if (starts_[s]) write_part(out, s);
    for (size_t e = 0; e < plan_.entries().size(); ++e) write_entry(out, e);
    out += "\nconst ChainFunction kEntries[] = {";
    for (size_t e = 0; e < plan_.entries().size(); ++e) out += fmt::format("{}&enter_{}", e ? ", " : "", e);
    out += fmt::format("}};\nconst CompiledChain kChain = {{kEntries, {}}};\n", lists_);
    out += fmt::format("\n}}  // namespace {}\n", space());
  }
  /// The namespace of the plan's functions.
  std::string space() const { return fmt::format("{}{}", open_ ? "open" : "chain", number_); }

 private:
  bool by_packet(size_t s) const { return steps_[s].element->runs_by_packet() && !header_of(steps_[s]).empty(); }
  /// True if the step's shader, on all ways for which it stands, is part of the source.
  bool is_constant(size_t s) const {
    const std::vector<size_t>& all = ways_.members[s];
    return std::all_of(all.begin(), all.end(), [this](size_t m) {
      return steps_[m].element->is_plain() && !(open_ && steps_[m].element->may_change());
    });
  }
  std::vector<uint8_t> image(size_t s) const {
    std::vector<uint8_t> bytes(steps_[s].element->image_size());
    steps_[s].element->copy_image(bytes.data());
    return bytes;
  }
  /// True if the step stands for several ways.
  bool is_shared(size_t s) const { return ways_.members[s].size() > 1; }
  /// True if it does, and its shader differs by way.
  bool varies(size_t s) const {
    const std::vector<size_t>& all = ways_.members[s];
    return is_shared(s) && (!is_constant(s) ||
                            std::any_of(all.begin(), all.end(), [&](size_t m) { return image(m) != image(all[0]); }));
  }
  /// The number of a step, and what is its own, as the source writes it: a constant, or an array by way.
  std::string number(size_t s) const {
    return is_shared(s) ? fmt::format("steps_{}[way]", name(s)) : std::to_string(s);
  }
  std::string code(size_t s, const std::string& what, const std::function<uint16_t(const Step&)>& of) const {
    return is_shared(s) ? fmt::format("{}_{}[way]", what, name(s)) : fmt::format("{:#x}", of(steps_[s]));
  }
  bool prefetches(size_t s) const {
    return steps_[s].element->prefetches() && steps_[s].element->can_mirror() && !header_of(steps_[s]).empty();
  }
  std::string type(size_t s) const {
    return special_[s].members.empty() ? steps_[s].element->info().documented_as : "Special_" + name(s);
  }

  /// "rt_4": the element's name as far as C++ allows it, and the number of its step.
  std::string name(size_t s) const {
    std::string text = steps_[s].element->name();
    for (char& c : text)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) text = "e" + text;
    return fmt::format("{}_{}", text, s);
  }
  std::string function(size_t s) const { return "from_" + name(s); }

  /// Steps that packets pass, apart from outputs for exceptions.
  void find_usual() {
    usual_.assign(steps_.size(), false);
    for (const Entry& entry : plan_.entries()) usual_[entry.step] = true;
    for (size_t s = 0; s < steps_.size(); ++s)
      for (size_t port = 0; port < steps_[s].targets.size(); ++port)
        if (is_usual(s, port) && steps_[s].targets[port] < kExit) usual_[steps_[s].targets[port]] = true;
  }
  bool is_usual(size_t s, size_t port) const { return usual_[s] && (port == 0 || has_any_output(steps_[s])); }

  /// Whether packets that go different ways from here are dealt out first.
  bool deals(size_t s) const {
    const std::vector<uint16_t>& targets = steps_[s].targets;
    if (!usual_[s] || !has_any_output(steps_[s]) || targets.size() < 2 || targets.size() > kMostWays) return false;
    const auto inner = std::set<uint16_t>(targets.begin(), targets.end());
    const auto more = std::count_if(inner.begin(), inner.end(), [](uint16_t t) { return t < kExit; });
    return more != 1;
  }

  /// Finds the steps at which a loop begins.
  void find_starts() {
    for (const Entry& entry : plan_.entries()) starts_[entry.step] = true;
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (!by_packet(s) || prefetches(s)) starts_[s] = true;
      if (ways_.fans[s]) starts_[steps_[s].targets[0]] = true;
      if (deals(s) && !ways_.fans[s])
        for (const uint16_t target : steps_[s].targets)
          if (target < kExit) starts_[target] = true;
    }
    // A step belongs to the loop that leads to it; one to which several lead has a loop of its own.
    part_.assign(steps_.size(), -1);
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (starts_[s]) part_[s] = static_cast<int>(s);
      for (const uint16_t target : steps_[s].targets) {
        if (target >= kExit || starts_[target] || ways_.is_member(target)) continue;
        if (part_[target] >= 0 && part_[target] != part_[s]) starts_[target] = true;
        part_[target] = part_[s];
      }
    }
    for (size_t s = 0; s < steps_.size(); ++s)
      if (starts_[s]) part_[s] = static_cast<int>(s);
  }

  /// One list for each way out of a loop: to another loop, and by each usual output. Those of a loop follow each other, and
  /// those of a step that deals packets out are in the order of its outputs.
  void number_lists() {
    for (const Step& step : steps_) list_of_.emplace_back(step.targets.size(), -1);
    held_.assign(steps_.size(), 0);
    lists_of_.resize(steps_.size());
    for (size_t first = 0; first < steps_.size(); ++first) {
      if (!starts_[first]) continue;
      held_[first] = lists_++;
      const int begin = lists_;
      for (size_t s = first; s < steps_.size(); ++s)
        if (part_[s] == static_cast<int>(first)) number_lists_of(s);
      lists_of_[first] = {begin, lists_ - begin};
    }
  }
  void number_lists_of(size_t s) {
    if (ways_.is_member(s)) return;
    if (ways_.fans[s]) {
      list_of_[s][0] = lists_++;
      return;
    }
    const auto ways = static_cast<int>(ways_.members[s].size());
    const bool few = steps_[s].targets.size() <= kMostWays;
    for (size_t port = 0; port < steps_[s].targets.size(); ++port) {
      const uint16_t target = steps_[s].targets[port];
      if (target < kExit ? starts_[target] : few && is_usual(s, port)) {
        list_of_[s][port] = lists_;
        lists_ += ways;
      }
    }
  }
  /// A list's number among those of its loop.
  int index_of(size_t s, int list) const { return list - lists_of_[static_cast<size_t>(part_[s])].first; }
  /// The type of what a loop puts packets into.
  std::string lists_type(size_t first) const {
    return fmt::format("compiled::Lists<{}, {}>", lists_of_[first].first, lists_of_[first].count);
  }

  static std::string bytes_of(const std::vector<uint8_t>& bytes) {
    return fmt::format("{{{}}}", fmt::join(bytes, ", "));
  }
  /// What the source says of a step apart from code.
  void write_constants(std::string& out, size_t s) const {
    const std::vector<size_t>& all = ways_.members[s];
    if (by_packet(s) && is_constant(s)) {
      out += "\n" + comment(s);
      if (varies(s)) {
        // So that a way's place is a shift.
        const size_t size = std::bit_ceil(steps_[s].element->image_size());
        out += fmt::format("alignas({}) const uint8_t k_{}[][{}] = {{", type(s), name(s), size);
        for (const size_t m : all) out += (m == all[0] ? "" : ", ") + bytes_of(image(m));
        out += "};\n";
      } else {
        out += fmt::format("const uint8_t k_{}[] = {};\n", name(s), bytes_of(image(s)));
      }
    }
    if (!is_shared(s)) return;
    const auto list = [&](const std::string& type, const std::string& what, auto of) {
      std::vector<size_t> values;
      for (const size_t m : all) values.push_back(of(m));
      out += fmt::format("const {} {}_{}[] = {{{}}};\n", type, what, name(s), fmt::join(values, ", "));
    };
    list("uint16_t", "steps", [](size_t m) { return m; });
    list("uint32_t", "images", [this](size_t m) { return steps_[m].image; });
    list("uint16_t", "drop", [this](size_t m) { return steps_[m].drop; });
    for (size_t port = 0; port < steps_[s].targets.size(); ++port)
      if (steps_[s].targets[port] >= kExit && list_of_[s][port] < 0)
        list("uint16_t", fmt::format("out{}", port), [this, port](size_t m) { return steps_[m].targets[port]; });
  }
  /// "// rt :: LookupIPRoute(...)", with the names of all ways for which the step stands.
  std::string comment(size_t s) const {
    constexpr size_t kMost = 8;
    const std::vector<size_t>& all = ways_.members[s];
    std::string names;
    for (size_t i = 0; i < std::min(all.size(), kMost); ++i)
      names += (i ? ", " : "") + as_comment(steps_[all[i]].element->name());
    if (all.size() > kMost) names += fmt::format(" and {} more", all.size() - kMost);
    return fmt::format("// {} :: {}({})\n", names, steps_[s].element->class_name(),
                       as_comment(steps_[s].element->configuration()));
  }

  /// True if the step's shader is brought up to date when a packet comes to it, which few do, and not by each loop.
  bool refreshes_late(size_t s) const {
    return by_packet(s) && !usual_[s] && !starts_[s] && steps_[s].element->refreshes();
  }
  void write_refresh(std::string& out, size_t s, const char* indent) const {
    for (const size_t m : ways_.members[s]) out += fmt::format("{}run.refresh(run.host, {});\n", indent, m);
  }
  /// \param refreshed the loop in front has done so
  void write_shader(std::string& out, size_t s, bool refreshed) const {
    if (refreshes_late(s)) {
      out += fmt::format("  bool fresh_{} = false;\n", s);
      return;
    }
    if (steps_[s].element->refreshes() && !refreshed) write_refresh(out, s, "  ");
    if (is_shared(s)) return;
    write_object(out, s);
  }
  /// Declares the step's shader and its counters. If the step stands for several ways, those of the packet's way.
  void write_object(std::string& out, size_t s) const {
    const char* const indent = is_shared(s) || refreshes_late(s) ? "      " : "  ";
    if (varies(s))
      out += fmt::format("{0}const auto& {1} = compiled::in_place<{2}>({3}_{1}[way]);\n", indent, name(s), type(s),
                         is_constant(s) ? "k" : "run.images + images");
    else if (is_constant(s))
      out += fmt::format("{0}const auto {1} = compiled::constant<{2}>(k_{1});\n", indent, name(s), type(s));
    else if (steps_[s].element->image_size() > kMostCopied)
      out += fmt::format("{}const auto& {} = compiled::in_place<{}>(run.images + {});\n", indent, name(s), type(s),
                         steps_[s].image);
    else
      out += fmt::format("{}const auto {} = compiled::shader_at<{}>(run, {});\n", indent, name(s), type(s),
                         steps_[s].image);
    if (is_shared(s))
      out += fmt::format("{}const compiled::WayCounters counters_{}{{run, steps_{}, way}};\n", indent, s, name(s));
    else
      out += fmt::format("{}uint64_t* const counters_{} = run.counters[{}];\n", indent, s, s);
  }

  /// What known_members() says of the step's shader: in front of each use, or a compiler that keeps a large shader in memory
  /// forgets it.
  void write_known(std::string& out, size_t s, const char* indent) const {
    for (const std::string& condition : special_[s].known)
      out += fmt::format("{}HEADRACE_KNOWN({}.{});\n", indent, name(s), condition);
  }

  void write_entry(std::string& out, size_t e) const {
    const size_t s = plan_.entries()[e].step;
    out += fmt::format("\nvoid enter_{}(ChainRun& run, Batch& in) {{\n", e);
    if (prefetches(s)) {
      write_shader(out, s, false);
      out += fmt::format("  for (Packet* const p : in) compiled::prefetch({}, PacketState<>(p));\n", name(s));
    }
    out += fmt::format("  {}(run, in);\n}}\n", function(s));
  }

  /// What becomes of packet `p` for which step `s` chose an output: statements.
  std::string way(size_t s, size_t port) const {
    const uint16_t target = steps_[s].targets[port];
    const int list = list_of_[s][port];
    if (target < kExit && !starts_[target]) return fmt::format("goto {};", name(target));
    if (list < 0)
      return rare(code(s, fmt::format("out{}", port), [port](const Step& step) { return step.targets[port]; }));
    std::string text;
    if (target < kExit && prefetches(target)) text += fmt::format("compiled::prefetch({}, p); ", name(target));
    return text + fmt::format("lists.push_back(run, {}{}, p.store()); continue;", index_of(s, list),
                              is_shared(s) ? " + way" : "");
  }
  static std::string rare(const std::string& code) {
    return fmt::format("compiled::put_rare(run, p.store(), {}); continue;", code);
  }
  /// The list of packets for the ways for which step `first` stands.
  int list_to(size_t first) const {
    for (size_t s = 0; s < steps_.size(); ++s)
      if (ways_.fans[s] && steps_[s].targets[0] == first) return list_of_[s][0];
    return -1;
  }
  /// The types of the shaders in the loop that begins at step `first`.
  std::string types(size_t first) const {
    std::set<std::string> types;
    for (size_t s = 0; s < steps_.size(); ++s)
      if (part_[s] == static_cast<int>(first) && by_packet(s) && !ways_.is_member(s)) types.insert(type(s));
    return fmt::format("{}", fmt::join(types, ", "));
  }

  void write_ways(std::string& out, size_t s, const std::string& next) const {
    const Step& step = steps_[s];
    const std::string escape = fmt::format("lists = escape_{}(run, lists, p.store(), {}); continue;",
                                           name(static_cast<size_t>(part_[s])), number(s));
    const std::string drop = rare(code(s, "drop", [](const Step& of) { return of.drop; }));
    if (ways_.fans[s]) {
      // The next loop knows all ways before it begins, so that no store waits to learn where it goes.
      out += fmt::format("      const Next next = {};\n", next);
      out += fmt::format(
          "      if (next < {0}) [[likely]] {{\n        lists.put_way(run, {1}, p.store(), next);\n"
          "        continue;\n      }}\n",
          step.targets.size(), index_of(s, list_of_[s][0]));
      out += fmt::format("      if (next == kEscape) {{ {} }}\n      if (next == kConsumed) continue;\n      {}\n",
                         escape, drop);
      return;
    }
    const auto looks_ahead = [&](uint16_t target) { return target < kExit && prefetches(target); };
    if (deals(s) && std::none_of(step.targets.begin(), step.targets.end(), looks_ahead)) {
      // The lists are in order, so that no branch depends on the way.
      out += fmt::format("      const Next next = {};\n", next);
      out += fmt::format("      if (next < {}) [[likely]] {{\n        lists.push_back(run, {} + next, p.store());\n",
                         step.targets.size(), index_of(s, list_of_[s][0]));
      out += "        continue;\n      }\n";
      out += fmt::format("      if (next == kEscape) {{ {} }}\n      if (next == kConsumed) continue;\n      {}\n",
                         escape, drop);
      return;
    }
    out += fmt::format("      switch ({}) {{\n", next);
    for (size_t port = 0; port < step.targets.size(); ++port)
      out += fmt::format("        case {}: {}  // {}\n", port, way(s, port), meaning(plan_, step.targets[port]));
    out += fmt::format("        case kEscape: {}\n        case kConsumed: continue;\n        default: {}\n      }}\n",
                       escape, drop);
  }

  /// True if a loop that begins at step `first` chooses the nexts of all packets before it sends the first one on. After a
  /// lookup, where a packet is stored depends on a load that may miss all caches. What the next packet loads must wait for
  /// such a store, and then few lookups are under way at a time.
  bool decides_first(size_t first) const {
    if (!by_packet(first)) return true;
    const bool chooses_lists = ways_.fans[first] || (deals(first) && prefetches(first));
    return chooses_lists && !marks_ && !is_shared(first) && !refreshes_late(first);
  }
  /// Has the step choose the nexts of all packets. Where they lead to ways that share a loop, they are what that loop reads:
  /// no pass that would only copy them and the packets.
  void write_decision(std::string& out, size_t first) const {
    const bool fans = ways_.fans[first];
    out += fans ? fmt::format("  Next* const nexts = run.ways + {} * Batch::kCapacity;\n", list_of_[first][0])
                : "  Next nexts[Batch::kCapacity];\n";
    if (by_packet(first)) {
      out += "  Next* next_to = nexts;\n";
      out += fmt::format("  for (Packet* const packet : in) {{\n    PacketState<{}> p(packet);\n", type(first));
      write_known(out, first, "    ");
      out += fmt::format("    *next_to++ = compiled::shade({}, p, counters_{});\n    (void)p.store();\n  }}\n",
                         name(first), first);
    } else {
      out += fmt::format("  run.decide(run.host, {}, in, nexts);\n", first);
    }
    if (fans && !marks_)
      out += fmt::format(
          "  if (compiled::all_below(nexts, in.size(), {})) [[likely]] {{\n    {}(run, in);\n    return;\n  }}\n",
          steps_[first].targets.size(), function(steps_[first].targets[0]));
  }

  /// The loop that begins at step `first`, and what follows it.
  void write_part(std::string& out, size_t first) const {
    std::vector<size_t> mine;
    for (size_t s = first; s < steps_.size(); ++s)
      if (part_[s] == static_cast<int>(first) && !ways_.is_member(s)) mine.push_back(s);
    // Sends on what the loop has dealt out.
    out += fmt::format("\nvoid settle_{}(ChainRun& run) {{\n", name(first));
    if (marks_) out += "  __atomic_store_n(run.mark, 0, __ATOMIC_RELAXED);\n";
    out += fmt::format(
        "  if (Batch& held = run.lists[{0}]; !held.empty()) {{\n    run.leave(run.host, run.held[{0}], kEscape, held);\n"
        "    held.clear();\n  }}\n",
        held_[first]);
    out += "  if (!run.rare->empty()) [[unlikely]] run.leave_rare(run.host);\n";
    std::string busy = "!run.rare->empty()";
    for (const size_t s : mine)
      for (size_t port = 0; port < steps_[s].targets.size(); ++port) {
        int list = list_of_[s][port];
        if (list < 0) continue;
        for (const size_t m : ways_.members[s]) {
          const uint16_t target = steps_[m].targets[port];
          busy += fmt::format(" || !run.lists[{}].empty()", list);
          out += fmt::format("  if (Batch& to = run.lists[{}]; !to.empty()) {{  // {} [{}] to {}\n", list++,
                             as_comment(steps_[m].element->name()), port, meaning(plan_, target));
          if (target < kExit)
            out += fmt::format("    {}(run, to);\n", function(target));
          else
            out += fmt::format("    run.leave(run.host, {}, {}, to);\n", m, port);
          out += "    to.clear();\n  }\n";
        }
      }
    out += "}\n";
    // No packet overtakes one that waits for its host body.
    out += fmt::format(
        "\n[[gnu::noinline, gnu::cold]] {3} escape_{0}(ChainRun& run, {3} lists, Packet* p, uint16_t step) {{\n"
        "  lists.store(run);\n  if (run.lists[{1}].empty() || run.held[{1}] != step || {2}) settle_{0}(run);\n"
        "  run.held[{1}] = step;\n  run.lists[{1}].push_back(p);\n  return {3}(run);\n}}\n",
        name(first), held_[first], busy, lists_type(first));

    out += fmt::format("\nvoid {}(ChainRun& run, Batch& in) {{\n", function(first));
    std::set<size_t> shaders;
    for (const size_t s : mine) {
      if (by_packet(s)) shaders.insert(s);
      for (const uint16_t target : steps_[s].targets)
        if (target < kExit && starts_[target] && prefetches(target)) shaders.insert(target);
    }
    for (const size_t s : shaders) write_shader(out, s, s == first && prefetches(s));
    if (marks_) {
      for (const size_t s : mine)
        for (const size_t m : ways_.members[s]) out += fmt::format("  ++run.batches[{}];\n", m);
      out += fmt::format("  __atomic_store_n(run.mark, {}, __ATOMIC_RELAXED);\n", mark_of(number_, first));
    }
    if (decides_first(first)) write_decision(out, first);
    if (is_shared(first))
      out += fmt::format("  const uint16_t* way_at = run.ways + {} * Batch::kCapacity;\n", list_to(first));
    if (decides_first(first)) out += "  const Next* next_at = nexts;\n";
    out += fmt::format("  {} lists(run);\n", lists_type(first));
    out += fmt::format("  for (Packet* const packet : in) {{\n    PacketState<{}> p(packet);\n", types(first));
    if (is_shared(first)) out += "    const size_t way = *way_at++;\n";
    if (decides_first(first)) out += "    const Next decided = *next_at++;\n";
    for (const size_t s : mine) {
      out += fmt::format("  {}:\n    {{  {}", name(s), comment(s));
      if (refreshes_late(s)) {
        out += fmt::format("      if (!fresh_{}) {{\n", s);
        write_refresh(out, s, "        ");
        out += fmt::format("        fresh_{} = true;\n      }}\n", s);
      }
      if (is_shared(s) || refreshes_late(s)) write_object(out, s);
      if (s != first || !decides_first(s)) write_known(out, s, "      ");
      if (marks_) out += fmt::format("      compiled::mark(run, {0}, {1} + {0});\n", number(s), mark_of(number_, 0));
      write_ways(
          out, s,
          s == first && decides_first(s) ? "decided" : fmt::format("compiled::shade({}, p, counters_{})", name(s), s));
      out += "    }\n";
    }
    out += fmt::format("  }}\n  lists.store(run);\n  settle_{}(run);\n}}\n", name(first));
  }

  const size_t number_;
  const bool open_, marks_;
  const Plan& plan_;
  const std::vector<Step>& steps_;
  std::vector<ShaderCode> special_;  // by step: what specialize() says
  EqualWays ways_;
  std::vector<bool> usual_, starts_;
  std::vector<int> part_;                  // by step: the step where its loop begins
  std::vector<std::vector<int>> list_of_;  // by step and output; -1: none
  struct Range {
    int first = 0, count = 0;
  };
  std::vector<Range> lists_of_;  // by step where a loop begins
  std::vector<int> held_;        // by step where a loop begins: the list of packets for host bodies
  int lists_ = 0;
};

}  // namespace

std::string cpu_program_source(const std::vector<Plan>& plans, bool marks, bool open_only) {
  std::set<std::string_view> headers;
  for (const Plan& plan : plans)
    for (const Step& step : plan.steps())
      if (step.element->runs_by_packet() || step.element->prefetches()) headers.insert(header_of(step));
  std::string out = "// Made by Headrace from a configuration: what its chains do on a CPU.\n\n";
  out += "#define HEADRACE_PROGRAM\n#include \"headrace/compiled.hh\"\n";
  for (const std::string_view h : headers)
    if (!h.empty()) out += fmt::format("#include \"{}\"\n", h);
  out += "\nnamespace headrace {\nnamespace {\n";
  for (const bool open : {false, true}) {
    if (open_only && !open) continue;
    std::string list;
    for (size_t i = 0; i < plans.size(); ++i) {
      const Writer writer(plans[i], i, open, marks);
      writer.write(out);
      list += fmt::format("{}{}::kChain", i ? ", " : "", writer.space());
    }
    out += fmt::format("\nconst CompiledChain {}[] = {{{}}};\n", open ? "kOpen" : "kChains", list);
  }
  out += "\n}  // namespace\n}  // namespace headrace\n\n";
  out +=
      "extern \"C\" [[gnu::visibility(\"default\")]] const headrace::CompiledProgram headrace_compiled;\n"
      "const headrace::CompiledProgram headrace_compiled = {HEADRACE_PROGRAM_HASH, ";
  out += fmt::format("headrace::{}, headrace::kOpen,\n    headrace::compiled::kInstructionSets}};\n",
                     open_only ? "kOpen" : "kChains");
  return out;
}

std::vector<EmbeddedText> included_headers(std::string_view source) {
  std::vector<EmbeddedText> all;
  std::set<std::string_view> seen;
  std::vector<std::string_view> todo = {source};
  while (!todo.empty()) {
    std::string_view text = todo.back();
    todo.pop_back();
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (!line.starts_with("#include ")) continue;
      line.remove_prefix(9);
      // "headrace/..." or <headrace/...>; other names in angle brackets are the compiler's.
      const bool ours = line.starts_with('"') || line.starts_with("<headrace/");
      const size_t close = line.size() > 1 ? line.find_first_of("\">", 1) : line.npos;
      if (!ours || close == line.npos) continue;
      const std::string_view path = line.substr(1, close - 1);
      if (!seen.insert(path).second) continue;
      const EmbeddedText header = find_embedded_header(path);
      if (header.path.empty()) continue;
      all.push_back(header);
      todo.push_back(header.text);
    }
  }
  std::sort(all.begin(), all.end(), [](const EmbeddedText& a, const EmbeddedText& b) { return a.path < b.path; });
  return all;
}

}  // namespace headrace::offload
