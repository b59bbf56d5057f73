#include "backend/cpu/program_file.hh"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "backend/program_cache.hh"

namespace headrace::offload {

namespace {

constexpr std::string_view kSeal = "\nheadrace program ";

std::string checksum(const char* bytes, size_t n) {
  ContentHash hash;
  hash.add(std::string_view(bytes, n));
  return hash.hex();
}

/// True unless the file ends before something that its headers name. The loader maps what they say, and to touch a page
/// behind the end of the file is a fault.
bool is_whole(const std::vector<char>& program) {
  Elf64_Ehdr header;
  if (program.size() < sizeof header) return false;
  std::memcpy(&header, program.data(), sizeof header);
  const auto within = [&](uint64_t offset, uint64_t size) {
    return offset <= program.size() && size <= program.size() - offset;
  };
  // The table of sections comes last.
  if (!within(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize)) return false;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || !within(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)))
    return false;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, program.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!within(segment.p_offset, segment.p_filesz)) return false;
  }
  return true;
}

/// What the program may execute and this processor does not; empty if there is nothing.
std::string lacking(const char* instruction_sets) {
  std::ifstream info("/proc/cpuinfo");
  std::set<std::string> has;
  for (std::string line; std::getline(info, line) && has.empty();) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) has.insert(word);
  }
  std::string missing;
  std::istringstream words(instruction_sets);
  for (std::string word; words >> word;) {
    const size_t end = word.find('=');
    if (word.substr(end) == "=1" && !has.contains(word.substr(0, end))) missing += ' ' + word.substr(0, end);
  }
  return missing;
}

}  // namespace

void seal(std::vector<char>& program) {
  const std::string sum = checksum(program.data(), program.size());
  program.insert(program.end(), kSeal.begin(), kSeal.end());
  program.insert(program.end(), sum.begin(), sum.end());
}

bool unseal(std::vector<char>& program) {
  constexpr size_t kSum = 32, kAll = kSeal.size() + kSum;
  if (program.size() < kAll) return false;
  const size_t size = program.size() - kAll;
  const std::string_view end(program.data() + size, kAll);
  if (!end.starts_with(kSeal) || end.substr(kSeal.size()) != checksum(program.data(), size)) return false;
  program.resize(size);
  return true;
}

std::optional<LoadedProgram> load_program(const std::vector<char>& program, const std::vector<std::string>& hashes,
                                          std::string& why_not) {
  constexpr std::string_view kMagic = ELFMAG;
  if (std::string_view(program.data(), program.size()).starts_with(kMagic) && !is_whole(program)) {
    why_not = "its end is missing";
    return std::nullopt;
  }
  const int fd = memfd_create("headrace-chains", MFD_CLOEXEC);
  if (fd < 0) {
    why_not = fmt::format("memfd_create: {}", std::strerror(errno));
    return std::nullopt;
  }
  size_t done = 0;
  while (done < program.size()) {
    const ssize_t n = write(fd, program.data() + done, program.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  void* const handle =
      done == program.size() ? dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!handle) {
    const char* const message = done == program.size() ? dlerror() : nullptr;
    why_not = message ? message : "no memory for the program";
    close(fd);
    return std::nullopt;
  }
  LoadedProgram loaded;
  // Programs are known by their paths: while this one is there, no other may have its number.
  loaded.handle = std::shared_ptr<void>(handle, [fd](void* h) {
    dlclose(h);
    close(fd);
  });
  loaded.program = static_cast<const CompiledProgram*>(dlsym(handle, "headrace_compiled"));
  if (!loaded.program) {
    why_not = "it is no compiled configuration";
    return std::nullopt;
  }
  if (std::find(hashes.begin(), hashes.end(), loaded.program->hash) == hashes.end()) {
    why_not = "it was made from another configuration, or for another version of Headrace";
    return std::nullopt;
  }
  if (const std::string missing = lacking(loaded.program->instruction_sets); !missing.empty()) {
    why_not = "it was made for another processor: this one lacks" + missing;
    return std::nullopt;
  }
  return loaded;
}

}  // namespace headrace::offload
