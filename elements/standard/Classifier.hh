#pragma once
#include <headrace/shader.hh>

#include "tables/decision/decision_view.hh"

namespace headrace {

class DecisionProgram;

/// Chooses the output by bytes of the packet.
///
///     Classifier(PATTERN1, PATTERN2, ...)
///
/// Input: any packets. One pattern for each output; a packet leaves by the output of the first pattern that matches it,
/// and is dropped and counted if none matches.
///
/// A pattern is `-`, which matches every packet, or clauses separated by spaces, all of which must hold: `OFFSET/VALUE`
/// or `OFFSET/VALUE%MASK`. OFFSET counts bytes from the beginning of the packet, in decimal. VALUE and MASK are bytes
/// in hexadecimal, of the same length; in VALUE, `?` stands for any digit. `!` before a clause negates it. A clause
/// about bytes beyond the packet's end does not hold.
///
///     Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -)
///
/// sends ARP requests, ARP replies, IP packets and the rest different ways. The element warns about outputs that no
/// packet can reach.
///
/// Handlers: `program` (r) the compiled tests; `config` (rw).
struct Classifier : Shader<Classifier> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  /// The bytes that a device is given. Programs that test more run on the host.
  static constexpr int kBytes = 64;
  static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, kBytes>{}}, Read{meta::length});
  enum { kNoMatch };
  static constexpr auto kCounters = counters(reason("no pattern matches"));
  using Owner = DecisionProgram;
  static constexpr bool kLiveReconfigure = true;

  DecisionView program;

  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner);
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  Extent extent(Anchor) const { return {0, static_cast<int>(program.enough[decision_section::kFrame])}; }

  template <typename View>
  struct Words {
    const View& packet;
    HEADRACE_SHADER uint32_t length(uint32_t section) const {
      return section == decision_section::kFrame ? packet.length() : 0;
    }
    HEADRACE_SHADER uint32_t load(uint32_t, uint32_t offset) const {
      return packet.load32_raw(Anchor::kData, static_cast<int>(offset));
    }
    HEADRACE_SHADER uint8_t byte(uint32_t, uint32_t offset) const {
      return packet.load8(Anchor::kData, static_cast<int>(offset));
    }
  };

  HEADRACE_SHADER Next shade(auto& p) const { return shade_by(program, p); }
  ShaderCode specialize(const Owner& owner) const;
  Next escape(Packet*& p, Emitter& emit, Owner& owner);

 protected:
  template <typename Program, typename View>
  HEADRACE_SHADER static Next shade_by(const Program& decide, View& p) {
    if (decide.enough[decision_section::kFrame] > kBytes) return kEscape;
    const int output = decide.match(Words<View>{p});
    if (output >= 0) return static_cast<Next>(output);
    p.count(kNoMatch);
    return kDrop;
  }
};

}  // namespace headrace
