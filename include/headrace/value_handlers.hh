#pragma once
/// \file
/// Handlers that show and set a variable of an element.

#include <functional>
#include <string>
#include <type_traits>

#include "headrace/args.hh"
#include "headrace/handlers.hh"
#include "headrace/single_writer.hh"

namespace headrace {

inline std::string unparse_value(bool value) { return value ? "true" : "false"; }
inline std::string unparse_value(const std::string& value) { return value; }
inline std::string unparse_value(const Interval& value) { return value.unparse(); }
inline std::string unparse_value(const Timestamp& value) { return value.unparse(); }
inline std::string unparse_value(const Bandwidth& value) { return value.unparse(); }
template <IntegerValue T>
std::string unparse_value(T value) {
  return std::to_string(value);
}

/// The type of a value that a handler shows: T for a SingleWriter<T>.
template <typename T>
struct HandlerValue {
  using type = T;
};
template <typename T>
struct HandlerValue<SingleWriter<T>> {
  using type = T;
};

/// Makes a read handler of a variable.
template <typename T>
void read_value(Handlers& handlers, const std::string& name, const T& variable, unsigned flags = 0) {
  using V = typename HandlerValue<T>::type;
  handlers.read(
      name, [&variable] { return unparse_value(static_cast<const V&>(variable)); }, flags);
}

/// Makes a write handler of a variable. `changed` is called after each write.
template <typename T, typename P>
void write_value(Handlers& handlers, const std::string& name, T& variable, const P& parser,
                 std::function<void()> changed, unsigned flags = 0) {
  using V = typename HandlerValue<T>::type;
  handlers.write(
      name,
      [&variable, parser, changed = std::move(changed)](const std::string& text, Errors& errors) {
        V value{};
        if (!parse_value(text, value, parser, errors)) return Status::failed();
        variable = value;
        if (changed) changed();
        return Status();
      },
      flags);
}

/// The parser that calls parse_argument().
struct DefaultArg {
  template <typename T>
  bool parse(std::string_view text, T& out, const ArgContext& context) const {
    return parse_argument(text, out, context);
  }
};
template <typename T>
void write_value(Handlers& handlers, const std::string& name, T& variable, std::function<void()> changed = {},
                 unsigned flags = 0) {
  write_value(handlers, name, variable, DefaultArg{}, std::move(changed), flags);
}

template <typename T>
Handlers& Handlers::value(const std::string& name, T& variable, std::function<void()> changed, unsigned flags) {
  read_value(*this, name, variable, flags);
  write_value(*this, name, variable, std::move(changed), flags);
  return *this;
}

}  // namespace headrace
