#pragma once
/// \file
/// A primitive of the IP pattern language, such as `src tcp port & 0xff00 != 80`, and its translation to tests.

#include <headrace/addresses.hh>
#include <headrace/error.hh>
#include <optional>
#include <string>
#include <utility>

#include "tables/decision/decision_graph.hh"
#include "tables/decision/ip_words.hh"

namespace headrace::decision {

/// Reports what is wrong with one pattern, as "pattern N: text".
class PatternErrors {
 public:
  PatternErrors(Errors& errors, size_t number) : errors_(errors), number_(number) {}

  template <typename... A>
  void error(fmt::format_string<A...> format, A&&... args) {
    (void)errors_.error("pattern {}: {}", number_, fmt::format(format, std::forward<A>(args)...));
    failed_ = true;
  }
  template <typename... A>
  void warning(fmt::format_string<A...> format, A&&... args) {
    errors_.warning("pattern {}: {}", number_, fmt::format(format, std::forward<A>(args)...));
  }
  bool failed() const { return failed_; }

 private:
  Errors& errors_;
  size_t number_;
  bool failed_ = false;
};

/// A number or address to compare with, and where it came from.
struct IpValue {
  IpType type{};
  /// A number, or an IP address in host order.
  uint32_t number = 0;
  /// Of a range of numbers, the last one.
  std::optional<uint32_t> last;
  /// For kNet.
  uint32_t net_mask = 0;
  EtherAddress ether;
};

/// The words of a primitive, first as they were written, then, after check(), with all that they leave unsaid.
struct IpPrimitive {
  enum class Relation : uint8_t { kEqual, kGreater, kLess };
  enum class Header : uint8_t { kUnsaid, kIp, kEther };

  IpType type{};
  Direction direction = Direction::kUnsaid;
  int protocol = kUnknownProtocol;
  Header header = Header::kUnsaid;
  /// False once a value was refused with an error of its own.
  bool sound = true;
  Relation relation = Relation::kEqual;
  bool negated = false;
  IpValue value;
  std::optional<IpValue> mask;

  void set_type(const IpType& wanted, PatternErrors& errors);
  void set_direction(Direction wanted, PatternErrors& errors);
  void set_protocol(int wanted, PatternErrors& errors);

  /// Completes the primitive; `before` is the one before it in the pattern, from which `src port 80 or 81` takes its
  /// qualifiers. False after an error.
  bool check(const IpPrimitive& before, PatternErrors& errors);
  /// The tests of a primitive that check() passed.
  Expression compile() const;

 private:
  bool complete_type(const IpPrimitive& before, PatternErrors& errors);
  bool check_type(PatternErrors& errors);
  bool check_address(const IpType& wanted, PatternErrors& errors);
  bool check_protocol(PatternErrors& errors);
  bool check_port(PatternErrors& errors);
  bool check_tcp_option(PatternErrors& errors);
  bool check_bits(uint32_t bound, PatternErrors& errors);
  bool check_relation(PatternErrors& errors);
  bool fail(const char* problem, PatternErrors& errors) const;
  std::string relation_text() const;

  Expression compare(int offset, int shift, uint32_t number, uint32_t mask) const;
  Expression compare_both(const Expression& source, const Expression& destination) const;
  Expression compile_ether() const;
  Expression compile_value() const;

  // What check() found for compile().
  uint32_t number_ = 0;
  uint32_t mask_ = 0;
  EtherAddress ether_mask_;
};

}  // namespace headrace::decision
