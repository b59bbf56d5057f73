// The parser's part for connections: elements, their ports, and the arrows between them.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/characters.hh"
#include "headrace/text.hh"
#include "lang/parser.hh"

namespace headrace::lang {
namespace {

/// A number as in C: decimal, octal behind 0, hexadecimal behind 0x.
std::optional<int> parse_integer(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  return whole_number(text, std::numeric_limits<int>::max(), base);
}

bool begins_or_ends_statement(const Token& token) {
  if (token.kind == TokenKind::kCharacter) return std::string_view("{}[);").find(token.text) != std::string_view::npos;
  return token.kind != TokenKind::kVariable && token.kind != TokenKind::kEllipsis;
}

bool is_open(const std::vector<int>& ports) { return !ports.empty() && ports.back() == Endpoint::kOpen; }

/// Gives the ports of one side of a connection in turn.
class PortCursor {
 public:
  PortCursor(const std::vector<Endpoint>& ends, Side side) : ends_(ends), side_(side) {}

  /// How many ports are named; an element without any counts as one.
  int count() const {
    int total = 0;
    for (const Endpoint& end : ends_) {
      const std::vector<int>& ports = end.ports(side_);
      total += std::max(1, static_cast<int>(ports.size()) - (is_open(ports) ? 1 : 0));
    }
    return total;
  }
  int open_lists() const {
    return static_cast<int>(
        std::count_if(ends_.begin(), ends_.end(), [this](const Endpoint& end) { return is_open(end.ports(side_)); }));
  }
  bool is_bare_element() const { return ends_.size() == 1 && ends_[0].ports(side_).empty(); }

  /// Lets open lists, or a single bare element, give `extra` further ports.
  void extend(int extra) { extra_ = extra; }

  bool at_end() const { return end_ >= ends_.size(); }
  PortRef get() const {
    const std::vector<int>& ports = ends_[end_].ports(side_);
    const size_t listed = ports.size() - (is_open(ports) ? 1 : 0);
    int port = static_cast<int>(place_);
    if (place_ < listed) {
      port = ports[place_];
    } else if (listed > 0) {
      port = ports[listed - 1] + static_cast<int>(place_ - listed) + 1;
    }
    return {ends_[end_].element, port};
  }
  void advance() {
    const std::vector<int>& ports = ends_[end_].ports(side_);
    const bool open = is_open(ports);
    ++place_;
    if (place_ + (open ? 1 : 0) < ports.size()) return;
    if ((open || is_bare_element()) && extra_ > 0) {
      --extra_;
      return;
    }
    ++end_;
    place_ = 0;
  }

 private:
  const std::vector<Endpoint>& ends_;
  Side side_;
  size_t end_ = 0;
  size_t place_ = 0;
  int extra_ = 0;
};

}  // namespace

void Parser::parse_chain(BlockState& block) {
  std::vector<Endpoint> last;
  TokenKind connector = TokenKind::kEnd;
  Landmark connector_landmark;
  while (true) {
    std::vector<Endpoint> elements = parse_elements(block, last.empty());
    if (elements.empty()) break;
    if (last.empty()) {
      check_useless(elements, Side::kInput);
    } else {
      connect(last, elements, connector, connector_landmark);
    }
    last = std::move(elements);

    Token token = lexer().next();
    while (token.is(',') || token.is(TokenKind::kDoubleColon)) {
      (void)syntax_error(token);
      token = lexer().next();
    }
    if (!token.is_arrow()) {
      if (begins_or_ends_statement(token)) {
        lexer().put_back(token);
      } else {
        (void)syntax_error(token);
      }
      break;
    }
    connector = token.kind;
    connector_landmark = token.landmark;
  }
  check_useless(last, Side::kOutput);
  block.chain_ended_in_output = last.size() == 1 && last[0].element == current().find("output");
}

std::vector<Endpoint> Parser::parse_elements(const BlockState& block, bool first) {
  std::vector<ElementText> list;
  do {
    ElementText element;
    const ListPlace place{first, list.empty()};
    if (!parse_element(block, place, element)) break;
    list.push_back(std::move(element));
  } while (lexer().skip_if(','));
  if (list.empty()) return {};

  const auto any = [&](auto condition) { return std::any_of(list.begin(), list.end(), condition); };
  const bool implicit = any([](const ElementText& element) { return element.implicit; });
  const bool any_ports = any([](const ElementText& e) { return !e.ends.inputs.empty() || !e.ends.outputs.empty(); });
  const bool arrow_follows = lexer().peek().is_arrow();
  if (implicit && !first && arrow_follows) (void)error("implicit ports used in the middle of a chain");
  if (first && !arrow_follows && !any_ports && !implicit) spread_declaration(list);

  std::vector<Endpoint> ends;
  for (ElementText& element : list) {
    element.ends.element = declare(element);
    ends.push_back(std::move(element.ends));
  }
  return ends;
}

bool Parser::parse_element(const BlockState& block, ListPlace place, ElementText& element) {
  parse_ports(element.ends.inputs);
  const Token token = lexer().next();
  element.landmark = token.landmark;
  if (token.is(TokenKind::kName)) {
    element.name = token.text;
    element.type = find_class(element.name);
    element.bare = true;
  } else if (token.is('{')) {
    element.type = parse_compound({});
  } else if (token.is('(')) {
    parse_group(element);
  } else {
    return parse_implicit(block, place, token, element);
  }
  parse_declaration(element);

  if (lexer().skip_if('(')) {
    const int referred = element.type != kNoClass ? -1
                         : element.group >= 0     ? element.group
                                                  : current().find(element.name);
    if (referred >= 0) (void)error("configuration string ignored on element reference");
    element.config = lexer().read_config();
    lexer().expect(')');
    element.bare = false;
  }
  if (lexer().peek().is('[')) {
    element.ends.outputs.clear();
    parse_ports(element.ends.outputs);
  }
  return true;
}

bool Parser::parse_implicit(const BlockState& block, ListPlace place, const Token& token, ElementText& element) {
  const bool has_ports = !element.ends.inputs.empty();
  if (block.kind != Block::kFile) {
    if (token.is_arrow()) {
      element.implicit = place.first_list && (has_ports || place.first_element);
      if (element.implicit && !has_ports && !block.chain_ended_in_output) {
        errors_.warning_at(token.landmark, "suggest 'input {0}' or '[0] {0}' to start connection", token.text);
      }
    } else if (token.is(',')) {
      element.implicit = has_ports;
    } else if (!token.is(TokenKind::kDoubleColon)) {
      element.implicit = !place.first_list && (has_ports || place.first_element);
    }
  }
  if (element.implicit) {
    lexer().put_back(token);
    element.name = side_name(place.first_list ? Side::kInput : Side::kOutput);
    // The ports were read in front of the arrow, where those of `input` are outputs.
    if (place.first_list) std::swap(element.ends.inputs, element.ends.outputs);
    return true;
  }

  if (has_ports) (void)error("stranded port ignored");
  if (!place.first_element || (block.kind != Block::kFile && place.first_list)) {
    lexer().put_back(token);
  } else {
    (void)syntax_error(token);
  }
  return false;
}

void Parser::parse_declaration(ElementText& element) {
  if (!lexer().peek().is(TokenKind::kDoubleColon)) return;
  lexer().next();
  element.bare = false;
  const Token token = lexer().next();
  if (token.is(TokenKind::kName)) {
    element.declared_name = token.text;
    element.declared = class_for(element.declared_name, true);
  } else if (token.is('{')) {
    element.declared = parse_compound({});
  } else {
    lexer().put_back(token);
    (void)error("missing element type in declaration");
    element.declared = class_for(element.name, false);
  }
}

void Parser::parse_ports(std::vector<int>& ports) {
  if (!lexer().skip_if('[')) return;
  int last = -1;
  bool range = false;
  while (true) {
    Token token = lexer().next();
    if (token.is(']')) {
      if (ports.empty()) ports.push_back(0);
      ports.push_back(Endpoint::kOpen);
      return;
    }
    if (!token.is(TokenKind::kName)) {
      (void)error("syntax error: expected port number");
      lexer().put_back(token);
      return;
    }
    const int port = parse_port_number(token.text);
    for (int p = range ? last + 1 : port; p <= port; ++p) {
      if (ports_read_ == options_.limits.connections) {
        if (!too_many_ports_) (void)error(fmt::format("too many ports: more than {}", ports_read_));
        too_many_ports_ = true;
        break;
      }
      ++ports_read_;
      ports.push_back(p);
    }
    last = port;

    token = lexer().next();
    if (token.is(']')) return;
    range = token.is('-') && !range;
    if (!range && !token.is(',')) {
      (void)error("syntax error: expected ','");
      lexer().put_back(token);
    }
  }
}

int Parser::parse_port_number(std::string_view text) {
  const std::optional<int> port = parse_integer(text);
  if (!port) {
    (void)error("syntax error: port number should be integer");
    return 0;
  }
  if (*port > kMaxPort) {
    (void)error(fmt::format("port number {} too large", *port));
    return 0;
  }
  return *port;
}

void Parser::spread_declaration(std::vector<ElementText>& list) {
  const ElementText& last = list.back();
  if (last.declared == kNoClass) return;
  if (!std::all_of(list.begin(), list.end() - 1, [](const ElementText& element) { return element.bare; })) return;
  for (auto element = list.begin(); element + 1 != list.end(); ++element) {
    element->declared = last.declared;
    element->declared_name = last.declared_name;
    element->config = last.config;
  }
}

int Parser::declare(ElementText& element) {
  Definition& definition = current();
  const auto report = [&](const std::string& text) { (void)errors_.error_at(element.landmark, "{}", text); };
  const int existing = element.group >= 0 ? element.group : definition.find(element.name);
  if (element.type == kNoClass && existing >= 0) {
    if (element.declared != kNoClass) {
      report(fmt::format("redeclaration of element '{}'", element.name));
      const DefinedElement& before = definition.elements[static_cast<size_t>(existing)];
      if (before.type != kTunnelClass) {
        (void)errors_.error_at(before.landmark, "element '{}' previously declared here", element.name);
      }
    }
    return existing;
  }

  ClassId type = element.type;
  bool undeclared = false;
  if (element.declared != kNoClass) {
    const bool unknown = program_.classes[static_cast<size_t>(element.declared)].unknown;
    if (type != kNoClass || (!unknown && element.name == element.declared_name)) {
      report(fmt::format("class '{}' used as element name", element.name));
    }
  } else if (type == kNoClass) {
    undeclared = options_.is_class != nullptr;
    if (undeclared) report(fmt::format("undeclared element '{}'{}", element.name, hint(element.name)));
    type = class_for(element.name, false);
  }
  const bool anonymous = type != kNoClass;
  if (anonymous) element.name = definition.anonymous_name(element.name);
  if (!undeclared) check_name(element);
  return definition.add(
      {element.name, anonymous, anonymous ? type : element.declared, std::move(element.config), element.landmark, {}});
}

void Parser::check_name(const ElementText& element) {
  std::string_view rest = element.name;
  while (true) {
    const std::string_view component = rest.substr(0, rest.find('/'));
    if (std::all_of(component.begin(), component.end(), is_digit)) {
      (void)errors_.error_at(element.landmark, "element name '{}' has all-digit component", element.name);
      return;
    }
    if (component.size() == rest.size()) return;
    rest.remove_prefix(component.size() + 1);
  }
}

void Parser::check_useless(const std::vector<Endpoint>& ends, Side side) {
  if (std::all_of(ends.begin(), ends.end(), [side](const Endpoint& end) { return end.ports(side).empty(); })) return;
  (void)error(side == Side::kInput ? "input ports ignored at start of chain" : "output ports ignored at end of chain");
}

void Parser::connect(const std::vector<Endpoint>& from, const std::vector<Endpoint>& to, TokenKind connector,
                     const Landmark& landmark) {
  PortCursor outputs(from, Side::kOutput), inputs(to, Side::kInput);
  const int output_count = outputs.count(), input_count = inputs.count();
  bool outputs_open = outputs.open_lists() > 0, inputs_open = inputs.open_lists() > 0;
  if (outputs.open_lists() + inputs.open_lists() > 1) {
    (void)error("at most one expandable port allowed per connection");
    (input_count < output_count ? outputs_open : inputs_open) = false;
  }
  // A double arrow gives a bare element as many ports as the other side has.
  const bool many = connector == TokenKind::kDoubleArrow;
  outputs_open = outputs_open || (many && input_count > 1 && outputs.is_bare_element());
  inputs_open = inputs_open || (many && output_count > 1 && inputs.is_bare_element());

  const bool step_outputs = output_count > 1 || outputs_open;
  const bool step_inputs = input_count > 1 || inputs_open || !step_outputs;
  if (step_outputs && step_inputs) {
    if (!many) (void)error("syntax error: many-to-many connections require '=>'");
    const bool mismatch = (!inputs_open && input_count < output_count) || (!outputs_open && output_count < input_count);
    if (mismatch) {
      (void)error(fmt::format("connection mismatch: {}{} outputs connected to {}{} inputs", output_count,
                              outputs_open ? " or more" : "", input_count, inputs_open ? " or more" : ""));
    }
  }
  if (outputs_open) outputs.extend(input_count - output_count);
  if (inputs_open) inputs.extend(output_count - input_count);

  while (!outputs.at_end() && !inputs.at_end()) {
    current().connect(outputs.get(), inputs.get(), landmark);
    if (step_outputs) outputs.advance();
    if (step_inputs) inputs.advance();
  }
}

}  // namespace headrace::lang
