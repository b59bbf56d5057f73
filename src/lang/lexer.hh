#pragma once
/// \file
/// Text to tokens.

#include <array>
#include <headrace/error.hh>
#include <memory>
#include <string>
#include <string_view>

namespace headrace::lang {

enum class TokenKind {
  kEnd,
  kName,      ///< an identifier or a port number
  kVariable,  ///< `$name`; the text is the name
  kArrow,
  kDoubleArrow,
  kDoubleColon,
  kDoubleBar,
  kEllipsis,
  kElementClass,
  kRequire,
  kProvide,
  kDefine,
  kCharacter  ///< any other single character
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  Landmark landmark;

  bool is(TokenKind other) const { return kind == other; }
  bool is(char c) const { return kind == TokenKind::kCharacter && text.front() == c; }
  bool is_arrow() const { return kind == TokenKind::kArrow || kind == TokenKind::kDoubleArrow; }
};

/// Whether a text, put between parentheses, would be read back whole by Lexer::read_config().
bool is_whole_config(std::string_view text);

/// The text in single quotes for a message, with control characters made visible.
std::string quoted_for_message(std::string_view text);

/// Reads tokens from one text, and keeps track of file and line, which `# 12 "file"` changes.
class Lexer {
 public:
  /// The text must outlive the lexer and its tokens.
  Lexer(std::string_view text, std::string filename, Errors& errors);

  Token next();
  /// Puts a token back; at most two at a time.
  void put_back(const Token& token);
  Token peek();

  /// Takes the next token if it is `c`; reports an error otherwise.
  bool expect(char c);
  bool skip_if(char c);

  /// The raw text up to the parenthesis that closes the one just read, which itself is left. Line directives are taken
  /// out, comments and quotations are kept.
  std::string read_config();

  /// Where the last token taken began.
  const Landmark& landmark() const { return last_; }
  /// The file that line directives currently name.
  const std::string& filename() const { return filename_; }

 private:
  Token scan();
  void skip_blank();
  size_t line_end(size_t at) const;
  void skip_line();
  void skip_comment();
  void skip_quoted(char mark);
  void skip_hex_data();
  bool skip_newline();
  bool at_line_start() const;
  void read_line_directive();
  Landmark here() const { return {filename_, line_}; }
  bool starts_with(std::string_view prefix) const { return text_.substr(at_, prefix.size()) == prefix; }

  std::string_view text_;
  size_t at_ = 0;
  std::string filename_;
  std::string original_filename_;
  int line_ = 1;
  Landmark last_;
  std::array<Token, 2> returned_;
  size_t returned_count_ = 0;
  Errors& errors_;
};

}  // namespace headrace::lang
