#include "backend/cuda/compile.hh"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "backend/cuda/driver.hh"
#include "backend/program_cache.hh"
#include "headrace/device/embedded.hh"

namespace headrace::cuda {
namespace {

/// The best target of this compiler for a device: its own architecture, else an older one of the same generation, whose
/// cubin runs there too, else PTX of the newest one before it.
struct Target {
  int arch = 0;
  bool ptx = false;
};
Target target_for(const Nvrtc& nvrtc, int capability) {
  int count = 0;
  nvrtc.nvrtcGetNumSupportedArchs(&count);
  std::vector<int> archs(static_cast<size_t>(std::max(count, 0)));
  if (count > 0) nvrtc.nvrtcGetSupportedArchs(archs.data());
  int best = 0;
  for (const int arch : archs)
    if (arch <= capability) best = std::max(best, arch);
  return {best, best / 10 != capability / 10};
}

}  // namespace

std::string describe_compiler() {
  std::string why_not;
  const Nvrtc* nvrtc = Nvrtc::get(&why_not);
  return nvrtc == nullptr ? why_not : fmt::format("NVRTC {}.{} from {}", nvrtc->major, nvrtc->minor, nvrtc->path);
}

Status compile_program(const std::string& source, int capability, bool cache, Image& image, Errors& errors) {
  std::string why_not;
  const Nvrtc* nvrtc = Nvrtc::get(&why_not);
  if (nvrtc == nullptr) return errors.error("{}", why_not);
  const Target target = target_for(*nvrtc, capability);
  if (target.arch == 0)
    return errors.error("NVRTC {}.{} cannot compile for compute capability {}.{}", nvrtc->major, nvrtc->minor,
                        capability / 10, capability % 10);
  const std::string arch = fmt::format("--gpu-architecture={}_{}", target.ptx ? "compute" : "sm", target.arch);
  // Constants at namespace scope, such as the names of fields, must be known on the device without a marker.
  const std::vector<const char*> options = {arch.c_str(), "--std=c++20", "--device-as-default-execution-space",
                                            "--generate-line-info"};
  image.note =
      fmt::format("NVRTC {}.{}, {}_{}", nvrtc->major, nvrtc->minor, target.ptx ? "compute" : "sm", target.arch);

  const std::vector<EmbeddedText> headers = embedded_headers();
  std::filesystem::path kept;
  std::string unsafe;
  if (const std::filesystem::path folder = cache_folder(); cache && safe_folder(folder, unsafe)) {
    ContentHash hash;
    hash.add(source);
    for (const EmbeddedText& header : headers) {
      hash.add(header.path);
      hash.add(header.text);
    }
    hash.add(fmt::format("{}.{}", nvrtc->major, nvrtc->minor));
    for (const char* option : options) hash.add(option);
    kept = folder / (hash.hex() + (target.ptx ? ".ptx" : ".cubin"));
    image.cached = read_file(kept, image.bytes) && !image.bytes.empty();
    if (image.cached) return {};
  }

  std::vector<const char*> texts, paths;
  for (const EmbeddedText& header : headers) {
    texts.push_back(header.text.data());
    paths.push_back(header.path.data());
  }
  nvrtcProgram program = nullptr;
  int result = nvrtc->nvrtcCreateProgram(&program, source.c_str(), "program.cu", static_cast<int>(texts.size()),
                                         texts.data(), paths.data());
  if (result != 0) return errors.error("NVRTC: {}", nvrtc->nvrtcGetErrorString(result));
  result = nvrtc->nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  if (result == 0) {
    size_t size = 0;
    result = target.ptx ? nvrtc->nvrtcGetPTXSize(program, &size) : nvrtc->nvrtcGetCUBINSize(program, &size);
    image.bytes.resize(size);
    if (result == 0)
      result = target.ptx ? nvrtc->nvrtcGetPTX(program, image.bytes.data())
                          : nvrtc->nvrtcGetCUBIN(program, image.bytes.data());
  }
  Status status;
  if (result != 0) {
    size_t size = 0;
    nvrtc->nvrtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    if (size > 0) nvrtc->nvrtcGetProgramLog(program, log.data());
    log.resize(std::min(log.find('\0'), log.size()));
    status = errors.error("the program for the device does not compile ({}): {}\n{}", image.note,
                          nvrtc->nvrtcGetErrorString(result), log);
  }
  nvrtc->nvrtcDestroyProgram(&program);
  // Without the file the next start takes longer, no more.
  if (status.ok() && !kept.empty()) (void)write_file(kept, image.bytes);
  return status;
}

}  // namespace headrace::cuda
