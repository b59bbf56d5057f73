#pragma once
/// \file
/// What the parser makes of a text: element classes and the definitions of compound elements.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <headrace/error.hh>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/lang.hh"

namespace headrace::lang {

/// Which ports of an element: its inputs or its outputs.
enum class Side : uint8_t { kInput, kOutput };
constexpr Side opposite(Side side) { return side == Side::kInput ? Side::kOutput : Side::kInput; }
constexpr std::string_view side_name(Side side) { return side == Side::kInput ? "input" : "output"; }

/// An index into Program::classes.
using ClassId = int;
inline constexpr ClassId kNoClass = -1;
/// The class of what only forwards connections: `input`, `output`, groups, expanded compound elements.
inline constexpr ClassId kTunnelClass = 0;

struct ElementClass {
  std::string name;
  /// Definitions to choose from, in order; empty for a primitive class.
  std::vector<int> overloads;
  /// The class that `...` extends, which is asked last.
  ClassId extends = kNoClass;
  /// Stands for a class that does not exist, after the error was reported.
  bool unknown = false;
};

/// A number of used ports for each side.
class PortCounts {
 public:
  int& operator[](Side side) { return counts_[static_cast<size_t>(side)]; }
  int operator[](Side side) const { return counts_[static_cast<size_t>(side)]; }
  void use(Side side, int port) { (*this)[side] = std::max((*this)[side], port + 1); }

 private:
  std::array<int, 2> counts_{};
};

/// An element within a definition.
struct DefinedElement {
  std::string name;
  /// Its name is provisional: elements that were named by the user come first.
  bool anonymous = false;
  ClassId type = kNoClass;
  std::string config;
  Landmark landmark;
  PortCounts ports;
};

/// A formal parameter of a compound element, or a variable from `define`.
struct Variable {
  std::string name;
  /// A formal's keyword (empty: positional), a variable's value.
  std::string text;
};

/// The three elements that stand for a group or an expanded compound element: connections to `outside` continue behind
/// `input`, those to `output` behind `outside`.
struct Tunnel {
  int outside = -1, input = -1, output = -1;
};

/// What stands between two braces (or overload bars), or in the file.
struct Definition {
  std::string name;  ///< the class, empty for an anonymous compound element and for the file
  Landmark landmark;
  int depth = 0;  ///< 0 for the file
  std::vector<Variable> variables;
  size_t formals = 0;                    ///< how many of the variables are formal parameters
  std::vector<DefinedElement> elements;  ///< in a compound element, the first two are `input` and `output`
  std::vector<Connection> connections;
  std::vector<Tunnel> groups;
  int inputs = 0, outputs = 0;

  int find(const std::string& element_name) const;
  /// Adds an element under a name that is not taken.
  int add(DefinedElement element);
  /// The name that the next anonymous element of the class gets.
  std::string anonymous_name(std::string_view class_name) const;
  void connect(PortRef from, PortRef to, const Landmark& landmark);
  /// Settles the names of anonymous elements, once all others are known.
  void name_anonymous();
  std::string printable_name() const { return name.empty() ? "<anonymous>" : name; }
  /// The name with parameters and port numbers, for the list of candidates of an overload.
  std::string signature() const;

  /// Indices of elements by name. `input` and `output` are those of the innermost open group.
  std::unordered_map<std::string, int> names;
  /// How many elements do not count in the numbers of anonymous names.
  int uncounted = 0;
};

/// A parsed text. Definitions refer to classes, classes to definitions, by index.
struct Program {
  std::vector<ElementClass> classes{ElementClass{"<tunnel>", {}, kNoClass, false}};
  std::deque<Definition> definitions;  ///< the first is the file
  std::vector<Requirement> requirements;
};

/// "[1 input, 2 outputs]", for messages; with a number of arguments, unless it is 0, in front of them.
std::string port_signature(int inputs, int outputs, std::optional<size_t> arguments);

/// Matches arguments to the formal parameters of a definition: positional ones, then keywords, then __REST__. Gives one
/// value for each formal, or nothing when they do not match.
std::optional<std::vector<std::string>> assign_arguments(const std::vector<std::string>& arguments,
                                                         const Definition& definition);

}  // namespace headrace::lang
