#include "headrace/handlers.hh"

#include <fmt/format.h>

#include "base/argument_text.hh"
#include "headrace/router.hh"

namespace headrace {

std::string Handler::flag_letters() const {
  std::string s;
  if (read) s += 'r';
  if (write) s += 'w';
  if (flags & kParameters) s += '+';
  if (flags & kCalm) s += '.';
  if (flags & kExpensive) s += '$';
  if (flags & kUncommon) s += 'U';
  if (flags & kDeprecated) s += 'D';
  if (flags & kButton) s += 'b';
  return s;
}

Handler& Handlers::get(const std::string& name) {
  Handler& h = handlers_[name];
  h.name = name;
  return h;
}

Handlers& Handlers::read(const std::string& name, std::function<std::string()> value, unsigned flags) {
  Handler& h = get(name);
  h.flags |= flags;
  h.read = [value = std::move(value)](const std::string&, std::string& out, Errors&) {
    out = value();
    return Status();
  };
  return *this;
}

Handlers& Handlers::read_with(const std::string& name, Handler::Read read, unsigned flags) {
  Handler& h = get(name);
  h.flags |= flags;
  h.read = std::move(read);
  return *this;
}

Handlers& Handlers::write(const std::string& name, Handler::Write write, unsigned flags) {
  Handler& h = get(name);
  h.flags |= flags;
  h.write = std::move(write);
  return *this;
}

Handlers& Handlers::button(const std::string& name, std::function<void()> action, unsigned flags) {
  return write(
      name,
      [action = std::move(action)](const std::string&, Errors&) {
        action();
        return Status();
      },
      flags | Handler::kButton);
}

namespace {

/// The index of argument `key` among `arguments`, or -1; `value` gets what follows the keyword.
int find_argument(const std::vector<std::string>& arguments, const std::string& key, int position, std::string& value) {
  for (int i = static_cast<int>(arguments.size()) - 1; i >= 0; --i) {
    const auto parts = lang::split_keyword(arguments[i]);
    if (parts && parts->first == key) {
      value = std::string(parts->second);
      return i;
    }
  }
  if (position >= 0 && position < static_cast<int>(arguments.size())) {
    value = arguments[position];
    return position;
  }
  return -1;
}

}  // namespace

Handlers& Handlers::argument(const std::string& name, const std::string& key, int position, bool writable) {
  read(
      name,
      [e = element_, key, position] {
        std::string value;
        find_argument(lang::split_arguments(e->configuration()), key, position, value);
        return value;
      },
      Handler::kCalm);
  if (!writable) return *this;
  return write(name, [e = element_, key, position](const std::string& value, Errors& errors) {
    std::vector<std::string> arguments = lang::split_arguments(e->configuration());
    std::string old;
    const int at = find_argument(arguments, key, position, old);
    // Text such as `0x0800` may look like a keyword; it is one only if it is this argument's key.
    const auto parts = at >= 0 ? lang::split_keyword(arguments[at]) : std::nullopt;
    if (at >= 0 && at == position && !(parts && parts->first == key))
      arguments[at] = value;
    else if (at >= 0)
      arguments[at] = key + " " + value;
    else
      arguments.push_back(key + " " + value);
    return e->reconfigure(lang::unparse_arguments(arguments), errors);
  });
}

Handlers& Handlers::any(std::function<Handler(const std::string& name)> make) {
  make_any_ = std::move(make);
  return *this;
}

bool Handlers::writable() const {
  return make_any_ || std::any_of(handlers_.begin(), handlers_.end(), [](const auto& entry) {
           return entry.second.write && !(entry.second.flags & Handler::kButton);
         });
}

const Handler* Handlers::find(const std::string& name) const {
  const auto it = handlers_.find(name);
  if (it != handlers_.end()) return &it->second;
  if (!make_any_) return nullptr;
  const std::lock_guard guard(any_lock_);
  const auto made = made_.find(name);
  return made != made_.end() ? &made->second : &made_.emplace(name, make_any_(name)).first->second;
}

// --- HandlerCall

Status HandlerCall::bind(Router& router, const Element* context, bool for_write, Errors& errors, bool unquote) {
  std::string_view rest = text_;
  const std::string name = lang::unquote(lang::take_word(rest));
  value_ = unquote ? lang::unquote(rest) : std::string(rest);
  router_ = &router;
  handler_ = router.find_handler(name, context, element_, errors);
  if (!handler_) return Status::failed();
  if (for_write ? !handler_->write : !handler_->read) {
    handler_ = nullptr;
    return errors.error("no '{}' {} handler", name, for_write ? "write" : "read");
  }
  return {};
}

std::string HandlerCall::name() const { return element_ ? element_->name() + "." + handler_->name : handler_->name; }

Status HandlerCall::read(std::string& value, Errors& errors) const {
  return router_->call_read(*handler_, value_, value, errors);
}

Status HandlerCall::write(Errors& errors, std::string_view extra) const {
  std::string value = value_;
  if (!extra.empty()) {
    if (!value.empty()) value += ' ';
    value += extra;
  }
  return router_->call_write(*handler_, value, errors);
}

}  // namespace headrace
