#include "backend/cuda/driver.hh"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

namespace headrace::cuda {
namespace {

/// Looks symbols up and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}
  template <typename Function>
  void find(Function*& function, const char* name, bool needed = true) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr && needed && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

struct OpenedDriver {
  Driver driver{};
  std::string problem;

  OpenedDriver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem = "no CUDA driver: libcuda.so.1 not found";
      return;
    }
    Symbols symbols(library);
    Driver& d = driver;
    symbols.find(d.cuInit, "cuInit");
    symbols.find(d.cuDriverGetVersion, "cuDriverGetVersion");
    symbols.find(d.cuGetErrorName, "cuGetErrorName");
    symbols.find(d.cuGetErrorString, "cuGetErrorString");
    symbols.find(d.cuDeviceGetCount, "cuDeviceGetCount");
    symbols.find(d.cuDeviceGet, "cuDeviceGet");
    symbols.find(d.cuDeviceGetName, "cuDeviceGetName");
    symbols.find(d.cuDeviceGetAttribute, "cuDeviceGetAttribute");
    symbols.find(d.cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId");
    symbols.find(d.cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2");
    symbols.find(d.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    symbols.find(d.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    symbols.find(d.cuCtxSetCurrent, "cuCtxSetCurrent");
    symbols.find(d.cuMemAlloc, "cuMemAlloc_v2");
    symbols.find(d.cuMemFree, "cuMemFree_v2");
    symbols.find(d.cuMemAllocAsync, "cuMemAllocAsync");
    symbols.find(d.cuMemFreeAsync, "cuMemFreeAsync");
    symbols.find(d.cuMemGetInfo, "cuMemGetInfo_v2");
    symbols.find(d.cuMemHostAlloc, "cuMemHostAlloc");
    symbols.find(d.cuMemFreeHost, "cuMemFreeHost");
    symbols.find(d.cuMemHostRegister, "cuMemHostRegister_v2");
    symbols.find(d.cuMemHostUnregister, "cuMemHostUnregister");
    symbols.find(d.cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
    symbols.find(d.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
    symbols.find(d.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
    symbols.find(d.cuMemsetD8Async, "cuMemsetD8Async");
    symbols.find(d.cuStreamCreate, "cuStreamCreate");
    symbols.find(d.cuStreamDestroy, "cuStreamDestroy_v2");
    symbols.find(d.cuStreamQuery, "cuStreamQuery");
    symbols.find(d.cuStreamSynchronize, "cuStreamSynchronize");
    symbols.find(d.cuStreamWriteValue32, "cuStreamWriteValue32_v2", false);
    symbols.find(d.cuEventCreate, "cuEventCreate");
    symbols.find(d.cuEventDestroy, "cuEventDestroy_v2");
    symbols.find(d.cuEventRecord, "cuEventRecord");
    symbols.find(d.cuEventQuery, "cuEventQuery");
    symbols.find(d.cuEventSynchronize, "cuEventSynchronize");
    symbols.find(d.cuEventElapsedTime, "cuEventElapsedTime");
    symbols.find(d.cuModuleLoadData, "cuModuleLoadData");
    symbols.find(d.cuModuleUnload, "cuModuleUnload");
    symbols.find(d.cuModuleGetFunction, "cuModuleGetFunction");
    symbols.find(d.cuFuncGetAttribute, "cuFuncGetAttribute");
    symbols.find(d.cuFuncSetAttribute, "cuFuncSetAttribute");
    symbols.find(d.cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    symbols.find(d.cuLaunchKernel, "cuLaunchKernel");
    if (!symbols.missing().empty()) {
      problem = fmt::format("the CUDA driver is too old: libcuda.so.1 has no {}", symbols.missing());
      return;
    }
    // A module that is loaded in parts, as kernels are first called, would wait for a kernel that stays.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    // The workers' streams share this many hardware queues, in which they wait for each other; the default is 8.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (const CUresult error = d.cuInit(0); error != CUresult::kSuccess) {
      problem = fmt::format("the CUDA driver does not start: {}", d.text(error));
      return;
    }
    d.cuDriverGetVersion(&d.version);
  }
};

/// Paths that match a pattern, in the order of their names, newest last version first.
std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_TILDE | GLOB_BRACE, nullptr, &found) == 0)
    for (size_t i = found.gl_pathc; i-- > 0;) paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return paths;
}

struct OpenedNvrtc {
  Nvrtc nvrtc{};
  std::string problem;

  OpenedNvrtc() {
    void* library = nullptr;
    std::string last_error;
    if (const char* named = std::getenv("HEADRACE_NVRTC"); named != nullptr && *named != '\0') {
      library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        last_error = dlerror();
        library = open_in(named);
      }
      if (library == nullptr) {
        problem = fmt::format("HEADRACE_NVRTC: there is no libnvrtc at {} ({})", named, last_error);
        return;
      }
    }
    // C++20 came with version 12.
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (const std::string& folder : folders())
      if (library == nullptr) library = open_in(folder);
    if (library == nullptr) {
      problem =
          "no CUDA compiler: libnvrtc.so.13 or .12 not found (`pip install nvidia-cuda-nvrtc`, or HEADRACE_NVRTC=PATH)";
      return;
    }
    Symbols symbols(library);
    Nvrtc& n = nvrtc;
    symbols.find(n.nvrtcVersion, "nvrtcVersion");
    symbols.find(n.nvrtcGetErrorString, "nvrtcGetErrorString");
    symbols.find(n.nvrtcCreateProgram, "nvrtcCreateProgram");
    symbols.find(n.nvrtcDestroyProgram, "nvrtcDestroyProgram");
    symbols.find(n.nvrtcCompileProgram, "nvrtcCompileProgram");
    symbols.find(n.nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
    symbols.find(n.nvrtcGetProgramLog, "nvrtcGetProgramLog");
    symbols.find(n.nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
    symbols.find(n.nvrtcGetCUBIN, "nvrtcGetCUBIN");
    symbols.find(n.nvrtcGetPTXSize, "nvrtcGetPTXSize");
    symbols.find(n.nvrtcGetPTX, "nvrtcGetPTX");
    symbols.find(n.nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
    symbols.find(n.nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs");
    Dl_info info{};
    if (symbols.missing().empty()) {
      n.nvrtcVersion(&n.major, &n.minor);
      if (dladdr(reinterpret_cast<void*>(n.nvrtcVersion), &info) != 0 && info.dli_fname != nullptr)
        n.path = info.dli_fname;
    }
    if (n.major < 12) {
      problem = fmt::format("the CUDA compiler is too old: libnvrtc {}.{}, needed is 12.0", n.major, n.minor);
      return;
    }
    // NVRTC looks for its second library by name alone, which finds it only where it is loaded already.
    const std::string folder = n.path.substr(0, n.path.rfind('/') + 1);
    for (const std::string& builtins : matches(fmt::format("{}libnvrtc-builtins.so.{}.{}*", folder, n.major, n.minor)))
      if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) break;
  }

  static void* open_in(const std::string& folder) {
    for (const char* name : {"/libnvrtc.so.13", "/libnvrtc.so.12", "/libnvrtc.so"})
      if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    return nullptr;
  }
  static std::vector<std::string> folders() {
    std::vector<std::string> patterns = {"/usr/local/cuda/lib64", "/usr/local/cuda*/lib64",
                                         "/usr/local/cuda*/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu"};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"})
      if (const char* value = std::getenv(variable)) patterns.push_back(std::string(value) + "/lib{64,}");
    // Where tools/nvrtc puts it.
    const char* cache = std::getenv("XDG_CACHE_HOME");
    patterns.push_back((cache != nullptr && *cache == '/' ? std::string(cache) : "~/.cache") +
                       "/headrace/nvrtc-*/nvidia/cu1{3,2}/lib");
    std::vector<std::string> roots = {"~/.local", "/usr/local", "/usr", "/opt/*", "/opt/*/.venv", "/opt/*/venv"};
    if (const char* value = std::getenv("VIRTUAL_ENV")) roots.insert(roots.begin(), value);
    for (const std::string& root : roots)
      patterns.push_back(root + "/lib/python3*/{site,dist}-packages/nvidia/{cu13,cuda_nvrtc}/lib");
    std::vector<std::string> all;
    for (const std::string& pattern : patterns)
      for (std::string& folder : matches(pattern)) all.push_back(std::move(folder));
    return all;
  }
};

}  // namespace

const Driver* Driver::get(std::string* why_not) {
  static const OpenedDriver opened;
  if (opened.problem.empty()) return &opened.driver;
  if (why_not != nullptr) *why_not = opened.problem;
  return nullptr;
}

std::string Driver::text(CUresult error) const {
  const char *name = nullptr, *meaning = nullptr;
  cuGetErrorName(error, &name);
  cuGetErrorString(error, &meaning);
  if (name == nullptr) return fmt::format("CUDA error {}", static_cast<int>(error));
  return meaning == nullptr ? std::string(name) : fmt::format("{}: {}", name, meaning);
}

const Nvrtc* Nvrtc::get(std::string* why_not) {
  static const OpenedNvrtc opened;
  if (opened.problem.empty()) return &opened.nvrtc;
  if (why_not != nullptr) *why_not = opened.problem;
  return nullptr;
}

}  // namespace headrace::cuda
