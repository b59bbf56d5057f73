#include "cli/source.hh"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "headrace/element.hh"
#include "runtime/packages.hh"

namespace headrace::cli {

namespace {

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> folders;
  size_t begin = 0;
  for (;;) {
    const size_t end = path.find(':', begin);
    folders.push_back(path.substr(begin, end - begin));
    if (end == std::string::npos) return folders;
    begin = end + 1;
  }
}

/// Where `make install` puts configurations, seen from the executable.
std::string installed_data() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (self.parent_path().parent_path() / "share" / "headrace").string();
}

std::optional<std::string> read_all(std::FILE* file) {
  std::string text;
  char part[65536];
  size_t n;
  while ((n = std::fread(part, 1, sizeof part, file)) > 0) text.append(part, n);
  return std::ferror(file) ? std::nullopt : std::optional(std::move(text));
}

}  // namespace

bool ConfigurationSource::set_file(std::string name) {
  if (given_) return false;
  given_ = true;
  is_expression_ = false;
  text_ = std::move(name);
  return true;
}

bool ConfigurationSource::set_expression(std::string text) {
  if (!set_file(std::move(text))) return false;
  is_expression_ = true;
  return true;
}

bool ConfigurationSource::add_argument(const std::string& argument, Errors& errors) {
  size_t end = 0;
  while (end < argument.size() && (std::isalnum(static_cast<unsigned char>(argument[end])) || argument[end] == '_'))
    ++end;
  if (end > 0 && end < argument.size() && argument[end] == '=') {
    const std::string name = argument.substr(0, end);
    if (!variables_.emplace(name, argument.substr(end + 1)).second)
      return errors.error("parameter '{}' multiply defined", name).ok();
    return true;
  }
  return set_file(argument) || errors.error("router configuration specified twice").ok();
}

std::string ConfigurationSource::landmark() const {
  if (is_expression_) return "config";
  return text_.empty() || text_ == "-" ? "<stdin>" : text_;
}

std::optional<std::string> ConfigurationSource::read_text(Errors& errors) const {
  if (is_expression_) return text_;
  std::optional<std::string> text;
  if (text_.empty() || text_ == "-") {
    text = read_all(stdin);
  } else if (const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(text_.c_str(), "rb"),
                                                                        &std::fclose}) {
    text = read_all(file.get());
  }
  if (!text) (void)errors.error_at({landmark(), 0}, "{}", std::strerror(errno));
  return text;
}

Status ConfigurationSource::load(lang::Configuration& configuration, Errors& errors, bool check_classes) const {
  const std::optional<std::string> text = read_text(errors);
  return text ? parse(*text, landmark(), configuration, errors, check_classes) : Status::failed();
}

Status ConfigurationSource::parse(const std::string& text, const std::string& landmark,
                                  lang::Configuration& configuration, Errors& errors, bool check_classes) const {
  lang::Options options;
  options.variables = variables_;
  const char* environment = std::getenv("CLICKPATH");
  const std::string path = search_path_.value_or(environment ? environment : "");
  if (!path.empty()) {
    options.library_path = split_path(path);
    for (const std::string& folder : options.library_path)
      if (!folder.empty()) add_package_path(folder + "/lib");
  }
  if (const std::string folder = installed_data(); !folder.empty()) options.library_path.push_back(folder);
  if (!check_classes) return lang::parse(text, landmark, options, configuration, errors);

  // A package brings classes, and the text says which packages it needs: so it is read once to load them.
  Errors ignored;
  lang::Configuration draft;
  (void)lang::parse(text, landmark, options, draft, ignored);
  for (const lang::Requirement& r : draft.requirements)
    if (r.kind == "package") (void)load_package(r.value, r.landmark, ignored);
  // What this build lacks is a class all the same: the router says why it is not there.
  options.is_class = [](std::string_view name) {
    return find_element_info(name) != nullptr || !absent_reason(name).empty();
  };
  return lang::parse(text, landmark, options, configuration, errors);
}

}  // namespace headrace::cli
