#pragma once
/// \file
/// Reading an element's arguments.
///
///     Status configure(Args& args) {
///       return args.read_mp("COLOR", color_).read("ANNO", anno_).read("BURST", burst_, Between{1, 256}).complete();
///     }
///
/// An argument is `KEYWORD value`, or a value alone, whose position gives its meaning. The type of the variable
/// determines how the value is parsed; a parser object as the third argument parses it differently, or checks it.
/// complete() reports all mistakes of the element at once, and assigns the variables only if there are none.
///
/// Variables may be: bool, integers of 8 to 64 bits, double, std::string, IpAddress, IpPrefix, Ip6Address, Ip6Prefix,
/// EtherAddress, Interval, Timestamp, Bandwidth, AnnotationRange, AnnotationArg<bytes>, pointers to elements (Element*
/// or a class derived from it), and std::vector (words separated by blanks) or std::optional of any of these. To add a
/// type of your own, define `bool parse_argument(std::string_view, T&, const ArgContext&)` in its namespace.

#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/bandwidth.hh"
#include "headrace/error.hh"
#include "headrace/timestamp.hh"

namespace headrace {

class Element;

/// Where an annotation lies in a packet. Size 0 means that only the offset was given.
struct AnnotationRange {
  int offset = 0;
  int size = 0;
  constexpr bool operator==(const AnnotationRange&) const = default;
};

/// Resolves names in an element's arguments, as seen from the element's place in its router. A router implements it;
/// the default functions know no names. A name is looked up in the element's compound first, then in the enclosing
/// ones.
class NameScope {
 public:
  virtual ~NameScope() = default;

  virtual std::optional<IpAddress> find_ip(std::string_view name) const;
  virtual std::optional<IpPrefix> find_prefix(std::string_view name) const;
  virtual std::optional<Ip6Address> find_ip6(std::string_view name) const;
  virtual std::optional<Ip6Prefix> find_ip6_prefix(std::string_view name) const;
  virtual std::optional<EtherAddress> find_ether(std::string_view name) const;
  /// Annotation names that the configuration defines in addition to those of find_builtin_annotation().
  virtual std::optional<AnnotationRange> find_annotation(std::string_view name) const;
  /// Port names that the configuration defines in addition to those of find_service() (`protocol` as in the IP header).
  virtual std::optional<uint16_t> find_port(std::string_view name, int protocol) const;
  virtual Element* find_element(std::string_view name) const;

  /// Defines a name in the compound that contains the element; returns false if the scope cannot hold names.
  virtual bool define(std::string_view name, IpAddress value);
  virtual bool define(std::string_view name, const IpPrefix& value);
  virtual bool define(std::string_view name, const Ip6Address& value);
  virtual bool define(std::string_view name, const Ip6Prefix& value);
  virtual bool define(std::string_view name, const EtherAddress& value);
  virtual bool define(std::string_view name, AnnotationRange value);
  virtual bool define_port(std::string_view name, int protocol, uint16_t port);

  /// The path of a file that the configuration names: as given if it exists, else relative to the folder of the
  /// configuration file.
  virtual std::string find_file(std::string_view name) const;

  /// How many inputs and outputs of the element being configured are in use.
  virtual int ninputs() const;
  virtual int noutputs() const;
};

/// Context of a parse function: the scope for name lookups and the sink for errors.
class ArgContext {
 public:
  ArgContext() = default;
  /// \param scope may be null: then only numbers are understood
  /// \param errors may be null: then errors are dropped
  explicit ArgContext(NameScope* scope, Errors* errors = nullptr) : scope_(scope), errors_(errors) {}

  NameScope* scope() const { return scope_; }

  /// Reports an error of the current argument as "KEYWORD: text". Always returns false.
  template <typename... A>
  bool error(fmt::format_string<A...> format, A&&... arguments) const {
    report_error(fmt::format(format, std::forward<A>(arguments)...));
    return false;
  }
  /// Tells what a parse function expected, as a literal such as "an IPv4 address", if it fails without reporting an
  /// error of its own. The message is then "KEYWORD: expected an IPv4 address". Always returns false.
  bool expect(std::string_view what) const {
    expected_ = what;
    return false;
  }
  /// To be called after a parse function with what it returned: if it failed without an error of its own, reports what
  /// it expected. Returns whether the value is good.
  bool settle(bool parsed) const;
  template <typename... A>
  void warning(fmt::format_string<A...> format, A&&... arguments) const {
    report_warning(fmt::format(format, std::forward<A>(arguments)...));
  }

 private:
  friend class Args;
  void report_error(std::string_view text) const;
  void report_warning(std::string_view text) const;
  std::string prefixed(std::string_view text) const;

  NameScope* scope_ = nullptr;
  Errors* errors_ = nullptr;
  std::string_view keyword_, text_;  // of the argument being read
  mutable std::string_view expected_;
  mutable bool reported_ = false;
};

// --- Value types

/// A span of time that is not negative: a real number of seconds, or a number with a unit `ns us ms s m h d` (also
/// `nsec usec msec sec min hr day`).
struct Interval {
  int64_t ns = 0;

  static constexpr Interval from_ms(int64_t n) { return {n * 1000000}; }
  static constexpr Interval from_sec(int64_t n) { return {n * 1000000000}; }
  constexpr Timestamp timestamp() const { return Timestamp::from_ns(ns); }
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
  /// "10s", "1.5s", "20ms", "0s": in seconds; below one second, in the largest unit that gives a whole number.
  std::string unparse() const;
  constexpr auto operator<=>(const Interval&) const = default;
};

/// The offset of an annotation of `Size` bytes, given by name or by offset. It is an error if the named annotation has
/// another size, or if the annotation does not fit into the annotation area.
template <int Size>
struct AnnotationArg {
  int offset = 0;
  constexpr operator int() const { return offset; }
};

// --- Parse functions

/// Parses `text` into `out`; returns false and leaves `out` unchanged if it does not parse. Numbers: Click's forms 10,
/// 0x1f, 017, 0b101, 1_000. Strings: one word, unquoted; `\<48 45>` is data. Addresses: numbers or names, with Click's
/// suffixes `name:ip`, `name:bcast`, `name:gw`, `name:ipnet`, `name:eth`, `name:ip6`, `name:ip6net`; if there is a
/// scope, the name of a network device stands for its addresses.
bool parse_argument(std::string_view text, bool& out, const ArgContext& context);
bool parse_argument(std::string_view text, double& out, const ArgContext& context);
bool parse_argument(std::string_view text, std::string& out, const ArgContext& context);
bool parse_argument(std::string_view text, IpAddress& out, const ArgContext& context);
bool parse_argument(std::string_view text, IpPrefix& out, const ArgContext& context);
bool parse_argument(std::string_view text, Ip6Address& out, const ArgContext& context);
bool parse_argument(std::string_view text, Ip6Prefix& out, const ArgContext& context);
bool parse_argument(std::string_view text, EtherAddress& out, const ArgContext& context);
bool parse_argument(std::string_view text, Interval& out, const ArgContext& context);
/// "sec.frac", with the units of Interval; not negative.
bool parse_argument(std::string_view text, Timestamp& out, const ArgContext& context);
bool parse_argument(std::string_view text, Bandwidth& out, const ArgContext& context);
bool parse_argument(std::string_view text, AnnotationRange& out, const ArgContext& context);
bool parse_argument(std::string_view text, Element*& out, const ArgContext& context);

/// Integers that are numbers, not truth values or characters.
template <typename T>
concept IntegerValue = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && sizeof(T) <= 8;

namespace detail {
/// Reads an integer in base `base` (0: its prefix determines the base) within the limits of a type, and reports errors.
bool parse_integer(std::string_view text, int base, int64_t min, uint64_t max, uint64_t& out,
                   const ArgContext& context);
bool parse_annotation(std::string_view text, int size, int& offset, const ArgContext& context);
std::vector<std::string> words_of(std::string_view text);
/// The class name in a compiler's rendering of `[T = ...]`.
std::string_view class_name_of(std::string_view pretty_function);
template <typename T>
std::string_view class_name() {
  return class_name_of(__PRETTY_FUNCTION__);
}
bool same_word(std::string_view a, std::string_view b);
}  // namespace detail

template <IntegerValue T>
bool parse_argument(std::string_view text, T& out, const ArgContext& context) {
  uint64_t value;
  if (!detail::parse_integer(text, 0, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value, context))
    return false;
  out = static_cast<T>(value);
  return true;
}

template <int Size>
bool parse_argument(std::string_view text, AnnotationArg<Size>& out, const ArgContext& context) {
  return detail::parse_annotation(text, Size, out.offset, context);
}

/// An element of class T, by name. `E` is always Element; as a template parameter it delays the cast until that class
/// is complete.
template <typename T, typename E = Element>
requires std::derived_from<T, E>
bool parse_argument(std::string_view text, T*& out, const ArgContext& context) {
  E* element = nullptr;
  if (!parse_argument(text, element, context)) return false;
  T* cast = dynamic_cast<T*>(element);
  if (!cast) return context.error("element type mismatch, expected {}", detail::class_name<T>());
  out = cast;
  return true;
}

template <typename T>
bool parse_argument(std::string_view text, std::optional<T>& out, const ArgContext& context) {
  T value{};
  if (!parse_argument(text, value, context)) return false;
  out = std::move(value);
  return true;
}

template <typename T>
bool parse_argument(std::string_view text, std::vector<T>& out, const ArgContext& context) {
  std::vector<T> values;
  for (const std::string& word : detail::words_of(text)) {
    T value{};
    if (!parse_argument(word, value, context)) return false;
    values.push_back(std::move(value));
  }
  out = std::move(values);
  return true;
}

// --- Parser objects

/// Any object with a member `bool parse(std::string_view, T&, const ArgContext&) const`.
template <typename P, typename T>
concept ParserOf = requires(const P& parser, std::string_view text, T& out, const ArgContext& context) {
  { parser.parse(text, out, context) } -> std::convertible_to<bool>;
};

/// Parses a value that is not an argument, such as one written to a handler. Errors say what was expected; `out` is
/// then unchanged.
template <typename T>
Status parse_value(std::string_view text, T& out, Errors& errors) {
  const ArgContext context(nullptr, &errors);
  return context.settle(parse_argument(text, out, context)) ? Status() : Status::failed();
}
template <typename T, ParserOf<T> P>
Status parse_value(std::string_view text, T& out, const P& parser, Errors& errors) {
  const ArgContext context(nullptr, &errors);
  return context.settle(parser.parse(text, out, context)) ? Status() : Status::failed();
}

/// A number from `min` to `max`, both included.
template <typename L, typename H>
struct Between {
  constexpr Between(L min, H max) : min(min), max(max) {}
  L min;
  H max;

  template <typename T>
  bool parse(std::string_view text, T& out, const ArgContext& context) const {
    T value;
    if (!parse_argument(text, value, context)) return false;
    if constexpr (IntegerValue<T>) {
      if (std::cmp_less(value, min)) return context.error("out of range, bound {}", min);
      if (std::cmp_greater(value, max)) return context.error("out of range, bound {}", max);
    } else {
      // Written so that a NaN fails.
      if (!(value >= min)) return context.error("out of range, bound {}", min);
      if (!(value <= max)) return context.error("out of range, bound {}", max);
    }
    out = value;
    return true;
  }
};

/// An integer in base 2 to 36; in base 16 a prefix 0x is allowed.
struct IntegerBase {
  int base;

  template <IntegerValue T>
  bool parse(std::string_view text, T& out, const ArgContext& context) const {
    uint64_t value;
    if (!detail::parse_integer(text, base, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value,
                               context))
      return false;
    out = static_cast<T>(value);
    return true;
  }
};

/// The text as written, including quotation marks.
struct AnyArg {
  bool parse(std::string_view text, std::string& out, const ArgContext& context) const;
};

/// One word that contains no blanks, quotation marks or commas once it is unquoted.
struct WordArg {
  bool parse(std::string_view text, std::string& out, const ArgContext& context) const;
};

/// A file name. `~/` and `~user/` stand for home directories; double slashes are merged.
struct FileName {
  bool parse(std::string_view text, std::string& out, const ArgContext& context) const;
};

/// The name of a file to read: a FileName that may also be relative to the folder of the configuration file.
struct InputFile {
  bool parse(std::string_view text, std::string& out, const ArgContext& context) const;
};

/// The name of a handler, "element.handler" or "handler", unquoted. Whether the handler exists is not checked here.
struct HandlerName {
  bool parse(std::string_view text, std::string& out, const ArgContext& context) const;
};

/// Like the default parser, but an address without a mask is a prefix of full length.
struct PrefixOrAddress {
  bool parse(std::string_view text, IpPrefix& out, const ArgContext& context) const;
  bool parse(std::string_view text, Ip6Prefix& out, const ArgContext& context) const;
};

/// A port by number or name, in host order. `protocol` is the number in the IP header; 0 tries TCP's names, then UDP's.
struct TcpUdpPort {
  int protocol = 0;
  bool parse(std::string_view text, uint16_t& out, const ArgContext& context) const;
};

/// An IP protocol by number or name.
struct IpProtocol {
  bool parse(std::string_view text, uint8_t& out, const ArgContext& context) const;
};

/// A Timestamp that may be negative.
struct SignedTime {
  bool parse(std::string_view text, Timestamp& out, const ArgContext& context) const;
};

/// One of several words, case ignored: `Choice<Mode>{{"none", Mode::kNone}, {"hex", Mode::kHex}}`. The error lists
/// them.
template <typename V>
class Choice {
 public:
  Choice(std::initializer_list<std::pair<std::string_view, V>> words) : words_(words) {}

  bool parse(std::string_view text, V& out, const ArgContext& context) const {
    std::string word, expected;
    if (WordArg{}.parse(text, word, context))
      for (const auto& [name, value] : words_)
        if (detail::same_word(name, word)) {
          out = value;
          return true;
        }
    for (const auto& [name, value] : words_) expected += (expected.empty() ? "" : ", ") + std::string(name);
    return context.error("unknown value, expected one of: {}", expected);
  }

 private:
  std::vector<std::pair<std::string_view, V>> words_;
};

// --- Args

/// The arguments of one element. The read functions mark arguments as used and can be chained; each comes in four
/// forms:
///
///     read      keyword only            read_p    keyword or position
///     read_m    keyword, mandatory      read_mp   keyword or position, mandatory
///
/// Positions count from the first argument; arguments after a used keyword argument have no position. A mandatory
/// positional argument takes whatever is in its place, even text that begins like a keyword. If a keyword occurs more
/// than once, the last occurrence counts (see read_all). An argument without text counts as not given.
class Args {
 public:
  /// \param scope may be null
  Args(std::vector<std::string> arguments, NameScope* scope, Errors& errors);
  /// The words of a text as arguments.
  static Args from_words(std::string_view text, NameScope* scope, Errors& errors);
  /// The arguments in a configuration string.
  static Args from_text(std::string_view text, NameScope* scope, Errors& errors);
  Args(const Args&) = delete;
  Args& operator=(const Args&) = delete;
  ~Args();

  template <typename T>
  Args& read(const char* key, T& var) {
    return read_with(key, 0, var, Default{});
  }
  template <typename T>
  Args& read_p(const char* key, T& var) {
    return read_with(key, kPositional, var, Default{});
  }
  template <typename T>
  Args& read_m(const char* key, T& var) {
    return read_with(key, kMandatory, var, Default{});
  }
  template <typename T>
  Args& read_mp(const char* key, T& var) {
    return read_with(key, kMandatory | kPositional, var, Default{});
  }

  template <typename T, ParserOf<T> P>
  Args& read(const char* key, T& var, const P& parser) {
    return read_with(key, 0, var, parser);
  }
  template <typename T, ParserOf<T> P>
  Args& read_p(const char* key, T& var, const P& parser) {
    return read_with(key, kPositional, var, parser);
  }
  template <typename T, ParserOf<T> P>
  Args& read_m(const char* key, T& var, const P& parser) {
    return read_with(key, kMandatory, var, parser);
  }
  template <typename T, ParserOf<T> P>
  Args& read_mp(const char* key, T& var, const P& parser) {
    return read_with(key, kMandatory | kPositional, var, parser);
  }

  /// Like read(), but sets `given` immediately: true if the argument was there and valid.
  template <typename T>
  Args& read_status(const char* key, T& var, bool& given) {
    return read_with(key, 0, var, Default{}, &given);
  }
  template <typename T, ParserOf<T> P>
  Args& read_status(const char* key, T& var, const P& parser, bool& given) {
    return read_with(key, 0, var, parser, &given);
  }
  template <typename T>
  Args& read_p_status(const char* key, T& var, bool& given) {
    return read_with(key, kPositional, var, Default{}, &given);
  }
  template <typename T, ParserOf<T> P>
  Args& read_p_status(const char* key, T& var, const P& parser, bool& given) {
    return read_with(key, kPositional, var, parser, &given);
  }

  /// Like read(), but sets the variable to `otherwise` if the argument is not given.
  template <typename T, typename V>
  Args& read_or_set(const char* key, T& var, const V& otherwise) {
    return read_or_set_with(key, 0, var, Default{}, otherwise);
  }
  template <typename T, typename V>
  Args& read_or_set_p(const char* key, T& var, const V& otherwise) {
    return read_or_set_with(key, kPositional, var, Default{}, otherwise);
  }
  template <typename T, ParserOf<T> P, typename V>
  Args& read_or_set(const char* key, T& var, const P& parser, const V& otherwise) {
    return read_or_set_with(key, 0, var, parser, otherwise);
  }
  template <typename T, ParserOf<T> P, typename V>
  Args& read_or_set_p(const char* key, T& var, const P& parser, const V& otherwise) {
    return read_or_set_with(key, kPositional, var, parser, otherwise);
  }

  /// Reads every occurrence of a keyword, in order; if there is none, the list becomes empty.
  template <typename T>
  Args& read_all(const char* key, std::vector<T>& var) {
    return read_all_with(key, var, Default{});
  }
  template <typename T, ParserOf<T> P>
  Args& read_all(const char* key, std::vector<T>& var, const P& parser) {
    return read_all_with(key, var, parser);
  }

  /// Takes all unused arguments, in order, as text with their quotation marks. This includes arguments that begin like
  /// a keyword, since a pattern `allow all` cannot be told from a keyword ALLOW. `rest` is set immediately.
  Args& consume_rest(std::vector<std::string>& rest);

  /// Reports unused arguments and all mistakes. If there are none, assigns the variables.
  Status complete();
  /// Like complete(), but allows unused arguments: reading continues with them, and positions count from the first of
  /// them.
  Status consume();

  /// False as soon as a read has failed.
  bool ok() const { return ok_; }
  /// The number of arguments that no read has used.
  size_t remaining() const;
  NameScope* scope() const { return context_.scope(); }
  Errors& errors() const { return *context_.errors_; }
  /// For parse_argument() on parts of an argument's text; its errors name no keyword.
  ArgContext context() const { return ArgContext(context_.scope_, context_.errors_); }

 private:
  static constexpr unsigned kMandatory = 1;
  static constexpr unsigned kPositional = 2;
  static constexpr unsigned kFirst = 4;  // take the first occurrence of a keyword, not the last

  struct Default {
    template <typename T>
    bool parse(std::string_view text, T& out, const ArgContext& context) const {
      return parse_argument(text, out, context);
    }
  };

  enum class Use : uint8_t { kFree, kPosition, kKeyword };
  struct Argument {
    std::string text;
    size_t keyword_length = 0;  // 0: the text does not begin with a keyword
    Use use = Use::kFree;
  };

  /// A value that complete() assigns.
  struct Assignment {
    virtual ~Assignment() = default;
    virtual void apply() = 0;
  };
  template <typename T>
  struct AssignmentTo final : Assignment {
    AssignmentTo(T& variable, T value) : variable(variable), value(std::move(value)) {}
    void apply() override { variable = std::move(value); }
    T& variable;
    T value;
  };

  template <typename T>
  void assign_later(T& variable, T value) {
    assignments_.push_back(std::make_unique<AssignmentTo<T>>(variable, std::move(value)));
  }

  /// Finds an argument's text and marks the argument as used; reports a missing mandatory argument.
  std::optional<std::string_view> find(const char* key, unsigned flags);
  /// Records whether the argument found last was parsed.
  bool settle(bool parsed);

  template <typename T, typename P>
  Args& read_with(const char* key, unsigned flags, T& var, const P& parser, bool* given = nullptr) {
    bool good = false;
    if (const std::optional<std::string_view> text = find(key, flags)) {
      T value{};
      good = settle(parser.parse(*text, value, context_));
      if (good) assign_later(var, std::move(value));
    }
    if (given) *given = good;
    return *this;
  }

  template <typename T, typename P, typename V>
  Args& read_or_set_with(const char* key, unsigned flags, T& var, const P& parser, const V& otherwise) {
    const std::optional<std::string_view> text = find(key, flags);
    if (!text) {
      assign_later(var, static_cast<T>(otherwise));
    } else if (T value{}; settle(parser.parse(*text, value, context_))) {
      assign_later(var, std::move(value));
    }
    return *this;
  }

  template <typename T, typename P>
  Args& read_all_with(const char* key, std::vector<T>& var, const P& parser) {
    std::vector<T> values;
    while (const std::optional<std::string_view> text = find(key, kFirst)) {
      T value{};
      if (settle(parser.parse(*text, value, context_))) values.push_back(std::move(value));
    }
    assign_later(var, std::move(values));
    return *this;
  }

  void report_leftovers();
  Status assign();

  std::vector<Argument> arguments_;
  std::vector<std::string> known_keywords_;
  std::vector<std::unique_ptr<Assignment>> assignments_;
  ArgContext context_;
  bool ok_ = true;
};

// --- Names that need no scope

/// PAINT, DST_IP, AGGREGATE, ...: every name in HEADRACE_ANNOTATIONS.
std::optional<AnnotationRange> find_builtin_annotation(std::string_view name);
/// "tcp", "icmp", ...: common names first, then the system's /etc/protocols.
std::optional<uint8_t> find_ip_protocol(std::string_view name);
/// "www", "domain", ...: common names first, then the system's /etc/services. Protocol 0 tries TCP's, then UDP's.
std::optional<uint16_t> find_service(std::string_view name, int protocol);

}  // namespace headrace
