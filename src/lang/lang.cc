#include "lang/lang.hh"

#include "lang/archive.hh"
#include "lang/definition.hh"
#include "lang/flatten.hh"
#include "lang/parser.hh"

namespace headrace::lang {

int Configuration::find(std::string_view name) const {
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Status parse(std::string_view text, const std::string& filename, const Options& options, Configuration& out,
             Errors& errors) {
  out = {};
  const std::string& file = filename.empty() ? "config" : filename;
  const int errors_before = errors.error_count();
  if (is_archive(text)) {
    std::string problem;
    const auto member = archive_member(text, "config", problem);
    if (!member) {
      if (problem.empty()) problem = "archive has no 'config' section";
      return errors.error_at({file, 0}, "{}", problem);
    }
    text = *member;
  }
  out.source = text;
  Program program = Parser(options, errors).parse(text, file);
  flatten(program, options, out, errors);
  return errors.error_count() == errors_before ? Status() : Status::failed();
}

}  // namespace headrace::lang
