#pragma once
/// \file
/// What a chain that was compiled for the CPU has in common with the router that loads it. Included by generated
/// programs, which have no part of the host but this.

#include <cstring>

#include "headrace/batch.hh"
#include "headrace/cpu_view.hh"
#include "headrace/held_packet.hh"

namespace headrace {

/// What a compiled chain works with on one worker. `leave` and `decide` are the router's. Both take packets of step
/// `step` of the chain's plan.
struct ChainRun {
  const uint8_t* images;      ///< the steps' shaders, where the plan says
  uint64_t* const* counters;  ///< the worker's, by step
  Batch* lists;               ///< packets on their way between the parts of a chain; all empty between two calls
  uint16_t* ways;             ///< Batch::kCapacity for each list: which of several equal ways its packets take
  uint16_t* held;             ///< by list: the step whose host body the packets wait for
  Batch* rare;                ///< packets that leave by an exit without a list
  uint16_t* rare_codes;       ///< their exits, as in the plan
  // For profiles only: where the chain is now (0: elsewhere), and by step, the packets and the batches so far.
  uint32_t* mark;
  uint64_t* passed;
  uint64_t* batches;
  void* host;
  /// Takes the packets of `batch` for which the chain chose `next`: an output, kDrop, or kEscape.
  void (*leave)(void* host, uint32_t step, Next next, Batch& batch);
  /// Takes `rare`, in groups with the same code, and empties it.
  void (*leave_rare)(void* host);
  /// Brings the step's shader up to date.
  void (*refresh)(void* host, uint32_t step);
  /// The step's own function for a batch.
  void (*decide)(void* host, uint32_t step, Batch& batch, Next* nexts);
};

/// Runs the packets that enter a chain at one of its entries.
using ChainFunction = void (*)(ChainRun& run, Batch& batch);

/// One chain of a program.
struct CompiledChain {
  const ChainFunction* entries;  ///< as in Plan::entries()
  uint32_t lists;
};

/// What a program exports by the name `headrace_compiled`.
struct CompiledProgram {
  const char* hash;              ///< of the source and all headers that it includes
  const CompiledChain* chains;   ///< by plan, made for what shaders hold when the router starts
  const CompiledChain* open;     ///< the same, where what handlers may change is read from ChainRun::images
  const char* instruction_sets;  ///< compiled::kInstructionSets
};

namespace compiled {

// A macro that the compiler does not know stands for itself.
#define HEADRACE_TEXT_OF(x) #x
#define HEADRACE_MAY_USE(flag, macro) flag "=" HEADRACE_TEXT_OF(macro) " "
/// What instructions the compiler of this program may use beyond those that all processors have: "avx2=1" if it may use
/// those that Linux knows by the flag avx2.
inline constexpr char kInstructionSets[] = HEADRACE_MAY_USE("pni", __SSE3__) HEADRACE_MAY_USE("ssse3", __SSSE3__)
    HEADRACE_MAY_USE("sse4_1", __SSE4_1__) HEADRACE_MAY_USE("sse4_2", __SSE4_2__) HEADRACE_MAY_USE("popcnt", __POPCNT__)
        HEADRACE_MAY_USE("abm", __LZCNT__) HEADRACE_MAY_USE("bmi1", __BMI__) HEADRACE_MAY_USE("bmi2", __BMI2__)
            HEADRACE_MAY_USE("movbe", __MOVBE__) HEADRACE_MAY_USE("adx", __ADX__) HEADRACE_MAY_USE("avx", __AVX__)
                HEADRACE_MAY_USE("avx2", __AVX2__) HEADRACE_MAY_USE("fma", __FMA__) HEADRACE_MAY_USE("f16c", __F16C__)
                    HEADRACE_MAY_USE("gfni", __GFNI__) HEADRACE_MAY_USE("avx_vnni", __AVXVNNI__) HEADRACE_MAY_USE(
                        "avx_ifma", __AVXIFMA__) HEADRACE_MAY_USE("avx512f", __AVX512F__)
                        HEADRACE_MAY_USE("avx512cd", __AVX512CD__) HEADRACE_MAY_USE("avx512er", __AVX512ER__)
                            HEADRACE_MAY_USE("avx512pf", __AVX512PF__) HEADRACE_MAY_USE("avx512bw", __AVX512BW__)
                                HEADRACE_MAY_USE("avx512dq", __AVX512DQ__) HEADRACE_MAY_USE("avx512vl", __AVX512VL__)
                                    HEADRACE_MAY_USE("avx512ifma", __AVX512IFMA__)
                                        HEADRACE_MAY_USE("avx512vbmi", __AVX512VBMI__)
                                            HEADRACE_MAY_USE("avx512_vbmi2", __AVX512VBMI2__)
                                                HEADRACE_MAY_USE("avx512_vnni", __AVX512VNNI__)
                                                    HEADRACE_MAY_USE("avx512_bitalg", __AVX512BITALG__)
                                                        HEADRACE_MAY_USE("avx512_vpopcntdq", __AVX512VPOPCNTDQ__)
                                                            HEADRACE_MAY_USE("avx512_fp16", __AVX512FP16__)
                                                                HEADRACE_MAY_USE("avx512_bf16", __AVX512BF16__);
#undef HEADRACE_MAY_USE
#undef HEADRACE_TEXT_OF

/// What known_members() says, for the compiler. Not a function: g++ 12 takes it out of one before it inlines that.
#define HEADRACE_KNOWN(condition) \
  if (!(condition)) __builtin_unreachable()

/// The shader of a step.
template <typename S>
HEADRACE_SHADER S shader_at(const ChainRun& run, size_t at) {
  S shader;
  std::memcpy(static_cast<void*>(&shader), run.images + at, sizeof shader);
  return shader;
}

/// A shader that nothing can change while the router runs.
template <typename S, size_t N>
HEADRACE_SHADER S constant(const uint8_t (&bytes)[N]) {
  static_assert(sizeof(S) == N, "the router and its compiled chain disagree about a shader");
  S shader;
  std::memcpy(static_cast<void*>(&shader), bytes, sizeof shader);
  return shader;
}

/// One of several shaders that take turns from packet to packet: not copied, for that costs more than it saves.
template <typename S>
HEADRACE_SHADER const S& in_place(const uint8_t* bytes) {
  return *reinterpret_cast<const S*>(bytes);
}

/// The counters of one of several shaders that take turns from packet to packet.
struct WayCounters {
  const ChainRun& run;
  const uint16_t* steps;  ///< by way
  size_t way;
};

/// What such a shader sees: who counts looks for the counters, and nobody else.
template <typename S, typename P>
class WayView : public CpuView<S, P> {
 public:
  template <typename State>
  HEADRACE_SHADER WayView(const State& state, const WayCounters& counters)
      : CpuView<S, P>(state, nullptr), counters_(counters) {}
  HEADRACE_SHADER void count(int index, uint64_t n = 1) {
    counters_.run.counters[counters_.steps[counters_.way]][index] += n;
  }

 private:
  WayCounters counters_;
};

template <typename S, typename State>
HEADRACE_SHADER Next shade(const S& shader, State& at, const WayCounters& counters) {
  at.template need<S>();
  if (!detail::has_headers<S>(at)) [[unlikely]]
    return kDrop;
  WayView<S, HeldPacket<State>> view(at, counters);
  const Next next = shader.shade(view);
  at = view.packet().template state<S>();
  return next;
}

template <typename S, typename State>
HEADRACE_SHADER Next shade(const S& shader, State& at, uint64_t* counters) {
  at.template need<S>();
  if (!detail::has_headers<S>(at)) [[unlikely]]
    return kDrop;
  CpuView<S, HeldPacket<State>> view(at, counters);
  const Next next = shader.shade(view);
  at = view.packet().template state<S>();
  return next;
}

template <typename S, typename State>
HEADRACE_SHADER void prefetch(const S& shader, const State& at) {
  if (detail::has_headers<S>(at)) [[likely]]
    shader.prefetch(CpuView<S, HeldPacket<State>>(at, nullptr));
}

/// True if each of `n` nexts is less than `count`, which is at most 2^15.
HEADRACE_SHADER bool all_below(const Next* nexts, int n, uint32_t count) {
  // Four at a time: what is too large sets the highest bit of its 16, or has it already.
  constexpr uint64_t kEach = 0x0001000100010001, kTop = kEach << 15;
  uint64_t found = 0;
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    uint64_t four;
    std::memcpy(&four, nexts + i, sizeof four);
    found |= four | ((four & ~kTop) + kEach * ((1u << 15) - count));
  }
  bool below = (found & kTop) == 0;
  for (; i < n; ++i) below &= nexts[i] < count;
  return below;
}

/// What a loop puts packets into: `kCount` lists, from list `kFirst` on. It holds where their next packets go, if they are
/// few, and not their sizes.
template <int kFirst, int kCount>
class Lists {
 public:
  HEADRACE_SHADER explicit Lists(const ChainRun& run) {
    for (int i = 0; kHolds && i < kCount; ++i) next_[i] = run.lists[kFirst + i].end();
  }
  HEADRACE_SHADER void push_back(const ChainRun& run, size_t i, Packet* p) {
    if constexpr (kHolds)
      *next_[i]++ = p;
    else
      run.lists[kFirst + i].push_back(p);
  }
  /// Puts a packet with its way, which may lie where the nexts of the packets do that are put there in order.
  HEADRACE_SHADER void put_way(const ChainRun& run, size_t i, Packet* p, uint16_t way) {
    Batch& list = run.lists[kFirst + i];
    const auto at = static_cast<size_t>((kHolds ? next_[i] : list.end()) - list.begin());
    run.ways[(kFirst + i) * Batch::kCapacity + at] = way;
    push_back(run, i, p);
  }
  /// Gives the lists their sizes.
  HEADRACE_SHADER void store(const ChainRun& run) const {
    for (int i = 0; kHolds && i < kCount; ++i) {
      Batch& list = run.lists[kFirst + i];
      list.resize(static_cast<int>(next_[i] - list.begin()));
    }
  }

 private:
  static constexpr bool kHolds = kCount <= 8;
  Packet** next_[kHolds && kCount > 0 ? kCount : 1];
};

/// Packets that leave where few do.
[[gnu::noinline, gnu::cold]] inline void put_rare(ChainRun& run, Packet* p, uint16_t code) {
  run.rare_codes[run.rare->size()] = code;
  run.rare->push_back(p);
}

/// In a program with marks: the packet has come to a step. `place` is not 0.
HEADRACE_SHADER void mark(const ChainRun& run, uint32_t step, uint32_t place) {
  __atomic_store_n(run.mark, place, __ATOMIC_RELAXED);
  ++run.passed[step];
}

}  // namespace compiled
}  // namespace headrace
