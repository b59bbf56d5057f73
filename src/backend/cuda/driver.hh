#pragma once
/// \file
/// The parts of the CUDA driver API and of NVRTC that we use, opened at run time: no CUDA header is needed to build
/// Headrace and no CUDA library to start it. Functions keep the names they have in NVIDIA's documentation, without the
/// version suffix of the symbol.

#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace::cuda {

// Opaque handles and numbers of cuda.h.
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
enum class CUresult : int { kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kNotReady = 600 };

enum CUdevice_attribute : int {
  kMultiprocessorCount = 16,
  kKernelExecTimeout = 17,
  kCanMapHostMemory = 19,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
};
enum CUfunction_attribute : int { kFunctionLocalBytes = 3, kFunctionRegisters = 4, kFunctionMaxDynamicShared = 8 };

inline constexpr unsigned kContextSpin = 0x1;              // CU_CTX_SCHED_SPIN
inline constexpr unsigned kContextKeepLocalMemory = 0x10;  // CU_CTX_LMEM_RESIZE_TO_MAX
inline constexpr unsigned kHostPortable = 0x1;             // CU_MEMHOSTALLOC_PORTABLE
inline constexpr unsigned kHostMapped = 0x2;               // CU_MEMHOSTALLOC_DEVICEMAP
inline constexpr unsigned kStreamNonBlocking = 0x1;        // CU_STREAM_NON_BLOCKING

/// libcuda.so.1. One object a process; it stays open.
struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuDriverGetVersion)(int* version);
  CUresult (*cuGetErrorName)(CUresult error, const char** name);
  CUresult (*cuGetErrorString)(CUresult error, const char** text);

  CUresult (*cuDeviceGetCount)(int* count);
  CUresult (*cuDeviceGet)(CUdevice* device, int ordinal);
  CUresult (*cuDeviceGetName)(char* name, int length, CUdevice device);
  CUresult (*cuDeviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice device);
  CUresult (*cuDeviceGetPCIBusId)(char* id, int length, CUdevice device);
  CUresult (*cuDevicePrimaryCtxSetFlags)(CUdevice device, unsigned flags);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRelease)(CUdevice device);
  CUresult (*cuCtxSetCurrent)(CUcontext context);

  CUresult (*cuMemAlloc)(CUdeviceptr* address, size_t bytes);
  CUresult (*cuMemFree)(CUdeviceptr address);
  CUresult (*cuMemAllocAsync)(CUdeviceptr* address, size_t bytes, CUstream stream);
  CUresult (*cuMemFreeAsync)(CUdeviceptr address, CUstream stream);
  CUresult (*cuMemGetInfo)(size_t* free, size_t* total);
  CUresult (*cuMemHostAlloc)(void** address, size_t bytes, unsigned flags);
  CUresult (*cuMemFreeHost)(void* address);
  CUresult (*cuMemHostRegister)(void* address, size_t bytes, unsigned flags);
  CUresult (*cuMemHostUnregister)(void* address);
  CUresult (*cuMemHostGetDevicePointer)(CUdeviceptr* device, void* host, unsigned flags);
  CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);

  CUresult (*cuStreamCreate)(CUstream* stream, unsigned flags);
  CUresult (*cuStreamDestroy)(CUstream stream);
  CUresult (*cuStreamQuery)(CUstream stream);
  CUresult (*cuStreamSynchronize)(CUstream stream);
  /// Null where the driver has none: cuStreamWriteValue32_v2 came with CUDA 11.7.
  CUresult (*cuStreamWriteValue32)(CUstream stream, CUdeviceptr to, uint32_t value, unsigned flags);
  CUresult (*cuEventCreate)(CUevent* event, unsigned flags);
  CUresult (*cuEventDestroy)(CUevent event);
  CUresult (*cuEventRecord)(CUevent event, CUstream stream);
  CUresult (*cuEventQuery)(CUevent event);
  CUresult (*cuEventSynchronize)(CUevent event);
  CUresult (*cuEventElapsedTime)(float* milliseconds, CUevent from, CUevent to);

  CUresult (*cuModuleLoadData)(CUmodule* module, const void* image);
  CUresult (*cuModuleUnload)(CUmodule module);
  CUresult (*cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*cuFuncGetAttribute)(int* value, CUfunction_attribute attribute, CUfunction function);
  CUresult (*cuFuncSetAttribute)(CUfunction function, CUfunction_attribute attribute, int value);
  CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, CUfunction function, int threads,
                                                          size_t shared_bytes);
  CUresult (*cuLaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                             void** parameters, void** extra);

  int version = 0;  ///< 12040: CUDA 12.4

  /// The driver, initialized, or null; then `why_not` says what is missing. Safe from several threads.
  static const Driver* get(std::string* why_not);
  /// "CUDA_ERROR_X: what it means".
  std::string text(CUresult error) const;
};

using nvrtcProgram = struct _nvrtcProgram*;

/// libnvrtc, the compiler.
struct Nvrtc {
  int (*nvrtcVersion)(int* major, int* minor);
  const char* (*nvrtcGetErrorString)(int error);
  int (*nvrtcCreateProgram)(nvrtcProgram* program, const char* source, const char* name, int headers,
                            const char* const* texts, const char* const* paths);
  int (*nvrtcDestroyProgram)(nvrtcProgram* program);
  int (*nvrtcCompileProgram)(nvrtcProgram program, int options, const char* const* values);
  int (*nvrtcGetProgramLogSize)(nvrtcProgram program, size_t* bytes);
  int (*nvrtcGetProgramLog)(nvrtcProgram program, char* log);
  int (*nvrtcGetCUBINSize)(nvrtcProgram program, size_t* bytes);
  int (*nvrtcGetCUBIN)(nvrtcProgram program, char* image);
  int (*nvrtcGetPTXSize)(nvrtcProgram program, size_t* bytes);
  int (*nvrtcGetPTX)(nvrtcProgram program, char* text);
  int (*nvrtcGetNumSupportedArchs)(int* count);
  int (*nvrtcGetSupportedArchs)(int* archs);

  int major = 0, minor = 0;
  std::string path;  ///< of the library

  /// The compiler, or null; then `why_not` says where it was looked for. The first call decides. $HEADRACE_NVRTC names
  /// the library or its folder; else the usual places of toolkits and wheels are searched.
  static const Nvrtc* get(std::string* why_not);
};

}  // namespace headrace::cuda
