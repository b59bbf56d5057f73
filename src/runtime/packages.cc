#include "runtime/packages.hh"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "headrace/balancer.hh"
#include "headrace/element.hh"

namespace headrace {

namespace {

struct Packages {
  std::map<std::string, std::string> refused;  // why, by name
  std::vector<std::string> path;
  std::vector<std::string> loaded;
};
Packages& packages() {
  static Packages p;
  return p;
}

std::vector<std::string> search_path() {
  std::vector<std::string> path = packages().path;
  for (const char* variable : {"HEADRACE_PATH", "CLICKPATH"}) {
    const char* value = std::getenv(variable);
    std::string_view rest = value ? value : "";
    while (!rest.empty()) {
      const size_t colon = rest.find(':');
      if (colon != 0) path.emplace_back(rest.substr(0, colon));
      rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
  }
  path.emplace_back(".");
  // Beside the binary: <prefix>/bin/headrace and <prefix>/lib/headrace.
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!self.empty()) path.push_back((self.parent_path().parent_path() / "lib" / "headrace").string());
  return path;
}

/// The edit distance between two names, ignoring case (V. Levenshtein, 1966).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same =
          std::tolower(static_cast<unsigned char>(a[i - 1])) == std::tolower(static_cast<unsigned char>(b[j - 1]));
      const size_t change = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void add_package_path(std::string folder) {
  std::vector<std::string>& path = packages().path;
  if (std::find(path.begin(), path.end(), folder) == path.end()) path.push_back(std::move(folder));
}

std::vector<std::string> loaded_packages() { return packages().loaded; }

Status load_package(const std::string& name, const Landmark& where, Errors& errors) {
  std::vector<std::string>& loaded = packages().loaded;
  if (std::find(loaded.begin(), loaded.end(), name) != loaded.end()) return {};
  // A library is initialized once, and never closed.
  if (const auto refused = packages().refused.find(name); refused != packages().refused.end())
    return errors.error_at(where, "package '{}': {}", name, refused->second);
  for (const std::string& folder : search_path()) {
    for (const std::string& file : {folder + "/" + name + ".so", folder + "/lib" + name + ".so"}) {
      std::error_code ignored;
      if (!std::filesystem::exists(file, ignored)) continue;
      (void)take_refused_balancers();
      // Never closed: the code of its elements must live as long as the process.
      if (!dlopen(std::filesystem::absolute(file, ignored).c_str(), RTLD_NOW | RTLD_GLOBAL))
        return errors.error_at(where, "package '{}': {}", name, dlerror());
      if (const std::vector<std::string> refused = take_refused_balancers(); !refused.empty()) {
        packages().refused[name] =
            fmt::format("there is a balancer '{}' already: its own needs another name", fmt::join(refused, "', '"));
        return load_package(name, where, errors);
      }
      loaded.push_back(name);
      return {};
    }
  }
  return errors.error_at(where, "required package '{}' not found: no {}.so in {} (add its folder to $HEADRACE_PATH)",
                         name, name, fmt::join(search_path(), ", "));
}

std::string suggest_name(std::string_view name, const std::vector<std::string_view>& names) {
  std::string_view best;
  size_t least = std::max<size_t>(2, name.size() / 4) + 1;
  for (const std::string_view candidate : names) {
    const size_t d = distance(name, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  return best.empty() ? std::string() : fmt::format(" (did you mean '{}'?)", best);
}

std::string suggest_class(std::string_view name) {
  if (const std::string_view reason = absent_reason(name); !reason.empty()) return fmt::format(" ({})", reason);
  std::vector<std::string_view> names;
  for (const ElementInfo* info : all_element_infos()) names.emplace_back(info->name);
  return suggest_name(name, names);
}

}  // namespace headrace
