#include "tables/regex/regex_dfa.hh"

#include <algorithm>
#include <unordered_map>

namespace headrace {

uint32_t RegexReports::number(const std::vector<uint32_t>& reports) {
  const auto [at, is_new] = numbers_.try_emplace(reports, static_cast<uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(&at->first);
  return at->second;
}

uint32_t RegexReports::united(uint32_t a, uint32_t b) {
  if (a == 0 || a == b) return b;
  if (b == 0) return a;
  const std::pair<uint32_t, uint32_t> key = std::minmax(a, b);
  const auto known = unions_.find(key);
  if (known != unions_.end()) return known->second;
  std::vector<uint32_t> both;
  std::set_union(sets_[a]->begin(), sets_[a]->end(), sets_[b]->begin(), sets_[b]->end(), std::back_inserter(both));
  return unions_[key] = number(both);
}

namespace {

using Kind = RegexNode::Kind;

constexpr size_t kMostNodes = 1 << 17;

/// What stands before or after a place in the text, as far as assertions ask.
enum class Beside : uint8_t { kOther, kWord, kNewline, kEdge };

Beside beside(unsigned byte) {
  if (byte == '\n') return Beside::kNewline;
  const bool word =
      (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '_';
  return word ? Beside::kWord : Beside::kOther;
}

/// A nondeterministic automaton after Thompson.
struct Nfa {
  enum class Type : uint8_t { kBytes, kSplit, kAssertion, kAccept };
  struct Node {
    Type type = Type::kAccept;
    RegexAssertion assertion{};
    uint32_t set = 0;  // index of sets
    uint32_t out = 0, other = 0;
  };
  std::vector<Node> nodes;
  std::vector<ByteSet> sets;
  uint32_t start = 0;
  bool asks_newline = false, asks_word = false;
};

/// Builds from the back to the front, so that every node knows where it leads.
class NfaBuilder {
 public:
  NfaBuilder(const RegexSyntax& syntax, Nfa& nfa) : syntax_(syntax), nfa_(nfa) {}

  bool build() {
    const uint32_t accept = add({});
    nfa_.start = before(syntax_.root, accept);
    return !full_;
  }

 private:
  uint32_t add(Nfa::Node node) {
    if (nfa_.nodes.size() >= kMostNodes) {
      full_ = true;
      return 0;
    }
    nfa_.nodes.push_back(node);
    return static_cast<uint32_t>(nfa_.nodes.size() - 1);
  }
  uint32_t split(uint32_t out, uint32_t other) { return add({Nfa::Type::kSplit, {}, 0, out, other}); }
  uint32_t set(const ByteSet& bytes) {
    const auto at = std::find(nfa_.sets.begin(), nfa_.sets.end(), bytes);
    if (at == nfa_.sets.end()) nfa_.sets.push_back(bytes);
    return static_cast<uint32_t>(std::find(nfa_.sets.begin(), nfa_.sets.end(), bytes) - nfa_.sets.begin());
  }

  /// The first node of what stands before `then`.
  uint32_t before(uint32_t at, uint32_t then) {
    if (full_ || ++steps_ > 4 * kMostNodes) {
      full_ = true;
      return then;
    }
    const RegexNode& node = syntax_.nodes[at];
    switch (node.kind) {
      case Kind::kBytes:
        return add({Nfa::Type::kBytes, {}, set(node.bytes), then, 0});
      case Kind::kAssertion:
        if (node.assertion == RegexAssertion::kWordBoundary || node.assertion == RegexAssertion::kNotWordBoundary) {
          nfa_.asks_word = true;
        } else {
          nfa_.asks_newline = true;
        }
        return add({Nfa::Type::kAssertion, node.assertion, 0, then, 0});
      case Kind::kSequence:
        for (size_t i = node.children.size(); i-- > 0;) then = before(node.children[i], then);
        return then;
      case Kind::kAlternation: {
        uint32_t first = before(node.children.back(), then);
        for (size_t i = node.children.size() - 1; i-- > 0;) {
          const uint32_t branch = before(node.children[i], then);
          first = split(branch, first);
        }
        return first;
      }
      case Kind::kRepeat:
        break;
    }
    const uint32_t child = node.children[0];
    uint32_t needed = node.min;
    if (node.max == RegexNode::kUnbounded) {
      const uint32_t loop = split(then, then);
      const uint32_t body = before(child, loop);
      if (full_) return then;
      nfa_.nodes[loop].out = body;
      then = loop;
      // x+ is x behind which its loop stands.
      if (needed > 0) {
        then = body;
        --needed;
      }
    } else {
      const uint32_t end = then;
      for (uint32_t i = node.min; i < node.max && !full_; ++i) then = split(before(child, then), end);
    }
    for (; needed > 0 && !full_; --needed) then = before(child, then);
    return then;
  }

  const RegexSyntax& syntax_;
  Nfa& nfa_;
  uint64_t steps_ = 0;
  bool full_ = false;
};

/// The longest text that a tree matches, ~0 if there is no bound.
uint32_t longest_of(const RegexSyntax& syntax, uint32_t at) {
  constexpr uint32_t kNoBound = ~uint32_t{0};
  const auto sum = [](uint64_t a, uint64_t b) { return a + b >= kNoBound ? kNoBound : static_cast<uint32_t>(a + b); };
  const RegexNode& node = syntax.nodes[at];
  uint32_t length = 0;
  switch (node.kind) {
    case Kind::kBytes:
      return 1;
    case Kind::kAssertion:
      return 0;
    case Kind::kSequence:
      for (const uint32_t child : node.children) length = sum(length, longest_of(syntax, child));
      return length;
    case Kind::kAlternation:
      for (const uint32_t child : node.children) length = std::max(length, longest_of(syntax, child));
      return length;
    case Kind::kRepeat: {
      const uint64_t one = longest_of(syntax, node.children[0]);
      if (one == 0 || node.max == 0) return 0;
      if (one == kNoBound || node.max == RegexNode::kUnbounded) return kNoBound;
      return static_cast<uint32_t>(std::min<uint64_t>(one * node.max, kNoBound));
    }
  }
  return kNoBound;
}

/// How far a thread is bound to what follows.
enum Mode : uint32_t {
  kFree,           // not at all
  kLast,           // the text must end here
  kAcceptedBefore  // the expression has matched one byte before if the text ends here
};

/// The subset construction. A state is a set of items, a node and a mode each, on which all assertions are decided that
/// ask only for what was before; those that ask for what comes stay in the set and are decided with the next byte.
class Determiniser {
 public:
  Determiniser(const Nfa& nfa, const RegexBudget& budget) : nfa_(nfa), budget_(budget), seen_(nfa.nodes.size() * 4) {}

  bool run(RegexDfa& dfa) {
    make_classes(dfa);
    items_.clear();
    begin();
    arrive(nfa_.start, kFree, Beside::kEdge);
    dfa.start = finish(Beside::kEdge, false);
    // States are taken in the order in which they were found.
    for (uint32_t at = 0; at < states_.size(); ++at) {
      const std::vector<uint32_t> from = states_[at].items;  // a copy: states_ grows
      const Beside before = states_[at].before;
      const bool accepted = states_[at].accepts;
      for (uint32_t c = 0; c < dfa.classes; ++c) {
        next_.push_back(step(from, before, accepted, bytes_[c]));
        if (states_.size() > budget_.states || work_ > budget_.work) return false;
      }
      end(at);
    }
    dfa.next = std::move(next_);
    return true;
  }

  /// What a state does: bit 0 a match that ends here, 1 one that ended a byte before; 2 and 3 the same if the text
  /// ends.
  uint8_t outputs(uint32_t state) const { return states_[state].outputs; }
  size_t size() const { return states_.size(); }

 private:
  struct State {
    std::vector<uint32_t> items;  // node << 2 | mode, ascending
    Beside before;
    bool accepts;  // a match ends here
    uint8_t outputs;
  };
  struct Hash {
    size_t operator()(const std::vector<uint32_t>& key) const {
      uint64_t h = key.size();
      for (const uint32_t v : key) h = (h ^ v) * 0x9e3779b97f4a7c15u ^ (h >> 29);
      return h;
    }
  };

  void make_classes(RegexDfa& dfa) {
    std::vector<ByteSet> sets = nfa_.sets;
    ByteSet newline, word;
    newline.add('\n');
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (beside(byte) == Beside::kWord) word.add(byte);
    }
    if (nfa_.asks_newline) sets.push_back(newline);
    if (nfa_.asks_word) sets.push_back(word);
    std::array<uint32_t, 256> group{};
    uint32_t groups = 1;
    for (const ByteSet& set : sets) {
      std::map<std::pair<uint32_t, bool>, uint32_t> numbers;
      for (unsigned byte = 0; byte < 256; ++byte) {
        const std::pair<uint32_t, bool> key{group[byte], set.has(byte)};
        group[byte] = numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second;
      }
      groups = static_cast<uint32_t>(numbers.size());
    }
    dfa.classes = groups;
    bytes_.assign(groups, 256);
    for (unsigned byte = 0; byte < 256; ++byte) {
      dfa.class_of[byte] = static_cast<uint8_t>(group[byte]);
      if (bytes_[group[byte]] == 256) bytes_[group[byte]] = byte;
    }
  }

  void begin() {
    ++generation_;
    accepts_ = false;
  }
  bool first_visit(uint32_t node, uint32_t mode) {
    uint32_t& mark = seen_[node * 4 + mode];
    if (mark == generation_) return false;
    mark = generation_;
    ++work_;
    return true;
  }

  enum class Verdict : uint8_t { kNo, kYes, kAsk, kYesIfLast };

  /// Decides an assertion by what is before; kAsk if what comes must be known.
  static Verdict judge(RegexAssertion assertion, Beside before) {
    switch (assertion) {
      case RegexAssertion::kTextStart:
        return before == Beside::kEdge ? Verdict::kYes : Verdict::kNo;
      case RegexAssertion::kLineStart:
        if (before == Beside::kEdge) return Verdict::kYes;
        return before == Beside::kNewline ? Verdict::kAsk : Verdict::kNo;
      default:
        return Verdict::kAsk;
    }
  }
  /// The same with what comes; kYesIfLast: if nothing follows the newline that comes.
  static Verdict judge(RegexAssertion assertion, Beside before, Beside after) {
    const auto verdict = [](bool yes) { return yes ? Verdict::kYes : Verdict::kNo; };
    switch (assertion) {
      case RegexAssertion::kTextStart:
        return verdict(before == Beside::kEdge);
      case RegexAssertion::kLineStart:
        return verdict(before == Beside::kEdge || (before == Beside::kNewline && after != Beside::kEdge));
      case RegexAssertion::kTextEnd:
        return verdict(after == Beside::kEdge);
      case RegexAssertion::kTextEndNewline:
        return after == Beside::kNewline ? Verdict::kYesIfLast : verdict(after == Beside::kEdge);
      case RegexAssertion::kLineEnd:
        return verdict(after == Beside::kEdge || after == Beside::kNewline);
      case RegexAssertion::kWordBoundary:
        return verdict((before == Beside::kWord) != (after == Beside::kWord));
      case RegexAssertion::kNotWordBoundary:
        return verdict((before == Beside::kWord) == (after == Beside::kWord));
    }
    return Verdict::kNo;
  }

  /// Adds to items_ what a thread that comes to `node` stands for.
  void arrive(uint32_t node, uint32_t mode, Beside before) {
    stack_.push_back(node);
    while (!stack_.empty()) {
      const uint32_t at = stack_.back();
      stack_.pop_back();
      if (!first_visit(at, mode)) continue;
      const Nfa::Node& n = nfa_.nodes[at];
      switch (n.type) {
        case Nfa::Type::kSplit:
          stack_.push_back(n.other);
          stack_.push_back(n.out);
          break;
        case Nfa::Type::kBytes:
          // Nothing can follow the last byte.
          if (mode == kFree) items_.push_back(at << 2);
          break;
        case Nfa::Type::kAccept:
          if (mode == kFree) {
            accepts_ = true;
          } else {
            items_.push_back(at << 2 | mode);
          }
          break;
        case Nfa::Type::kAssertion:
          switch (judge(n.assertion, before)) {
            case Verdict::kYes:
              stack_.push_back(n.out);
              break;
            case Verdict::kAsk:
              items_.push_back(at << 2 | mode);
              break;
            default:
              break;
          }
          break;
      }
    }
  }

  /// Decides the assertions of a state, now that what comes is known. Calls `on_item(node, last)` for nodes of bytes
  /// and acceptance that are reached; `last`: only if nothing follows the byte that comes.
  template <typename F>
  void decide(const std::vector<uint32_t>& from, Beside before, Beside after, F&& on_item) {
    begin();
    for (const uint32_t item : from) {
      const uint32_t mode = item & 3;
      if (nfa_.nodes[item >> 2].type != Nfa::Type::kAssertion || mode == kAcceptedBefore) continue;
      // A thread that waits for the end ends with any byte.
      if (mode == kLast && after != Beside::kEdge) continue;
      pairs_.push_back({item >> 2, false});
    }
    while (!pairs_.empty()) {
      const auto [at, last] = pairs_.back();
      pairs_.pop_back();
      if (!first_visit(at, last)) continue;
      const Nfa::Node& n = nfa_.nodes[at];
      switch (n.type) {
        case Nfa::Type::kSplit:
          pairs_.push_back({n.other, last});
          pairs_.push_back({n.out, last});
          break;
        case Nfa::Type::kAssertion: {
          const Verdict verdict = judge(n.assertion, before, after);
          if (verdict == Verdict::kYes || verdict == Verdict::kYesIfLast) {
            pairs_.push_back({n.out, last || verdict == Verdict::kYesIfLast});
          }
          break;
        }
        default:
          on_item(at, last);
          break;
      }
    }
  }

  uint32_t step(const std::vector<uint32_t>& from, Beside before, bool accepted, unsigned byte) {
    const Beside after = beside(byte);
    moves_.clear();
    bool late = false, late_if_last = false;
    for (const uint32_t item : from) {
      ++work_;
      const Nfa::Node& n = nfa_.nodes[item >> 2];
      if (n.type == Nfa::Type::kBytes && nfa_.sets[n.set].has(byte)) moves_.push_back({n.out, false});
    }
    decide(from, before, after, [&](uint32_t at, bool last) {
      const Nfa::Node& n = nfa_.nodes[at];
      if (n.type == Nfa::Type::kAccept) {
        (last ? late_if_last : late) = true;
      } else if (nfa_.sets[n.set].has(byte)) {
        moves_.push_back({n.out, last});
      }
    });
    late = late && !accepted;
    begin();
    items_.clear();
    for (const auto& [node, last] : moves_) arrive(node, last ? kLast : kFree, after);
    arrive(nfa_.start, kFree, after);
    // Its end is no news if it has been reported, or will be on arrival.
    if (late_if_last && !accepted && !late) items_.push_back(kAcceptedBefore);
    return finish(after, late);
  }

  /// The state of items_, which is made if need be.
  uint32_t finish(Beside before, bool late) {
    std::sort(items_.begin(), items_.end());
    const bool asks = std::any_of(items_.begin(), items_.end(),
                                  [&](uint32_t item) { return nfa_.nodes[item >> 2].type == Nfa::Type::kAssertion; });
    if (!asks) before = Beside::kOther;
    key_ = items_;
    key_.push_back(static_cast<uint32_t>(before) << 2 | uint32_t{late} << 1 | uint32_t{accepts_});
    const auto [at, is_new] = numbers_.try_emplace(key_, static_cast<uint32_t>(states_.size()));
    if (is_new) {
      const uint8_t outputs = static_cast<uint8_t>((accepts_ ? 1 : 0) | (late ? 2 : 0));
      states_.push_back({items_, before, accepts_, outputs});
      work_ += items_.size();
    }
    return at->second;
  }

  /// What a state reports if the text ends in it.
  void end(uint32_t at) {
    State& state = states_[at];
    bool accepts = false, before = false;
    for (const uint32_t item : state.items) {
      if ((item & 3) == kAcceptedBefore) {
        before = true;
      } else if (nfa_.nodes[item >> 2].type == Nfa::Type::kAccept) {
        accepts = true;
      }
    }
    decide(state.items, state.before, Beside::kEdge, [&](uint32_t node, bool) {
      if (nfa_.nodes[node].type == Nfa::Type::kAccept) accepts = true;
    });
    if (accepts && !state.accepts) state.outputs |= 4;
    if (before) state.outputs |= 8;
  }

  const Nfa& nfa_;
  const RegexBudget& budget_;
  std::vector<unsigned> bytes_;  // one byte of each class
  std::vector<uint32_t> seen_;   // generation in which a node was visited, by mode
  uint32_t generation_ = 0;
  uint64_t work_ = 0;
  bool accepts_ = false;
  std::vector<uint32_t> items_, stack_, key_, next_;
  std::vector<std::pair<uint32_t, bool>> pairs_, moves_;
  std::vector<State> states_;
  std::unordered_map<std::vector<uint32_t>, uint32_t, Hash> numbers_;
};

/// Classes of bytes that no state distinguishes become one.
void join_classes(RegexDfa& dfa) {
  std::map<std::vector<uint32_t>, uint32_t> columns;
  std::vector<uint32_t> joined(dfa.classes), kept;
  for (uint32_t c = 0; c < dfa.classes; ++c) {
    std::vector<uint32_t> column(dfa.size());
    for (size_t s = 0; s < dfa.size(); ++s) column[s] = dfa.next[s * dfa.classes + c];
    const auto [at, is_new] = columns.try_emplace(std::move(column), static_cast<uint32_t>(columns.size()));
    joined[c] = at->second;
    if (is_new) kept.push_back(c);
  }
  if (kept.size() == dfa.classes) return;
  std::vector<uint32_t> next(dfa.size() * kept.size());
  for (size_t s = 0; s < dfa.size(); ++s) {
    for (size_t c = 0; c < kept.size(); ++c) next[s * kept.size() + c] = dfa.next[s * dfa.classes + kept[c]];
  }
  for (uint8_t& c : dfa.class_of) c = static_cast<uint8_t>(joined[c]);
  dfa.classes = static_cast<uint32_t>(kept.size());
  dfa.next = std::move(next);
}

}  // namespace

std::optional<RegexDfa> make_regex_dfa(const RegexSyntax& syntax, uint32_t pattern, RegexReports& reports,
                                       const RegexBudget& budget) {
  Nfa nfa;
  if (!NfaBuilder(syntax, nfa).build()) return {};
  RegexDfa dfa;
  dfa.longest = longest_of(syntax, syntax.root);
  Determiniser determiniser(nfa, budget);
  if (!determiniser.run(dfa)) return {};
  std::array<uint32_t, 4> sets{};
  for (uint32_t bits = 0; bits < 4; ++bits) {
    std::vector<uint32_t> set;
    if (bits & 1) set.push_back(pattern << 1);
    if (bits & 2) set.push_back(pattern << 1 | 1);
    sets[bits] = reports.number(set);
  }
  dfa.states.resize(determiniser.size());
  for (uint32_t s = 0; s < dfa.states.size(); ++s) {
    const uint8_t outputs = determiniser.outputs(s);
    dfa.states[s] = {sets[outputs & 3], sets[outputs >> 2]};
  }
  dfa = minimized(dfa);
  join_classes(dfa);
  return dfa;
}

RegexDfa minimized(const RegexDfa& dfa) {
  // Hopcroft's algorithm: blocks of states that are not told apart yet, split by where their predecessors lead.
  const uint32_t n = static_cast<uint32_t>(dfa.size()), classes = dfa.classes;
  std::vector<uint32_t> order(n), place(n), block_of(n);
  struct Block {
    uint32_t begin, end, marked;
  };
  std::vector<Block> blocks;
  {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> by_output;
    for (uint32_t s = 0; s < n; ++s) by_output[{dfa.states[s].reports, dfa.states[s].end_reports}].push_back(s);
    uint32_t at = 0;
    for (const auto& [output, members] : by_output) {
      blocks.push_back({at, at + static_cast<uint32_t>(members.size()), at});
      for (const uint32_t s : members) {
        order[at] = s;
        place[s] = at++;
        block_of[s] = static_cast<uint32_t>(blocks.size() - 1);
      }
    }
  }
  // Predecessors by class, in one array.
  std::vector<uint32_t> begin(static_cast<size_t>(n) * classes + 1), from(static_cast<size_t>(n) * classes);
  for (uint32_t s = 0; s < n; ++s) {
    for (uint32_t c = 0; c < classes; ++c) ++begin[static_cast<size_t>(dfa.next[s * classes + c]) * classes + c + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  {
    std::vector<uint32_t> fill(begin.begin(), begin.end() - 1);
    for (uint32_t s = 0; s < n; ++s) {
      for (uint32_t c = 0; c < classes; ++c)
        from[fill[static_cast<size_t>(dfa.next[s * classes + c]) * classes + c]++] = s;
    }
  }

  std::vector<uint32_t> waiting, touched, splitter;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    waiting.push_back(b);
  }
  while (!waiting.empty()) {
    const uint32_t chosen = waiting.back();
    waiting.pop_back();
    splitter.assign(order.begin() + blocks[chosen].begin, order.begin() + blocks[chosen].end);
    for (uint32_t c = 0; c < classes; ++c) {
      touched.clear();
      for (const uint32_t to : splitter) {
        const size_t slot = static_cast<size_t>(to) * classes + c;
        for (uint32_t i = begin[slot]; i < begin[slot + 1]; ++i) {
          // Marked states move to the front of their block. A state has one successor by c, so it comes once.
          const uint32_t s = from[i], b = block_of[s];
          Block& block = blocks[b];
          if (block.marked == block.begin) touched.push_back(b);
          const uint32_t other = order[block.marked];
          std::swap(order[place[s]], order[block.marked]);
          std::swap(place[s], place[other]);
          ++block.marked;
        }
      }
      for (const uint32_t b : touched) {
        const uint32_t middle = blocks[b].marked;
        blocks[b].marked = blocks[b].begin;
        if (middle == blocks[b].end) continue;
        const uint32_t fresh = static_cast<uint32_t>(blocks.size());
        // The smaller part becomes the new block.
        if (middle - blocks[b].begin <= blocks[b].end - middle) {
          blocks.push_back({blocks[b].begin, middle, blocks[b].begin});
          blocks[b].begin = blocks[b].marked = middle;
        } else {
          blocks.push_back({middle, blocks[b].end, middle});
          blocks[b].end = middle;
        }
        for (uint32_t i = blocks[fresh].begin; i < blocks[fresh].end; ++i) block_of[order[i]] = fresh;
        waiting.push_back(fresh);
      }
    }
  }

  // Blocks are numbered as a walk from the start finds them, so that neighbors lie together and none is unreachable.
  RegexDfa result;
  result.class_of = dfa.class_of;
  result.classes = classes;
  result.longest = dfa.longest;
  constexpr uint32_t kNone = ~uint32_t{0};
  std::vector<uint32_t> number(blocks.size(), kNone), queue;
  const auto visit = [&](uint32_t state) {
    const uint32_t b = block_of[state];
    if (number[b] == kNone) {
      number[b] = static_cast<uint32_t>(queue.size());
      queue.push_back(order[blocks[b].begin]);
    }
    return number[b];
  };
  result.start = visit(dfa.start);
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t s = queue[i];
    result.states.push_back(dfa.states[s]);
    for (uint32_t c = 0; c < classes; ++c) result.next.push_back(visit(dfa.next[s * classes + c]));
  }
  return result;
}

std::optional<RegexDfa> merge_regex_dfas(const RegexDfa& a, const RegexDfa& b, RegexReports& reports,
                                         size_t most_states) {
  RegexDfa dfa;
  dfa.longest = std::max(a.longest, b.longest);
  std::vector<std::pair<uint32_t, uint32_t>> classes;
  {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::pair<uint32_t, uint32_t> key{a.class_of[byte], b.class_of[byte]};
      const auto [at, is_new] = numbers.try_emplace(key, static_cast<uint32_t>(classes.size()));
      if (is_new) classes.push_back(key);
      dfa.class_of[byte] = static_cast<uint8_t>(at->second);
    }
  }
  dfa.classes = static_cast<uint32_t>(classes.size());

  // Pairs of states, found by walking from the start; an open table knows those that were found.
  std::vector<uint64_t> pairs;
  std::vector<uint32_t> table(1024, 0);  // number + 1
  const auto slot_of = [&](uint64_t pair) {
    size_t i = (pair * 0x9e3779b97f4a7c15u) >> 20;
    for (;; ++i) {
      const uint32_t known = table[i & (table.size() - 1)];
      if (known == 0 || pairs[known - 1] == pair) return i & (table.size() - 1);
    }
  };
  const auto number = [&](uint32_t in_a, uint32_t in_b) {
    const uint64_t pair = uint64_t{in_a} << 32 | in_b;
    const size_t slot = slot_of(pair);
    if (table[slot]) return table[slot] - 1;
    pairs.push_back(pair);
    table[slot] = static_cast<uint32_t>(pairs.size());
    if (pairs.size() * 2 > table.size()) {
      table.assign(table.size() * 4, 0);
      for (size_t i = 0; i < pairs.size(); ++i) table[slot_of(pairs[i])] = static_cast<uint32_t>(i + 1);
    }
    return static_cast<uint32_t>(pairs.size() - 1);
  };
  dfa.start = number(a.start, b.start);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > most_states) return {};
    const uint32_t in_a = static_cast<uint32_t>(pairs[i] >> 32), in_b = static_cast<uint32_t>(pairs[i]);
    const RegexDfa::State &from_a = a.states[in_a], &from_b = b.states[in_b];
    dfa.states.push_back(
        {reports.united(from_a.reports, from_b.reports), reports.united(from_a.end_reports, from_b.end_reports)});
    for (const auto& [class_a, class_b] : classes) {
      dfa.next.push_back(number(a.next[in_a * a.classes + class_a], b.next[in_b * b.classes + class_b]));
    }
  }
  return dfa;
}

}  // namespace headrace
