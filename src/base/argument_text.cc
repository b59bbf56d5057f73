#include "base/argument_text.hh"

#include <algorithm>
#include <charconv>

#include "base/characters.hh"
#include "headrace/text.hh"

namespace headrace::lang {
namespace {

/// The position behind the comment that begins at `position`; a line comment includes its line end.
size_t skip_comment(std::string_view text, size_t position) {
  if (text[position + 1] == '*') {
    const size_t close = text.find("*/", position + 2);
    return close == std::string_view::npos ? text.size() : close + 2;
  }
  const size_t line_end = text.find_first_of("\r\n", position + 2);
  if (line_end == std::string_view::npos) return text.size();
  return line_end + (text.substr(line_end, 2) == "\r\n" ? 2 : 1);
}

bool hex_data_at(std::string_view text, size_t position) { return text.substr(position, 2) == "\\<"; }

/// Reads from `position` to the end, or to a comma outside of quotations if there may be several arguments.
std::string read_argument(std::string_view text, size_t& position, bool stop_at_comma) {
  std::string argument;
  size_t left = skip_space_and_comments(text, position);
  size_t right = left;
  bool comment_pending = false;
  size_t at = left;
  while (at < text.size()) {
    if (is_space(text[at])) {
      ++at;
    } else if (comment_at(text, at)) {
      at = skip_comment(text, at);
      comment_pending = true;
    } else if (text[at] == ',' && stop_at_comma) {
      break;
    } else {
      if (comment_pending) {
        argument.append(text.substr(left, right - left)) += ' ';
        left = at;
        comment_pending = false;
      }
      if (text[at] == '\'') {
        at = skip_single_quoted(text, at);
      } else if (text[at] == '"') {
        at = skip_double_quoted(text, at);
      } else if (hex_data_at(text, at)) {
        at = skip_escape(text, at);
      } else {
        ++at;
      }
      right = at;
    }
  }
  position = at;
  return argument.append(text.substr(left, right - left));
}

size_t skip_word(std::string_view text, size_t at) {
  while (at < text.size() && !is_space(text[at]) && !comment_at(text, at)) {
    if (text[at] == '"') {
      at = skip_double_quoted(text, at);
    } else if (text[at] == '\'') {
      at = skip_single_quoted(text, at);
    } else if (hex_data_at(text, at)) {
      at = skip_escape(text, at);
    } else {
      ++at;
    }
  }
  return at;
}

/// Appends the bytes of `\<...>`, whose first digit is looked for at `at`; returns the position behind it. A digit
/// without a partner is ignored, as is everything that is no digit.
size_t append_hex_data(std::string_view text, size_t at, std::string& out) {
  int high = -1;
  while (at < text.size()) {
    if (text[at] == '>') return at + 1;
    if (comment_at(text, at)) {
      at = skip_comment(text, at);
      continue;
    }
    const int digit = hex_digit(text[at++]);
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      out += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  return at;
}

/// Appends what the escape at `at` stands for; returns the position behind it.
size_t append_escape(std::string_view text, size_t at, std::string& out) {
  if (at + 1 == text.size()) {
    out += '\\';
    return at + 1;
  }
  const char kind = text[at + 1];
  at += 2;
  static constexpr std::string_view kLetters = "abfnrtv";
  static constexpr std::string_view kControls = "\a\b\f\n\r\t\v";
  if (const size_t letter = kLetters.find(kind); letter != std::string_view::npos) {
    out += kControls[letter];
  } else if (kind == '\n') {
    // A backslash joins lines.
  } else if (kind == '\r') {
    if (at < text.size() && text[at] == '\n') ++at;
  } else if (kind == '<') {
    return append_hex_data(text, at, out);
  } else if (kind == 'x') {
    unsigned value = 0;
    for (; at < text.size() && hex_digit(text[at]) >= 0; ++at) value = value * 16 + hex_digit(text[at]);
    out += static_cast<char>(value);
  } else if (kind >= '0' && kind <= '7') {
    unsigned value = kind - '0';
    for (int digits = 1; digits < 3 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++digits, ++at) {
      value = value * 8 + (text[at] - '0');
    }
    out += static_cast<char>(value);
  } else {
    out += kind;
  }
  return at;
}

/// The parts of what stands between the braces of `${...}`.
struct VariableReference {
  std::string_view name;
  std::optional<size_t> index;
  std::optional<std::string_view> otherwise;
};

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

VariableReference parse_reference(std::string_view text) {
  VariableReference reference;
  const size_t begin = skip_space(text, 0);
  size_t at = begin;
  if (at < text.size() && (text[at] == '?' || text[at] == '#' || text[at] == '$')) {
    ++at;
  } else {
    while (at < text.size() && is_variable_character(text[at])) ++at;
  }
  reference.name = text.substr(begin, at - begin);
  at = skip_space(text, at);
  if (at < text.size() && text[at] == '[') {
    const size_t number = skip_space(text, at + 1);
    size_t index = 0;
    const auto [end, error] = std::from_chars(text.data() + number, text.data() + text.size(), index);
    const size_t close = end - text.data();
    if (error == std::errc() && close < text.size() && text[close] == ']') {
      reference.index = index;
      at = skip_space(text, close + 1);
    }
  }
  if (at < text.size() && text[at] == '-') reference.otherwise = text.substr(at + 1);
  return reference;
}

std::string nth_word(std::string_view text, size_t index) {
  std::string_view word;
  for (size_t i = 0; i <= index && !text.empty(); ++i) {
    word = take_word(text);
    if (i < index) word = {};
  }
  return std::string(word);
}

/// The position of the parenthesis that closes a `$(` whose contents begin at `at`, or npos.
size_t find_call_end(std::string_view text, size_t at) {
  int level = 1;
  char quotation = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && quotation != '\'') {
      ++at;
    } else if (c == '"' || c == '\'') {
      if (!quotation) {
        quotation = c;
      } else if (quotation == c) {
        quotation = 0;
      }
    } else if (c == '(' && !quotation) {
      ++level;
    } else if (c == ')' && !quotation && --level == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

size_t skip_space_and_comments(std::string_view text, size_t position) {
  while (position < text.size()) {
    if (is_space(text[position])) {
      ++position;
    } else if (comment_at(text, position)) {
      position = skip_comment(text, position);
    } else {
      break;
    }
  }
  return position;
}

size_t skip_escape(std::string_view text, size_t position) {
  if (position + 1 >= text.size()) return text.size();
  if (text[position + 1] == '<') {
    size_t at = position + 2;
    while (at < text.size() && text[at] != '>') at = comment_at(text, at) ? skip_comment(text, at) : at + 1;
    return std::min(at + 1, text.size());
  }
  return position + (text.substr(position + 1, 2) == "\r\n" ? 3 : 2);
}

size_t skip_double_quoted(std::string_view text, size_t position) {
  for (++position; position < text.size();) {
    if (text[position] == '"') return position + 1;
    position = text[position] == '\\' ? skip_escape(text, position) : position + 1;
  }
  return text.size();
}

size_t skip_single_quoted(std::string_view text, size_t position) {
  const size_t close = text.find('\'', position + 1);
  return close == std::string_view::npos ? text.size() : close + 1;
}

std::vector<std::string> split_arguments(std::string_view config) {
  std::vector<std::string> arguments;
  for (size_t at = 0; at < config.size(); ++at) {
    std::string argument = read_argument(config, at, true);
    if (!argument.empty() || at < config.size()) arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::string_view take_word(std::string_view& text) {
  const size_t begin = skip_space_and_comments(text, 0);
  const size_t end = skip_word(text, begin);
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(skip_space_and_comments(text, end));
  return word;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) words.emplace_back(word);
  return words;
}

std::string uncomment(std::string_view text) {
  size_t position = 0;
  return read_argument(text, position, false);
}

std::string unquote(std::string_view text) {
  const std::string plain = uncomment(text);
  std::string out;
  out.reserve(plain.size());
  char quotation = 0;
  for (size_t at = 0; at < plain.size();) {
    const char c = plain[at];
    if ((c == '"' || c == '\'') && (!quotation || quotation == c)) {
      quotation = quotation ? 0 : c;
      ++at;
    } else if (c == '\\' && at + 1 < plain.size() && (quotation == '"' || (!quotation && plain[at + 1] == '<'))) {
      at = append_escape(plain, at, out);
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

std::string quote(std::string_view text, bool allow_newlines) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '"' || c == '$') {
      out += '\\';
      out += c;
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += allow_newlines ? "\n" : "\\n";
    } else if (byte < 32 || byte >= 127) {
      out += '\\';
      out += static_cast<char>('0' + (byte >> 6));
      out += static_cast<char>('0' + ((byte >> 3) & 7));
      out += static_cast<char>('0' + (byte & 7));
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string unparse_arguments(const std::vector<std::string>& arguments) {
  std::string out;
  for (size_t i = 0; i < arguments.size(); ++i) out.append(i ? ", " : "").append(arguments[i]);
  return out;
}

std::string unparse_words(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out.append(i ? " " : "").append(words[i]);
  return out;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > 32 && c < 127 && c != '"' && c != '\'' && c != '\\' && c != ',';
  });
}

std::optional<std::pair<std::string_view, std::string_view>> split_keyword(std::string_view argument) {
  size_t at = 0;
  for (; at < argument.size() && !is_space(argument[at]); ++at) {
    const char c = argument[at];
    if (!is_variable_character(c) && c != '.' && c != ':' && c != '?' && c != '!') return std::nullopt;
  }
  if (at == 0) return std::nullopt;
  return std::pair(argument.substr(0, at), argument.substr(skip_space(argument, at)));
}

std::string expand_variables(std::string_view text, const TextLookup& variable, const TextLookup& handler,
                             ExpandInto mode, int depth) {
  if (depth > kMaxExpansionDepth || text.find('$') == std::string_view::npos) return std::string(text);

  std::string out;
  size_t copied = 0;
  char quotation = 0;
  size_t hex_end = 0;  // of the hex data that `at` may be in, where quotes are no quotes
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\\') {
      if (quotation != '\'' && at >= hex_end && text.substr(at + 1, 1) == "<") hex_end = skip_escape(text, at);
      at += quotation == '"' ? 2 : 1;
      continue;
    }
    if ((c == '"' || c == '\'') && at >= hex_end) {
      if (!quotation) {
        quotation = c;
      } else if (quotation == c) {
        quotation = 0;
      }
      ++at;
      continue;
    }
    if ((!quotation || at < hex_end) && comment_at(text, at)) {
      at = skip_comment(text, at);
      continue;
    }
    if (c != '$' || quotation == '\'' || at + 1 >= text.size()) {
      ++at;
      continue;
    }

    const size_t dollar = at;
    const char kind = text[at + 1];
    const bool bracketed = kind == '{' || kind == '(';
    std::string_view inner;
    if (bracketed) {
      const size_t close = kind == '{' ? text.find('}', at + 2) : find_call_end(text, at + 2);
      if (close == std::string_view::npos) break;
      inner = text.substr(at + 2, close - at - 2);
      at = close + 1;
    } else if (is_variable_character(kind)) {
      for (++at; at < text.size() && is_variable_character(text[at]);) ++at;
      inner = text.substr(dollar + 1, at - dollar - 1);
    } else if (kind == '?' || kind == '#' || kind == '$') {
      inner = text.substr(at + 1, 1);
      at += 2;
    } else {
      ++at;
      continue;
    }

    std::string expanded_inner;
    const bool nested = bracketed && inner.find('$') != std::string_view::npos;
    if (nested) {
      expanded_inner = expand_variables(inner, variable, handler, ExpandInto::kText, depth + 1);
      inner = expanded_inner;
    }

    std::optional<std::string> value;
    if (kind == '(') {
      if (handler) value = handler(inner);
    } else if (kind == '{') {
      const VariableReference reference = parse_reference(inner);
      value = variable(reference.name);
      if (value && reference.index) {
        value = nth_word(*value, *reference.index);
      } else if (!value && reference.otherwise) {
        value = expand_variables(*reference.otherwise, variable, handler, ExpandInto::kText, depth + 1);
      }
    } else {
      value = variable(inner);
    }

    if (!value && !nested) continue;  // stays as written
    out.append(text.substr(copied, dollar - copied));
    copied = at;
    if (!value) {
      out += '$';
      out += kind;
      out.append(inner);
      out += kind == '(' ? ')' : '}';
    } else if (quotation == '"') {
      const std::string quoted = quote(*value);
      out.append(quoted, 1, quoted.size() - 2);
    } else if (mode == ExpandInto::kQuoted) {
      out += quote(*value);
    } else {
      out += *value;
    }
  }
  return out.append(text.substr(copied));
}

}  // namespace headrace::lang
