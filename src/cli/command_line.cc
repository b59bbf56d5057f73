#include "cli/command_line.hh"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/man_page.hh"
#include "cli/output.hh"
#include "headrace/version.hh"

namespace headrace::cli {

namespace {

constexpr size_t kWidth = 80;
constexpr size_t kOptionColumn = 28;
constexpr const char* kOwnGroup = "Options";  // of options without a group

/// `text` in lines that end before kWidth, all but the first indented by `indent`. `used`: what the first line has.
std::string wrapped(const std::string& text, size_t indent, size_t used) {
  std::string out;
  size_t column = used;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t length = end - begin;
    if (column > indent && column + 1 + length > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  return out;
}

bool is_operand(const CLI::Option& option) { return option.get_lnames().empty() && option.get_snames().empty(); }

std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& letter : option.get_snames()) names += (names.empty() ? "-" : ", -") + letter;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "    --" : ", --") + name;
  if (!option.get_option_text().empty()) names += " " + option.get_option_text();
  return names;
}

std::vector<std::string> dashed_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& letter : option.get_snames()) names.push_back("-" + letter);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

CommandLine::CommandLine(std::string name, std::string description, std::string operands)
    : CLI::App(std::move(description), std::move(name)), operands_(std::move(operands)) {
  set_help_flag("-h,--help", "Print this help");
  set_version_flag("-V,--version", version_text(), "Print what this program was made from");
  option_defaults()->group(kOwnGroup);
}

std::optional<int> CommandLine::read(int argc, char** argv) {
  const std::string_view hidden = argc == 2 ? argv[1] : "";
  if (hidden == "--describe") {
    print("{}\n", description_as_json());
    return 0;
  }
  if (hidden == "--man") {
    write_output(man_section());
    return 0;
  }
  if (hidden == "--bash-completion") {
    write_output(completion_branch());
    return 0;
  }
  try {
    parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    write_output(help_text());
    return 0;
  } catch (const CLI::CallForVersion&) {
    write_output(version_text());
    return 0;
  } catch (const CLI::ParseError& e) {
    return misuse(e.what());
  }
  return std::nullopt;
}

int CommandLine::misuse(std::string_view message) const {
  complain("{0}: {1}\nTry '{0} --help' for more information.\n", get_name(), message);
  return kUsage;
}

std::string CommandLine::help_text() const {
  std::string text = fmt::format("Usage: {} [OPTION]...{}{}\n\n{}\n", get_name(), operands_.empty() ? "" : " ",
                                 operands_, wrapped(get_description(), 0, 0));
  std::vector<std::string> groups;
  const std::vector<const CLI::Option*> options = get_options();
  const auto describe = [&](const std::string& names, const std::string& description) {
    std::string line = "  " + names;
    if (line.size() + 2 > kOptionColumn) {
      text += line + "\n";
      line.clear();
    }
    line.resize(kOptionColumn, ' ');
    text += line + wrapped(description, kOptionColumn, kOptionColumn) + "\n";
  };
  bool any = false;
  for (const CLI::Option* o : options) {
    if (!is_operand(*o)) continue;
    if (!any) text += "\n";
    any = true;
    describe(o->get_name(), o->get_description());
  }
  for (const CLI::Option* o : options)
    if (!is_operand(*o) && o->get_group() != kOwnGroup &&
        std::find(groups.begin(), groups.end(), o->get_group()) == groups.end())
      groups.push_back(o->get_group());
  groups.emplace_back(kOwnGroup);
  for (const std::string& group : groups) {
    if (group.empty()) continue;  // hidden
    text += "\n" + group + "\n";
    for (const CLI::Option* o : options)
      if (!is_operand(*o) && o->get_group() == group) describe(names_of(*o), o->get_description());
  }
  if (!get_footer().empty()) text += "\n" + wrapped(get_footer(), 0, 0) + "\n";
  return text;
}

std::string CommandLine::description_as_json() const {
  nlohmann::ordered_json j;
  j["name"] = get_name();
  j["operands"] = operands_;
  j["description"] = get_description();
  j["footer"] = get_footer();
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const CLI::Option* o : get_options()) {
    if (!is_operand(*o) && o->get_group().empty()) continue;
    options.push_back({{"letters", o->get_snames()},
                       {"names", o->get_lnames()},
                       {"operand", is_operand(*o) ? o->get_name() : ""},
                       {"value", o->get_option_text()},
                       {"repeatable", o->get_expected_max() > 1},
                       {"group", o->get_group()},
                       {"description", o->get_description()}});
  }
  j["options"] = options;
  return j.dump(2);
}

std::string CommandLine::man_section() const {
  std::string text = fmt::format(".SS {}\n.B {}\n[OPTION]... {}\n.PP\n{}\n", troff(get_name()), troff(get_name()),
                                 troff(operands_), troff(get_description()));
  for (const CLI::Option* o : get_options()) {
    if (is_operand(*o)) {
      text += fmt::format(".TP\n.I {}\n{}\n", troff(o->get_name()), troff(o->get_description()));
      continue;
    }
    if (o->get_group().empty()) continue;  // hidden
    std::string names;
    for (const std::string& name : dashed_names(*o))
      names += (names.empty() ? "" : ", ") + ("\\fB" + troff(name) + "\\fR");
    if (!o->get_option_text().empty()) names += " \\fI" + troff(o->get_option_text()) + "\\fR";
    text += fmt::format(".TP\n{}\n{}\n", names, troff(o->get_description()));
  }
  if (!get_footer().empty()) text += fmt::format(".PP\n{}\n", troff(get_footer()));
  return text;
}

std::string CommandLine::completion_branch() const {
  std::string options, values, operand;
  for (const CLI::Option* o : get_options()) {
    if (is_operand(*o)) {
      operand = o->get_name();
      continue;
    }
    if (o->get_group().empty()) continue;  // hidden
    std::string pattern;
    for (const std::string& name : dashed_names(*o)) {
      options += " " + name;
      pattern += (pattern.empty() ? "" : " | ") + name;
    }
    if (o->get_option_text().empty()) continue;
    // The names that a value can have stand between braces: those of CLI::IsMember, or of a type name.
    const std::string type = o->get_type_name();
    const size_t open = type.find('{'), close = type.find('}');
    std::string words;
    if (open != std::string::npos && close != std::string::npos) {
      words = type.substr(open + 1, close - open - 1);
      std::replace(words.begin(), words.end(), ',', ' ');
    }
    values += fmt::format("        {}) kind={} words='{}' ;;\n", pattern,
                          words.empty() ? o->get_option_text() : "WORDS", words);
  }
  return fmt::format(
      "    {})\n      options='{}' kind={}\n      case $before in\n{}        *) ;;\n      esac\n      ;;\n",
      get_name().substr(get_name().rfind(' ') + 1), options.substr(1), operand.empty() ? "NONE" : operand, values);
}

std::string version_text() { return fmt::format("headrace {}\ncommit {}\n{}\n", kVersion, kCommit, kBuild); }

}  // namespace headrace::cli
