#pragma once
/// \file
/// The shader that IPFilter and IPClassifier share: a decision program over the headers of IP packets.

#include <headrace/shader.hh>

#include "tables/decision/decision_view.hh"

namespace headrace {

class DecisionProgram;

/// Bytes of each header that a device is given. Programs that test more run on the host.
inline constexpr uint32_t kIpProgramBytes[decision_section::kCount] = {14, 60, 20};

/// Reads the sections of an IP program from a packet view.
template <typename View>
struct IpProgramWords {
  const View& packet;

  HEADRACE_SHADER static Anchor anchor(uint32_t section) {
    return section == decision_section::kTransport ? Anchor::kTransport
           : section == decision_section::kNetwork ? Anchor::kNetwork
                                                   : Anchor::kMac;
  }
  /// A header that is not marked, or that begins behind the packet's end, has no bytes.
  HEADRACE_SHADER uint32_t length(uint32_t section) const {
    const int length = packet.length_from(anchor(section));
    return length > 0 ? static_cast<uint32_t>(length) : 0;
  }
  HEADRACE_SHADER uint32_t load(uint32_t section, uint32_t offset) const {
    return packet.load32_raw(anchor(section), static_cast<int>(offset));
  }
  HEADRACE_SHADER uint8_t byte(uint32_t section, uint32_t offset) const {
    return packet.load8(anchor(section), static_cast<int>(offset));
  }
};

template <typename Self>
struct IpProgramShader : Shader<Self> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kMac, 0, kIpProgramBytes[decision_section::kMac]>{}},
              Read{Span<Anchor::kNetwork, 0, kIpProgramBytes[decision_section::kNetwork]>{}},
              Read{Span<Anchor::kTransport, 0, kIpProgramBytes[decision_section::kTransport]>{}}, Read{meta::length});
  /// The MAC header may be missing: tests of it fail then.
  static constexpr bool kChecksHeaders = true;
  enum { kNoMatch, kNoHeader };
  static constexpr auto kCounters = counters(reason("no pattern matches"), reason("no network header"));
  using Owner = DecisionProgram;
  static constexpr bool kLiveReconfigure = true;

  DecisionView program;

  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  Extent extent(Anchor anchor) const {
    for (uint32_t section = 0; section < decision_section::kCount; ++section)
      if (IpProgramWords<Packet>::anchor(section) == anchor) return {0, static_cast<int>(program.enough[section])};
    return {0, 0};
  }

  HEADRACE_SHADER Next shade(auto& p) const { return shade_by(program, p); }
  ShaderCode specialize(const Owner& owner) const;
  Next escape(Packet*& p, Emitter& emit, Owner& owner);

 protected:
  template <typename Program, typename View>
  HEADRACE_SHADER static Next shade_by(const Program& decide, View& p) {
    if (!p.has_network_header()) {
      p.count(kNoHeader);
      return kDrop;
    }
    for (uint32_t section = 0; section < decision_section::kCount; ++section) {
      if (decide.enough[section] > kIpProgramBytes[section]) return kEscape;
    }
    const int output = decide.match(IpProgramWords<View>{p});
    if (output >= 0) return static_cast<Next>(output);
    p.count(kNoMatch);
    return kDrop;
  }
};

}  // namespace headrace
