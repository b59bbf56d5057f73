#pragma once
/// \file
/// Which configuration a command works on, and how it is read.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"
#include "lang/lang.hh"

namespace headrace::cli {

class CommandLine;

/// The folders of a list with ':' between them.
std::vector<std::string> split_path(const std::string& path);

/// Collects what a command line says about the configuration: a file ("-" is standard input), an expression, variables.
class ConfigurationSource {
 public:
  /// How much a configuration must make sense.
  enum class Check {
    kSyntax,   ///< classes and packages need not exist; packages that do are loaded for their compound elements
    kClasses,  ///< packages and classes that do not exist are errors
  };

  /// Errors beyond this number are only counted.
  static constexpr int kMaxErrors = 20;

  /// Adds CONF, NAME=VALUE, --file, --expression and --clickpath. `this` must outlive the parsing. A command line that
  /// names no configuration is then a mistake, and so is a variable that the configuration does not use.
  void add_options(CommandLine& line);

  /// False when a configuration was named before. A name without a folder that is not in the current folder may be that
  /// of an installed configuration (PREFIX/share/headrace/conf).
  bool set_file(const std::string& name);
  bool set_expression(std::string text);
  /// An argument: NAME=VALUE defines a variable, all else is a file. False, with a message, when it is too much.
  bool add_argument(const std::string& argument, Errors& errors);
  /// Folders that require(library) and require(package) search, with ':' between them. Takes the place of $CLICKPATH.
  void set_search_path(std::string path) { search_path_ = std::move(path); }

  /// The name in messages: the file's, "<stdin>", or "config" for an expression.
  std::string landmark() const;
  /// Whether the configuration can be read a second time.
  bool is_file() const { return !is_expression_ && !text_.empty() && text_ != "-"; }
  /// The configuration's text. Standard input is read when nothing was named.
  std::optional<std::string> read_text(Errors& errors) const;

  /// Reads and parses the configuration.
  Status load(lang::Configuration& configuration, Errors& errors, Check check) const;
  /// Parses another text, which messages call `landmark`, with the variables and search path of the command line.
  Status parse(const std::string& text, const std::string& landmark, lang::Configuration& configuration, Errors& errors,
               Check check) const;

 private:
  Status check_variables(const lang::Configuration& configuration, Errors& errors) const;

  bool given_ = false;
  bool is_expression_ = false;
  bool strict_ = false;  // variables must be used
  std::string text_;     // the expression, or the file's path
  std::optional<std::string> search_path_;
  std::map<std::string, std::string> variables_;
};

/// The file that `name` stands for: one that is installed in PREFIX/share/headrace/KIND if `name` has no folder and the
/// current folder no such file. `suffix` may be left out of the name.
std::string find_installed(const std::string& name, const char* kind, const char* suffix = "");
/// Those in PREFIX/share/headrace/KIND, without `suffix`, sorted.
std::vector<std::string> installed_names(const char* kind, const char* suffix);

}  // namespace headrace::cli
