#include "tables/regex/regex_literals.hh"

#include <algorithm>
#include <utility>

#include "tables/pattern/pattern_set.hh"

namespace headrace {

namespace {

using Kind = RegexNode::Kind;
using Literals = std::vector<RegexLiteral>;

bool is_upper(unsigned byte) { return byte >= 'A' && byte <= 'Z'; }

size_t shortest(const Literals& literals) {
  size_t least = literals.empty() ? 0 : literals[0].bytes.size();
  for (const RegexLiteral& literal : literals) least = std::min(least, literal.bytes.size());
  return least;
}

/// Finds the best set in a tree by walking it; `run` collects neighboring single bytes.
class LiteralFinder {
 public:
  LiteralFinder(const RegexSyntax& syntax, size_t most) : syntax_(syntax), most_(most) {}

  Literals of(uint32_t at) {
    Literals best;
    Run run;
    walk(at, run, best);
    run.end(best);
    return best;
  }

 private:
  static constexpr size_t kLongest = 64;
  static constexpr uint32_t kMostSteps = 100000;  // nested repetitions multiply

  static void better(Literals& best, Literals candidate) {
    const size_t now = shortest(best), then = shortest(candidate);
    if (then > now || (then == now && then > 0 && candidate.size() < best.size())) best = std::move(candidate);
  }

  struct Run {
    std::string bytes;  // lower case
    bool upper = false, either = false, lower = false;

    void end(Literals& best) {
      if (!bytes.empty()) better(best, {{std::move(bytes), either}});
      *this = Run();
    }
    /// Appends a byte that comes as one value or as a letter in either case; false if it is neither.
    bool append(const ByteSet& set, Literals& best) {
      const int n = set.count();
      if (n != 1 && n != 2) return false;
      const unsigned first = set.first();
      const bool letter = is_letter(static_cast<unsigned char>(first));
      if (n == 2 && !(is_upper(first) && set.has(first + 32))) return false;
      // A text is matched in either case or not, so a letter of one case does not go with one of both.
      if (letter && !bytes.empty() && (n == 2 ? upper || lower : either)) end(best);
      if (bytes.size() >= kLongest) return true;
      if (letter) (n == 2 ? either : is_upper(first) ? upper : lower) = true;
      bytes += static_cast<char>(n == 2 ? first + 32 : first);
      return true;
    }
  };

  void walk(uint32_t at, Run& run, Literals& best) {
    if (++steps_ > kMostSteps) return run.end(best);
    const RegexNode& node = syntax_.nodes[at];
    switch (node.kind) {
      case Kind::kBytes:
        if (!run.append(node.bytes, best)) run.end(best);
        return;
      case Kind::kAssertion:
        return;
      case Kind::kSequence:
        for (const uint32_t child : node.children) walk(child, run, best);
        return;
      case Kind::kAlternation: {
        run.end(best);
        Literals all;
        for (const uint32_t child : node.children) {
          const Literals some = of(child);
          if (some.empty()) return;
          for (const RegexLiteral& literal : some) {
            if (std::find(all.begin(), all.end(), literal) == all.end()) all.push_back(literal);
          }
          if (all.size() > most_) return;
        }
        better(best, std::move(all));
        return;
      }
      case Kind::kRepeat:
        if (node.min == 0) {
          run.end(best);
          return;
        }
        for (uint32_t i = 0; i < std::min(node.min, 4u); ++i) walk(node.children[0], run, best);
        if (node.min != node.max || node.min > 4) run.end(best);
        return;
    }
  }

  const RegexSyntax& syntax_;
  size_t most_;
  uint32_t steps_ = 0;
};

}  // namespace

std::vector<RegexLiteral> required_literals(const RegexSyntax& syntax, size_t most) {
  Literals found = LiteralFinder(syntax, most).of(syntax.root);
  if (shortest(found) < 2) found.clear();
  return found;
}

}  // namespace headrace
