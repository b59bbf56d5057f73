#pragma once
#include <headrace/element.hh>
#include <memory>

namespace headrace {

namespace control {
class ScriptEngine;
}

/// Runs a small program: sets variables, calls handlers, waits, prints, stops the router.
///
///     Script(INSTRUCTION, ..., [keyword TYPE])
///
/// Each argument is an instruction; they run one after the other. TYPE says when:
///
/// ACTIVE: as soon as the router is initialized. The default without ports.
/// PASSIVE: when the handler `run` is called; `$args` has the handler's text, `$1`, `$2`, ... its words, `$#` their
/// number. PACKET: for each packet pushed or pulled, with its input port in `$input`; the value returned is the output
/// port. At the end of the script the packet leaves by output 0, after `exit` or with a port that does not exist it is
/// dropped and counted. The default with ports. PROXY: when any handler of this element is called; `$0` is its name,
/// `$write` whether it was written. DRIVER: like ACTIVE; in addition, a request to stop the router advances the script
/// by one step, and the router stops only when the script does. One per router. See DriverManager. SIGNAL SIGNO...:
/// soon after the process receives one of these signals (`INT`, `USR1`, ... or numbers). The script is reinstalled when
/// it reaches its end, but not after `exit`.
///
/// Instructions
///
///     set VAR TEXT               $VAR becomes TEXT
///     init VAR TEXT              the same, but once, when the router is initialized
///     export VAR [TEXT]          like init; and the read handler VAR has the variable's value
///     print [>FILE|>>FILE] [TEXT|HANDLER [ARGS]]
///                                prints to standard output or to FILE. What begins with a letter, @ or _ is a read
///                                handler, all else text that loses a layer of quotes
///     printn ...                 the same without the line's end
///     read HANDLER [ARGS]        prints a read handler's name and value to standard error
///     write HANDLER [TEXT]       calls a write handler; $? is then 0 if it went well
///     save HANDLER [FILE]        as print >FILE HANDLER
///     append HANDLER [FILE]      as print >>FILE HANDLER
///     pause [N]                  waits for N steps (1); also called wait_step, wait_stop, and wait without a time
///     wait TIME                  waits for a time, or for a step; also called wait_for, wait_time
///     label LABEL                a place to go to
///     goto LABEL [CONDITION]     goes there if CONDITION, when given, is true. The labels begin, end, exit, stop and
///                                error exist always
///     loop                       back to the first instruction
///     return [VALUE]             ends the script; VALUE is the value of the handler that ran it
///     end, exit                  end the script
///     stop                       ends the script and asks the router to stop
///     error [TEXT]               ends the script with an error
///
/// In what follows an instruction, `$VAR` and `${VAR}` are replaced by variables and `$(HANDLER ARGS)` by the value of
/// a read handler; `$$` is the process's number. `setq`, `initq`, `exportq`, `returnq`, `errorq`, `printq`, `printnq`,
/// `readq` and `writeq` then take a layer of quotes off the text. A script that jumps a thousand times without waiting
/// is aborted.
///
/// Handlers of the script: `run` (rw), `step` [N] (w) passes N waiting instructions, `goto` LABEL (w); `get` VAR (r),
/// `set` VAR TEXT (w), `shift` [VAR] (r) takes the first word off a variable.
///
/// Handlers that calculate (r, with parameters). Numbers: `add sub mul div idiv mod rem neg abs min max`; comparisons,
/// of numbers or else of text: `eq ne lt le gt ge`; truth: `not and or nand nor`, `if` COND THEN ELSE, `in` WORD
/// WORD...; text: `first` the first word, `length`, `unquote`, `sprintf` FORMAT ARGS; `random` [N | LOW HIGH], `now`,
/// `htons htonl ntohs ntohl`, `readable`, `writable` HANDLER...; `cat` FILE, `catq` FILE quoted, `kill` SIGNO PID....
class Script : public Element {
 public:
  static constexpr Ports kPorts{"-/-"};
  static constexpr Processing kProcessing{"ah/ah"};

  enum class Type { kByPorts, kActive, kPassive, kPacket, kProxy, kDriver, kSignal };

  explicit Script(Type default_type = Type::kByPorts);
  ~Script() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

  Type type() const { return type_; }

 private:
  Status configure_type(const std::string& text, Errors& errors);
  /// The output for a packet that came in by `port`, or -1.
  int output_for_packet(int port);
  void install_signals();

  Type type_;
  std::vector<int> signals_;
  std::vector<bool> installed_;
  std::shared_ptr<control::ScriptEngine> engine_;  // shared with the actions of signals, which may outlive the element
};

HEADRACE_ELEMENT(Script)

}  // namespace headrace
