#pragma once
/// \file
/// Shaders for tests. Their text is made known like that of built-in ones, so that programs can contain them.

#include <vector>

#include "headrace/device/embedded.hh"
#include "headrace/shader.hh"

/// Defines shader `Name` and embeds its definition.
#define HEADRACE_TEST_SHADER(Name, ...)                                                                  \
  namespace headrace {                                                                                   \
  __VA_ARGS__                                                                                            \
  HEADRACE_ELEMENT(Name)                                                                                 \
  inline const EmbeddedHeaders kEmbed##Name{                                                             \
      {{"tests/" #Name ".hh",                                                                            \
        "#pragma once\n#include \"headrace/shader.hh\"\nnamespace headrace {\n" #__VA_ARGS__ "\n}\n"}}}; \
  }

// The first byte of a packet chooses: 0 to 2 an output, 0xfd a port that does not exist, 0xfe the host body, which
// sends a copy by output 2 and the packet by output 1; anything else is dropped.
HEADRACE_TEST_SHADER(
    OffloadFan, struct OffloadFan
    : Shader<OffloadFan> {
      static constexpr Ports kPorts{"1/3"};
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 1>{}}, ReadWrite{anno::paint});
      enum { kSeen, kDropped };
      static constexpr auto kCounters = counters(headrace::counter("seen"), reason("dropped by the fan"));
      HEADRACE_SHADER Next shade(auto& p) const {
        const uint8_t way = p.load8(Anchor::kData, 0);
        p.count(kSeen);
        p.set(anno::paint, static_cast<uint8_t>(p.get(anno::paint) + 1));
        if (way < 3) return way;
        if (way == 0xfd) return 100;
        if (way == 0xfe) return kEscape;
        p.count(kDropped);
        return kDrop;
      }
      Next escape(Packet * &p, Emitter & emit) const;
    };)

// Reads 4 bytes at OFFSET, of which only the first 16 are said to be needed, and paints the packet with one of them.
HEADRACE_TEST_SHADER(
    OffloadFar, struct OffloadFar
    : Shader<OffloadFar> {
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 1500>{}}, Write{anno::paint});
      int32_t offset = 0;
      Status configure(Args & args);
      Extent extent(Anchor) const { return {0, 16}; }
      HEADRACE_SHADER Next shade(auto& p) const {
        const uint32_t value = p.load32(Anchor::kData, offset);
        p.set(anno::paint, static_cast<uint8_t>(value ^ value >> 8));
        return 0;
      }
    };)

// Paints a packet before it knows whether the bytes that it wants have travelled: a mistake.
HEADRACE_TEST_SHADER(
    OffloadRash, struct OffloadRash
    : Shader<OffloadRash> {
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 1500>{}}, ReadWrite{anno::paint});
      int32_t offset = 0;
      Status configure(Args & args);
      Extent extent(Anchor) const { return {0, 16}; }
      HEADRACE_SHADER Next shade(auto& p) const {
        p.set(anno::paint, static_cast<uint8_t>(p.get(anno::paint) + 1));
        return p.load8(Anchor::kData, offset) == 0xff ? kDrop : 0;
      }
    };)

// Looks at a byte that it has not declared: a mistake.
HEADRACE_TEST_SHADER(
    OffloadSly, struct OffloadSly
    : Shader<OffloadSly> {
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 16>{}});
      int32_t offset = 0;
      Status configure(Args & args);
      HEADRACE_SHADER Next shade(auto& p) const { return p.load8(Anchor::kData, offset) == 0xff ? kDrop : 0; }
    };)

// Says that it sets the paint, and does so only for packets whose first byte is not 0: a mistake.
HEADRACE_TEST_SHADER(
    OffloadForgetful, struct OffloadForgetful
    : Shader<OffloadForgetful> {
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 1>{}}, Set{anno::paint});
      HEADRACE_SHADER Next shade(auto& p) const {
        if (p.load8(Anchor::kData, 0) != 0) p.set(anno::paint, 7);
        return 0;
      }
    };)

// Finds the first VALUE in the payload: its place goes to an annotation, and the packet to output 1. Counts payloads
// and their bytes' sum, so that a byte too many or too few is seen.
HEADRACE_TEST_SHADER(
    OffloadScan, struct OffloadScan
    : Shader<OffloadScan> {
      static constexpr Ports kPorts{"1/2"};
      static constexpr auto kRegions = regions(Write{anno::pattern}, ReadWrite{anno::paint});
      enum { kScanned, kSum };
      static constexpr auto kCounters = counters(headrace::counter("scanned"), headrace::counter("sum"));
      struct Found {
        uint32_t first;
        uint32_t sum;
      };
      uint8_t value = 0;
      Status configure(Args & args);
      template <typename Team>
      HEADRACE_SHADER Found scan(const Team& team, const PayloadBytes& payload) const {
        struct Mine {
          uint32_t first;
          uint32_t sum;
        };
        auto mine = team.map([&](uint32_t lane) {
          const LanePart part = lane_part(lane, Team::size(), payload.length);
          Mine m{~0u, 0};
          for (uint32_t i = part.begin; i < part.end; ++i) {
            m.sum += payload[i] + (payload.word(i) >> 24);
            if (payload[i] == value && m.first == ~0u) m.first = i;
          }
          return m;
        });
        typename Team::template Lanes<uint32_t> firsts = team.map([](uint32_t) { return 0u; });
        typename Team::template Lanes<uint32_t> sums = firsts;
        team.each(mine, [&](uint32_t lane, const Mine& m) {
          Team::own(firsts, lane) = m.first;
          Team::own(sums, lane) = m.sum;
        });
        return {team.min(firsts), team.sum(sums)};
      }
      HEADRACE_SHADER Next shade(auto& p, const Found& found) const {
        p.count(kScanned);
        p.count(kSum, found.sum);
        p.set(anno::paint, static_cast<uint8_t>(p.get(anno::paint) + 1));
        if (found.first == ~0u) return 0;
        p.set(anno::pattern, found.first);
        return 1;
      }
    };)

// Appends a hash of a packet's bytes and its paint, each lane for a packet of its own. Packets whose first byte is 5 modulo
// 8 stay as they are.
HEADRACE_TEST_SHADER(
    OffloadHash, struct OffloadHash
    : Shader<OffloadHash> {
      static constexpr auto kRegions = regions(Read{anno::paint}, Write{anno::pattern});
      static constexpr bool kSerial = true;
      struct About {
        uint8_t paint;
      };
      uint32_t key = 0;
      Status configure(Args & args);
      void move(Offsets&) const {}
      HEADRACE_SHADER About about(const auto& p) const { return {p.get(anno::paint)}; }
      template <typename Team>
      HEADRACE_SHADER uint32_t rewrite(const Team&, PacketEdit& edit, const About& about) const {
        static_assert(Team::size() == 1);
        uint32_t hash = key + about.paint;
        const uint32_t length = edit.length();
        if (length == 0 || edit[0] % 8 == 5) return 0;
        for (uint32_t i = 0; i < length; ++i) hash = (hash ^ edit[i]) * 0x01000193;
        if (!edit.append(4)) return 1;
        for (uint32_t i = 0; i < 4; ++i) edit.write()[length + i] = static_cast<uint8_t>(hash >> 8 * i);
        return hash;
      }
      HEADRACE_SHADER Next shade(auto& p, uint32_t hash) const {
        p.set(anno::pattern, hash);
        return 0;
      }
    };)

// Forgets an association, whose number is another one in each run.
HEADRACE_TEST_SHADER(
    OffloadForget, struct OffloadForget
    : Shader<OffloadForget> {
      static constexpr auto kRegions = regions(Set{anno::esp_association});
      HEADRACE_SHADER Next shade(auto& p) const {
        p.set(anno::esp_association, 0u);
        return 0;
      }
    };)

// Changes all bytes of a packet, the places of which it counts, and adds FRONT and BACK bytes made of their sum. Packets
// whose first byte is 7 modulo 8 go to output 1, as they are; those that are 6 modulo 8 get shorter instead. What grows
// too long is dropped.
HEADRACE_TEST_SHADER(
    OffloadEcho, struct OffloadEcho
    : Shader<OffloadEcho> {
      static constexpr Ports kPorts{"1/1-2"};
      static constexpr auto kRegions = regions(ReadWrite{anno::paint}, Write{anno::pattern});
      enum { kSum, kTooLong };
      static constexpr auto kCounters = counters(headrace::counter("sum"), reason("too long"));
      enum class Way : uint8_t { kOut, kAsIs, kTooLong };
      struct Found {
        uint32_t sum;
        Way way;
      };
      uint32_t key = 0;
      uint32_t front = 0;
      uint32_t back = 0;
      Status configure(Args & args);
      void move(Offsets & at) const { at.data -= static_cast<int>(front); }
      template <typename Team>
      HEADRACE_SHADER Found rewrite(const Team& team, PacketEdit& edit) const {
        const uint32_t length = edit.length();
        if (length == 0 || edit[0] % 8 == 7) return {0, Way::kAsIs};
        if (edit[0] % 8 == 6) {
          edit.take(edit.length() / 4);
          edit.pull(edit.length() / 4);
          return {edit.length(), Way::kOut};
        }
        if (!edit.append(back)) return {0, Way::kTooLong};
        if (!edit.prepend(front)) return {0, Way::kTooLong};
        uint8_t* const at = edit.write();
        const auto sums = team.map([&](uint32_t lane) {
          uint32_t sum = 0;
          for (uint32_t i = lane; i < length; i += Team::size()) {
            const uint8_t byte = static_cast<uint8_t>(at[front + i] ^ (key + i));
            at[front + i] = byte;
            sum += byte * (i + 1);
          }
          return sum;
        });
        const uint32_t sum = team.sum(sums);
        team.run([&](uint32_t lane) {
          for (uint32_t i = lane; i < front; i += Team::size()) at[i] = static_cast<uint8_t>(sum >> i % 4 * 8);
          for (uint32_t i = lane; i < back; i += Team::size())
            at[front + length + i] = static_cast<uint8_t>((sum >> i % 4 * 8) + i);
        });
        return {sum, Way::kOut};
      }
      HEADRACE_SHADER Next shade(auto& p, const Found& found) const {
        if (found.way == Way::kAsIs) return 1;
        if (found.way == Way::kTooLong) {
          p.count(kTooLong);
          return kDrop;
        }
        p.count(kSum, found.sum);
        p.set(anno::pattern, found.sum);
        p.set(anno::paint, static_cast<uint8_t>(p.get(anno::paint) + 1));
        return 0;
      }
    };)

namespace headrace {

/// Tables that handler `set` changes together.
struct OffloadTwinOwner {
  static constexpr size_t kSize = 64;
  uint32_t first[kSize] = {};
  uint32_t second[kSize] = {};
  const uint32_t* tables[3] = {first, first, second};
};

}  // namespace headrace

// Paints packets with the first number of one table. The tables' addresses lie in an object, and half of the first table
// is mirrored a second time. Packets for which the tables differ go to output 1.
HEADRACE_TEST_SHADER(
    OffloadTwins, struct OffloadTwinOwner; struct OffloadTwins
    : Shader<OffloadTwins> {
      static constexpr Ports kPorts{"1/1-2"};
      static constexpr auto kRegions = regions(Write{anno::paint});
      using Owner = OffloadTwinOwner;
      const uint32_t* const* tables = nullptr;
      void refresh(const Owner& owner);
      void mirror(Mirror & mirror, const Owner& owner);
      void add_handlers(Handlers & handlers, Owner & owner);
      HEADRACE_SHADER Next shade(auto& p) const {
        const uint32_t* part = tables[0];
        const uint32_t* first = tables[1];
        const uint32_t* second = tables[2];
        p.set(anno::paint, static_cast<uint8_t>(first[0]));
        for (int i = 0; i < 64; ++i)
          if (first[i] != second[i] || part[i / 2] != second[i]) return 1;
        return 0;
      }
    };)

namespace headrace {

/// What OffloadLedger's hook has seen on each worker.
struct OffloadLedgerOwner {
  static constexpr int kEntries = 4, kFlows = 4096;
  struct Book {
    uint64_t packets[kEntries] = {}, bytes[kEntries] = {};
    uint64_t disorder = 0;  // packets that came after a later one of their flow, or twice
    std::vector<uint32_t> next = std::vector<uint32_t>(kFlows);
  };
  PerThread<Book> books;
};

}  // namespace headrace

// Enters each packet, with its length, under the entry that byte OFFSET chooses.
HEADRACE_TEST_SHADER(
    OffloadLedger, struct OffloadLedgerOwner; struct OffloadLedger
    : Shader<OffloadLedger> {
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 32>{}}, Read{meta::length});
      struct Result {
        uint16_t entry;
        uint32_t length;
      };
      using Owner = OffloadLedgerOwner;
      int32_t offset = 0;
      Status configure(Args & args);
      void add_handlers(Handlers & handlers, Owner & owner);
      void release(Packet* const* packets, Results<Result> results, int n, Owner& owner) const;
      HEADRACE_SHADER Next shade(auto& p) const {
        const uint8_t entry = p.load8(Anchor::kData, offset);
        p.set_result({static_cast<uint16_t>(entry & 3), p.length()});
        return entry == 0xff ? kDrop : 0;
      }
    };)

// Its hook throws away packets whose byte OFFSET is divisible by DIVISOR.
HEADRACE_TEST_SHADER(
    OffloadBouncer, struct OffloadLedgerOwner; struct OffloadBouncer
    : Shader<OffloadBouncer> {
      static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 32>{}}, Read{meta::length});
      enum { kBounced };
      static constexpr auto kCounters = counters(reason("bounced"));
      struct Result {
        uint32_t byte;
      };
      using Owner = OffloadLedgerOwner;
      int32_t offset = 0;
      int32_t divisor = 3;
      Status configure(Args & args);
      void release(Packet * *packets, Results<Result> results, int n, Owner&, ShaderElementBase& element) const;
      HEADRACE_SHADER Next shade(auto& p) const {
        p.set_result({p.load8(Anchor::kData, offset)});
        return 0;
      }
    };)
