#include "cli/source.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/command_line.hh"
#include "headrace/element.hh"
#include "runtime/packages.hh"
#include "runtime/shipped_compounds.hh"

namespace headrace::cli {

namespace {

/// Where `make install` puts configurations, seen from the executable.
std::string installed_data() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (self.parent_path().parent_path() / "share" / "headrace").string();
}

/// Where the installed configurations lie, or nothing if none are installed.
std::filesystem::path installed_configurations() {
  const std::string data = installed_data();
  if (data.empty()) return {};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(data) / "conf";
  return std::filesystem::is_directory(folder, error) ? folder : std::filesystem::path();
}

bool is_bare_name(const std::string& name) { return name != "-" && name.find('/') == std::string::npos; }

std::optional<std::string> read_all(std::FILE* file) {
  std::string text;
  char part[65536];
  size_t n;
  while ((n = std::fread(part, 1, sizeof part, file)) > 0) text.append(part, n);
  return std::ferror(file) ? std::nullopt : std::optional(std::move(text));
}

/// Whether a text is none: a capture, a program, a compressed file.
bool is_binary(const std::string& text) {
  constexpr size_t kLooked = 4096;
  constexpr std::string_view kArchive = "!<arch>";
  return !text.starts_with(kArchive) && text.substr(0, kLooked).find('\0') != std::string::npos;
}

}  // namespace

std::string find_installed(const std::string& name, const char* kind, const char* suffix) {
  std::error_code error;
  if (name.empty() || !is_bare_name(name) || std::filesystem::exists(name, error)) return name;
  const std::string data = installed_data();
  if (data.empty()) return name;
  const std::filesystem::path folder = std::filesystem::path(data) / kind;
  for (const std::string& file : {name, name + suffix})
    if (std::filesystem::is_regular_file(folder / file, error)) return (folder / file).string();
  return name;
}

std::vector<std::string> installed_names(const char* kind, const char* suffix) {
  std::vector<std::string> names;
  const std::string data = installed_data();
  if (data.empty()) return names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(data) / kind, error))
    if (entry.path().extension() == suffix) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

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

void ConfigurationSource::add_options(CommandLine& line) {
  strict_ = true;
  const auto twice = [](bool first) {
    if (!first) throw CLI::ValidationError("more than one configuration given");
  };
  line.add_option_function<std::vector<std::string>>(
      "CONF",
      [this](const std::vector<std::string>& words) {
        Errors errors;
        for (const std::string& word : words)
          if (!add_argument(word, errors)) throw CLI::ValidationError(errors.lines().front());
      },
      "Configuration file, '-' for standard input; NAME=VALUE sets its variable $NAME. A name without a folder is looked "
      "for in the current folder, then among the installed configurations (PREFIX/share/headrace/conf)");
  line.add_option_function<std::string>(
          "-f,--file", [this, twice](const std::string& name) { twice(set_file(name)); },
          "Another way to name the configuration file")
      ->option_text("FILE")
      ->group("Configuration");
  line.add_option_function<std::string>(
          "-e,--expression", [this, twice](const std::string& text) { twice(set_expression(text)); },
          "The configuration is TEXT")
      ->option_text("TEXT")
      ->group("Configuration");
  line.add_option_function<std::string>(
          "-C,--clickpath", [this](const std::string& path) { set_search_path(path); },
          "Folders for required files and packages, separated by ':'; in place of $CLICKPATH. $HEADRACE_PATH is "
          "searched for packages, too")
      ->option_text("PATH")
      ->group("Configuration");
  line.callback([this] {
    if (!given_)
      throw CLI::ValidationError("no configuration given: name a file, '-' for standard input, or use -e TEXT");
  });
}

bool ConfigurationSource::set_file(const std::string& name) {
  if (given_) return false;
  given_ = true;
  is_expression_ = false;
  text_ = find_installed(name, "conf");
  return true;
}

bool ConfigurationSource::set_expression(std::string text) {
  if (given_) return false;
  given_ = true;
  is_expression_ = true;
  text_ = std::move(text);
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
  if (set_file(argument)) return true;
  return errors.error("router configuration specified twice: '{}' and '{}'", is_expression_ ? "-e" : text_, argument)
      .ok();
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
  if (!text) {
    const int error = errno;
    std::string why = std::strerror(error);
    if (error == ENOENT && is_bare_name(text_))
      if (const std::filesystem::path folder = installed_configurations(); !folder.empty())
        why += fmt::format(", neither in the current folder nor in {}", folder.string());
    (void)errors.error_at({landmark(), 0}, "{}", why);
  }
  return text;
}

Status ConfigurationSource::load(lang::Configuration& configuration, Errors& errors, Check check) const {
  const std::optional<std::string> text = read_text(errors);
  if (!text) return Status::failed();
  Status status = parse(*text, landmark(), configuration, errors, check);
  if (status.ok() && strict_) status = check_variables(configuration, errors);
  return status;
}

Status ConfigurationSource::check_variables(const lang::Configuration& configuration, Errors& errors) const {
  Status status;
  const std::vector<std::string>& known = configuration.variables;
  for (const auto& [name, value] : variables_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::vector<std::string_view> others;
    for (const std::string& other : known)
      if (!variables_.contains(other)) others.push_back(other);
    status &= errors.error_at({landmark(), 0}, "there is no variable '{}'{}", name, suggest_name(name, others));
  }
  return status;
}

Status ConfigurationSource::parse(const std::string& text, const std::string& landmark,
                                  lang::Configuration& configuration, Errors& errors, Check check) const {
  if (is_binary(text)) return errors.error_at({landmark, 0}, "not a configuration: it has bytes that are not text");
  lang::Options options;
  options.variables = variables_;
  const char* environment = std::getenv("CLICKPATH");
  const std::string path = search_path_.value_or(environment ? environment : "");
  if (!path.empty()) {
    options.library_path = split_path(path);
    for (const std::string& folder : options.library_path) {
      if (folder.empty()) continue;
      add_package_path(folder);
      add_package_path(folder + "/lib");
    }
  }
  if (const std::string folder = installed_data(); !folder.empty()) options.library_path.push_back(folder);
  add_shipped_compounds(options);

  // A package brings classes, and the text says which packages it needs: so it is read once to load them.
  Errors ignored;
  lang::Configuration draft;
  (void)lang::parse(text, landmark, options, draft, ignored);
  Status status;
  for (const lang::Requirement& r : draft.requirements) {
    if (r.kind != "package") continue;
    Errors why_not;
    if (check == Check::kClasses) {
      status &= load_package(r.value, r.landmark, errors);
    } else if (!load_package(r.value, {}, why_not)) {
      errors.warning_at(r.landmark, "{}; its compound elements are not expanded", why_not.lines().front());
    }
  }
  if (check == Check::kSyntax) return lang::parse(text, landmark, options, configuration, errors);
  if (!status.ok()) return status;
  // What this build lacks is a class all the same: the router says why it is not there.
  options.is_class = [](std::string_view name) {
    return find_element_info(name) != nullptr || !absent_reason(name).empty();
  };
  options.hint = [](std::string_view name) { return suggest_class(name); };
  return lang::parse(text, landmark, options, configuration, errors);
}

}  // namespace headrace::cli
