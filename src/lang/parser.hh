#pragma once
/// \file
/// The parser: recursive descent from tokens to a Program.

#include <headrace/error.hh>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/definition.hh"
#include "lang/lang.hh"
#include "lang/lexer.hh"

namespace headrace::lang {

/// An element with the ports that a connection names beside it.
struct Endpoint {
  /// An open list ends in this: `[1,]` has 1 and as many as it takes.
  static constexpr int kOpen = -1;

  int element = -1;
  std::vector<int> inputs, outputs;

  std::vector<int>& ports(Side side) { return side == Side::kInput ? inputs : outputs; }
  const std::vector<int>& ports(Side side) const { return side == Side::kInput ? inputs : outputs; }
};

class Parser {
 public:
  Parser(const Options& options, Errors& errors) : options_(options), errors_(errors) {}

  /// Parses a text into definition 0 of the program.
  Program parse(std::string_view text, const std::string& filename);
  /// Adds the body of a compound element to a program, for an element at `landmark`, which all of it gets.
  /// \return its definition
  int parse_body(const std::string& body, const std::string& class_name, const Landmark& landmark, Program& program);

 private:
  /// Groups and compound elements may stand within each other this deep.
  static constexpr int kMaxNesting = 50;
  /// No element has that many ports; a slip of the keyboard has.
  static constexpr int kMaxPort = 65535;
  /// A library may require libraries, each of which is read once, within the one that requires it.
  static constexpr int kMaxLibraryDepth = 50;

  enum class Block { kFile, kCompound, kGroup };

  /// An element in a chain, as written.
  struct ElementText {
    std::string name;
    bool implicit = false;        ///< `input` or `output`, left out in the text
    bool bare = false;            ///< nothing but a name
    int group = -1;               ///< the element that stands for a group
    ClassId type = kNoClass;      ///< the class of this name, if it is one
    ClassId declared = kNoClass;  ///< the class behind `::`
    std::string declared_name;    ///< and its name
    std::string config;
    Landmark landmark;
    Endpoint ends;
  };

  /// Where in a chain an element stands.
  struct ListPlace {
    bool first_list;     ///< before the first arrow
    bool first_element;  ///< first in a comma-separated list
  };

  /// The part of a block's state that its statements share.
  struct BlockState {
    Block kind;
    /// Whether the last chain went to `output` and nothing else, so that the next may begin with a bare arrow.
    bool chain_ended_in_output = true;
  };

  // Statements. parse_block() reads up to the end of the block and takes its closing token.
  Token parse_block(Block kind);
  void parse_element_class();
  void parse_require();
  void parse_library(const std::string& name);
  void parse_define();

  // Connections.
  void parse_chain(BlockState& block);
  std::vector<Endpoint> parse_elements(const BlockState& block, bool first);
  bool parse_element(const BlockState& block, ListPlace place, ElementText& element);
  bool parse_implicit(const BlockState& block, ListPlace place, const Token& token, ElementText& element);
  void parse_declaration(ElementText& element);
  void parse_ports(std::vector<int>& ports);
  int parse_port_number(std::string_view text);
  void spread_declaration(std::vector<ElementText>& list);
  int declare(ElementText& element);
  void check_name(const ElementText& element);
  void check_useless(const std::vector<Endpoint>& ends, Side side);
  void connect(const std::vector<Endpoint>& from, const std::vector<Endpoint>& to, TokenKind connector,
               const Landmark& landmark);

  // Compound elements and groups.
  ClassId parse_compound(const std::string& name);
  enum class Formals { kNone, kMaybe };
  int parse_overload(const std::string& name, Formals formals, Token& end);
  void parse_formals();
  void parse_group(ElementText& element);
  void skip_nested(char open, char close);
  /// Returns whether the parameter stands where it may.
  bool add_formal(std::string_view name, const std::string& keyword, bool report_order);
  bool add_variable(std::string_view name, std::string text);
  int check_pseudo_element(int element, Side side, const std::string& name, const Landmark& landmark,
                           size_t first_connection);

  // Classes, looked up from the inside out.
  ClassId find_class(const std::string& name);
  ClassId class_for(const std::string& name, bool report);
  std::string hint(std::string_view name) const { return options_.hint ? options_.hint(name) : std::string(); }
  ClassId add_class(ElementClass element_class);

  Definition& current() { return program_.definitions[static_cast<size_t>(current_)]; }
  Lexer& lexer() { return *lexer_; }
  Status error(const std::string& text) { return errors_.error_at(lexer().landmark(), "{}", text); }
  Status syntax_error(const Token& token);

  const Options& options_;
  Errors& errors_;
  Lexer* lexer_ = nullptr;
  Program program_;
  int current_ = 0;
  int nesting_ = 0;
  int library_depth_ = 0;
  size_t ports_read_ = 0;
  bool too_many_ports_ = false;
  std::vector<std::unordered_map<std::string, ClassId>> scopes_;
  /// Primitive classes, which have no scope.
  std::unordered_map<std::string, ClassId> primitives_;
  std::unordered_set<std::string> libraries_;
};

}  // namespace headrace::lang
