/// Fuzzes the reading of arguments: any text gives values or errors, and what unparse() writes reads back as the same.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/args.hh"

namespace {

using namespace headrace;

void require(bool condition) {
  if (!condition) std::abort();
}

/// If `text` is a T, then so is what `unparse` makes of it.
template <typename T, typename F>
void round_trip(std::string_view text, F unparse) {
  T value{}, back{};
  if (!parse_argument(text, value, ArgContext())) return;
  require(parse_argument(unparse(value), back, ArgContext()));
  require(value == back);
}

template <typename T>
void value_round_trip(std::string_view text) {
  round_trip<T>(text, [](const T& value) { return value.unparse(); });
}

template <typename T>
void number_round_trip(std::string_view text) {
  round_trip<T>(text, [](T value) { return std::to_string(value); });
}

void each_type(std::string_view text) {
  value_round_trip<IpAddress>(text);
  value_round_trip<IpPrefix>(text);
  value_round_trip<Ip6Address>(text);
  value_round_trip<Ip6Prefix>(text);
  value_round_trip<EtherAddress>(text);
  value_round_trip<Interval>(text);
  number_round_trip<int8_t>(text);
  number_round_trip<uint16_t>(text);
  number_round_trip<int32_t>(text);
  number_round_trip<int64_t>(text);
  number_round_trip<uint64_t>(text);
}

/// An element's configuration with arguments of every kind.
void configure(std::string_view text) {
  Errors errors;
  NameScope scope;
  Args args = Args::from_text(text, &scope, errors);
  int number = 7;
  bool given = false;
  std::string label, file;
  double real = 0;
  Bandwidth bandwidth;
  Timestamp time;
  uint16_t port = 0;
  AnnotationArg<4> annotation;
  std::vector<IpAddress> addresses;
  std::vector<std::string> all, rest;
  args.read_mp("NUMBER", number, Between{0, 255})
      .read_p("LABEL", label)
      .read("FILE", file, FileName{})
      .read("REAL", real)
      .read("BANDWIDTH", bandwidth)
      .read("TIME", time, SignedTime{})
      .read("PORT", port, TcpUdpPort{17})
      .read("ANNO", annotation)
      .read_status("ADDRESSES", addresses, given)
      .read_all("ALL", all, WordArg{});
  const bool good = args.consume().ok();
  require(good == (errors.error_count() == 0));
  if (!good) require(number == 7 && label.empty() && addresses.empty());
  args.consume_rest(rest);
  require(args.remaining() == 0);
  require(args.complete().ok() == good);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  each_type(text);
  configure(text);
  return 0;
}
