#include "lang/lexer.hh"

#include <charconv>
#include <utility>

#include "base/argument_text.hh"
#include "base/characters.hh"

namespace headrace::lang {
namespace {

constexpr std::pair<std::string_view, TokenKind> kKeywords[] = {{"elementclass", TokenKind::kElementClass},
                                                                {"require", TokenKind::kRequire},
                                                                {"provide", TokenKind::kProvide},
                                                                {"define", TokenKind::kDefine}};

constexpr std::pair<std::string_view, TokenKind> kSymbols[] = {{"->", TokenKind::kArrow},
                                                               {"=>", TokenKind::kDoubleArrow},
                                                               {"::", TokenKind::kDoubleColon},
                                                               {"||", TokenKind::kDoubleBar},
                                                               {"...", TokenKind::kEllipsis}};

}  // namespace

bool is_whole_config(std::string_view text) {
  const std::string enclosed = fmt::format("({})", text);
  Errors errors;
  Lexer lexer(enclosed, {}, errors);
  return lexer.expect('(') && lexer.read_config() == text && lexer.expect(')') && lexer.next().is(TokenKind::kEnd) &&
         errors.error_count() == 0;
}

std::string quoted_for_message(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c >= 32 && c < 127) {
      out += c;
    } else {
      out += fmt::format("\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out += '\'';
}

Lexer::Lexer(std::string_view text, std::string filename, Errors& errors)
    : text_(text), filename_(std::move(filename)), original_filename_(filename_), last_(here()), errors_(errors) {}

Token Lexer::next() {
  Token token = returned_count_ > 0 ? returned_[--returned_count_] : scan();
  last_ = token.landmark;
  return token;
}

void Lexer::put_back(const Token& token) { returned_[returned_count_++] = token; }

Token Lexer::peek() {
  const Landmark before = last_;
  Token token = next();
  put_back(token);
  last_ = before;
  return token;
}

bool Lexer::skip_if(char c) {
  if (!peek().is(c)) return false;
  next();
  return true;
}

bool Lexer::expect(char c) {
  if (skip_if(c)) return true;
  (void)errors_.error_at(last_, "expected '{}'", c);
  return false;
}

bool Lexer::at_line_start() const { return at_ == 0 || text_[at_ - 1] == '\n' || text_[at_ - 1] == '\r'; }

size_t Lexer::line_end(size_t at) const {
  const size_t end = text_.find_first_of("\r\n", at);
  return end == std::string_view::npos ? text_.size() : end;
}

bool Lexer::skip_newline() {
  if (at_ >= text_.size() || (text_[at_] != '\n' && text_[at_] != '\r')) return false;
  at_ += starts_with("\r\n") ? 2 : 1;
  ++line_;
  return true;
}

void Lexer::skip_line() {
  at_ = line_end(at_);
  skip_newline();
}

void Lexer::skip_comment() {
  const bool line_comment = text_[at_ + 1] == '/';
  at_ += 2;
  if (line_comment) return skip_line();
  while (at_ < text_.size() && !starts_with("*/")) {
    if (!skip_newline()) ++at_;
  }
  if (at_ < text_.size()) at_ += 2;
}

void Lexer::skip_hex_data() {
  at_ += 2;
  while (at_ < text_.size()) {
    if (text_[at_] == '>') {
      ++at_;
      return;
    }
    if (comment_at(text_, at_)) {
      skip_comment();
    } else if (!skip_newline()) {
      ++at_;
    }
  }
}

void Lexer::skip_quoted(char mark) {
  ++at_;
  while (at_ < text_.size()) {
    if (text_[at_] == mark) {
      ++at_;
      return;
    }
    if (mark == '"' && starts_with("\\<")) {
      skip_hex_data();
    } else if (mark == '"' && text_[at_] == '\\') {
      ++at_;
      if (at_ < text_.size() && !skip_newline()) ++at_;
    } else if (!skip_newline()) {
      ++at_;
    }
  }
}

void Lexer::read_line_directive() {
  const Landmark directive = here();
  const auto skip_blanks = [this] {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  };
  ++at_;
  skip_blanks();
  if (starts_with("line ") || starts_with("line\t")) {
    at_ += 5;
    skip_blanks();
  }
  int number = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
  if (error != std::errc() || number < 0) {
    (void)errors_.error_at(directive, "unknown preprocessor directive");
    return skip_line();
  }
  at_ = end - text_.data();
  skip_blanks();
  const size_t stop = line_end(at_);
  if (at_ < stop && text_[at_] == '"') {
    const size_t close = skip_double_quoted(text_.substr(0, stop), at_);
    filename_ = unquote(text_.substr(at_, close - at_));
    if (filename_.empty()) filename_ = original_filename_;
  }
  // The line end counts when it is skipped: it begins the line that the directive names.
  at_ = stop;
  line_ = number - 1;
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    if (skip_newline()) continue;
    if (is_space(text_[at_])) {
      ++at_;
    } else if (comment_at(text_, at_)) {
      skip_comment();
    } else if (text_[at_] == '#' && at_line_start()) {
      read_line_directive();
    } else {
      break;
    }
  }
}

Token Lexer::scan() {
  skip_blank();
  Token token{TokenKind::kEnd, {}, here()};
  if (at_ >= text_.size()) return token;

  const size_t begin = at_;
  const auto name_at = [this](size_t at) { return at < text_.size() && is_name_character(text_[at]); };
  if (name_at(at_)) {
    while (name_at(at_) || (text_.substr(at_, 1) == "/" && name_at(at_ + 1))) ++at_;
    token.kind = TokenKind::kName;
    token.text = text_.substr(begin, at_ - begin);
    for (const auto& [word, kind] : kKeywords) {
      if (token.text == word) token.kind = kind;
    }
    return token;
  }

  if (text_[at_] == '$' && at_ + 1 < text_.size() && is_variable_character(text_[at_ + 1])) {
    for (++at_; at_ < text_.size() && is_variable_character(text_[at_]);) ++at_;
    token.kind = TokenKind::kVariable;
    token.text = text_.substr(begin + 1, at_ - begin - 1);
    return token;
  }

  token.kind = TokenKind::kCharacter;
  token.text = text_.substr(begin, 1);
  for (const auto& [symbol, kind] : kSymbols) {
    if (starts_with(symbol)) {
      token.kind = kind;
      token.text = text_.substr(begin, symbol.size());
    }
  }
  at_ += token.text.size();
  return token;
}

std::string Lexer::read_config() {
  std::string config;
  size_t copied = at_;
  int depth = 1;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '(') {
      ++depth;
      ++at_;
    } else if (c == ')') {
      if (--depth == 0) break;
      ++at_;
    } else if (c == '#' && at_line_start()) {
      config.append(text_.substr(copied, at_ - copied));
      read_line_directive();
      copied = at_;
    } else if (comment_at(text_, at_)) {
      skip_comment();
    } else if (c == '\'' || c == '"') {
      skip_quoted(c);
    } else if (starts_with("\\<")) {
      skip_hex_data();
    } else if (!skip_newline()) {
      ++at_;
    }
  }
  last_ = here();
  return config.append(text_.substr(copied, at_ - copied));
}

}  // namespace headrace::lang
