#include "tables/decision/ip_filter.hh"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tables/decision/ip_primitive.hh"
#include "tables/decision/ip_words.hh"

namespace headrace {

namespace {

using namespace decision;

/// Keeps the parser's recursion within a thread's stack.
constexpr int kMaxDepth = 1000;
/// Bytes of a header that a primitive can name: Click's offsets leave so much for the IP header, and no header is
/// longer than the other.
constexpr int64_t kNetworkBytes = kTransportBase - kNetworkBase;
constexpr int64_t kTransportBytes = 8192;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("-./@_:").find(c) != std::string_view::npos;
}

/// Parts a pattern into words and operators.
std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    size_t length = 1;
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] == '&' || text[at] == '|') {
      if (next == text[at]) length = 2;
    } else if (text[at] == '<' || text[at] == '>' || text[at] == '!' || text[at] == '=') {
      if (next == '=') length = 2;
    } else if (is_word(text[at])) {
      while (at + length < text.size() && is_word(text[at + length])) ++length;
    }
    words.emplace_back(text.substr(at, length));
    at += length;
  }
  return words;
}

/// A number as 32 bits; negative ones in two's complement.
std::optional<uint32_t> parse_number(std::string_view text) {
  int64_t number = 0;
  if (!parse_argument(text, number, ArgContext()) || number < INT32_MIN || number > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(number);
}

struct Range {
  uint32_t first, last;
};

std::optional<Range> parse_range(std::string_view text) {
  const size_t dash = text.find('-', 1);
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_number(text.substr(0, dash));
  const auto last = parse_number(text.substr(dash + 1));
  if (!first || !last || text[0] == '-' || text[dash + 1] == '-') return std::nullopt;
  return Range{*first, *last};
}

class IpPatternParser {
 public:
  /// Reads `words` from `begin` on.
  IpPatternParser(const std::vector<std::string>& words, size_t begin, IpWords& meanings, const ArgContext& context,
                  PatternErrors& errors)
      : words_(words), at_(begin), meanings_(meanings), context_(context), errors_(errors) {}

  Expression parse() {
    Expression result = parse_expression();
    if (at_ < words_.size()) errors_.error("garbage after expression at '{}'", words_[at_]);
    return result;
  }

 private:
  bool at_word(std::string_view word) const { return at_ < words_.size() && words_[at_] == word; }
  bool take(std::string_view word) {
    if (!at_word(word)) return false;
    ++at_;
    return true;
  }
  /// The word `ahead` of the current one, if another follows it.
  std::string_view inner_word(size_t ahead = 0) const {
    return at_ + ahead + 1 < words_.size() ? std::string_view(words_[at_ + ahead]) : std::string_view();
  }

  Expression parse_expression() {
    if (depth_ == kMaxDepth) {
      errors_.error("expression nested too deeply");
      at_ = words_.size();
      too_deep_ = true;
      return Expression();
    }
    ++depth_;
    std::vector<Expression> parts{parse_or()};
    while (take("?")) {
      const size_t begin = at_;
      parts.push_back(parse_expression());
      if (at_ == begin || !take(":")) {
        errors_.error("missing ':' in ternary expression");
        break;
      }
      parts.push_back(parse_or());
    }
    --depth_;
    return parts.size() == 1 ? std::move(parts[0]) : Expression::choose(std::move(parts));
  }

  Expression parse_or() {
    std::vector<Expression> parts;
    do {
      parts.push_back(parse_and());
    } while (take("or") || take("||"));
    return parts.size() == 1 ? std::move(parts[0]) : Expression::any(std::move(parts));
  }

  Expression parse_and() {
    std::vector<Expression> parts;
    bool wanted = true;
    for (;;) {
      const size_t begin = at_;
      std::optional<Expression> part = parse_factor(false);
      if (part) parts.push_back(std::move(*part));
      if (at_ == begin) {
        if (wanted) errors_.error("missing expression");
        break;
      }
      wanted = take("and") || take("&&");
    }
    return parts.size() == 1 ? std::move(parts[0]) : Expression::all(std::move(parts));
  }

  /// Nothing, and the position unchanged, if no factor begins here.
  std::optional<Expression> parse_factor(bool negated) {
    while (at_word("not") || at_word("!")) {
      negated = !negated;
      ++at_;
      if (at_ == words_.size() || ends_factor(words_[at_])) {
        errors_.error("missing expression after '{}'", words_[at_ - 1]);
        return Expression();
      }
    }
    if (!take("(")) return parse_test(negated);
    const size_t begin = at_;
    Expression result = parse_expression();
    if (at_ == begin) {
      errors_.error("missing expression after '('");
      take(")");
    } else if (!take(")") && !too_deep_) {
      errors_.error("missing ')'");
    }
    if (negated) result.negate();
    return result;
  }

  static bool ends_factor(std::string_view word) {
    return word == ")" || word == "||" || word == "or" || word == "?" || word == ":";
  }

  std::optional<Expression> parse_test(bool negated) {
    if (at_ == words_.size() || ends_factor(words_[at_])) return std::nullopt;
    for (const auto& [word, value] :
         {std::pair("true", true), {"any", true}, {"all", true}, {"false", false}, {"none", false}}) {
      if (take(word)) return Expression::constant(value != negated);
    }

    const size_t begin = at_;
    IpPrimitive primitive;
    parse_qualifiers(primitive, negated);
    // Qualifiers make a primitive independent of the one before.
    if (at_ != begin) before_ = IpPrimitive();
    if (before_.value.type == IpType::kEther) primitive.header = IpPrimitive::Header::kEther;
    if (inner_word() == "[" && at_ > begin && primitive.type == IpType::kNone) parse_brackets(primitive);
    parse_mask(primitive);
    parse_relation(primitive);
    parse_value(primitive);

    if (at_ == begin) {
      errors_.error("empty term near '{}'", words_[at_]);
      return std::nullopt;
    }
    if (!primitive.check(before_, errors_)) return Expression();
    before_ = primitive;
    Expression result = primitive.compile();
    if (negated) result.negate();
    return result;
  }

  void parse_qualifiers(IpPrimitive& primitive, bool& negated) {
    for (; at_ < words_.size(); ++at_) {
      const std::string_view word = words_[at_];
      const IpWords::Meaning meaning = meanings_.find(word, {}, kUnknownProtocol);
      if (meaning.kind == IpWords::Meaning::kType) {
        primitive.set_type(meaning.type, errors_);
        if (meaning.type.field.protocol != 0) primitive.set_protocol(meaning.type.field.protocol, errors_);
      } else if (meaning.kind == IpWords::Meaning::kValue && meaning.type == IpType::kProtocol) {
        primitive.set_protocol(static_cast<int>(meaning.value), errors_);
      } else if (word == "!" || word == "not") {
        negated = !negated;
      } else if (meaning.kind != IpWords::Meaning::kSyntax) {
        return;
      } else if (word == "src") {
        parse_source(primitive);
      } else if (word == "dst" || word == "dest") {
        primitive.set_direction(Direction::kDestination, errors_);
      } else {
        if (primitive.header != IpPrimitive::Header::kUnsaid) return;
        primitive.header = word == "ip" ? IpPrimitive::Header::kIp : IpPrimitive::Header::kEther;
      }
    }
  }

  /// `src`, or `src or dst`, or `src and dst`; leaves the position on its last word.
  void parse_source(IpPrimitive& primitive) {
    Direction direction = Direction::kSource;
    if (at_ + 2 < words_.size() && (words_[at_ + 2] == "dst" || words_[at_ + 2] == "dest")) {
      const std::string_view between = words_[at_ + 1];
      if (between == "and" || between == "&&") direction = Direction::kBoth;
      if (between == "or" || between == "||") direction = Direction::kEither;
    }
    primitive.set_direction(direction, errors_);
    if (direction != Direction::kSource) at_ += 2;
  }

  /// `[POS]`, `[POS:LENGTH]` or `[FIRST,LAST]`, in bytes.
  void parse_brackets(IpPrimitive& primitive) {
    const size_t first = ++at_;
    std::string inside;
    while (at_ < words_.size() && words_[at_] != "]") inside += words_[at_++];
    if (at_ == words_.size()) {
      errors_.error("missing ']'");
      at_ = first;
      return;
    }
    ++at_;

    int64_t position = 0, length = 1;
    const ArgContext numbers;
    const size_t separator = inside.find_first_of(":,");
    bool good = parse_argument(std::string_view(inside).substr(0, separator), position, numbers);
    if (good && separator != std::string::npos) {
      good = parse_argument(std::string_view(inside).substr(separator + 1), length, numbers);
      if (inside[separator] == ',') length -= position - 1;
    }
    if (!good) {
      errors_.error("syntax error after '[', expected '[POS]' or '[POS:LEN]'");
      return;
    }
    const int protocol = primitive.protocol == kUnknownProtocol ? 0 : primitive.protocol;
    const int64_t bytes = protocol == 0 ? kNetworkBytes : kTransportBytes;
    if (length < 1 || length > 4) {
      errors_.error("LEN in '[POS:LEN]' out of range, should be between 1 and 4");
    } else if (position < 0 || position + length > bytes) {
      errors_.error("field [{}:{}] out of range, bound {}", position, length, bytes);
    } else if (position / 4 != (position + length - 1) / 4) {
      errors_.error("field [{}:{}] does not fit in a single word", position, length);
    } else {
      primitive.set_type({IpType::kField, {protocol, static_cast<int>(position) * 8, static_cast<int>(length) * 8}},
                         errors_);
    }
  }

  void parse_mask(IpPrimitive& primitive) {
    if (inner_word() != "&") return;
    const std::string_view text = words_[at_ + 1];
    IpValue mask;
    IpAddress address;
    if (const auto number = parse_number(text)) {
      mask.type = {IpType::kInteger};
      mask.number = *number;
    } else if (primitive.header != IpPrimitive::Header::kEther && parse_argument(text, address, context_)) {
      mask.type = {IpType::kHost};
      mask.number = address.host_order();
    } else if (primitive.header != IpPrimitive::Header::kIp && parse_argument(text, mask.ether, context_)) {
      mask.type = {IpType::kEther};
    } else {
      return;
    }
    at_ += 2;
    if (mask.type != IpType::kEther && mask.number == 0) {
      errors_.error("zero mask ignored");
    } else {
      primitive.mask = mask;
    }
  }

  void parse_relation(IpPrimitive& primitive) {
    using Relation = IpPrimitive::Relation;
    struct Sign {
      std::string_view text;
      Relation relation;
      bool negated;
    };
    static constexpr Sign kSigns[] = {
        {"=", Relation::kEqual, false},   {"==", Relation::kEqual, false},  {"!=", Relation::kEqual, true},
        {">", Relation::kGreater, false}, {"<=", Relation::kGreater, true}, {"<", Relation::kLess, false},
        {">=", Relation::kLess, true},
    };
    for (const Sign& sign : kSigns) {
      if (inner_word() != sign.text) continue;
      primitive.relation = sign.relation;
      primitive.negated = sign.negated;
      ++at_;
      return;
    }
  }

  void parse_value(IpPrimitive& primitive) {
    if (at_ == words_.size()) return;
    const std::string& word = words_[at_];
    const IpWords::Meaning meaning = meanings_.find(word, primitive.type, primitive.protocol);
    IpValue& value = primitive.value;
    const bool may_be_ip = primitive.header != IpPrimitive::Header::kEther;
    const bool may_be_ether = primitive.header != IpPrimitive::Header::kIp;
    IpAddress address;
    IpPrefix prefix;
    if (meaning.kind == IpWords::Meaning::kAmbiguous) {
      errors_.error("{}", meaning.problem);
      primitive.sound = false;
    } else if (meaning.kind == IpWords::Meaning::kValue) {
      value.type = meaning.type;
      value.number = meaning.value;
    } else if (const auto number = parse_number(word)) {
      value.type = {IpType::kInteger};
      value.number = *number;
    } else if (const auto range = parse_range(word)) {
      value.type = {IpType::kInteger};
      value.number = range->first;
      if (range->last != range->first) value.last = range->last;
      if (range->first > range->last) {
        errors_.error("range '{}' is empty", word);
        primitive.sound = false;
      }
    } else if (may_be_ip && parse_argument(word, address, context_)) {
      value.type = {IpType::kHost};
      value.number = address.host_order();
      IpAddress mask;
      ++at_;
      if (inner_word() == "mask" && parse_argument(words_[at_ + 1], mask, context_)) {
        value.type = {IpType::kNet};
        value.net_mask = mask.host_order();
        at_ += 2;
      } else if (primitive.type == IpType::kNet && parse_argument(word, prefix, context_)) {
        set_net(value, prefix);
      }
      return;
    } else if (may_be_ip && parse_argument(word, prefix, context_)) {
      set_net(value, prefix);
    } else if (may_be_ether && parse_argument(word, value.ether, context_)) {
      value.type = {IpType::kEther};
    } else {
      if (primitive.relation != IpPrimitive::Relation::kEqual || primitive.negated) {
        errors_.error("dangling operator near '{}'", word);
      }
      return;
    }
    ++at_;
  }

  static void set_net(IpValue& value, const IpPrefix& prefix) {
    value.type = {IpType::kNet};
    value.number = prefix.address.host_order();
    value.net_mask = prefix.mask.host_order();
  }

  const std::vector<std::string>& words_;
  size_t at_;
  IpWords& meanings_;
  const ArgContext& context_;
  PatternErrors& errors_;
  IpPrimitive before_;
  int depth_ = 0;
  bool too_deep_ = false;
};

class RuleCompiler {
 public:
  RuleCompiler(int outputs, const NameScope* scope, Errors& errors)
      : outputs_(outputs),
        meanings_(scope),
        // Parsing an argument looks names up and defines none.
        context_(const_cast<NameScope*>(scope)),
        errors_(errors) {}

  void add_rule(size_t number, std::string_view text) {
    const std::vector<std::string> words = split_words(text);
    if (words.empty()) {
      (void)errors_.error("empty pattern {}", number);
      failed_ = true;
      return;
    }
    PatternErrors errors(errors_, number);
    const Target action = parse_action(words[0], errors);
    add(words, 1, action, errors);
  }

  void add_pattern(size_t number, std::string_view text) {
    PatternErrors errors(errors_, number);
    add(split_words(text), 0, to_output(static_cast<int>(number)), errors);
  }

  Status finish(DecisionProgram& program) {
    if (failed_) return Status::failed();
    // Neighbors are merged first, as in a tournament: while the parts are small, so is the optimizer's work.
    for (size_t step = 1; step < graphs_.size(); step *= 2) {
      for (size_t i = 0; i + step < graphs_.size(); i += 2 * step) {
        graphs_[i].otherwise(graphs_[i + step]);
        graphs_[i].optimize(true);
      }
    }
    if (graphs_.empty()) graphs_.emplace_back();
    Graph& graph = graphs_[0];
    if (graphs_.size() == 1) graph.optimize(true);
    graph.set_failure(kNever);
    graph.sort(true);
    program = DecisionProgram(std::move(graph), DecisionProgram::Space::kIp);
    return {};
  }

 private:
  Target parse_action(const std::string& word, PatternErrors& errors) const {
    if (word == "deny" || word == "drop") return kNever;
    if (word == "allow") {
      if (outputs_ == 0) errors.error("'allow' is meaningless, element has zero outputs");
      return to_output(0);
    }
    const auto number = parse_number(word);
    if (!number) {
      errors.error("unknown slot ID '{}'", word);
      return kNever;
    }
    const int32_t output = static_cast<int32_t>(*number);
    if (output < 0 || output >= outputs_) {
      errors.error("slot '{}' out of range", output);
      return kNever;
    }
    return to_output(output);
  }

  void add(const std::vector<std::string>& words, size_t begin, Target action, PatternErrors& errors) {
    const bool everything = words.size() == begin || (words.size() == begin + 1 && words[begin] == "-");
    const Expression pattern =
        everything ? Expression() : IpPatternParser(words, begin, meanings_, context_, errors).parse();
    failed_ |= errors.failed();
    graphs_.emplace_back(pattern, action, kFailure);
  }

  int outputs_;
  IpWords meanings_;
  ArgContext context_;
  Errors& errors_;
  std::vector<Graph> graphs_;
  bool failed_ = false;
};

}  // namespace

Status compile_ip_filter(std::span<const std::string> rules, int outputs, const NameScope* scope, Errors& errors,
                         DecisionProgram& program) {
  RuleCompiler compiler(outputs, scope, errors);
  for (size_t i = 0; i < rules.size(); ++i) compiler.add_rule(i, rules[i]);
  return compiler.finish(program);
}

Status compile_ip_classifier(std::span<const std::string> patterns, const NameScope* scope, Errors& errors,
                             DecisionProgram& program) {
  RuleCompiler compiler(static_cast<int>(patterns.size()), scope, errors);
  for (size_t i = 0; i < patterns.size(); ++i) compiler.add_pattern(i, patterns[i]);
  return compiler.finish(program);
}

}  // namespace headrace
