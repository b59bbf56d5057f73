#pragma once
/// \file
/// The text of arguments: splitting, quoting and variables of the Click language.
///
/// A configuration string is kept as the user wrote it; these functions give it meaning. They never fail: a quotation
/// or comment that does not end counts as ended with the text. "Space" is the C locale's isspace().

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::lang {

/// Separates a configuration string at its top-level commas. Each argument comes without comments and outer space;
/// quotations stay as written. An empty last argument is dropped: "a, b," has two, "a,,b" three and "," one.
std::vector<std::string> split_arguments(std::string_view config);

/// Separates text at unquoted space and comments; quotations stay as written.
std::vector<std::string> split_words(std::string_view text);

/// Takes the first word off `text`, which is left at its next word. The empty word means that `text` was blank.
std::string_view take_word(std::string_view& text);

/// The text without outer space, each comment (with the space around it) replaced by one blank.
std::string uncomment(std::string_view text);

/// uncomment() and one level of quotation less: '...' is literal, "..." knows C's escapes, `\<48 45>` is data in
/// hexadecimal, inside double quotes and outside.
std::string unquote(std::string_view text);

/// The text as one double-quoted string; unquote() restores it. With `allow_newlines`, line ends stay as they are.
std::string quote(std::string_view text, bool allow_newlines = false);

/// The arguments joined by ", ", the reverse of split_arguments() for arguments that it returned.
std::string unparse_arguments(const std::vector<std::string>& arguments);

/// The words joined by blanks.
std::string unparse_words(const std::vector<std::string>& words);

/// True for a nonempty run of printable ASCII without blank, quotation mark, backslash and comma.
bool is_word(std::string_view text);

/// Parts an argument of the form `KEYWORD value` (a keyword has letters, digits and `_.:?!`). The value may be empty.
std::optional<std::pair<std::string_view, std::string_view>> split_keyword(std::string_view argument);

/// Gives the value of a variable or of a handler call, or nothing when there is none: then the text stays.
using TextLookup = std::function<std::optional<std::string>(std::string_view name)>;

/// What expand_variables() does with a value that lands outside of quotation marks. Inside double quotes a value is
/// always escaped, so that it stays within them.
enum class ExpandInto {
  kText,   ///< inserts it as it is
  kQuoted  ///< inserts it as a double-quoted string
};

/// Beyond this nesting of values in values, variables are left as they stand.
inline constexpr int kMaxExpansionDepth = 10;

/// Replaces `$name`, `$?`, `$#`, `$$`, `${name}`, `${name-default}` and `${name[index]}` (the index'th word, from 0) by
/// what `variable` returns, and `$(text)` by what `handler` returns for the text. There is no replacement in single
/// quotes, in comments and behind a backslash within double quotes. A name, index, default or call may contain further
/// variables. Values are inserted without looking for variables in them.
std::string expand_variables(std::string_view text, const TextLookup& variable, const TextLookup& handler = {},
                             ExpandInto mode = ExpandInto::kText, int depth = 0);

/// The position behind the space and comments at `position`.
size_t skip_space_and_comments(std::string_view text, size_t position);

/// The position behind the double-quoted string whose opening mark is at `position`, or the end of the text.
size_t skip_double_quoted(std::string_view text, size_t position);

/// The position behind the single-quoted string whose opening mark is at `position`, or the end of the text.
size_t skip_single_quoted(std::string_view text, size_t position);

/// The position behind the backslash escape at `position`, of which `\<...>` is the long one.
size_t skip_escape(std::string_view text, size_t position);

}  // namespace headrace::lang
