#include "elements/ids/pattern_table.hh"

#include <fmt/format.h>

#include "elements/ids/pattern_engine_arg.hh"

namespace headrace {

Status PatternTable::configure(Args& args, bool automaton) {
  Errors& errors = args.errors();
  std::vector<std::string> files, rest;
  PatternMatcherOptions options;
  options.automaton = automaton;
  bool nocase = false;
  args.read_all("FILE", files, InputFile{})
      .read("NOCASE", nocase)
      .read("ENGINE", options.engine, PatternEngineArg{automaton})
      .consume_rest(rest);
  Status status = args.complete();
  if (!status) return status;

  PatternSet set;
  for (const std::string& file : files) {
    files_.push_back(FileStamp::of(file));  // before it is read
    if (files_.back().size < 0) {
      status &= errors.error("FILE: {}: No such file or directory", file);
    } else {
      status &= set.add_file(file, errors);
    }
  }
  for (size_t i = 0; i < rest.size(); ++i) {
    Pattern pattern;
    std::string_view text = rest[i];
    // Single quotes are the configuration's; double ones belong to a pattern's own form.
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') text = text.substr(1, text.size() - 2);
    const std::string wrong = parse_pattern(text, pattern);
    if (!wrong.empty()) {
      status &= errors.error("pattern {}: {}", i + 1, wrong);
      continue;
    }
    status &= set.add(std::move(pattern), errors);
  }
  if (nocase) set.ignore_case();
  if (!status) return status;
  if (set.empty()) return errors.error("no patterns: name a FILE or give PATTERN1, ...");
  return matcher_.build(std::move(set), options, errors);
}

void PatternTable::add_handlers(Handlers& handlers, ShaderElementBase& element, int matched) {
  handlers.read("patterns", [this] { return std::to_string(matcher_.patterns().size()); });
  handlers.read("list", [this] {
    std::string text;
    size_t number = 0;
    for (const Pattern& pattern : matcher_.patterns())
      text += fmt::format("{} {}\n", number++, unparse_pattern(pattern));
    return text;
  });
  handlers.read("table", [this] { return matcher_.text(); });
  handlers.read("matches", [&element, matched] { return std::to_string(element.counter(matched)); });
}

}  // namespace headrace
