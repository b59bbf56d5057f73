#pragma once
/// \file
/// The Click configuration language: from text to a flat list of elements and connections.
///
/// Parsing has two steps. The parser reads the text into definitions, one for the file and one for each compound
/// element; then compound elements are expanded, variables are replaced and connections through `input` and `output`
/// are followed, until only primitive elements are left. Nothing here knows what an element class does.

#include <cstddef>
#include <functional>
#include <headrace/error.hh>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::lang {

struct ElementDecl {
  std::string name;        ///< "outer/inner" for an element of a compound element
  std::string class_name;  ///< as declared, synonyms resolved
  std::string config;      ///< raw text between the parentheses, variables replaced, comments kept
  Landmark landmark;       ///< the line of its declaration, within the compound element if it came from one
};

/// One side of a connection. `element` indexes the elements of the same Configuration.
struct PortRef {
  int element = -1;
  int port = 0;
  friend bool operator==(const PortRef&, const PortRef&) = default;
  friend auto operator<=>(const PortRef&, const PortRef&) = default;
};

struct Connection {
  PortRef from, to;
  Landmark landmark;  ///< the line of the connector in the text, nearest to the sending element
};

struct Requirement {
  std::string kind;   ///< "package" or "compact_config"
  std::string value;  ///< the package's name, else empty
  Landmark landmark;
};

/// A flat configuration.
struct Configuration {
  /// In Click's order: the file's elements as declared, then the contents of each compound element in turn.
  std::vector<ElementDecl> elements;
  /// Without repetition, ordered by receiving port, then by sending port.
  std::vector<Connection> connections;
  std::vector<Requirement> requirements;
  /// The text that was parsed: the input, or its archive member "config".
  std::string source;
  /// Names of variables that a value on the command line has an effect on: those that the file defines, and those that
  /// are used where no compound element defines them.
  std::vector<std::string> variables;

  /// The index of the element of that name, or -1.
  int find(std::string_view name) const;
};

/// Bounds on what a text may grow into. A short text can describe more elements than any memory holds.
struct Limits {
  size_t elements = size_t{1} << 20;
  size_t connections = size_t{1} << 22;
  size_t text_bytes = size_t{1} << 28;  ///< names, classes and configurations of all elements together
};

/// An element as a text uses it, for Options::shipped.
struct ElementUse {
  std::string_view name, class_name;
  std::string_view config;  ///< variables replaced
  const Landmark& landmark;
  int inputs = 0, outputs = 0;  ///< the ports that are connected: one more than the largest number
};

struct Options {
  /// NAME=value of the command line; they win over `define` statements at file scope.
  std::map<std::string, std::string> variables;
  /// Folders for `require(library NAME)`, searched as FOLDER/conf/NAME, then FOLDER/NAME. An empty entry means the
  /// folder of the requiring file, which is also searched last.
  std::vector<std::string> library_path;
  /// Whether a class exists. With it, unknown classes and undeclared elements are errors here; without it, every name
  /// that is not declared as an element is taken for a class and left to the router.
  std::function<bool(std::string_view class_name)> is_class;
  /// What follows the name of an unknown class or element in a message: " (did you mean 'Queue'?)", or nothing.
  std::function<std::string(std::string_view name)> hint;
  /// The body of a compound element that comes with the program: what would stand between the braces of its
  /// `elementclass`, without parameters. Nothing for any other class, and after an error, which it reports. It is asked
  /// about classes that the text does not define, so a text's own `elementclass` of the same name counts.
  std::function<std::optional<std::string>(const ElementUse&, Errors&)> shipped;
  Limits limits;
};

/// Parses a text or an `ar` archive. `filename` appears in messages, and its folder is searched for libraries. All
/// errors are reported; `out` then holds what could be understood, for tools that go on regardless.
Status parse(std::string_view text, const std::string& filename, const Options& options, Configuration& out,
             Errors& errors);

/// The configuration in Click's flat text form: requirements, declarations, then connections joined into chains.
std::string unparse(const Configuration& configuration);

}  // namespace headrace::lang
