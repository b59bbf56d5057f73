#pragma once
/// \file
/// What a shader is made of, without the host's part: read by the host compiler and by NVRTC.

#include "headrace/fields.hh"
#include "headrace/shader_types.hh"

namespace headrace {

/// The output port chosen for a slot, or one of the constants below.
using Next = uint16_t;
/// Drop the packet and count it.
inline constexpr Next kDrop = 0xffff;
/// Let the element's host body, `Next escape(Packet*&, Emitter&)`, decide.
inline constexpr Next kEscape = 0xfffe;
/// Only from a host body: the packet has been taken care of.
inline constexpr Next kConsumed = 0xfffd;
/// Output ports are below this.
inline constexpr Next kMaxPort = 0xfff0;

/// "inputs/outputs" as Click writes them: "1/1", "1/1-2", "1/-", "1-/=".
struct Ports {
  const char* text;
};

/// How ports work: 'h' push, 'l' pull, 'a' agnostic; the last letter of a side repeats. "h/l" is a queue.
struct Processing {
  const char* text;
};
/// Which inputs packets can leave by which outputs: Click's flow codes. "x/x" all, "x/y" none, "#/#" port by port.
struct Flow {
  const char* text;
};

/// An event that a shader counts with PacketView::count. Those marked as reasons say why packets left by an error
/// output, or were dropped where that output is not connected.
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
/// `static constexpr auto kCounters = counters(reason("expired"));` An index into it is what `count` takes.
template <typename... C>
HEADRACE_SHADER constexpr CounterList<static_cast<int>(sizeof...(C))> counters(C... c) {
  return {{c...}};
}

/// Where headers lie, in bytes from where the packet began when it came to a plan; a shader that moves them says how in
/// `void move(Offsets& at) const`. It only decides which bytes travel to a device: what is not foreseen runs on the
/// host.
struct Offsets {
  static constexpr int kUnknown = -0x3fffffff;
  int data = 0;
  int mac = kUnknown;
  int network = kUnknown;
  int transport = kUnknown;
  bool operator==(const Offsets&) const = default;
};

/// Bytes [first, last) from an anchor; what `Extent extent(Anchor) const` answers about a shader's declared spans.
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

/// Base of every shader. The defaults suit an element with one input, one output and no counters.
template <typename Self>
struct Shader {
  static constexpr Ports kPorts{"1/1"};
  static constexpr auto kCounters = counters();
};

}  // namespace headrace
