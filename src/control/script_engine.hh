#pragma once
/// \file
/// Runs the program of a Script.

#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/argument_text.hh"
#include "control/script_program.hh"
#include "headrace/element.hh"
#include "runtime/runtime.hh"

namespace headrace::control {

/// A program with its place and its variables. Public functions take the runtime's exclusive section, as scripts are
/// run by timers, packets, signals and handlers of several threads, and one may call another.
class ScriptEngine {
 public:
  /// How the element runs its program.
  struct Setting {
    bool active = false;              ///< it starts with the router
    bool driver = false;              ///< the router stops only when the program says so
    bool returns_output = false;      ///< a program without `return` means output 0
    std::function<void()> after_end;  ///< called at its end, but not after `exit` or an error
  };

  /// \param script in messages, and where handlers without an element are looked up first
  ScriptEngine(Element& script, Setting setting, Program program);

  /// What lets a script run on.
  enum class Cause { kHandler, kRouter, kTimer, kJump };
  /// How it stands when it cannot run on: at its end, in one of several manners, or waiting.
  enum class End { kWaiting, kEnd, kExit, kReturn, kStop, kError };

  /// Sets what init and export say. Errors are those of handlers that they read.
  Status initialize_variables(Errors& errors);
  /// Makes the first instruction ready: the timer is set, or the router is asked for a step.
  Status start(Errors& errors);

  /// Runs from the start for a packet; `value` is what it returned.
  End run_packet(int port, std::string& value);
  /// The router wants to stop. True when it shall go on.
  bool driver_event();

  Status run(const std::string& handler, const std::string& parameters, bool write, std::string& value, Errors& errors);
  Status go_to(const std::string& label, Errors& errors);
  Status step(const std::string& count, Errors& errors);

  std::string variable(const std::string& name) const;
  Status get(std::string_view text, std::string& value, Errors& errors);
  Status set(std::string_view text, Errors& errors);
  Status shift(std::string_view text, std::string& value, Errors& errors);

  std::vector<std::string> exported() const;
  Runtime& runtime() const;
  std::mt19937_64& random() { return random_; }

 private:
  enum class Next { kGoOn, kBlock, kFinish };

  int advance(int steps, Cause cause, int jumps, Errors& errors);
  Next execute(const Instruction& in, int at, int& steps, Errors& errors);
  Status read_wait(const Instruction& in, Interval& time, Errors& errors);
  Next execute_wait(const Instruction& in, int at, int& steps, Errors& errors);
  Next execute_goto(const Instruction& in, int at, Errors& errors);
  Next execute_pause(const Instruction& in, int at, int& steps);
  void execute_print(const Instruction& in, Errors& errors);
  void execute_read(const Instruction& in, Errors& errors);
  void execute_write(const Instruction& in, Errors& errors);
  Next finish(int at) {
    position_ = at;
    return Next::kFinish;
  }
  /// Advances for a handler. A script that is running already only gets its new place or more steps.
  End enter(int steps, Cause cause, Errors& errors);
  void on_timer();
  End end() const;
  void after_run();
  std::string returned(End end) const;

  std::string expand(const std::string& text, Errors& errors, lang::ExpandInto mode = lang::ExpandInto::kText);
  std::optional<std::string> look_up(std::string_view name) const;
  std::optional<std::string> call(std::string_view text, Errors& errors);
  std::string* find_variable(std::string_view name);

  Element& script_;
  const Setting setting_;
  const Program program_;
  std::vector<int> steps_done_;  // of each pause
  std::map<std::string, std::string, std::less<>> variables_;
  int position_ = 0;
  bool starting_ = false;  // the first instruction takes a step
  int write_status_ = 0;
  int* more_steps_ = nullptr;  // of the handler call under way

  std::string run_handler_, run_arguments_;
  bool run_is_write_ = false;

  Timer timer_;
  std::mt19937_64 random_;
};

}  // namespace headrace::control
