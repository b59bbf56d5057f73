#pragma once
/// \file
/// Which configuration a command works on, and how it is read.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/error.hh"
#include "lang/lang.hh"

namespace headrace::cli {

/// Collects what a command line says about the configuration: a file ("-" is standard input), an expression, variables.
class ConfigurationSource {
 public:
  /// False when a configuration was named before.
  bool set_file(std::string name);
  bool set_expression(std::string text);
  /// An argument: NAME=value defines a variable, all else is a file. False, with a message, when it is too much.
  bool add_argument(const std::string& argument, Errors& errors);
  /// Folders that require(library) and require(package) search, with ':' between them. Takes the place of $CLICKPATH.
  void set_search_path(std::string path) { search_path_ = std::move(path); }

  /// The name in messages: the file's, "<stdin>", or "config" for an expression.
  std::string landmark() const;
  /// Reads and parses. Standard input is read when nothing was named.
  /// \param check_classes report classes that are not in the registry, after loading the packages that are required
  Status load(lang::Configuration& configuration, Errors& errors, bool check_classes) const;
  /// The same for a text, which messages call `landmark`; with the variables and search path of the command line.
  Status parse(const std::string& text, const std::string& landmark, lang::Configuration& configuration, Errors& errors,
               bool check_classes) const;

 private:
  std::optional<std::string> read_text(Errors& errors) const;

  bool given_ = false;
  bool is_expression_ = false;
  std::string text_;  // the expression, or the file's name
  std::optional<std::string> search_path_;
  std::map<std::string, std::string> variables_;
};

}  // namespace headrace::cli
