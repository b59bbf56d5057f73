#include "lang/parser.hh"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/argument_text.hh"
#include "base/characters.hh"
#include "lang/library.hh"

namespace headrace::lang {

Program Parser::parse(std::string_view text, const std::string& filename) {
  program_.definitions.emplace_back();
  scopes_.emplace_back();
  Lexer lexer(text, filename, errors_);
  lexer_ = &lexer;
  parse_block(Block::kFile);
  current().name_anonymous();
  lexer_ = nullptr;
  return std::move(program_);
}

int Parser::parse_body(const std::string& body, const std::string& class_name, const Landmark& landmark,
                       Program& program) {
  program_ = std::move(program);
  scopes_.emplace_back();
  const std::string text = body + "\n}";
  Lexer lexer(text, class_name, errors_);
  lexer_ = &lexer;
  const size_t first = program_.definitions.size();
  Token end;
  parse_overload(class_name, Formals::kNone, end);
  if (!end.is('}') || !lexer.next().is(TokenKind::kEnd))
    (void)errors_.error_at(landmark, "the body of compound element '{}' ends too early", class_name);
  lexer_ = nullptr;
  for (size_t i = first; i < program_.definitions.size(); ++i) {
    Definition& definition = program_.definitions[i];
    definition.landmark = landmark;
    for (DefinedElement& element : definition.elements) element.landmark = landmark;
    for (Connection& connection : definition.connections) connection.landmark = landmark;
  }
  program = std::move(program_);
  return static_cast<int>(first);
}

Status Parser::syntax_error(const Token& token) {
  return errors_.error_at(token.landmark, "syntax error near {}", quoted_for_message(token.text));
}

// --- Classes -------------------------------------------------------------------------------------------------------

ClassId Parser::add_class(ElementClass element_class) {
  program_.classes.push_back(std::move(element_class));
  return static_cast<ClassId>(program_.classes.size()) - 1;
}

ClassId Parser::find_class(const std::string& name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  }
  if (const auto found = primitives_.find(name); found != primitives_.end()) return found->second;
  if (!options_.is_class || !options_.is_class(name)) return kNoClass;
  return primitives_[name] = add_class({name, {}, kNoClass, false});
}

ClassId Parser::class_for(const std::string& name, bool report) {
  if (const ClassId found = find_class(name); found != kNoClass) return found;
  if (!options_.is_class) return primitives_[name] = add_class({name, {}, kNoClass, false});
  if (report) (void)error(fmt::format("unknown element class '{}'{}", name, hint(name)));
  return scopes_.back()[name] = add_class({name, {}, kNoClass, true});
}

// --- Statements ----------------------------------------------------------------------------------------------------

Token Parser::parse_block(Block kind) {
  BlockState block{kind};
  while (true) {
    Token token = lexer().next();
    switch (token.kind) {
      case TokenKind::kName:
      case TokenKind::kArrow:
      case TokenKind::kDoubleArrow:
        lexer().put_back(token);
        parse_chain(block);
        continue;
      case TokenKind::kElementClass:
        parse_element_class();
        continue;
      case TokenKind::kRequire:
        parse_require();
        continue;
      case TokenKind::kDefine:
        parse_define();
        continue;
      case TokenKind::kEnd:
        if (kind == Block::kGroup) (void)error("expected ')'");
        if (kind == Block::kCompound) (void)error("expected '}'");
        return token;
      default:
        break;
    }
    if (token.is('[') || token.is('{') || token.is('(')) {
      lexer().put_back(token);
      parse_chain(block);
    } else if (token.is('}') || token.is(TokenKind::kDoubleBar)) {
      if (kind == Block::kCompound) return token;
      (void)syntax_error(token);
      if (kind == Block::kGroup) {
        // The group lacks its parenthesis; what stands around it ends here.
        lexer().put_back(token);
        return token;
      }
    } else if (token.is(')') && kind == Block::kGroup) {
      return token;
    } else if (!token.is(';')) {
      (void)syntax_error(token);
    }
  }
}

void Parser::parse_element_class() {
  std::string name;
  if (const Token token = lexer().next(); token.is(TokenKind::kName)) {
    name = token.text;
  } else {
    lexer().put_back(token);
    (void)error("expected element type name");
  }

  const Token token = lexer().next();
  ClassId type = kNoClass;
  if (token.is('{')) {
    type = parse_compound(name);
  } else if (token.is(TokenKind::kName)) {
    type = class_for(std::string(token.text), true);
  } else {
    (void)syntax_error(token);
    type = add_class({name, {}, kNoClass, true});
  }
  if (!name.empty()) scopes_.back()[name] = type;
}

void Parser::parse_define() {
  if (!lexer().expect('(')) return;
  const std::string text = lexer().read_config();
  lexer().expect(')');
  for (const std::string& argument : split_arguments(text)) {
    if (argument.empty()) continue;
    std::string_view rest = argument;
    const std::string_view word = take_word(rest);
    if (word.size() < 2 || word[0] != '$' || !std::all_of(word.begin() + 1, word.end(), is_variable_character)) {
      (void)error("bad 'define' declaration: not a variable");
      continue;
    }
    add_variable(word.substr(1), std::string(rest));
  }
}

void Parser::parse_require() {
  if (!lexer().expect('(')) return;
  const Landmark where = lexer().landmark();
  const std::string text = lexer().read_config();
  lexer().expect(')');

  for (const std::string& argument : split_arguments(text)) {
    std::vector<std::string> words = split_words(argument);
    if (words.empty()) continue;
    std::string kind = unquote(words[0]);
    if (!is_word(kind)) kind.clear();
    // One unknown word alone is a package.
    if (words.size() == 1 && !kind.empty() && kind != "compact_config" && kind != "package" && kind != "library") {
      words = {"package", kind};
      kind = "package";
    }
    if (kind == "compact_config" && words.size() == 1) {
      program_.requirements.push_back({kind, {}, where});
    } else if (kind == "package" && words.size() == 2) {
      program_.requirements.push_back({kind, unquote(words[1]), where});
    } else if (kind == "library" && words.size() == 2) {
      parse_library(unquote(words[1]));
    } else {
      (void)error("syntax error at requirement");
    }
  }
}

void Parser::parse_library(const std::string& name) {
  if (current().depth > 0) {
    (void)error("'require library' must be used at file scope");
    return;
  }
  const std::optional<std::string> path = find_library(name, lexer().filename(), options_.library_path);
  if (!path) {
    (void)error(fmt::format("library {} not found in CLICKPATH/conf", quoted_for_message(name)));
    return;
  }
  if (!libraries_.insert(*path).second) return;
  if (library_depth_ >= kMaxLibraryDepth) {
    (void)error("maximum library nesting depth exceeded");
    return;
  }
  const std::optional<std::string> text = read_file(*path);
  if (!text) {
    (void)error(fmt::format("{}: cannot be read", *path));
    return;
  }
  Lexer inner(*text, *path, errors_);
  Lexer* outer = std::exchange(lexer_, &inner);
  ++library_depth_;
  parse_block(Block::kFile);
  --library_depth_;
  lexer_ = outer;
}

bool Parser::add_variable(std::string_view name, std::string text) {
  std::vector<Variable>& variables = current().variables;
  if (std::any_of(variables.begin(), variables.end(), [name](const Variable& v) { return v.name == name; })) {
    (void)error(fmt::format("parameter '${}' multiply defined", name));
    return false;
  }
  variables.push_back({std::string(name), std::move(text)});
  return true;
}

// --- Compound elements and groups ----------------------------------------------------------------------------------

ClassId Parser::parse_compound(const std::string& name) {
  if (nesting_ >= kMaxNesting) {
    (void)error("maximum compound element nesting depth exceeded");
    skip_nested('{', '}');
    return add_class({name, {}, kNoClass, true});
  }
  ++nesting_;
  ElementClass compound{name, {}, kNoClass, false};
  while (true) {
    if (lexer().peek().is(TokenKind::kEllipsis)) {
      lexer().next();
      compound.extends = name.empty() ? kNoClass : find_class(name);
      if (compound.extends == kNoClass && !options_.is_class && !name.empty()) {
        compound.extends = class_for(name, false);
      } else if (compound.extends == kNoClass) {
        (void)error(fmt::format("cannot extend unknown element class '{}'{}", name, hint(name)));
      }
      if (compound.overloads.empty() || !lexer().peek().is('}')) {
        (void)error("'...' should occur last, after one or more compounds");
      }
      if (lexer().skip_if('}')) break;
      continue;
    }
    Token end;
    compound.overloads.push_back(parse_overload(name, Formals::kMaybe, end));
    if (!end.is(TokenKind::kDoubleBar)) break;
  }
  --nesting_;
  return add_class(std::move(compound));
}

int Parser::parse_overload(const std::string& name, Formals formals, Token& end) {
  const int outer = current_;
  const int depth = current().depth + 1;
  current_ = static_cast<int>(program_.definitions.size());
  Definition& definition = program_.definitions.emplace_back();
  definition.name = name;
  definition.landmark = lexer().peek().landmark;
  definition.depth = depth;
  for (const Side side : {Side::kInput, Side::kOutput}) {
    definition.add({std::string(side_name(side)), false, kTunnelClass, {}, definition.landmark, {}});
  }
  definition.uncounted = 2;
  scopes_.emplace_back();

  if (formals == Formals::kMaybe) parse_formals();
  end = parse_block(Block::kCompound);

  scopes_.pop_back();
  definition.inputs = check_pseudo_element(0, Side::kInput, definition.printable_name(), definition.landmark, 0);
  definition.outputs = check_pseudo_element(1, Side::kOutput, definition.printable_name(), definition.landmark, 0);
  definition.name_anonymous();
  return std::exchange(current_, outer);
}

void Parser::parse_formals() {
  bool order_error = false;
  const auto expected_variable = [this] {
    if (current().formals > 0) (void)error("expected variable");
  };
  while (true) {
    std::string keyword;
    Token token = lexer().next();
    if (token.is(TokenKind::kName)) {
      const Token second = lexer().next();
      if (!second.is(TokenKind::kVariable)) {
        // No formals: this is the first statement.
        expected_variable();
        lexer().put_back(second);
        lexer().put_back(token);
        return;
      }
      keyword = token.text;
      token = second;
    }
    if (token.is('|')) return;
    if (!token.is(TokenKind::kVariable)) {
      expected_variable();
      lexer().put_back(token);
      return;
    }
    order_error = !add_formal(token.text, keyword, !order_error) || order_error;

    const Token separator = lexer().next();
    if (separator.is('|')) return;
    if (!separator.is(',')) {
      (void)error("expected ',' or '|'");
      lexer().put_back(separator);
      return;
    }
  }
}

bool Parser::add_formal(std::string_view name, const std::string& keyword, bool report_order) {
  Definition& definition = current();
  const std::vector<Variable>& formals = definition.variables;
  const auto has_keyword = [&keyword](const Variable& formal) { return formal.text == keyword; };
  const bool repeated = !keyword.empty() && std::any_of(formals.begin(), formals.end(), has_keyword);
  const bool ordered =
      formals.empty() || (formals.back().text != "__REST__" && (!keyword.empty() || formals.back().text.empty()));
  if (!add_variable(name, keyword)) return true;
  ++definition.formals;
  if (repeated) (void)error(fmt::format("repeated keyword parameter '{}' in compound element", keyword));
  if (!ordered && report_order) {
    (void)error("compound element parameters out of order");
    errors_.message("{}: (The correct order is '[positional], [keywords], [__REST__]'.)", lexer().landmark().str());
  }
  return ordered;
}

void Parser::parse_group(ElementText& element) {
  if (nesting_ >= kMaxNesting) {
    (void)error("maximum element group nesting depth exceeded");
    skip_nested('(', ')');
  }
  Definition& definition = current();
  element.name = definition.anonymous_name("");
  const auto add = [&](std::string name) {
    return definition.add({std::move(name), true, kTunnelClass, {}, element.landmark, {}});
  };
  Tunnel tunnel;
  tunnel.outside = element.group = add(element.name);
  tunnel.input = add(element.name + "/input");
  tunnel.output = add(element.name + "/output");
  definition.groups.push_back(tunnel);
  if (nesting_ >= kMaxNesting) return;

  const int outer_input = definition.find("input");
  const int outer_output = definition.find("output");
  definition.names["input"] = tunnel.input;
  definition.names["output"] = tunnel.output;
  // Nothing before it can refer to the group.
  const size_t first_connection = definition.connections.size();
  ++nesting_;
  parse_block(Block::kGroup);
  --nesting_;

  const Landmark end = lexer().landmark();
  const int counts[] = {check_pseudo_element(tunnel.input, Side::kInput, "<anonymous group>", end, first_connection),
                        check_pseudo_element(tunnel.output, Side::kOutput, "<anonymous group>", end, first_connection)};
  const auto restore = [&](const char* name, int index) {
    if (index < 0) {
      definition.names.erase(name);
    } else {
      definition.names[name] = index;
    }
  };
  restore("input", outer_input);
  restore("output", outer_output);

  // All ports of a group are meant where none are named.
  for (const Side side : {Side::kInput, Side::kOutput}) {
    std::vector<int>& ports = element.ends.ports(side);
    if (!ports.empty()) continue;
    for (int port = 0; port < counts[static_cast<size_t>(side)]; ++port) ports.push_back(port);
  }
}

void Parser::skip_nested(char open, char close) {
  for (int depth = 1; depth > 0;) {
    const Token token = lexer().next();
    if (token.is(TokenKind::kEnd)) return;
    depth += token.is(open) - token.is(close);
  }
}

int Parser::check_pseudo_element(int element, Side side, const std::string& name, const Landmark& landmark,
                                 size_t first_connection) {
  const Definition& definition = current();
  // Packets come out of `input` and go into `output`.
  const Side inner = opposite(side);
  const PortCounts& ports = definition.elements[static_cast<size_t>(element)].ports;
  const int count = ports[inner];
  std::vector<bool> used(static_cast<size_t>(count), false);
  for (size_t i = first_connection; i < definition.connections.size(); ++i) {
    const Connection& connection = definition.connections[i];
    const PortRef& end = side == Side::kInput ? connection.from : connection.to;
    if (end.element == element) used[static_cast<size_t>(end.port)] = true;
  }
  if (ports[side] > 0) {
    (void)errors_.error_at(landmark, "'{}' pseudoelement '{}' may only be used as {}", name, side_name(side),
                           side_name(inner));
  }
  for (int port = 0; port < count; ++port) {
    if (!used[static_cast<size_t>(port)]) {
      (void)errors_.error_at(landmark, "'{}' {} {} missing", name, side_name(side), port);
    }
  }
  return count;
}

}  // namespace headrace::lang
