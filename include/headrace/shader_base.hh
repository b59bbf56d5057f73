#pragma once
/// \file
/// What a shader consists of, without the host's part. Read by the host compiler and by NVRTC.

#include "headrace/fields.hh"
#include "headrace/results.hh"
#include "headrace/shader_types.hh"

namespace headrace {

/// The output port chosen for a slot, or one of the constants below.
using Next = uint16_t;
/// Drop the packet and count it.
inline constexpr Next kDrop = 0xffff;
/// Let the element's host body, `Next escape(Packet*&, Emitter&)`, decide.
inline constexpr Next kEscape = 0xfffe;
/// Returned only by a host body: the packet has been dealt with.
inline constexpr Next kConsumed = 0xfffd;
/// Numbers of output ports are less than this.
inline constexpr Next kMaxPort = 0xfff0;

/// "inputs/outputs" as Click writes them: "1/1", "1/1-2", "1/-", "1-/=".
struct Ports {
  const char* text;
};

/// How ports work: 'h' push, 'l' pull, 'a' agnostic; the last letter of a side repeats. "h/l" is a queue.
struct Processing {
  const char* text;
};
/// Which outputs packets can reach from which inputs: Click's flow codes. "x/x" all, "x/y" none, "#/#" port by port.
struct Flow {
  const char* text;
};

/// An event that a shader counts with `p.count`. Reasons tell why packets left by an error output, or were dropped
/// because that output is not connected.
struct CounterInfo {
  const char* name;
  bool reason;
};
HEADRACE_SHADER constexpr CounterInfo counter(const char* name) { return {name, false}; }
HEADRACE_SHADER constexpr CounterInfo reason(const char* name) { return {name, true}; }

template <int N>
struct CounterList {
  static constexpr int kCount = N;
  CounterInfo info[N == 0 ? 1 : N];
};
/// `static constexpr auto kCounters = counters(reason("expired"));` The argument of `count` is an index into it.
template <typename... C>
HEADRACE_SHADER constexpr CounterList<static_cast<int>(sizeof...(C))> counters(C... c) {
  return {{c...}};
}

/// Where headers lie, in bytes relative to where the packet began when it came to a plan. A shader that moves headers
/// tells how in `void move(Offsets& at) const`. This determines only which bytes are sent to a device: a packet for
/// which the prediction is wrong is processed on the host.
struct Offsets {
  static constexpr int kUnknown = -0x3fffffff;
  int data = 0;
  int mac = kUnknown;
  int network = kUnknown;
  int transport = kUnknown;
  bool operator==(const Offsets&) const = default;
};

/// Bytes [first, last) from an anchor. `Extent extent(Anchor) const` returns the part of the declared spans that is
/// used, and `usually_written(Anchor)`, which may be smaller, the part in which packets usually change: a packet that
/// changes elsewhere comes back from a device as a whole row, apart from the others.
struct Extent {
  int first;
  int last;
};

class Args;
class Mirror;
class Element;
class Emitter;
template <typename S>
class ShaderElement;
class Errors;
class ShaderElementBase;
class Handlers;
class Packet;
class Status;
struct ShaderCode;

/// Base of every shader. The defaults suit an element with one input, one output and no counters.
template <typename Self>
struct Shader {
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"a/ah"};
  static constexpr Flow kFlow{"x/x"};
  static constexpr auto kCounters = counters();
  /// The shader itself checks whether the headers that its regions name are there.
  static constexpr bool kChecksHeaders = false;
  /// The shader has no state but its owner. A new configuration takes over the owner as it is (including routes that
  /// were added) if the element's arguments are the same and `Owner::current()` holds.
  static constexpr bool kKeepsOwner = false;
  /// Bytes of a device's shared memory that the shader's `prepare_block` fills, a multiple of 16. In a program only one
  /// shader can have any.
  static constexpr uint32_t kBlockBytes = 0;
  /// A number that `configure` sets and nothing changes afterwards: `static constexpr auto kFixed = &Self::width`. Programs
  /// for devices are made for its value: what they would do for others costs them neither time nor registers.
  static constexpr auto kFixed = nullptr;
  /// `rewrite` cannot be divided among lanes.
  static constexpr bool kSerial = false;
  /// A failed configure leaves the owner unchanged, so the handler `config` may call configure.
  static constexpr bool kLiveReconfigure = false;
};

/// For `refresh`: stores only what is new. A compiled chain reads a shader as a whole right afterwards, and would have to
/// wait for a store that has just been made to a part of it.
template <typename T>
inline void renew(T& member, const T& value) {
  if (!(member == value)) member = value;
}

/// The shader as the compiler sees it when it knows the value of S::kFixed.
template <auto kValue, typename S>
HEADRACE_SHADER S with_fixed(const S& shader) {
  S known = shader;
  known.*S::kFixed = kValue;
  return known;
}

namespace detail {

/// `S::Result`, and whether there is one.
template <typename S>
struct ResultOf {
  static constexpr bool kExists = false;
  struct Type {};
};
template <typename S>
requires requires { typename S::Result; }
struct ResultOf<S> {
  static constexpr bool kExists = true;
  using Type = typename S::Result;
};

/// What a shader's declarations name, for the checks before the shader sees a packet.
template <typename S, Anchor A>
struct Uses {
  /// The declared fields of this header lie in [first, last). Spans do not count: their offsets are known only at run
  /// time.
  int first = 0, last = 0;
  bool any = false;

  HEADRACE_SHADER constexpr Uses() { add(S::kRegions); }

 private:
  template <typename... D>
  HEADRACE_SHADER constexpr void add(const Regions<D...>&) {
    (add_one<D>(), ...);
  }
  template <typename D>
  HEADRACE_SHADER constexpr void add_one() {
    using W = typename D::Where;
    if constexpr (W::kAnchor == A) {
      if constexpr (requires { typename W::Value; }) {
        if (first == last || W::kOffset < first) first = W::kOffset;
        if (W::kOffset + W::kSize > last) last = W::kOffset + W::kSize;
      }
      any = true;
    }
  }
};

template <typename S>
inline constexpr bool kSetsNetwork = S::kRegions.covers(Anchor::kMeta, decltype(meta::network_header)::kOffset, 0,
                                                        true);
template <typename S>
inline constexpr bool kSetsMac = S::kRegions.covers(Anchor::kMeta, decltype(meta::mac_header)::kOffset, 0, true);
template <typename S>
inline constexpr bool kMovesData = S::kRegions.covers(Anchor::kMeta, decltype(meta::data)::kOffset, 0, true);
template <typename S>
inline constexpr bool kSetsLength = S::kRegions.covers(Anchor::kMeta, decltype(meta::length)::kOffset, 0, true);
template <typename S>
inline constexpr bool kSetsType = S::kRegions.covers(Anchor::kMeta, decltype(meta::packet_type)::kOffset, 0, true);

/// True if the shader's functions for one packet use its bytes, or change its length.
template <typename S>
inline constexpr bool kUsesBytes = Uses<S, Anchor::kMac>().any || Uses<S, Anchor::kNetwork>().any
                                   || Uses<S, Anchor::kTransport>().any || Uses<S, Anchor::kData>().any
                                   || kMovesData<S> || kSetsLength<S>;

/// False if the packet, or the header of its row, lacks a header that the shader's regions name. This happens if no
/// element of the graph has marked that header.
template <typename S>
HEADRACE_SHADER bool has_headers(const auto& p) {
  constexpr Uses<S, Anchor::kMac> mac;
  constexpr Uses<S, Anchor::kNetwork> network;
  constexpr Uses<S, Anchor::kTransport> transport;
  if constexpr (!S::kChecksHeaders) {
    if (mac.any && !kSetsMac<S> && !p.has_mac_header()) return false;
    if (network.any && !kSetsNetwork<S> && !p.has_network_header()) return false;
    if (transport.any && !kSetsNetwork<S> && !p.has_transport_header()) return false;
  }
  return true;
}

}  // namespace detail

}  // namespace headrace
