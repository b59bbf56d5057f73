#include "control/script_functions.hh"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/argument_text.hh"
#include "control/script_format.hh"
#include "headrace/args.hh"
#include "headrace/router.hh"

namespace headrace::control {

namespace {

using lang::take_word;
using lang::unquote;

std::string truth(bool value) { return value ? "true" : "false"; }

/// A whole number as long as that is exact, a real one from the first operand or result that is not.
class Number {
 public:
  Number() = default;
  explicit Number(int64_t n) : whole_(n) {}
  explicit Number(double d) : is_whole_(false), real_(d) {}

  static bool parse(std::string_view text, Number& out) {
    int64_t n;
    double d;
    if (parse_argument(text, n, {}))
      out = Number(n);
    else if (parse_argument(text, d, {}))
      out = Number(d);
    else
      return false;
    return true;
  }

  bool is_whole() const { return is_whole_; }
  int64_t whole() const { return whole_; }
  double real() const { return is_whole_ ? static_cast<double>(whole_) : real_; }
  std::string str() const { return is_whole_ ? std::to_string(whole_) : fmt::format("{:.12g}", real_); }

 private:
  bool is_whole_ = true;
  int64_t whole_ = 0;
  double real_ = 0;
};

/// `exact` computes in whole numbers and returns true on overflow.
Number combine(const Number& a, const Number& b, bool (*exact)(int64_t, int64_t, int64_t*),
               double (*real)(double, double)) {
  int64_t n;
  if (a.is_whole() && b.is_whole() && !exact(a.whole(), b.whole(), &n)) return Number(n);
  return Number(real(a.real(), b.real()));
}

Number add(const Number& a, const Number& b) {
  return combine(
      a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); },
      [](double x, double y) { return x + y; });
}
Number subtract(const Number& a, const Number& b) {
  return combine(
      a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); },
      [](double x, double y) { return x - y; });
}
Number multiply(const Number& a, const Number& b) {
  return combine(
      a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); },
      [](double x, double y) { return x * y; });
}
Number divide(const Number& a, const Number& b) { return Number(a.real() / b.real()); }
bool less(const Number& a, const Number& b) {
  return a.is_whole() && b.is_whole() ? a.whole() < b.whole() : a.real() < b.real();
}
Number least(const Number& a, const Number& b) { return less(b, a) ? b : a; }
Number greatest(const Number& a, const Number& b) { return less(a, b) ? b : a; }

/// Joins a list of numbers from left to right; `identity` is the value of an empty one.
template <Number (*join)(const Number&, const Number&), int identity>
Status fold_numbers(std::string_view text, Number& result, Errors& errors) {
  result = Number(int64_t{identity});
  for (bool first = true; !text.empty(); first = false) {
    Number n;
    if (!Number::parse(take_word(text), n)) return errors.error("expected list of numbers");
    result = first ? n : join(result, n);
  }
  return {};
}

template <Number (*join)(const Number&, const Number&), int identity>
Status fold(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  Number result;
  if (!fold_numbers<join, identity>(text, result, errors)) return Status::failed();
  value = result.str();
  return {};
}

Status divide_whole(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  Number result;
  if (!fold_numbers<divide, 1>(text, result, errors)) return Status::failed();
  const double quotient = std::trunc(result.real());
  if (!(std::fabs(quotient) < 9.2e18)) return errors.error("division by zero");
  value = std::to_string(static_cast<int64_t>(quotient));
  return {};
}

Status remainder(std::string_view text, bool whole_only, std::string& value, Errors& errors) {
  Number a, b;
  const std::string_view first = take_word(text), second = take_word(text);
  if (!text.empty() || !Number::parse(first, a) || !Number::parse(second, b) ||
      (whole_only && !(a.is_whole() && b.is_whole())))
    return errors.error("expected two numbers");
  if (!(a.is_whole() && b.is_whole())) {
    value = Number(std::fmod(a.real(), b.real())).str();
    return {};
  }
  if (b.whole() == 0) return errors.error("division by zero");
  // The smallest number divided by -1 has no quotient, but a remainder it has.
  value = std::to_string(b.whole() == -1 ? 0 : a.whole() % b.whole());
  return {};
}

template <bool whole_only>
Status modulo(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  return remainder(text, whole_only, value, errors);
}

template <bool only_if_negative>
Status negate(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  Number n;
  if (!Number::parse(text, n)) return errors.error("expected one number");
  const bool keep = only_if_negative && !std::signbit(n.real());
  value = (keep ? n : subtract(Number(int64_t{0}), n)).str();
  return {};
}

enum class Relation { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

template <Relation relation>
Status compare(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  const std::string_view first = take_word(text), second = take_word(text);
  if (!text.empty() || first.empty() || second.empty()) return errors.error("expected two numbers");
  Number a, b;
  int order;
  if (Number::parse(first, a) && Number::parse(second, b))
    order = less(a, b) ? -1 : less(b, a) ? 1 : 0;
  else
    order = unquote(first).compare(unquote(second));
  switch (relation) {
    case Relation::kEqual:
      value = truth(order == 0);
      break;
    case Relation::kUnequal:
      value = truth(order != 0);
      break;
    case Relation::kLess:
      value = truth(order < 0);
      break;
    case Relation::kLessOrEqual:
      value = truth(order <= 0);
      break;
    case Relation::kGreater:
      value = truth(order > 0);
      break;
    case Relation::kGreaterOrEqual:
      value = truth(order >= 0);
      break;
  }
  return {};
}

Status negation(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  bool b;
  if (!parse_value(text, b, errors)) return Status::failed();
  value = truth(!b);
  return {};
}

/// Goes on while the words are `expected`: true for "and", false for "or". Later words are not looked at.
template <bool expected, bool negated>
Status junction(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  bool result = expected;
  while (result == expected && !text.empty())
    if (!parse_value(take_word(text), result, errors)) return Status::failed();
  value = truth(result != negated);
  return {};
}

Status choose(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  bool b;
  if (!parse_value(take_word(text), b, errors)) return Status::failed();
  const std::string_view first = take_word(text);
  value = b ? first : take_word(text);
  return {};
}

Status in_list(std::string_view text, FunctionContext&, std::string& value, Errors&) {
  const std::string word = unquote(take_word(text));
  bool found = false;
  while (!text.empty() && !found) found = word == unquote(take_word(text));
  value = truth(found);
  return {};
}

Status first_word(std::string_view text, FunctionContext&, std::string& value, Errors&) {
  value = take_word(text);
  return {};
}

Status length(std::string_view text, FunctionContext&, std::string& value, Errors&) {
  value = std::to_string(text.size());
  return {};
}

Status without_quotes(std::string_view text, FunctionContext&, std::string& value, Errors&) {
  value = unquote(text);
  return {};
}

Status format(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  return format_words(text, value, errors);
}

Status random_number(std::string_view text, FunctionContext& context, std::string& value, Errors& errors) {
  uint32_t low = 0, high = 0x7fffffff;
  bool have_high = false;
  if (!text.empty()) {
    Args args = Args::from_words(text, nullptr, errors);
    if (!args.read_mp("N1", low).read_p_status("N2", high, have_high).complete()) return Status::failed();
    if (have_high ? high < low : low == 0) return errors.error("bad N");
    if (!have_high) high = std::exchange(low, 0) - 1;
  }
  value = std::to_string(std::uniform_int_distribution<uint32_t>(low, high)(context.random));
  return {};
}

Status now(std::string_view, FunctionContext&, std::string& value, Errors&) {
  value = clock::now().unparse();
  return {};
}

template <typename T, T (*swap)(T)>
Status byte_order(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  int32_t n;
  if (!parse_value(text, n, errors)) return Status::failed();
  value = std::to_string(static_cast<int32_t>(swap(static_cast<T>(n))));
  return {};
}

template <bool write>
Status all_handlers(std::string_view text, FunctionContext& context, std::string& value, Errors&) {
  bool all = true;
  while (all && !text.empty()) {
    Errors ignored;
    Element* element = nullptr;
    const Handler* h =
        context.element.router().find_handler(unquote(take_word(text)), &context.element, element, ignored);
    all = h && (write ? h->write != nullptr : h->read != nullptr);
  }
  value = truth(all);
  return {};
}

template <bool quoted>
Status file_text(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  std::string name;
  if (!FileName().parse(text, name, {})) return errors.error("bad FILE");
  std::ifstream file(name, std::ios::binary);
  if (!file) return errors.error("{}: {}", name, std::strerror(errno));
  value.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (file.bad()) return errors.error("{}: {}", name, std::strerror(errno));
  if (quoted) value = lang::quote(value);
  return {};
}

Status send_signal(std::string_view text, FunctionContext&, std::string& value, Errors& errors) {
  value.clear();
  const int number = signal_number(take_word(text));
  if (number == 0) return errors.error("bad SIGNO");
  while (!text.empty()) {
    int32_t process;
    if (!parse_argument(take_word(text), process, {})) return errors.error("bad PID");
    if (::kill(process, number) != 0) return errors.error("kill({}, {}): {}", process, number, std::strerror(errno));
  }
  return {};
}

constexpr ScriptFunction kFunctions[] = {
    {"add", fold<add, 0>},
    {"sub", fold<subtract, 0>},
    {"mul", fold<multiply, 1>},
    {"div", fold<divide, 1>},
    {"idiv", divide_whole},
    {"mod", modulo<true>},
    {"rem", modulo<false>},
    {"min", fold<least, 1>},
    {"max", fold<greatest, 1>},
    {"neg", negate<false>},
    {"abs", negate<true>},
    {"eq", compare<Relation::kEqual>},
    {"ne", compare<Relation::kUnequal>},
    {"lt", compare<Relation::kLess>},
    {"le", compare<Relation::kLessOrEqual>},
    {"gt", compare<Relation::kGreater>},
    {"ge", compare<Relation::kGreaterOrEqual>},
    {"not", negation},
    {"and", junction<true, false>},
    {"nand", junction<true, true>},
    {"or", junction<false, false>},
    {"nor", junction<false, true>},
    {"if", choose},
    {"in", in_list},
    {"first", first_word},
    {"length", length},
    {"unquote", without_quotes},
    {"sprintf", format},
    {"random", random_number},
    {"now", now},
    {"htons", byte_order<uint16_t, htons>},
    {"htonl", byte_order<uint32_t, htonl>},
    {"ntohs", byte_order<uint16_t, ntohs>},
    {"ntohl", byte_order<uint32_t, ntohl>},
    {"readable", all_handlers<false>},
    {"writable", all_handlers<true>},
    {"cat", file_text<false>, Handler::kPrivate},
    {"catq", file_text<true>, Handler::kPrivate},
    {"kill", send_signal, Handler::kPrivate},
};

struct SignalName {
  std::string_view name;
  int number;
};
constexpr SignalName kSignals[] = {
    {"ABRT", SIGABRT}, {"ALRM", SIGALRM}, {"CHLD", SIGCHLD}, {"CONT", SIGCONT},   {"HUP", SIGHUP},   {"INT", SIGINT},
    {"IO", SIGIO},     {"KILL", SIGKILL}, {"PIPE", SIGPIPE}, {"QUIT", SIGQUIT},   {"STOP", SIGSTOP}, {"TERM", SIGTERM},
    {"TSTP", SIGTSTP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"WINCH", SIGWINCH},
};

}  // namespace

std::span<const ScriptFunction> script_functions() { return kFunctions; }

int signal_number(std::string_view name) {
  int number;
  if (parse_argument(name, number, {})) return number > 0 && number < 32 ? number : 0;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const SignalName& s : kSignals)
    if (s.name == name) return s.number;
  return 0;
}

}  // namespace headrace::control
