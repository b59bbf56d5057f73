#include "control/script_engine.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "headrace/router.hh"

namespace headrace::control {

namespace {

/// A script that jumps this often without waiting is taken to go round in circles.
constexpr int kMaxJumps = 1000;
/// A variable that doubles in a loop would soon fill any memory.
constexpr size_t kMaxVariable = size_t{16} << 20;
/// What $? is after a write that failed, as in Click.
constexpr int kFailedWrite = -EINVAL;

/// A seed of its own for each script and run, but the same each time in a simulation.
uint64_t seed() { return clock::warp() == clock::Warp::kSimulation ? 1 : std::random_device()(); }

/// Errors of a script that runs by itself.
class OwnErrors {
 public:
  explicit OwnErrors(const Element& element)
      : errors_(Errors::Output::kStderr),
        context_(errors_, {}, fmt::format("While executing '{}':", element.declaration())) {}
  operator Errors&() { return errors_; }

 private:
  Errors errors_;
  Errors::Context context_;
};

}  // namespace

ScriptEngine::ScriptEngine(Element& script, Setting setting, Program program)
    : script_(script),
      setting_(std::move(setting)),
      program_(std::move(program)),
      steps_done_(program_.instructions.size()),
      timer_(&script, [this](Timer&) { on_timer(); }),
      random_(seed()) {}

Runtime& ScriptEngine::runtime() const { return script_.router().runtime(); }

// --- Text ---------------------------------------------------------------------------------------------------------

std::string ScriptEngine::expand(const std::string& text, Errors& errors, lang::ExpandInto mode) {
  return lang::expand_variables(
      text, [this](std::string_view name) { return look_up(name); },
      [&](std::string_view handler) { return call(handler, errors); }, mode);
}

std::optional<std::string> ScriptEngine::look_up(std::string_view name) const {
  if (const auto it = variables_.find(name); it != variables_.end()) return it->second;
  if (name == "?") return std::to_string(write_status_);
  if (name == "$") return std::to_string(getpid());
  if (name == "args") return run_arguments_;
  if (name == "write") return run_is_write_ ? "true" : "false";
  if (name == "0") return run_handler_;
  if (name == "#") return std::to_string(lang::split_words(run_arguments_).size());
  uint32_t index;
  if (!name.empty() && name[0] >= '1' && name[0] <= '9' && parse_argument(name, index, {})) {
    const std::vector<std::string> words = lang::split_words(run_arguments_);
    return index <= words.size() ? words[index - 1] : std::string();
  }
  return {};
}

std::optional<std::string> ScriptEngine::call(std::string_view text, Errors& errors) {
  HandlerCall handler{std::string(text)};
  if (!handler.bind(script_.router(), &script_, false, errors)) return {};
  std::string value;
  if (!handler.read(value, errors)) value.clear();
  return value;
}

std::string ScriptEngine::variable(const std::string& name) const {
  const Runtime::Exclusive exclusive(runtime());
  const auto it = variables_.find(name);
  return it == variables_.end() ? std::string() : it->second;
}

std::string* ScriptEngine::find_variable(std::string_view name) {
  if (name == "args") return &run_arguments_;
  const auto it = variables_.find(name);
  return it == variables_.end() ? nullptr : &it->second;
}

Status ScriptEngine::get(std::string_view text, std::string& value, Errors& errors) {
  const Runtime::Exclusive exclusive(runtime());
  const std::string_view name = lang::take_word(text);
  if (name.empty()) return errors.error("no variable");
  if (!text.empty()) return errors.error("too many arguments");
  const std::string* variable = find_variable(name);
  if (!variable) return errors.error("undefined variable '{}'", name);
  value = *variable;
  return {};
}

Status ScriptEngine::set(std::string_view text, Errors& errors) {
  const Runtime::Exclusive exclusive(runtime());
  const std::string_view name = lang::take_word(text);
  if (name.empty()) return errors.error("no variable");
  std::string* variable = find_variable(name);
  (variable ? *variable : variables_[std::string(name)]) = text;
  return {};
}

Status ScriptEngine::shift(std::string_view text, std::string& value, Errors& errors) {
  const Runtime::Exclusive exclusive(runtime());
  const std::string_view name = text.empty() ? "args" : lang::take_word(text);
  if (!text.empty() && name != "args") return errors.error("too many arguments");
  std::string* variable = find_variable(name);
  if (!variable) return errors.error("undefined variable '{}'", name);
  std::string_view rest = *variable;
  value = lang::take_word(rest);
  *variable = std::string(rest);
  return {};
}

std::vector<std::string> ScriptEngine::exported() const {
  std::vector<std::string> names;
  for (const Instruction& in : program_.instructions)
    if (in.op == Op::kExport) names.push_back(in.name);
  return names;
}

// --- Starting and ending ------------------------------------------------------------------------------------------

Status ScriptEngine::initialize_variables(Errors& errors) {
  const int before = errors.error_count();
  for (const Instruction& in : program_.instructions) {
    if (in.op != Op::kInit && in.op != Op::kExport) continue;
    std::string value = expand(in.text, errors);
    variables_[in.name] = in.unquote ? lang::unquote(value) : std::move(value);
  }
  return errors.error_count() == before ? Status() : Status::failed();
}

Status ScriptEngine::start(Errors& errors) {
  timer_.initialize();
  if (!setting_.active) return {};
  const Instruction& first = program_.instructions[0];
  if (first.op == Op::kWait) {
    Interval time;
    if (!read_wait(first, time, errors)) return Status::failed();
    timer_.schedule_after(time.timestamp());
  } else if (first.op == Op::kStart) {
    starting_ = true;
    // The router's own first stop request runs a driver's script before anything else does.
    if (setting_.driver)
      script_.router().adjust_run_count(-1);
    else
      timer_.schedule_after({});
  }
  return {};
}

ScriptEngine::End ScriptEngine::end() const {
  if (position_ >= static_cast<int>(program_.instructions.size())) return End::kExit;
  const Instruction& in = program_.instructions[position_];
  switch (in.op) {
    case Op::kEnd:
      return End::kEnd;
    case Op::kExit:
      return End::kExit;
    case Op::kReturn:
      return End::kReturn;
    case Op::kStop:
      return End::kStop;
    case Op::kError:
      return End::kError;
    case Op::kGoto:
      switch (in.number) {
        case kToEnd:
          return End::kEnd;
        case kToExit:
          return End::kExit;
        case kToStop:
          return End::kStop;
        case kToError:
          return End::kError;
        default:
          return End::kWaiting;
      }
    default:
      return End::kWaiting;
  }
}

void ScriptEngine::after_run() {
  if (setting_.after_end && end() == End::kEnd) setting_.after_end();
}

std::string ScriptEngine::returned(End end) const {
  if (end == End::kReturn) return variables_.find("_")->second;
  return end == End::kEnd && setting_.returns_output ? "0" : "";
}

// --- Entrances ----------------------------------------------------------------------------------------------------

void ScriptEngine::on_timer() {
  const Runtime::Exclusive exclusive(runtime());
  OwnErrors errors(script_);
  advance(1, Cause::kTimer, 0, errors);
  after_run();
}

ScriptEngine::End ScriptEngine::run_packet(int port, std::string& value) {
  const Runtime::Exclusive exclusive(runtime());
  OwnErrors errors(script_);
  variables_["input"] = std::to_string(port);
  position_ = 0;
  advance(0, Cause::kJump, 0, errors);
  const End how = end();
  value = returned(how);
  return how;
}

bool ScriptEngine::driver_event() {
  const Runtime::Exclusive exclusive(runtime());
  Errors errors(Errors::Output::kStderr);
  // Each request is worth a step; a script that takes no step however often it is asked does not hold the router up.
  for (int most = 1000; most > 0 && script_.router().run_count() <= 0; --most) {
    const End how = enter(1, Cause::kRouter, errors);
    if (how == End::kStop || how == End::kError) break;
  }
  return script_.router().run_count() > 0;
}

ScriptEngine::End ScriptEngine::enter(int steps, Cause cause, Errors& errors) {
  if (more_steps_) {
    if (cause != Cause::kJump) *more_steps_ += steps;
    return end();
  }
  int more = steps;
  more_steps_ = &more;
  for (int jumps = 0; (steps = more) >= 0; cause = Cause::kHandler) {
    more = -1;
    jumps = advance(steps, cause, jumps, errors);
  }
  more_steps_ = nullptr;
  after_run();
  return end();
}

Status ScriptEngine::run(const std::string& handler, const std::string& parameters, bool write, std::string& value,
                         Errors& errors) {
  const Runtime::Exclusive exclusive(runtime());
  run_handler_ = handler;
  run_arguments_ = parameters;
  run_is_write_ = write;
  position_ = 0;
  const End how = enter(0, Cause::kJump, errors);
  value = returned(how);
  run_handler_.clear();
  run_is_write_ = false;
  if (how == End::kError || how == End::kStop) run_arguments_.clear();
  return how == End::kError ? Status::failed() : Status();
}

Status ScriptEngine::go_to(const std::string& label, Errors& errors) {
  const Runtime::Exclusive exclusive(runtime());
  const int at = program_.find_label(lang::uncomment(label));
  if (at < 0) return errors.error("jump to nonexistent label");
  for (size_t i = static_cast<size_t>(at); i < steps_done_.size(); ++i) steps_done_[i] = 0;
  position_ = at;
  return enter(0, Cause::kJump, errors) == End::kError ? Status::failed() : Status();
}

Status ScriptEngine::step(const std::string& count, Errors& errors) {
  const Runtime::Exclusive exclusive(runtime());
  const std::string text = lang::uncomment(count);
  int32_t steps = 1;
  if (!text.empty() && !parse_value(text, steps, errors)) return Status::failed();
  return enter(steps, Cause::kHandler, errors) == End::kError ? Status::failed() : Status();
}

// --- Instructions -------------------------------------------------------------------------------------------------

int ScriptEngine::advance(int steps, Cause cause, int jumps, Errors& errors) {
  const int size = static_cast<int>(program_.instructions.size());
  while (steps >= 0 && position_ < size && jumps < kMaxJumps) {
    const int at = position_++;
    const Next next = execute(program_.instructions[at], at, steps, errors);
    if (next == Next::kFinish) {
      // The router's own request to stop is already under way.
      if (end() == End::kStop && cause != Cause::kRouter) script_.router().request_stop();
      return jumps + 1;
    }
    if (next == Next::kBlock) break;
    if (position_ != at + 1) ++jumps;
  }
  if (jumps >= kMaxJumps) {
    Errors own(Errors::Output::kStderr);
    (void)own.error("{}: too many jumps, giving up", script_.declaration());
    position_ = size;
    timer_.unschedule();
  }
  if (position_ == size) return jumps + 1;
  if (cause == Cause::kRouter) script_.router().adjust_run_count(1);
  return jumps + 1;
}

ScriptEngine::Next ScriptEngine::execute(const Instruction& in, int at, int& steps, Errors& errors) {
  switch (in.op) {
    case Op::kStart:
      if (std::exchange(starting_, false)) --steps;
      return Next::kGoOn;
    case Op::kPause:
      return execute_pause(in, at, steps);
    case Op::kWait:
      return execute_wait(in, at, steps, errors);
    case Op::kPrint:
      execute_print(in, errors);
      return Next::kGoOn;
    case Op::kRead:
      execute_read(in, errors);
      return Next::kGoOn;
    case Op::kWrite:
      execute_write(in, errors);
      return Next::kGoOn;
    case Op::kInit:
    case Op::kExport:
    case Op::kLabel:
      return Next::kGoOn;
    case Op::kSet:
    case Op::kReturn: {
      std::string value = expand(in.text, errors);
      if (in.unquote) value = lang::unquote(value);
      if (value.size() > kMaxVariable) {
        (void)errors.error("value of '{}' too long", in.name);
        value.clear();
      }
      variables_[in.op == Op::kReturn ? "_" : in.name] = std::move(value);
      // A handler called in the text may have moved the script elsewhere.
      if (in.op == Op::kSet || position_ != at + 1) return Next::kGoOn;
      position_ = at;
      return Next::kBlock;
    }
    case Op::kGoto:
      return execute_goto(in, at, errors);
    case Op::kError: {
      std::string message = expand(in.text, errors);
      if (in.unquote) message = lang::unquote(message);
      if (!message.empty()) (void)errors.error("{}", message);
      return finish(at);
    }
    case Op::kEnd:
    case Op::kExit:
    case Op::kStop:
      return finish(at);
  }
  return finish(at);
}

ScriptEngine::Next ScriptEngine::execute_pause(const Instruction& in, int at, int& steps) {
  int& done = steps_done_[at];
  const int take = std::max(0, std::min(steps, in.number - done));
  done += take;
  steps -= take;
  if (done >= in.number) return Next::kGoOn;
  position_ = at;
  return Next::kBlock;
}

Status ScriptEngine::read_wait(const Instruction& in, Interval& time, Errors& errors) {
  const std::string text = expand(in.text, errors);
  if (parse_argument(text, time, {})) return {};
  return errors.error("syntax error at 'wait', expected a time, such as 1.5 (seconds), 20ms or 3h, found '{}'", text);
}

ScriptEngine::Next ScriptEngine::execute_wait(const Instruction& in, int at, int& steps, Errors& errors) {
  if (steps > 0) {
    --steps;
    timer_.unschedule();
    return Next::kGoOn;
  }
  Interval time;
  if (read_wait(in, time, errors)) {
    timer_.schedule_after(time.timestamp());
    position_ = at;
  }
  return Next::kBlock;
}

ScriptEngine::Next ScriptEngine::execute_goto(const Instruction& in, int at, Errors& errors) {
  const std::string text = expand(in.text, errors);
  bool condition = true;
  if (!text.empty() && !parse_argument(text, condition, {})) {
    (void)errors.error("bad condition '{}'", text);
    return Next::kGoOn;
  }
  if (!condition) return Next::kGoOn;
  if (in.number < 0) return finish(at);
  for (int i = in.number; i < at; ++i) steps_done_[i] = 0;
  position_ = in.number;
  return Next::kGoOn;
}

void ScriptEngine::execute_print(const Instruction& in, Errors& errors) {
  const int before = errors.error_count();
  std::string result;
  const char first = in.text.empty() ? '"' : in.text[0];
  if (std::isalpha(static_cast<unsigned char>(first)) || first == '@' || first == '_') {
    HandlerCall handler(expand(in.text, errors));
    if (handler.bind(script_.router(), &script_, false, errors, in.unquote)) {
      const Errors::Context context(errors, {}, fmt::format("While calling '{}':", handler.text()));
      (void)handler.read(result, errors);
    }
  } else {
    result = lang::unquote(expand(in.text, errors, lang::ExpandInto::kQuoted));
  }
  if (in.newline && errors.error_count() == before && !result.ends_with('\n')) result += '\n';

  const std::string name = lang::unquote(expand(in.file, errors));
  std::FILE* file = name.empty() || name == "-" ? stdout : std::fopen(name.c_str(), in.append ? "ab" : "wb");
  bool good = file && std::fwrite(result.data(), 1, result.size(), file) == result.size();
  if (file == stdout)
    good = std::fflush(file) == 0 && good;
  else if (file)
    good = std::fclose(file) == 0 && good;
  if (!good && file != stdout) (void)errors.error("{}: {}", name, std::strerror(errno));
}

void ScriptEngine::execute_read(const Instruction& in, Errors& errors) {
  HandlerCall handler(expand(in.text, errors));
  if (!handler.bind(script_.router(), &script_, false, errors, in.unquote)) return;
  const Errors::Context context(errors, {}, fmt::format("While calling '{}':", handler.text()));
  std::string value;
  (void)handler.read(value, errors);
  fmt::print(stderr, "{}:\n{}\n", handler.name(), value);
}

void ScriptEngine::execute_write(const Instruction& in, Errors& errors) {
  HandlerCall handler(expand(in.text, errors));
  if (!handler.bind(script_.router(), &script_, true, errors, in.unquote)) return;
  const Errors::Context context(errors, {}, fmt::format("While calling '{}':", handler.text()));
  write_status_ = handler.write(errors).ok() ? 0 : kFailedWrite;
}

}  // namespace headrace::control
