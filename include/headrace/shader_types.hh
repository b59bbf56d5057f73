#pragma once
/// \file
/// The basis of code for both processors: fixed-width integers, the host/device marker, and a load that may race with
/// one store. Includes nothing, because NVRTC has no standard library.

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;
using size_t = decltype(sizeof(0));
#else
// The compiler's own types, so that including <cstdint> as well declares the same types again.
using int8_t = __INT8_TYPE__;
using int16_t = __INT16_TYPE__;
using int32_t = __INT32_TYPE__;
using int64_t = __INT64_TYPE__;
using uint8_t = __UINT8_TYPE__;
using uint16_t = __UINT16_TYPE__;
using uint32_t = __UINT32_TYPE__;
using uint64_t = __UINT64_TYPE__;
using uintptr_t = __UINTPTR_TYPE__;
using size_t = __SIZE_TYPE__;
#endif

/// Marks a function that runs on either processor.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HEADRACE_SHADER __host__ __device__
#define HEADRACE_SHADER_COLD __host__ __device__
#define HEADRACE_SHADER_CALL __host__ __device__ __noinline__
#else
#define HEADRACE_SHADER inline __attribute__((always_inline))
/// The same for a function that does so much for one packet that a call costs nothing. On a device it has its registers
/// for itself.
#define HEADRACE_SHADER_CALL inline
/// The same for code that few packets need: it stays a call, out of the way of the common path.
#define HEADRACE_SHADER_COLD __attribute__((noinline, cold))
#endif

namespace headrace {

/// Loads an aligned word that a host thread may be replacing: the old or the new value, never a mixture. A later load
/// whose address depends on the result sees at least what the writer stored before it released this word. On a device it is a
/// load as any other: a copy of the tables does not change while a job uses it (see Parameters), and a job begins with an
/// acquiring load, which empties the first-level cache.
template <typename T>
HEADRACE_SHADER T load_shared(const T* word) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
  return *word;
#else
  T value;
  __atomic_load(word, &value, __ATOMIC_RELAXED);
  return value;
#endif
}

/// Asks a CPU for the cache line at `address`, to be read soon. A device has other work meanwhile.
HEADRACE_SHADER void prefetch_line(const void* address) {
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

/// The destination type of a packet at the link layer (Click's packet type annotation).
enum class PacketType : uint8_t {
  kHost = 0,
  kBroadcast = 1,
  kMulticast = 2,
  kOtherHost = 3,
  kOutgoing = 4,
  kLoopback = 5,
  kFastRoute = 6
};

}  // namespace headrace
