#include "cli/element_page.hh"

#include <algorithm>
#include <cctype>

#include "headrace/device/embedded.hh"
#include "headrace/text.hh"

namespace headrace::cli {

namespace {

/// Whether a line begins the definition of `name`: "struct Name {", "class Name final : ...".
bool defines(std::string_view line, std::string_view name) {
  for (const std::string_view keyword : {"class ", "struct "}) {
    if (!line.starts_with(keyword)) continue;
    const std::string_view rest = trimmed(line.substr(keyword.size()));
    if (!rest.starts_with(name)) return false;
    const char after = rest.size() > name.size() ? rest[name.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(after)) || after == '_') return false;
    return rest.find(';') == std::string_view::npos || rest.find('{') != std::string_view::npos;
  }
  return false;
}

}  // namespace

std::string doc_comment(std::string_view header, std::string_view name) {
  std::string comment;
  for (size_t begin = 0; begin < header.size();) {
    const size_t end = std::min(header.find('\n', begin), header.size());
    const std::string_view line = trimmed(header.substr(begin, end - begin));
    begin = end + 1;
    if (line.starts_with("///")) {
      // The text behind the slashes keeps its own indentation.
      const std::string_view text = line.substr(3);
      comment += text.starts_with(' ') ? text.substr(1) : text;
      comment += '\n';
    } else if (defines(line, name)) {
      return comment;
    } else {
      comment.clear();
    }
  }
  return {};
}

std::string element_page(const ElementInfo& info) {
  const EmbeddedText header = find_embedded_element(info.documented_as);
  return doc_comment(header.text, info.documented_as);
}

std::string summary_of(std::string_view page) {
  std::string summary;
  for (size_t begin = 0; begin < page.size();) {
    const size_t end = std::min(page.find('\n', begin), page.size());
    const std::string_view line = trimmed(page.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) break;
    if (!summary.empty()) summary += ' ';
    summary += line;
  }
  for (size_t dot = summary.find('.'); dot != std::string::npos; dot = summary.find('.', dot + 1)) {
    // A full stop ends the sentence when a new one begins behind it; "e.g. this" or "10.0.0.1" do not.
    if (dot + 2 < summary.size() && summary[dot + 1] == ' ' &&
        std::isupper(static_cast<unsigned char>(summary[dot + 2])))
      return summary.substr(0, dot + 1);
  }
  return summary;
}

}  // namespace headrace::cli
