#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "headrace/args.hh"
#include "headrace/packet.hh"

namespace headrace {
namespace {

/// Some names, as AddressInfo, AnnotationInfo and PortInfo would define them.
class TestScope : public NameScope {
 public:
  std::optional<IpAddress> find_ip(std::string_view name) const override { return find(ips, name); }
  std::optional<IpPrefix> find_prefix(std::string_view name) const override { return find(prefixes, name); }
  std::optional<Ip6Address> find_ip6(std::string_view name) const override { return find(ip6s, name); }
  std::optional<Ip6Prefix> find_ip6_prefix(std::string_view name) const override { return find(ip6_prefixes, name); }
  std::optional<EtherAddress> find_ether(std::string_view name) const override { return find(ethers, name); }
  std::optional<AnnotationRange> find_annotation(std::string_view name) const override {
    return find(annotations, name);
  }
  std::optional<uint16_t> find_port(std::string_view name, int protocol) const override {
    return name == "game" && protocol == 17 ? std::optional<uint16_t>(27960) : std::nullopt;
  }

  std::map<std::string, IpAddress, std::less<>> ips;
  std::map<std::string, IpPrefix, std::less<>> prefixes;
  std::map<std::string, Ip6Address, std::less<>> ip6s;
  std::map<std::string, Ip6Prefix, std::less<>> ip6_prefixes;
  std::map<std::string, EtherAddress, std::less<>> ethers;
  std::map<std::string, AnnotationRange, std::less<>> annotations;

 private:
  template <typename V>
  static std::optional<V> find(const std::map<std::string, V, std::less<>>& map, std::string_view name) {
    const auto found = map.find(name);
    return found == map.end() ? std::nullopt : std::optional<V>(found->second);
  }
};

template <typename T>
T parsed(std::string_view text) {
  T value;
  EXPECT_TRUE(parse(text, value)) << text;
  return value;
}

class ArgValues : public ::testing::Test {
 protected:
  ArgValues() {
    scope.ips["gw"] = parsed<IpAddress>("10.0.0.1");
    scope.prefixes["lan"] = parsed<IpPrefix>("192.168.7.9/24");
    scope.ips["lan"] = parsed<IpAddress>("192.168.7.9");
    scope.ips["mask24"] = parsed<IpAddress>("255.255.255.0");
    scope.ethers["lan"] = parsed<EtherAddress>("2:0:0:0:0:7");
    scope.ip6s["six"] = parsed<Ip6Address>("2001:db8::6");
    scope.ip6_prefixes["six"] = parsed<Ip6Prefix>("2001:db8::/48");
    scope.annotations["MINE"] = {30, 2};
  }

  /// Reads `K text` into `out`; the errors, or "" when all was good.
  template <typename T>
  std::string read(std::string_view text, T& out, NameScope* in = nullptr) {
    Errors errors;
    Args args({"K " + std::string(text)}, in, errors);
    const bool ok = args.read("K", out).complete().ok();
    EXPECT_EQ(ok, errors.error_count() == 0) << text;
    return errors.str();
  }
  template <typename T, typename P>
  std::string read_by(const P& parser, std::string_view text, T& out, NameScope* in = nullptr) {
    Errors errors;
    Args args({"K " + std::string(text)}, in, errors);
    const bool ok = args.read("K", out, parser).complete().ok();
    EXPECT_EQ(ok, errors.error_count() == 0) << text;
    return errors.str();
  }

  /// What unparse() makes of the value, or the error.
  template <typename T>
  std::string seen(std::string_view text, NameScope* in = nullptr) {
    T value{};
    const std::string error = read(text, value, in);
    return error.empty() ? value.unparse() : error;
  }
  template <typename T>
  std::string number(std::string_view text) {
    T value = 42;
    const std::string error = read(text, value);
    if (!error.empty()) {
      EXPECT_EQ(value, T{42}) << text;
    }
    return error.empty() ? std::to_string(value) : error;
  }

  TestScope scope;
};

TEST_F(ArgValues, Bool) {
  for (const char* yes : {"1", "true", "yes", "t", "y"}) {
    bool value = false;
    EXPECT_EQ(read(yes, value), "");
    EXPECT_TRUE(value) << yes;
  }
  for (const char* no : {"0", "false", "no", "f", "n"}) {
    bool value = true;
    EXPECT_EQ(read(no, value), "");
    EXPECT_FALSE(value) << no;
  }
  bool value = true;
  for (const char* bad : {"2", "TRUE", "on", "tru", "yess"})
    EXPECT_EQ(read(bad, value), "K: expected true or false\n") << bad;
  EXPECT_TRUE(value);
}

TEST_F(ArgValues, IntegerForms) {
  EXPECT_EQ(number<int>("0"), "0");
  EXPECT_EQ(number<int>("-0"), "0");
  EXPECT_EQ(number<int>("+17"), "17");
  EXPECT_EQ(number<int>("-17"), "-17");
  EXPECT_EQ(number<int>("0x1F"), "31");
  EXPECT_EQ(number<int>("0X1f"), "31");
  EXPECT_EQ(number<int>("-0x10"), "-16");
  EXPECT_EQ(number<int>("017"), "15");
  EXPECT_EQ(number<int>("0b101"), "5");
  EXPECT_EQ(number<int>("1_000_000"), "1000000");
  EXPECT_EQ(number<unsigned>("+3"), "3");
  for (const char* bad : {"x", "1x", "08", "0x", "0b", "0b2", "1__0", "1_", "_1", "0x_1", "1.5", "1e3", "--1", "- 1",
                          "+", "-", "1 2", "0xg"})
    EXPECT_EQ(number<int>(bad), "K: expected an integer\n") << bad;
  EXPECT_EQ(number<unsigned>("-0"), "K: expected an integer\n");
  EXPECT_EQ(number<unsigned>("-1"), "K: expected an integer\n");
}

TEST_F(ArgValues, IntegerLimits) {
  EXPECT_EQ(number<uint8_t>("255"), "255");
  EXPECT_EQ(number<uint8_t>("256"), "K: out of range, bound 255\n");
  EXPECT_EQ(number<int8_t>("127"), "127");
  EXPECT_EQ(number<int8_t>("128"), "K: out of range, bound 127\n");
  EXPECT_EQ(number<int8_t>("-128"), "-128");
  EXPECT_EQ(number<int8_t>("-129"), "K: out of range, bound -128\n");
  EXPECT_EQ(number<uint16_t>("99999"), "K: out of range, bound 65535\n");
  EXPECT_EQ(number<uint32_t>("0xFFFFFFFF"), "4294967295");
  EXPECT_EQ(number<uint32_t>("0xFFFFFFFFF"), "K: out of range, bound 4294967295\n");
  EXPECT_EQ(number<int32_t>("-2147483648"), "-2147483648");
  EXPECT_EQ(number<int32_t>("2147483648"), "K: out of range, bound 2147483647\n");
  EXPECT_EQ(number<int64_t>("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(number<int64_t>("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(number<int64_t>("-9223372036854775809"), "K: out of range, bound -9223372036854775808\n");
  EXPECT_EQ(number<uint64_t>("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(number<uint64_t>("18446744073709551616"), "K: out of range, bound 18446744073709551615\n");
  EXPECT_EQ(number<int64_t>("-99999999999999999999999999"), "K: out of range, bound -9223372036854775808\n");
}

TEST_F(ArgValues, Between) {
  int value = 42;
  EXPECT_EQ(read_by(Between{0, 10}, "10", value), "");
  EXPECT_EQ(value, 10);
  EXPECT_EQ(read_by(Between{0, 9}, "10", value), "K: out of range, bound 9\n");
  EXPECT_EQ(read_by(Between{-1, 9}, "-10", value), "K: out of range, bound -1\n");
  EXPECT_EQ(read_by(Between{0u, 100u}, "-1", value), "K: out of range, bound 0\n");
  EXPECT_EQ(read_by(Between{0, 9}, "x", value), "K: expected an integer\n");
  EXPECT_EQ(value, 10);
  uint32_t large = 7;
  EXPECT_EQ(read_by(Between{-1000, -90}, "0xFFFFFF00", large), "K: out of range, bound -90\n");
  EXPECT_EQ(large, 7u);
  double real = 0.25;
  EXPECT_EQ(read_by(Between{0.0, 1.0}, "0.5", real), "");
  EXPECT_EQ(real, 0.5);
  EXPECT_EQ(read_by(Between{0.5, 1.5}, "1.75", real), "K: out of range, bound 1.5\n");
  EXPECT_EQ(read_by(Between{0.5, 1.5}, "0.25", real), "K: out of range, bound 0.5\n");
  EXPECT_NE(read_by(Between{0.0, 1.0}, "nan", real), "");
  EXPECT_EQ(real, 0.5);
}

TEST_F(ArgValues, IntegerBase) {
  uint16_t value = 0;
  EXPECT_EQ(read_by(IntegerBase{16}, "0800", value), "");
  EXPECT_EQ(value, 0x800);
  EXPECT_EQ(read_by(IntegerBase{16}, "0x86dd", value), "");
  EXPECT_EQ(value, 0x86dd);
  EXPECT_EQ(read_by(IntegerBase{16}, "10000", value), "K: out of range, bound 65535\n");
  EXPECT_EQ(read_by(IntegerBase{36}, "Zz", value), "");
  EXPECT_EQ(value, 35 * 36 + 35);
  EXPECT_EQ(read_by(IntegerBase{2}, "102", value), "K: expected an integer\n");
  EXPECT_EQ(read_by(IntegerBase{10}, "010", value), "");
  EXPECT_EQ(value, 10);
}

TEST_F(ArgValues, Double) {
  double value = 42;
  EXPECT_EQ(read("1.5e3", value), "");
  EXPECT_EQ(value, 1500);
  EXPECT_EQ(read("-.5", value), "");
  EXPECT_EQ(value, -.5);
  EXPECT_EQ(read("1e400", value), "K: out of range, bound inf\n");
  EXPECT_EQ(read("1e-400", value), "K: underflow, rounded to 0\n");
  EXPECT_EQ(read("1.5x", value), "K: expected a number\n");
  EXPECT_EQ(read("x", value), "K: expected a number\n");
  EXPECT_EQ(value, -.5);
}

TEST_F(ArgValues, String) {
  const auto string = [this](std::string_view text) {
    std::string value = "unchanged";
    const std::string error = read(text, value);
    if (!error.empty()) {
      EXPECT_EQ(value, "unchanged") << text;
    }
    return error.empty() ? "<" + value + ">" : error;
  };
  EXPECT_EQ(string("plain"), "<plain>");
  EXPECT_EQ(string("\"with blank\""), "<with blank>");
  EXPECT_EQ(string("'$raw\\n'"), "<$raw\\n>");
  EXPECT_EQ(string("\"a\\tb\""), "<a\tb>");
  EXPECT_EQ(string("\\<48 65 6c6C 6F>"), "<Hello>");
  EXPECT_EQ(string("a'b c'\"d\""), "<ab cd>");
  EXPECT_EQ(string("\"\""), "<>");
  EXPECT_EQ(string("two words"), "K: expected one word, or text in quotation marks\n");
}

TEST_F(ArgValues, Words) {
  std::string value = "unchanged";
  EXPECT_EQ(read_by(WordArg{}, "'quoted'", value), "");
  EXPECT_EQ(value, "quoted");
  EXPECT_EQ(read_by(WordArg{}, "'two words'", value), "K: expected one word\n");
  EXPECT_EQ(read_by(WordArg{}, "''", value), "K: expected one word\n");
  EXPECT_EQ(value, "quoted");
  EXPECT_EQ(read_by(AnyArg{}, "\"as it\" stands", value), "");
  EXPECT_EQ(value, "\"as it\" stands");
}

TEST_F(ArgValues, FileName) {
  ASSERT_EQ(setenv("HOME", "/home/of/me", 1), 0);
  const auto file = [this](std::string_view text) {
    std::string value;
    const std::string error = read_by(FileName{}, text, value);
    return error.empty() ? value : error;
  };
  EXPECT_EQ(file("\"/tmp//x///y\""), "/tmp/x/y");
  EXPECT_EQ(file("~/file~"), "/home/of/me/file~");
  EXPECT_EQ(file("~"), "/home/of/me");
  EXPECT_EQ(file("~root/x"), "/root/x");
  EXPECT_EQ(file("~no-such-user-here/x"), "~no-such-user-here/x");
  EXPECT_EQ(file("\"a b\""), "a b");
  EXPECT_EQ(file("-"), "-");
  EXPECT_EQ(file("a b"), "K: expected the name of a file\n");
  EXPECT_EQ(file("''"), "K: expected the name of a file\n");
}

TEST_F(ArgValues, HandlerName) {
  std::string value;
  EXPECT_EQ(read_by(HandlerName{}, "q.length", value), "");
  EXPECT_EQ(value, "q.length");
  EXPECT_EQ(read_by(HandlerName{}, "stop", value), "");
  for (const char* bad : {"q.", "''", "q length", "'q length'"})
    EXPECT_EQ(read_by(HandlerName{}, bad, value), "K: expected the name of a handler\n") << bad;
  EXPECT_EQ(value, "stop");
}

TEST_F(ArgValues, Interval) {
  const auto ns = [this](std::string_view text) {
    Interval value{42};
    const std::string error = read(text, value);
    if (!error.empty()) {
      EXPECT_EQ(value.ns, 42) << text;
    }
    return error.empty() ? std::to_string(value.ns) : error;
  };
  EXPECT_EQ(ns("3600"), "3600000000000");
  EXPECT_EQ(ns("3600s"), "3600000000000");
  EXPECT_EQ(ns("3.6e6 msec"), "3600000000000");
  EXPECT_EQ(ns("60m"), "3600000000000");
  EXPECT_EQ(ns("60 min"), "3600000000000");
  EXPECT_EQ(ns("1 hr"), "3600000000000");
  EXPECT_EQ(ns("1h"), "3600000000000");
  EXPECT_EQ(ns("2 d"), "172800000000000");
  EXPECT_EQ(ns("1 day"), "86400000000000");
  EXPECT_EQ(ns("0.1"), "100000000");
  EXPECT_EQ(ns("1.9ms"), "1900000");
  EXPECT_EQ(ns("5us"), "5000");
  EXPECT_EQ(ns("5 usec"), "5000");
  EXPECT_EQ(ns("7ns"), "7");
  EXPECT_EQ(ns("7 nsec"), "7");
  EXPECT_EQ(ns("0.5ns"), "1");
  EXPECT_EQ(ns("1sec"), "1000000000");
  EXPECT_EQ(ns("9223372036.854775807"), "9223372036854775807");
  EXPECT_EQ(ns("9223372036.854775808"), "K: out of range\n");
  EXPECT_EQ(ns("1e30"), "K: out of range\n");
  for (const char* bad : {"s", "ms", "-1", "1x", "1 s s", "1fortnight", "one"})
    EXPECT_EQ(ns(bad), "K: expected a time, such as 1.5 (seconds), 20ms or 3h\n") << bad;
}

TEST_F(ArgValues, IntervalUnparse) {
  EXPECT_EQ(Interval{0}.unparse(), "0s");
  EXPECT_EQ(Interval::from_sec(10).unparse(), "10s");
  EXPECT_EQ(Interval::from_ms(1500).unparse(), "1.5s");
  EXPECT_EQ(Interval::from_ms(20).unparse(), "20ms");
  EXPECT_EQ(Interval{1500000}.unparse(), "1500us");
  EXPECT_EQ(Interval{1}.unparse(), "1ns");
  for (const int64_t ns : {int64_t{1}, int64_t{999999}, int64_t{1000000001}, INT64_MAX}) {
    Interval back;
    EXPECT_EQ(read(Interval{ns}.unparse(), back), "");
    EXPECT_EQ(back.ns, ns);
  }
}

TEST_F(ArgValues, Timestamps) {
  Timestamp value = Timestamp::from_ns(42);
  EXPECT_EQ(read("1189383079.180265331", value), "");
  EXPECT_EQ(value.ns, 1189383079180265331);
  EXPECT_EQ(read("1.5ms", value), "");
  EXPECT_EQ(value.ns, 1500000);
  EXPECT_EQ(read("-1.5", value), "K: expected a time, such as 1.5 (seconds), 20ms or 3h\n");
  EXPECT_EQ(value.ns, 1500000);
  EXPECT_EQ(read_by(SignedTime{}, "-1.5", value), "");
  EXPECT_EQ(value.ns, -1500000000);
  EXPECT_EQ(read("1e10", value), "K: out of range\n");
}

TEST_F(ArgValues, Bandwidths) {
  Bandwidth value{42};
  EXPECT_EQ(read("10 Gbps", value), "");
  EXPECT_EQ(value.bytes_per_second, 1250000000u);
  EXPECT_EQ(read("1e30 Bps", value), "K: out of range\n");
  EXPECT_EQ(read("5zz", value), "K: expected a rate, such as 1500 (bytes a second) or 10Mbps\n");
  EXPECT_EQ(value.bytes_per_second, 1250000000u);
}

TEST_F(ArgValues, IpNames) {
  EXPECT_EQ(seen<IpAddress>("1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(seen<IpAddress>("gw", &scope), "10.0.0.1");
  EXPECT_EQ(seen<IpAddress>("gw:ip", &scope), "10.0.0.1");
  EXPECT_EQ(seen<IpAddress>("gw:IP4", &scope), "10.0.0.1");
  EXPECT_EQ(seen<IpAddress>("lan:bcast", &scope), "192.168.7.255");
  EXPECT_EQ(seen<IpAddress>("lan:gw", &scope), "192.168.7.1");
  scope.ips["lan:gw"] = parsed<IpAddress>("192.168.7.254");
  EXPECT_EQ(seen<IpAddress>("lan:gw", &scope), "192.168.7.254");
  for (const char* bad : {"nosuchname", "gw:eth", "gw:", ":ip", "gw:bcast", "gw:gw", "1.2.3"})
    EXPECT_EQ(seen<IpAddress>(bad, &scope), "K: expected an IPv4 address\n") << bad;
  // Without a scope there are no names, not even those of devices.
  EXPECT_EQ(seen<IpAddress>("gw"), "K: expected an IPv4 address\n");
  EXPECT_EQ(seen<IpAddress>("lo"), "K: expected an IPv4 address\n");
}

TEST_F(ArgValues, PrefixNames) {
  EXPECT_EQ(seen<IpPrefix>("18.26.4/24"), "18.26.4.0/24");
  EXPECT_EQ(seen<IpPrefix>("18.26.4/28"), "K: expected an IPv4 prefix, such as 10.0.0.0/8\n");
  EXPECT_EQ(seen<IpPrefix>("1.2.3.4"), "K: expected an IPv4 prefix, such as 10.0.0.0/8\n");
  for (const char* name : {"lan", "lan:net", "lan:ipnet", "lan:ip4net", "lan:IPNET"})
    EXPECT_EQ(seen<IpPrefix>(name, &scope), "192.168.7.9/24") << name;
  EXPECT_EQ(seen<IpPrefix>("gw/16", &scope), "10.0.0.1/16");
  EXPECT_EQ(seen<IpPrefix>("gw:ip/255.255.0.0", &scope), "10.0.0.1/16");
  EXPECT_EQ(seen<IpPrefix>("1.2.3.4/mask24", &scope), "1.2.3.4/24");
  EXPECT_EQ(seen<IpPrefix>("1.2.3/mask24", &scope), "1.2.3.0/24");
  EXPECT_EQ(seen<IpPrefix>("1.2/mask24", &scope), "K: expected an IPv4 prefix, such as 10.0.0.0/8\n");
  for (const char* bad : {"gw", "lan:ip", "lan:eth", "gw/33", "gw/", "nosuchname/8", "1.2.3.4/nosuchname"})
    EXPECT_EQ(seen<IpPrefix>(bad, &scope), "K: expected an IPv4 prefix, such as 10.0.0.0/8\n") << bad;
}

TEST_F(ArgValues, PrefixOrAddress) {
  const auto prefix = [this](std::string_view text) {
    IpPrefix value;
    const std::string error = read_by(PrefixOrAddress{}, text, value, &scope);
    return error.empty() ? value.unparse() : error;
  };
  EXPECT_EQ(prefix("1.2.3.4"), "1.2.3.4/32");
  EXPECT_EQ(prefix("1.2.3.4/8"), "1.2.3.4/8");
  EXPECT_EQ(prefix("gw"), "10.0.0.1/32");
  // A name that stands for both is an address here.
  EXPECT_EQ(prefix("lan"), "192.168.7.9/32");
  EXPECT_EQ(prefix("lan:ipnet"), "192.168.7.9/24");
  EXPECT_EQ(prefix("1.2.3"), "K: expected an IPv4 address or prefix\n");
  Ip6Prefix six;
  EXPECT_EQ(read_by(PrefixOrAddress{}, "six", six, &scope), "");
  EXPECT_EQ(six.unparse(), "2001:db8::6/128");
  EXPECT_EQ(read_by(PrefixOrAddress{}, "six:ip6net", six, &scope), "");
  EXPECT_EQ(six.unparse(), "2001:db8::/48");
  EXPECT_EQ(read_by(PrefixOrAddress{}, "fe80::/10", six, &scope), "");
  EXPECT_EQ(six.unparse(), "fe80::/10");
}

TEST_F(ArgValues, Ip6Names) {
  EXPECT_EQ(seen<Ip6Address>("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(seen<Ip6Address>("six", &scope), "2001:db8::6");
  EXPECT_EQ(seen<Ip6Address>("six:ip6", &scope), "2001:db8::6");
  EXPECT_EQ(seen<Ip6Address>("::ffff:gw", &scope), "::ffff:10.0.0.1");
  EXPECT_EQ(seen<Ip6Address>("::gw", &scope), "::10.0.0.1");
  EXPECT_EQ(seen<Ip6Address>("gw", &scope), "K: expected an IPv6 address\n");
  EXPECT_EQ(seen<Ip6Address>("six:ip", &scope), "K: expected an IPv6 address\n");
  EXPECT_EQ(seen<Ip6Prefix>("2001:db8::/32"), "2001:db8::/32");
  EXPECT_EQ(seen<Ip6Prefix>("six:ip6net", &scope), "2001:db8::/48");
  EXPECT_EQ(seen<Ip6Prefix>("six", &scope), "2001:db8::/48");
  EXPECT_EQ(seen<Ip6Prefix>("six/64", &scope), "2001:db8::6/64");
  EXPECT_EQ(seen<Ip6Prefix>("six/129", &scope), "K: expected an IPv6 prefix, such as 2001:db8::/32\n");
}

TEST_F(ArgValues, EtherNames) {
  EXPECT_EQ(seen<EtherAddress>("0:1:2:3:4:5"), "00-01-02-03-04-05");
  for (const char* name : {"lan", "lan:eth", "lan:ether", "lan:ethernet", "lan:ETH"})
    EXPECT_EQ(seen<EtherAddress>(name, &scope), "02-00-00-00-00-07") << name;
  EXPECT_EQ(seen<EtherAddress>("gw:eth", &scope), "K: expected an Ethernet address\n");
  EXPECT_EQ(seen<EtherAddress>("lan:ip", &scope), "K: expected an Ethernet address\n");
  // The loopback device has no Ethernet address.
  EXPECT_EQ(seen<EtherAddress>("lo", &scope), "K: expected an Ethernet address\n");
}

TEST_F(ArgValues, DeviceNames) {
  IpAddress probe;
  if (!parse_argument("lo", probe, ArgContext(&scope))) GTEST_SKIP() << "the loopback device has no IPv4 address here";
  EXPECT_EQ(seen<IpAddress>("lo", &scope), "127.0.0.1");
  EXPECT_EQ(seen<IpAddress>("lo:ip", &scope), "127.0.0.1");
  EXPECT_EQ(seen<IpPrefix>("lo:ipnet", &scope), "127.0.0.1/8");
  EXPECT_EQ(seen<IpAddress>("lo:bcast", &scope), "127.255.255.255");
  // What the configuration defines comes first.
  scope.ips["lo"] = parsed<IpAddress>("9.9.9.9");
  EXPECT_EQ(seen<IpAddress>("lo", &scope), "9.9.9.9");
}

TEST_F(ArgValues, Annotations) {
  AnnotationArg<1> one{9};
  EXPECT_EQ(read("PAINT", one), "");
  EXPECT_EQ(one, 16);
  EXPECT_EQ(read("47", one), "");
  EXPECT_EQ(one, 47);
  EXPECT_EQ(read("0x10", one), "");
  EXPECT_EQ(one, 16);
  for (const char* bad : {"DST_IP", "48", "-1", "NOSUCH", "paint", "300", "MINE"})
    EXPECT_EQ(read(bad, one, &scope), "K: expected an annotation of this size, by name or offset\n") << bad;
  EXPECT_EQ(one, 16);
  AnnotationArg<4> four{9};
  EXPECT_EQ(read("44", four), "");
  EXPECT_EQ(four, 44);
  EXPECT_EQ(read("45", four), "K: expected an annotation of this size, by name or offset\n");
  EXPECT_EQ(read("AGGREGATE", four), "");
  EXPECT_EQ(four, 20);
  AnnotationArg<2> two;
  EXPECT_EQ(read("MINE", two, &scope), "");
  EXPECT_EQ(two, 30);
  EXPECT_EQ(read("VLAN", two), "");
  EXPECT_EQ(two, 20);
  AnnotationRange range;
  EXPECT_EQ(read("DST_IP6", range), "");
  EXPECT_EQ(range, (AnnotationRange{0, 16}));
  EXPECT_EQ(read("12", range), "");
  EXPECT_EQ(range, (AnnotationRange{12, 0}));
  EXPECT_EQ(read("48", range), "K: expected an annotation, by name or offset\n");
}

TEST_F(ArgValues, AnnotationPlaces) {
  const std::map<std::string_view, AnnotationRange> expected = {
      {"DST_IP", {0, 4}},           {"DST_IP6", {0, 16}},       {"PAINT", {16, 1}},
      {"ICMP_PARAMPROB", {17, 1}},  {"FIX_IP_SRC", {19, 1}},    {"VLAN_TCI", {20, 2}},
      {"AGGREGATE", {20, 4}},       {"FWD_RATE", {20, 4}},      {"MISC_IP", {20, 4}},
      {"EXTRA_PACKETS", {24, 4}},   {"REV_RATE", {24, 4}},      {"EXTRA_LENGTH", {28, 4}},
      {"IPREASSEMBLER", {28, 4}},   {"PACKET_NUMBER", {32, 4}}, {"FIRST_TIMESTAMP", {32, 8}},
      {"SEQUENCE_NUMBER", {36, 4}}, {"PERFCTR", {40, 8}},       {"RX_HASH", {44, 4}},
  };
  for (const auto& [name, range] : expected) {
    const auto found = find_builtin_annotation(name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(*found, range) << name;
    EXPECT_LE(static_cast<uint32_t>(range.offset + range.size), Packet::kAnnoSize);
  }
  EXPECT_FALSE(find_builtin_annotation(""));
}

TEST_F(ArgValues, Ports) {
  uint16_t port = 42;
  EXPECT_EQ(read_by(TcpUdpPort{6}, "80", port), "");
  EXPECT_EQ(port, 80);
  EXPECT_EQ(read_by(TcpUdpPort{6}, "www", port), "");
  EXPECT_EQ(port, 80);
  EXPECT_EQ(read_by(TcpUdpPort{17}, "domain", port), "");
  EXPECT_EQ(port, 53);
  EXPECT_EQ(read_by(TcpUdpPort{}, "https", port), "");
  EXPECT_EQ(port, 443);
  EXPECT_EQ(read_by(TcpUdpPort{17}, "game", port, &scope), "");
  EXPECT_EQ(port, 27960);
  EXPECT_EQ(read_by(TcpUdpPort{6}, "game", port, &scope), "K: expected a port, by number or name\n");
  EXPECT_EQ(read_by(TcpUdpPort{17}, "65536", port), "K: overflow, range 0-65535\n");
  EXPECT_EQ(read_by(TcpUdpPort{17}, "no-such-service", port), "K: expected a port, by number or name\n");
  EXPECT_EQ(read_by(TcpUdpPort{250}, "www", port), "K: expected a port, by number or name\n");
  EXPECT_EQ(read_by(TcpUdpPort{6}, "-1", port), "K: expected a port, by number or name\n");
  EXPECT_EQ(port, 27960);
}

TEST_F(ArgValues, Protocols) {
  uint8_t protocol = 42;
  EXPECT_EQ(read_by(IpProtocol{}, "udp", protocol), "");
  EXPECT_EQ(protocol, 17);
  EXPECT_EQ(read_by(IpProtocol{}, "50", protocol), "");
  EXPECT_EQ(protocol, 50);
  EXPECT_EQ(read_by(IpProtocol{}, "nosuch", protocol), "K: expected an integer\n");
  EXPECT_EQ(read_by(IpProtocol{}, "777", protocol), "K: out of range, bound 255\n");
  EXPECT_EQ(protocol, 50);
}

TEST_F(ArgValues, Choices) {
  enum class Mode { kNone, kHex, kAscii };
  const Choice<Mode> modes{{"NONE", Mode::kNone}, {"HEX", Mode::kHex}, {"ASCII", Mode::kAscii}};
  Mode mode = Mode::kNone;
  EXPECT_EQ(read_by(modes, "HEX", mode), "");
  EXPECT_EQ(mode, Mode::kHex);
  EXPECT_EQ(read_by(modes, "'ascii'", mode), "");
  EXPECT_EQ(mode, Mode::kAscii);
  EXPECT_EQ(read_by(modes, "HEXX", mode), "K: unknown value, expected one of: NONE, HEX, ASCII\n");
  EXPECT_EQ(read_by(modes, "two words", mode), "K: unknown value, expected one of: NONE, HEX, ASCII\n");
  EXPECT_EQ(mode, Mode::kAscii);
}

TEST_F(ArgValues, Lists) {
  std::vector<IpAddress> addresses;
  EXPECT_EQ(read("1.2.3.4 gw  5.6.7.8", addresses, &scope), "");
  ASSERT_EQ(addresses.size(), 3u);
  EXPECT_EQ(addresses[1].unparse(), "10.0.0.1");
  EXPECT_EQ(read("1.2.3.4 5.6.7", addresses), "K: expected an IPv4 address\n");
  EXPECT_EQ(addresses.size(), 3u);
  std::vector<int> numbers;
  EXPECT_EQ(read("1 0x2 3", numbers), "");
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(read("1 x", numbers), "K: expected an integer\n");
  std::vector<std::string> words;
  EXPECT_EQ(read("a 'b c' \"d\"", words), "");
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b c", "d"}));
}

TEST_F(ArgValues, Optional) {
  std::optional<EtherAddress> value;
  EXPECT_EQ(read("0:1:2:3:4", value), "K: expected an Ethernet address\n");
  EXPECT_FALSE(value);
  EXPECT_EQ(read("0:1:2:3:4:5", value), "");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->unparse(), "00-01-02-03-04-05");
}

TEST_F(ArgValues, AValueThatIsNoArgument) {
  const auto error_of = [](std::string_view text, auto value, auto... parser) {
    Errors errors;
    const auto before = value;
    const bool good = parse_value(text, value, parser..., errors).ok();
    EXPECT_EQ(good, errors.error_count() == 0) << text;
    EXPECT_TRUE(good || value == before) << text;
    return errors.str();
  };
  EXPECT_EQ(error_of("17", 5), "");
  EXPECT_EQ(error_of("x", 5), "expected an integer\n");
  EXPECT_EQ(error_of("maybe", true), "expected true or false\n");
  EXPECT_EQ(error_of("soon", Interval()), "expected a time, such as 1.5 (seconds), 20ms or 3h\n");
  EXPECT_EQ(error_of("1.2.3", IpAddress()), "expected an IPv4 address\n");
  EXPECT_EQ(error_of("300", 5, Between{1, 256}), "out of range, bound 256\n");
}

TEST_F(ArgValues, ContextWithoutErrorsIsSilent) {
  int value = 42;
  EXPECT_FALSE(parse_argument("x", value, ArgContext()));
  EXPECT_EQ(value, 42);
  EXPECT_TRUE(parse_argument("7", value, ArgContext()));
  EXPECT_EQ(value, 7);
}

}  // namespace
}  // namespace headrace
