#include "cli/man_page.hh"

#include <fmt/format.h>

#include "cli/output.hh"
#include "headrace/version.hh"

namespace headrace::cli {

namespace {

constexpr const char* kDescription = R"(.SH NAME
headrace \- software router for Click\-language configurations
.SH SYNOPSIS
.B headrace
.I COMMAND
[OPTION]...
.br
.B headrace
.BR \-h | \-\-help | \-V | \-\-version
.SH DESCRIPTION
Headrace runs a router that is described in the Click language: packets flow through a graph of elements.
Elements that are shaders run on CPUs and on GPUs; all others run on CPUs.
.PP
Called by the name
.B click
or
.BR click\-flatten ,
it behaves as that program of Click does.
.SH COMMANDS
)";

constexpr const char* kEnd = R"(.SH ENVIRONMENT
.TP
.B CLICKPATH
Folders for required files and packages, separated by colons.
.TP
.B HEADRACE_PATH
Folders for packages of elements, separated by colons; searched besides
.BR CLICKPATH .
.TP
.B HEADRACE_NVRTC
File of the library NVRTC, which compiles chains of shaders for GPUs.
Without it the usual folders are searched.
.TP
.B XDG_CACHE_HOME
Folder of the cache of compiled programs, in place of
.IR ~/.cache .
.SH FILES
.TP
.I /etc/headrace/NAME.click
Configuration that systemd runs as the service headrace@NAME.
.TP
.I /etc/default/headrace\-NAME
HEADRACE_OPTIONS: variables and options of that service.
.TP
.I /run/headrace/NAME/control.sock
Socket by which programs read and write handlers of that service.
.TP
.I ~/.cache/headrace
Programs that were compiled for GPUs.
.SH EXIT STATUS
.TP
.B 0
The command did what it should.
.TP
.B 1
The configuration has mistakes, or something failed.
.TP
.B 2
The command line is wrong.
.PP
.B headrace click
ends as the program of Click does: 1 for a wrong command line, too, and with
.B \-x
the value of the handler.
.SH EXAMPLES
.TP
.B headrace check router.click
Finds mistakes without running the configuration.
.TP
.B headrace run \-\-workers 4 router.click DEV0=eth0 DEV1=eth1
Runs a configuration on four threads and sets two of its variables.
.TP
.B headrace run \-\-mode device \-\-read c.count router.click
Runs chains of shaders on a GPU and prints a handler at the end.
.TP
.B headrace elements CheckIPHeader
Shows the page of an element.
.SH SEE ALSO
.BR systemd (1),
.BR pcap\-filter (7)
.PP
Guides in
.IR share/doc/headrace .
)";

// `before` is the word in front of the one that is completed; a value may follow its option behind a space or '='.
constexpr const char* kScriptBegin = R"sh(_headrace() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local options='' kind=NONE words=''
  COMPREPLY=()
  if [[ $word == = ]]; then
    word=''
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
)sh";

constexpr const char* kScriptEnd = R"sh(    *) return ;;
  esac
  if [[ $word == -* ]]; then
    kind=WORDS words=$options
  fi
  local IFS=$'\n'
  case $kind in
    WORDS) COMPREPLY=($(IFS=' ' && compgen -W "$words" -- "$word")) ;;
    CONF)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -X '!*.click' -- "$word") $(compgen -d -- "$word"))
      ;;
    FILE)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$word"))
      ;;
    PATH)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -d -- "$word"))
      ;;
    ELEMENT) COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" elements 2>/dev/null | sed '1d; s/ .*//')" -- "$word")) ;;
  esac
}
complete -F _headrace headrace
)sh";

/// Calls each command with a hidden option, so that it prints its part.
void call_each(std::span<const Command> commands, std::string option) {
  for (const Command& command : commands) {
    std::string name = fmt::format("headrace {}", command.name);
    char* arguments[] = {name.data(), option.data(), nullptr};
    (void)command.run(2, arguments);
  }
}

}  // namespace

std::string troff(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    begins_line = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void print_man_page(std::span<const Command> commands) {
  print(".TH HEADRACE 1 \"\" \"headrace {}\" \"User Commands\"\n", kVersion);
  write_output(kDescription);
  for (const Command& c : commands) print(".TP\n.B {}\n{}\n", troff(c.name), troff(c.summary));
  print(".SH OPTIONS\n");
  call_each(commands, "--man");
  write_output(kEnd);
}

void print_bash_completion(std::span<const Command> commands) {
  print("# Completion of headrace in bash, made by 'headrace --bash-completion'.\n");
  write_output(kScriptBegin);
  std::string names;
  for (const Command& c : commands) names += fmt::format("{} ", c.name);
  print(
      "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W '{}--help --version' -- \"$word\"))\n    return\n  fi\n",
      names);
  print("  case ${{COMP_WORDS[1]}} in\n");
  call_each(commands, "--bash-completion");
  write_output(kScriptEnd);
}

}  // namespace headrace::cli
