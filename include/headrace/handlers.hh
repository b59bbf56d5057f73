#pragma once
/// \file
/// Handlers: named values of an element that users, scripts and the control socket read and write.

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "headrace/error.hh"

namespace headrace {

class Element;
class Router;

/// One handler. Click's flag letters are in the comments.
struct Handler {
  enum Flag : unsigned {
    kParameters = 1,   // '+': a read takes parameters
    kCalm = 2,         // '.': its value changes seldom
    kExpensive = 4,    // '$'
    kUncommon = 8,     // 'U'
    kButton = 16,      // 'b': the value written does not matter
    kDeprecated = 32,  // 'D'
    /// The write may run while workers run; other writes wait for a quiescent point.
    kThreadSafe = 64,
    /// Only for scripts and the command line, not for remote clients.
    kPrivate = 128,
  };
  using Read = std::function<Status(const std::string& parameters, std::string& value, Errors& errors)>;
  using Write = std::function<Status(const std::string& value, Errors& errors)>;

  std::string name;
  unsigned flags = 0;
  Read read;
  Write write;

  /// "rw+." and so on, as the `handlers` handler prints them.
  std::string flag_letters() const;
};

/// The handlers of an element, which Element::add_handlers fills. A name may be added twice: once for reading, once for
/// writing.
class Handlers {
 public:
  explicit Handlers(Element* element) : element_(element) {}

  Handlers& read(const std::string& name, std::function<std::string()> value, unsigned flags = 0);
  /// A read with parameters, or one that can fail.
  Handlers& read_with(const std::string& name, Handler::Read read, unsigned flags = Handler::kParameters);
  Handlers& write(const std::string& name, Handler::Write write, unsigned flags = 0);
  /// A write whose value does not matter.
  Handlers& button(const std::string& name, std::function<void()> action, unsigned flags = Handler::kButton);
  /// Reads and writes a variable of the element; `changed` is called after each write. Defined in value_handlers.hh,
  /// which also has the read and the write handler separately.
  template <typename T>
  Handlers& value(const std::string& name, T& variable, std::function<void()> changed = {}, unsigned flags = 0);
  /// Reads argument `key` of the configuration (`position`: its place if it is given without keyword, -1 if it needs
  /// the keyword). If `writable`, a write reconfigures the element with the new value.
  Handlers& argument(const std::string& name, const std::string& key, int position = -1, bool writable = false);

  /// Handles every name that was not added: `make` creates the handler, once per name.
  Handlers& any(std::function<Handler(const std::string& name)> make);

  /// The handler called `name`, or null. Any thread.
  const Handler* find(const std::string& name) const;
  /// The handlers that were added by name.
  const std::map<std::string, Handler>& all() const { return handlers_; }
  /// True if a handler can change what the element does. Buttons only reset what it has counted.
  bool writable() const;

 private:
  Handler& get(const std::string& name);

  Element* element_;
  std::map<std::string, Handler> handlers_;
  std::function<Handler(const std::string& name)> make_any_;
  mutable std::mutex any_lock_;
  mutable std::map<std::string, Handler> made_;  // created by make_any_
};

/// A handler named in a configuration ("element.handler [value]", or "handler" for the router's own), bound to it.
class HandlerCall {
 public:
  HandlerCall() = default;
  explicit HandlerCall(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// Looks up the handler, as seen from `context`. Errors name what is missing.
  /// \param unquote removes one level of quotation from the text after the name
  Status bind(Router& router, const Element* context, bool for_write, Errors& errors, bool unquote = false);
  bool bound() const { return handler_ != nullptr; }
  /// The name of the bound handler: "element.handler".
  std::string name() const;
  Status read(std::string& value, Errors& errors) const;
  /// Writes the text that followed the name, plus `extra` if given.
  Status write(Errors& errors, std::string_view extra = {}) const;
  Element* element() const { return element_; }

 private:
  std::string text_;
  std::string value_;
  Router* router_ = nullptr;
  Element* element_ = nullptr;
  const Handler* handler_ = nullptr;
};

}  // namespace headrace
