#include "backend/cuda/compile.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "backend/cuda/driver.hh"
#include "headrace/device/embedded.hh"

namespace headrace::cuda {
namespace {

namespace fs = std::filesystem;

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 128 bits: enough that two programs never share a name.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0);  // so that "ab", "c" differs from "a", "bc"
  }
  std::string hex() const {
    return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(value_ >> 64), static_cast<uint64_t>(value_));
  }

 private:
  using Wide = unsigned __int128;
  void step(unsigned char c) { value_ = (value_ ^ c) * kPrime; }
  static constexpr Wide kPrime = Wide{1} << 88 | 0x13b;
  Wide value_ = Wide{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
};

fs::path cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') return fs::path(xdg) / "headrace";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".cache/headrace";
  return {};
}

bool read_file(const fs::path& path, std::vector<char>& bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return file.good() || file.eof();
}

/// Under another name first: a reader sees the whole file or none.
void write_file(const fs::path& path, const std::vector<char>& bytes) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  fs::path fresh = path;
  fresh += fmt::format(".{}", getpid());
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
      file.close();
      fs::remove(fresh, ignored);
      return;
    }
  }
  fs::rename(fresh, path, ignored);
  if (ignored) fs::remove(fresh, ignored);
}

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
  fs::path kept;
  if (const fs::path folder = cache ? cache_folder() : fs::path(); !folder.empty()) {
    Hash hash;
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
  if (status.ok() && !kept.empty()) write_file(kept, image.bytes);
  return status;
}

}  // namespace headrace::cuda
