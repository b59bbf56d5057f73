// Arguments, ports and handlers. The program runs in src/control/script_engine.cc.
#include "elements/control/Script.hh"

#include "control/script_engine.hh"
#include "control/script_functions.hh"
#include "headrace/router.hh"

namespace headrace {

Script::Script(Type default_type) : type_(default_type) {}

Script::~Script() = default;

Status Script::configure_type(const std::string& text, Errors& errors) {
  std::string_view rest = text;
  const std::string_view word = lang::take_word(rest);
  if (word.empty()) {
    if (type_ == Type::kByPorts) type_ = ninputs() > 0 || noutputs() > 0 ? Type::kPacket : Type::kActive;
    return {};
  }
  if (word == "SIGNAL") {
    type_ = Type::kSignal;
    while (!rest.empty()) {
      const int number = control::signal_number(lang::take_word(rest));
      if (number == 0) return errors.error("bad signal number");
      signals_.push_back(number);
    }
    return signals_.empty() ? errors.error("bad signal number") : Status();
  }
  static constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"ACTIVE", Type::kActive}, {"PASSIVE", Type::kPassive}, {"PACKET", Type::kPacket},
      {"PUSH", Type::kPacket},   {"PROXY", Type::kProxy},     {"DRIVER", Type::kDriver},
  };
  for (const auto& [name, type] : kTypes) {
    if (name != word || !rest.empty()) continue;
    type_ = type;
    return {};
  }
  return errors.error("bad TYPE");
}

Status Script::configure(Args& args) {
  std::string type;
  if (!args.read("TYPE", type, AnyArg()).consume()) return Status::failed();
  Errors& errors = args.errors();
  if (!configure_type(type, errors)) return Status::failed();
  if (type_ == Type::kDriver)
    for (const auto& e : router().elements())
      if (const auto* other = dynamic_cast<const Script*>(e.get());
          other && other != this && other->engine_ && other->type_ == Type::kDriver)
        return errors.error("router has more than one driver script");
  if (type_ == Type::kPacket && ninputs() == 0) return errors.error("PACKET script must have inputs");
  if (type_ != Type::kPacket && (ninputs() > 0 || noutputs() > 0))
    return errors.error("ports allowed only on PACKET scripts");

  std::vector<std::string> instructions;
  args.consume_rest(instructions);
  control::Program program;
  Status status = args.complete();
  status &=
      control::compile(instructions, type_ == Type::kDriver ? control::Op::kStop : control::Op::kEnd, program, errors);
  if (!status.ok()) return status;
  control::ScriptEngine::Setting setting{.active = type_ == Type::kActive || type_ == Type::kDriver,
                                         .driver = type_ == Type::kDriver,
                                         .returns_output = type_ == Type::kPacket,
                                         .after_end = {}};
  if (type_ == Type::kSignal) setting.after_end = [this] { install_signals(); };
  engine_ = std::make_shared<control::ScriptEngine>(*this, std::move(setting), std::move(program));
  return status;
}

Status Script::initialize(Errors& errors) {
  if (!engine_->initialize_variables(errors) || !engine_->start(errors)) return Status::failed();
  if (type_ == Type::kDriver) router().set_stop_listener([this] { return engine_->driver_event(); });
  installed_.assign(signals_.size(), false);
  install_signals();
  return {};
}

void Script::install_signals() {
  for (size_t i = 0; i < signals_.size(); ++i) {
    if (installed_[i]) continue;
    installed_[i] = true;
    engine_->runtime().on_signal(router(), signals_[i],
                                 [this, i, alive = std::weak_ptr<control::ScriptEngine>(engine_)] {
                                   const std::shared_ptr<control::ScriptEngine> engine = alive.lock();
                                   if (!engine) return;
                                   installed_[i] = false;
                                   std::string value;
                                   Errors own(Errors::Output::kStderr);
                                   (void)engine->run("run", "", true, value, own);
                                 });
  }
}

int Script::output_for_packet(int port) {
  std::string value;
  int output = -1;
  if (engine_->run_packet(port, value) == control::ScriptEngine::End::kError || !parse_argument(value, output, {}))
    return -1;
  return output >= 0 && output < noutputs() ? output : -1;
}

void Script::push(int port, Batch& batch) {
  // A packet must have left before the next one's script runs, for the script may change where it goes.
  for (Packet* p : batch) {
    const int out = output_for_packet(port);
    if (out >= 0)
      output(out).push(p);
    else
      drop(p);
  }
  batch.clear();
}

int Script::pull(int, Batch& batch, int max) {
  int pulled = 0;
  for (int n = 0; n < max; ++n) {
    Packet* p = input(0).pull();
    if (!p) break;
    const int out = output_for_packet(0);
    if (out == 0) {
      batch.push_back(p);
      ++pulled;
    } else if (out > 0) {
      output(out).push(p);
    } else {
      drop(p);
    }
  }
  return pulled;
}

void Script::add_handlers(Handlers& handlers) {
  const std::shared_ptr<control::ScriptEngine>& engine = engine_;
  const auto run = [&engine](const std::string& name) {
    Handler h;
    h.name = name;
    h.flags = Handler::kParameters | Handler::kThreadSafe;
    h.read = [&engine, name](const std::string& parameters, std::string& value, Errors& errors) {
      return engine->run(name, parameters, false, value, errors);
    };
    h.write = [&engine, name](const std::string& text, Errors& errors) {
      std::string value;
      return engine->run(name, text, true, value, errors);
    };
    return h;
  };
  // These take the exclusive section themselves; the workers need not stand still.
  const Handler h = run("run");
  handlers.read_with("run", h.read, h.flags).write("run", h.write, h.flags);
  handlers.write(
      "step", [&engine](const std::string& text, Errors& errors) { return engine->step(text, errors); },
      Handler::kThreadSafe);
  handlers.write(
      "goto", [&engine](const std::string& text, Errors& errors) { return engine->go_to(text, errors); },
      Handler::kThreadSafe);
  handlers.write(
      "set", [&engine](const std::string& text, Errors& errors) { return engine->set(text, errors); },
      Handler::kThreadSafe);
  handlers.read_with("get", [&engine](const std::string& text, std::string& value, Errors& errors) {
    return engine->get(text, value, errors);
  });
  handlers.read_with("shift", [&engine](const std::string& text, std::string& value, Errors& errors) {
    return engine->shift(text, value, errors);
  });
  for (const control::ScriptFunction& f : control::script_functions())
    handlers.read_with(
        f.name,
        [this, &f](const std::string& parameters, std::string& value, Errors& errors) {
          const Runtime::Exclusive exclusive(engine_->runtime());
          control::FunctionContext context{*this, engine_->random()};
          return f.call(parameters, context, value, errors);
        },
        Handler::kParameters | f.flags);
  for (const std::string& name : engine->exported())
    handlers.read(name, [&engine, name] { return engine->variable(name); });
  if (type_ == Type::kProxy) handlers.any(run);
}

}  // namespace headrace
