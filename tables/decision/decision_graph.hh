#pragma once
/// \file
/// The decision graph from which a program is made: building it from expressions, optimizing it, printing it. Host
/// only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::decision {

/// Where a branch leads: the index of a test, or an outcome below zero.
using Target = int32_t;

/// The packet is not wanted by any rule.
inline constexpr Target kNever = INT32_MIN;
/// Placeholders while rules are put together.
inline constexpr Target kFailure = INT32_MIN + 1;
inline constexpr Target kSuccess = INT32_MIN + 2;

/// Output `n` as a target.
constexpr Target to_output(int n) { return -1 - n; }
constexpr bool is_test(Target target) { return target >= 0; }
constexpr bool is_output(Target target) { return target < 0 && target > kSuccess; }
/// The number of an output target.
constexpr int output_of(Target target) { return -1 - target; }

/// How Click's `program` handler, and the offsets of tests, number the bytes of IP programs: the MAC header begins at
/// kMacBase (two bytes of padding put the Ethernet type's word on a multiple of four), and so on.
inline constexpr int kMacBase = 2;
inline constexpr int kNetworkBase = 256;
inline constexpr int kTransportBase = 512;

/// What a test compares: the four bytes at `offset`, under a mask. Words are in network order, so that the first byte
/// is the most significant.
struct Test {
  uint16_t offset = 0;
  /// The branch of a packet that ends before the tested bytes: yes if true.
  bool short_yes = false;
  uint32_t mask = 0;
  uint32_t value = 0;

  bool operator==(const Test&) const = default;

  /// Bytes a packet needs so that the test can be made; 0 for a test that always holds.
  int required_length() const;
};

/// A test and its two branches.
struct Node {
  Test test;
  Target next[2] = {kFailure, kSuccess};  // no, yes

  Target yes() const { return next[1]; }
  Target no() const { return next[0]; }
};

/// A formula over tests; what a pattern is parsed into.
class Expression {
 public:
  /// Always true.
  Expression() : Expression(Test{}) {}
  explicit Expression(const Test& test) : test_(test) {}

  static Expression all(std::vector<Expression> parts) { return Expression(Kind::kAll, std::move(parts)); }
  static Expression any(std::vector<Expression> parts) { return Expression(Kind::kAny, std::move(parts)); }
  /// condition, answer, condition, answer, ..., answer otherwise. An odd number of parts.
  static Expression choose(std::vector<Expression> parts) { return Expression(Kind::kChoose, std::move(parts)); }
  static Expression constant(bool value) {
    Expression result;
    if (!value) result.negate();
    return result;
  }

  /// Logical not; a packet too short for a test keeps failing that test, so that the negation holds for it.
  void negate() { negated_ = !negated_; }
  /// As negate(), but a packet too short for a test fails the negation too: `src port != 5` wants a port.
  void negate_comparison();

  int test_count() const { return test_count_; }

 private:
  friend class Graph;
  enum class Kind : uint8_t { kTest, kAll, kAny, kChoose };

  Expression(Kind kind, std::vector<Expression> parts);
  void flip_short();

  Kind kind_ = Kind::kTest;
  bool negated_ = false;
  Test test_;
  int test_count_ = 1;
  std::vector<Expression> parts_;
};

/// A directed acyclic graph of tests. Edges lead to higher indexes; the first test is the entry.
///
/// The optimizer follows Begel, McCanne and Graham, "BPF+" (SIGCOMM 1999), in the bounded form that Click uses, and
/// gives the graphs that Click gives, because users compare the texts of the `program` handler. It differs where
/// Click's graph sends a packet elsewhere than the patterns say: joined tests of which only one lets short packets
/// pass, tests with an empty mask, and nodes both of whose branches lead to one place.
class Graph {
 public:
  /// A graph without tests that sends every packet to `everything`.
  explicit Graph(Target everything = kNever) : everything_(everything) {}
  /// Packets for which the expression holds go to `success`, others to `failure`.
  Graph(const Expression& expression, Target success, Target failure);

  const std::vector<Node>& nodes() const { return nodes_; }
  /// Where every packet goes, if no test is needed to say.
  std::optional<Target> everything() const { return everything_; }

  /// Packets that end in kFailure go on with `next`.
  void otherwise(const Graph& next);
  /// Turns kFailure into `target`, an outcome.
  void set_failure(Target target);

  /// Brings tests that are joined by "and" or "or" into a fixed order, which makes equal tests of rules meet. If
  /// `protocol_first`, the word with the IP protocol comes before all others.
  void sort(bool protocol_first);
  /// sort(), then removes tests whose answer is known on every path to them, joins tests of one word, drops what cannot
  /// be reached.
  void optimize(bool protocol_first);

  /// One past the last byte any test looks at.
  int safe_length() const;
  /// The outputs below `count` that no packet can reach.
  std::vector<int> unused_outputs(int count) const;

  /// The text of Click's `program` handler. If `grouped`, tests of one word with one answer follow each other, and
  /// seven or more of them are ordered by value, as Click's IPFilter prints them.
  std::string text(bool grouped) const;

 private:
  void emit(const Expression& expression, Target success, Target failure);
  void join_tests();
  void prune();

  std::vector<Node> nodes_;
  std::optional<Target> everything_;
};

/// Points branches past tests whose answer follows from the tests before them.
void skip_known_tests(std::vector<Node>& nodes);

}  // namespace headrace::decision
