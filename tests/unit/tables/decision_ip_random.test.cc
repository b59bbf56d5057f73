/// \file
/// Random patterns of IPFilter, compiled and run, against the same patterns evaluated word by word.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "decision_packet.hh"
#include "tables/decision/ip_filter.hh"

namespace headrace {
namespace {

using decision_test::Bytes;
using decision_test::CheckedWords;

constexpr size_t kNetwork = 14;

struct IpPacket {
  Bytes bytes;
  size_t transport = 0;

  CheckedWords words() const { return {bytes, 0, kNetwork, transport}; }

  /// `size` bytes as a number, or nothing if the packet ends before them.
  std::optional<uint32_t> field(size_t at, int size) const {
    if (at + size > bytes.size()) return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | bytes[at + i];
    return value;
  }
  std::optional<uint32_t> network(size_t at, int size) const { return field(kNetwork + at, size); }
  std::optional<uint32_t> transport_field(size_t at, int size) const { return field(transport + at, size); }
};

/// A pattern's text and its meaning.
struct Formula {
  std::string text;
  std::function<bool(const IpPacket&)> holds;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[pick(static_cast<int>(values.size()))];
  }

  IpPacket packet() {
    IpPacket packet;
    const int options = pick(3) == 0 ? 8 : 0;
    Bytes& b = packet.bytes;
    b.resize(kNetwork + 20 + options + 20);
    packet.transport = kNetwork + 20 + options;
    for (uint8_t& byte : b) byte = static_cast<uint8_t>(one_of({0, 0, 1, 2, 80, 255}));
    for (size_t at : {0, 6}) {
      for (int i = 0; i < 6; ++i) b[at + i] = static_cast<uint8_t>(i == 5 ? one_of({5, 6}) : i);
    }
    uint8_t* ip = &b[kNetwork];
    ip[0] = static_cast<uint8_t>(0x40 | (20 + options) / 4);
    ip[1] = static_cast<uint8_t>(pick(16));
    ip[6] = static_cast<uint8_t>(one_of({0, 0, 0, 0x20, 0x40}));
    ip[7] = static_cast<uint8_t>(one_of({0, 0, 0, 3}));
    ip[8] = static_cast<uint8_t>(one_of({1, 63, 64, 255}));
    ip[9] = static_cast<uint8_t>(one_of({1, 6, 6, 17, 17, 50}));
    for (size_t at : {12, 16}) {
      ip[at] = static_cast<uint8_t>(one_of({10, 10, 192}));
      ip[at + 1] = ip[at + 2] = 0;
      ip[at + 3] = static_cast<uint8_t>(one_of({1, 2, 200}));
    }
    uint8_t* transport = &b[packet.transport];
    for (size_t at : {0, 2}) {
      const int port = one_of({0, 53, 80, 1023, 1024, 1025, 2048, 65535});
      transport[at] = static_cast<uint8_t>(port >> 8);
      transport[at + 1] = static_cast<uint8_t>(port);
    }
    // What ends inside a word is a special case that its own tests look at.
    if (pick(3) == 0) b.resize(kNetwork + pick(static_cast<int>(b.size() - kNetwork) / 4 + 1) * 4);
    return packet;
  }

  Formula formula(int depth) {
    if (depth == 0 || pick(10) < 4) return primitive();
    Formula a = formula(depth - 1);
    switch (pick(8)) {
      case 0:
      case 1:
      case 2: {
        Formula b = formula(depth - 1);
        return {fmt::format("({}) {} ({})", a.text, one_of({"and", "&&", ""}), b.text),
                [a = a.holds, b = b.holds](const IpPacket& p) { return a(p) && b(p); }};
      }
      case 3:
      case 4:
      case 5: {
        Formula b = formula(depth - 1);
        return {fmt::format("({}) {} ({})", a.text, one_of({"or", "||"}), b.text),
                [a = a.holds, b = b.holds](const IpPacket& p) { return a(p) || b(p); }};
      }
      case 6: {
        Formula b = formula(depth - 1), c = formula(depth - 1);
        return {fmt::format("(({}) ? ({}) : ({}))", a.text, b.text, c.text),
                [a = a.holds, b = b.holds, c = c.holds](const IpPacket& p) { return a(p) ? b(p) : c(p); }};
      }
      default:
        return {fmt::format("{} ({})", one_of({"not", "!"}), a.text),
                [a = a.holds](const IpPacket& p) { return !a(p); }};
    }
  }

 private:
  using Value = std::function<std::optional<uint32_t>(const IpPacket&)>;
  struct Relation {
    std::string text;
    std::function<bool(uint32_t)> holds;
    bool negated = false;  // `holds` is to be negated
  };

  Relation relation(std::initializer_list<int> values, uint32_t bound, bool ranges = true) {
    const uint32_t n = static_cast<uint32_t>(one_of(values));
    auto equal = [n](uint32_t x) { return x == n; };
    int kind = pick(ranges ? 9 : 7);
    // Nothing is less than zero: such a relation holds for no packet or for all, however short.
    if (n == 0 && (kind == 3 || kind == 4)) kind = 5;
    switch (kind) {
      case 0:
        return {fmt::format("!= {}", n), equal, true};
      case 1:
        return {fmt::format("> {}", n), [n](uint32_t x) { return x > n; }};
      case 2:
        return {fmt::format("<= {}", n), [n](uint32_t x) { return x > n; }, true};
      // Of two ports, `<` wants both and `>=` one: as in Click, they are the negation of each other.
      case 3:
        return {fmt::format("< {}", n), [n](uint32_t x) { return x >= n; }, true};
      case 4:
        return {fmt::format(">= {}", n), [n](uint32_t x) { return x >= n; }};
      case 5:
        return {fmt::format("== {}", n), equal};
      case 6:
        return {fmt::format("{}", n), equal};
      default: {
        const uint32_t last = std::min(n + static_cast<uint32_t>(pick(3) * pick(30)), bound);
        const bool negated = pick(2) == 0;
        return {fmt::format("{}{}-{}", negated ? "!= " : "", n, last),
                [n, last](uint32_t x) { return x >= n && x <= last; }, negated};
      }
    }
  }

  /// A comparison: bytes that are not there make it fail, negated or not.
  static bool compare(const Relation& relation, std::optional<uint32_t> value, uint32_t mask) {
    return value && relation.holds(*value & mask) != relation.negated;
  }
  static bool protocol_is(const IpPacket& p, int protocol) {
    const auto value = p.network(9, 1);
    return value && (static_cast<int>(*value) == protocol || (protocol == 256 && (*value == 6 || *value == 17)));
  }
  static bool first_fragment(const IpPacket& p) {
    const auto value = p.network(6, 2);
    return value && (*value & 0x1fff) == 0;
  }

  /// `src`, `dst` and so on, over values of the two ends.
  struct Ends {
    const char* text;
    bool source, destination, both;
  };
  Ends ends() {
    return one_of<Ends>({{"src ", true, false, false},
                         {"dst ", false, true, false},
                         {"", true, true, false},
                         {"src or dst ", true, true, false},
                         {"src and dst ", true, true, true}});
  }
  template <typename Holds>
  static bool compare_ends(const Ends& ends, std::optional<uint32_t> source, std::optional<uint32_t> destination,
                           bool negated, Holds holds) {
    // A missing value counts as equal where inequality is asked for.
    auto test = [&](std::optional<uint32_t> value) { return value ? holds(*value) : negated; };
    bool result = ends.source ? test(source) : test(destination);
    if (ends.source && ends.destination) {
      result = ends.both ? result && test(destination) : result || test(destination);
    }
    return result != negated;
  }

  Formula primitive() {
    switch (pick(14)) {
      case 0:
      case 1:
        return host();
      case 2:
      case 3:
      case 4:
        return port();
      case 5:
        return header_field();
      case 6:
        return transport_field();
      case 7: {
        const auto [name, number] = one_of<std::pair<const char*, int>>(
            {{"tcp", 6}, {"udp", 17}, {"icmp", 1}, {"tcpudp", 256}, {"ip proto 50", 50}});
        return {name, [number = number](const IpPacket& p) { return protocol_is(p, number); }};
      }
      case 8: {
        const bool fragment = pick(2) == 0;
        return {fragment ? "ip frag" : "unfrag", [fragment](const IpPacket& p) {
                  const auto value = p.network(6, 2);
                  return value && ((*value & 0x3fff) != 0) == fragment;
                }};
      }
      case 9: {
        const auto [name, bits] =
            one_of<std::pair<const char*, uint32_t>>({{"tcp opt syn", 2}, {"tcp opt ack", 16}, {"tcp opt fin", 1}});
        return {name, [bits = bits](const IpPacket& p) {
                  const auto flags = p.transport_field(13, 1);
                  return protocol_is(p, 6) && first_fragment(p) && flags && (*flags & bits) == bits;
                }};
      }
      case 10: {
        const bool value = pick(2) == 0;
        return {value ? "true" : "false", [value](const IpPacket&) { return value; }};
      }
      case 11:
        return ether();
      default: {
        const Relation r = relation({0, 6, 17, 50}, 255);
        return {"ip proto " + r.text, [r](const IpPacket& p) { return compare(r, p.network(9, 1), 0xff); }};
      }
    }
  }

  Formula host() {
    const Ends e = ends();
    // A bare address would take its qualifiers from the primitive before.
    const auto [name, number, mask] =
        one_of<std::tuple<const char*, uint32_t, uint32_t>>({{"host 10.0.0.1", 0x0a000001, 0xffffffff},
                                                             {"host 10.0.0.2", 0x0a000002, 0xffffffff},
                                                             {"net 10.0.0.0/8", 0x0a000000, 0xff000000},
                                                             {"net 10.0.0.128/25", 0x0a000080, 0xffffff80},
                                                             {"net 192.0.0.0 mask 255.0.0.0", 0xc0000000, 0xff000000}});
    std::string text = name;
    const bool negated = pick(4) == 0;
    if (negated) text.insert(text.find(' ') + 1, "!= ");
    return {e.text + text, [=, number = number, mask = mask](const IpPacket& p) {
              return compare_ends(e, p.network(12, 4), p.network(16, 4), negated,
                                  [&](uint32_t x) { return (x & mask) == number; });
            }};
  }

  Formula port() {
    const Ends e = ends();
    const auto [name, protocol] = one_of<std::pair<const char*, int>>({{"tcp ", 6}, {"udp ", 17}, {"", 256}});
    const Relation r = relation({1, 53, 80, 1023, 1024, 2047, 65534}, 65535);
    return {fmt::format("{}{}port {}", e.text, name, r.text), [=, protocol = protocol](const IpPacket& p) {
              // All of a word's bytes are there or none is.
              return protocol_is(p, protocol) && first_fragment(p) &&
                     compare_ends(e, p.transport_field(0, 2), p.transport_field(2, 2), r.negated, r.holds);
            }};
  }

  Formula header_field() {
    struct Field {
      const char* name;
      size_t at;
      int size, shift;
      uint32_t mask;
    };
    const Field f = one_of<Field>({{"ip vers", 0, 1, 4, 15},
                                   {"ip hl", 0, 1, 0, 15},
                                   {"ip tos", 1, 1, 0, 255},
                                   {"ip dscp", 1, 1, 2, 63},
                                   {"ip ttl", 8, 1, 0, 255},
                                   {"ip id", 4, 2, 0, 65535},
                                   {"ip[2:2]", 2, 2, 0, 65535},
                                   {"ip[8]", 8, 1, 0, 255},
                                   {"ip tos & 12", 1, 1, 0, 12}});
    // Numbers with bits outside the mask are left to another test.
    const bool whole = f.mask >= 200;
    const Relation r = whole ? relation({0, 1, 4, 5, 12, 14, 64, 200}, f.mask) : relation({0, 4}, f.mask, false);
    return {fmt::format("{} {}", f.name, r.text), [=](const IpPacket& p) {
              const auto value = p.network(f.at, f.size);
              return compare(r, value ? std::optional(*value >> f.shift) : std::nullopt, f.mask);
            }};
  }

  Formula transport_field() {
    struct Field {
      const char* name;
      int protocol;
      size_t at;
      int size;
    };
    const Field f = one_of<Field>({{"icmp type", 1, 0, 1},
                                   {"tcp win", 6, 14, 2},
                                   {"udp[4:2]", 17, 4, 2},
                                   {"tcp[4:4]", 6, 4, 4},
                                   {"transp[1]", 0, 1, 1}});
    const Relation r = relation({0, 1, 80, 254}, 255);
    return {fmt::format("{} {}", f.name, r.text), [=](const IpPacket& p) {
              return (f.protocol == 0 || protocol_is(p, f.protocol)) && first_fragment(p) &&
                     compare(r, p.transport_field(f.at, f.size), UINT32_MAX);
            }};
  }

  Formula ether() {
    const Ends e = ends();
    const int last = one_of({5, 6});
    return {fmt::format("{}ether host 0:1:2:3:4:{}", e.text, last), [=](const IpPacket& p) {
              return compare_ends(e, p.field(11, 1), p.field(5, 1), false,
                                  [&](uint32_t x) { return static_cast<int>(x) == last; });
            }};
  }

  std::mt19937 random_;
};

void compare_rounds(unsigned seed, int rounds, int max_rules, int depth) {
  Generator generator(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::string> rules;
    std::vector<std::pair<int, Formula>> meaning;
    for (int count = 1 + generator.pick(max_rules); count > 0; --count) {
      const int output = generator.pick(4) - 1;
      Formula formula = generator.formula(generator.pick(depth + 1));
      rules.push_back(fmt::format("{} {}", output < 0 ? "deny" : std::to_string(output), formula.text));
      meaning.emplace_back(output, std::move(formula));
    }
    Errors errors;
    DecisionProgram program;
    ASSERT_TRUE(compile_ip_filter(rules, 3, nullptr, errors, program).ok()) << errors.str();
    for (int i = 0; i < 60; ++i) {
      const IpPacket packet = generator.packet();
      int expected = DecisionView::kDrop;
      for (const auto& [output, formula] : meaning) {
        if (!formula.holds(packet)) continue;
        expected = output;
        break;
      }
      const CheckedWords words = packet.words();
      ASSERT_EQ(program.view().match(words), expected)
          << fmt::format("{}\n{}packet {:02x}\ntransport at {}", fmt::join(rules, ",\n"), program.text(),
                         fmt::join(packet.bytes, " "), packet.transport);
      ASSERT_FALSE(words.outside());
    }
  }
}

TEST(IpFilterRandom, PrimitivesMeanWhatTheySay) { compare_rounds(1, 4000, 1, 0); }
TEST(IpFilterRandom, ExpressionsMeanWhatTheySay) { compare_rounds(2, 3000, 1, 3); }
TEST(IpFilterRandom, FirstMatchingRuleWins) { compare_rounds(3, 2000, 8, 2); }
TEST(IpFilterRandom, LongListsKeepTheirMeaning) { compare_rounds(4, 30, 60, 2); }

}  // namespace
}  // namespace headrace
