// The system's C++ compiler, for programs that run on the CPU.

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "backend/program_cache.hh"
#include "offload/cpu_compiler.hh"
#include "offload/cpu_program.hh"

namespace headrace::offload {

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

/// A compiler that takes longer hangs.
constexpr std::chrono::seconds kLongest{120};

/// A new folder of this user's, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* const base = std::getenv("TMPDIR");
    std::string name = fmt::format("{}/headrace-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(name.data())) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The first lines of a file.
std::string beginning_of(const fs::path& file) {
  constexpr size_t kMost = 2000;
  std::ifstream in(file);
  std::string text(kMost, '\0');
  in.read(text.data(), static_cast<std::streamsize>(kMost));
  text.resize(static_cast<size_t>(in.gcount()));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// Runs a program, without a shell, with its output in a file. Returns its exit status; -1 if it did not end by itself,
/// with the reason in `why_not`.
int run_program(const Arguments& arguments, const fs::path& output, const std::atomic<bool>& cancel,
                std::string& why_not) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  // A group of its own, so that all that it starts can be stopped; signals as a new program expects them, and no
  // real-time priority.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &all);
  const sched_param ordinary{};
  posix_spawnattr_setschedpolicy(&how, SCHED_OTHER);
  posix_spawnattr_setschedparam(&how, &ordinary);
  posix_spawnattr_setflags(
      &how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSCHEDULER);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &files, &how, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (error != 0) {
    why_not = fmt::format("{}: {}", arguments[0], std::strerror(error));
    return -1;
  }
  // It has time; workers have not.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(child), 10);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    int status = 0;
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) {
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      why_not = fmt::format("{} was ended by signal {}", arguments[0], WTERMSIG(status));
      return -1;
    }
    // Who started us ignores SIGCHLD, so nobody knows how it ended; what it has written tells.
    if (done < 0 && errno == ECHILD) return 0;
    const bool hangs = std::chrono::steady_clock::now() - begin > kLongest;
    if (done < 0 || hangs || cancel.load()) {
      why_not = hangs ? fmt::format("{} took more than {} s", arguments[0], kLongest.count())
                      : fmt::format("{} was stopped", arguments[0]);
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

struct Compiler {
  Arguments command;
  std::string version;  // the first line that it prints about itself

  bool is_clang() const { return version.find("clang") != std::string::npos; }
};

/// $HEADRACE_CXX, which may have arguments, else g++, clang++ or c++, whichever answers.
std::optional<Compiler> find_compiler(const fs::path& folder, const std::atomic<bool>& cancel, std::string& why_not) {
  std::vector<Arguments> candidates;
  if (const char* const wanted = std::getenv("HEADRACE_CXX"); wanted && *wanted) {
    std::istringstream words(wanted);
    Arguments command;
    for (std::string word; words >> word;) command.push_back(word);
    if (!command.empty()) candidates.push_back(command);
  }
  if (candidates.empty()) candidates = {{"g++"}, {"clang++"}, {"c++"}};
  std::string reasons;
  for (Arguments& command : candidates) {
    Arguments ask = command;
    ask.emplace_back("--version");
    const fs::path answer = folder / "version";
    std::string reason;
    const int status = run_program(ask, answer, cancel, reason);
    std::string text = beginning_of(answer);
    text = text.substr(0, text.find('\n'));
    if (status == 0 && !text.empty()) return Compiler{command, text};
    reasons += (reasons.empty() ? "" : "; ") + (status >= 0 ? fmt::format("{} --version failed", command[0]) : reason);
  }
  why_not = "no C++ compiler: " + reasons;
  return std::nullopt;
}

/// What a program for this very machine depends on.
std::string processor() {
  constexpr const char* kLines[] = {"vendor_id", "cpu family", "model name", "model\t", "flags"};
  std::ifstream info("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(info, line) && !line.empty();)
    if (std::any_of(std::begin(kLines), std::end(kLines), [&](const char* l) { return line.starts_with(l); }))
      text += line + '\n';
  return text;
}

/// False for a compiler that is older than this processor and arranges code for another one, if that is known to cost
/// speed: on AMD's family 26 (Zen 5), which g++ knows from version 14 on and clang from 19 on. Older ones take it for an
/// earlier Zen.
bool knows_processor(const Compiler& compiler) {
  const std::string machine = processor();
  if (machine.find("AuthenticAMD\n") == std::string::npos || machine.find("cpu family\t: 26\n") == std::string::npos)
    return true;
  // "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "Debian clang version 14.0.6": the last number with two points.
  static const std::regex number(R"((\d{1,3})\.\d+\.\d+)");
  int major = 0;
  for (std::sregex_iterator it(compiler.version.begin(), compiler.version.end(), number), end; it != end; ++it)
    major = std::stoi((*it)[1]);
  return major >= (compiler.is_clang() ? 19 : 14);
}

Arguments options_for(const std::string& machine, const Compiler& compiler) {
  Arguments options = {"-std=c++20",      "-O2",       "-march=" + machine,   "-falign-loops=32", "-fPIC", "-shared",
                       "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fno-plt",         "-w"};
  // clang would put an indirect jump between elements, where two compares do.
  if (compiler.is_clang()) options.emplace_back("-fno-jump-tables");
  // What HEADRACE_CXX says stands.
  if (machine == "native" && compiler.command.size() == 1 && !knows_processor(compiler)) {
    options.emplace_back("-mtune=generic");
    if (!compiler.is_clang()) options.emplace_back("-fno-schedule-insns2");
  }
  return options;
}

/// Compiles in `folder`; the result is program.so there.
bool compile(const Compiler& compiler, const Arguments& options, const std::string& source, const fs::path& folder,
             const std::atomic<bool>& cancel, std::string& why_not) {
  const auto write = [&](const fs::path& path, std::string_view text) {
    return write_file(path, std::vector<char>(text.begin(), text.end()));
  };
  bool written = write(folder / "program.cc", source);
  for (const auto& [path, text] : included_headers(source)) written &= write(folder / "include" / path, text);
  if (!written) {
    why_not = fmt::format("cannot write to {}", folder.string());
    return false;
  }
  Arguments command = compiler.command;
  command.insert(command.end(), options.begin(), options.end());
  command.push_back("-DHEADRACE_PROGRAM_HASH=\"" + program_hash(source) + "\"");
  command.insert(command.end(), {"-I", folder / "include", "-o", folder / "program.so", folder / "program.cc"});
  const fs::path log = folder / "log";
  const int status = run_program(command, log, cancel, why_not);
  if (status > 0) why_not = fmt::format("{} does not compile the chains:\n{}", compiler.command[0], beginning_of(log));
  return status == 0;
}

/// Loads a program from memory, so that it may come from a file system that executes nothing, and so that nobody can
/// change it after it was read.
/// \param hashes of the sources from which it may have been made
std::optional<LoadedProgram> load(const std::vector<char>& bytes, const Arguments& hashes, std::string& why_not) {
  const int fd = memfd_create("headrace-chains", MFD_CLOEXEC);
  if (fd < 0) {
    why_not = fmt::format("memfd_create: {}", std::strerror(errno));
    return std::nullopt;
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  void* const handle =
      done == bytes.size() ? dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!handle) {
    const char* const message = done == bytes.size() ? dlerror() : nullptr;
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
  return loaded;
}

/// Only a file that nobody else could have written.
bool is_own(const fs::path& file) {
  struct stat s {};
  return lstat(file.c_str(), &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 022) == 0;
}

/// Where an installation keeps programs: beside the executable, and in PREFIX/lib.
std::vector<fs::path> installed_folders() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  return {self.parent_path() / "chains", self.parent_path().parent_path() / "lib/headrace/chains"};
}

}  // namespace

std::string program_hash(const std::string& source) {
  ContentHash hash;
  // Without comments: arguments of elements that are no part of the program do not make another one.
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) hash.add(line.substr(0, line.find("//")));
  for (const auto& [path, text] : included_headers(source)) {
    hash.add(path);
    hash.add(text);
  }
  return hash.hex();
}

std::optional<LoadedProgram> find_program(const std::vector<std::string>& sources, const CompileOptions& options,
                                          const std::atomic<bool>& cancel, std::string& why_not) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> hashes;
  for (const std::string& source : sources) hashes.push_back(program_hash(source));
  std::vector<char> bytes;
  if (!options.file.empty()) {
    if (!read_file(options.file, bytes)) {
      why_not = fmt::format("{}: {}", options.file, std::strerror(errno));
      return std::nullopt;
    }
    auto loaded = load(bytes, hashes, why_not);
    if (loaded)
      loaded->origin = options.file;
    else
      why_not = fmt::format("{}: {}", options.file, why_not);
    return loaded;
  }

  const fs::path folder = cache_folder();
  std::string unsafe;
  const bool keeps = safe_folder(folder, unsafe);
  const TemporaryFolder temporary;
  if (temporary.path().empty()) {
    why_not = fmt::format("no temporary folder: {}", std::strerror(errno));
    return std::nullopt;
  }
  std::string no_compiler;
  const std::optional<Compiler> compiler = find_compiler(temporary.path(), cancel, no_compiler);
  fs::path kept;
  Arguments how;
  if (compiler) {
    how = options_for("native", *compiler);
    ContentHash all;
    all.add(hashes[0]);
    all.add(compiler->version);
    for (const std::string& word : compiler->command) all.add(word);
    for (const std::string& word : how) all.add(word);
    all.add(processor());
    kept = folder / ("cpu-" + all.hex() + ".so");
    std::string ignored;
    if (keeps && is_own(kept) && read_file(kept, bytes))
      if (auto loaded = load(bytes, {hashes[0]}, ignored)) {
        loaded->origin = fmt::format("{}, kept in {}", compiler->version, folder.string());
        return loaded;
      }
  }
  for (const std::string& hash : hashes) {
    // A compiler makes something better than what is for any values.
    if (compiler && hash != hashes[0]) break;
    for (const fs::path& installed : installed_folders()) {
      std::string ignored;
      if (!read_file(installed / (hash + ".so"), bytes)) continue;
      if (auto loaded = load(bytes, {hash}, ignored)) {
        loaded->origin = (installed / (hash + ".so")).string();
        return loaded;
      }
    }
  }
  if (!compiler) {
    why_not = no_compiler;
    return std::nullopt;
  }
  if (!compile(*compiler, how, sources[0], temporary.path(), cancel, why_not)) return std::nullopt;
  if (!read_file(temporary.path() / "program.so", bytes)) {
    why_not = fmt::format("{} wrote no program", compiler->command[0]);
    return std::nullopt;
  }
  auto loaded = load(bytes, {hashes[0]}, why_not);
  if (!loaded) {
    why_not = fmt::format("what {} made cannot be used: {}", compiler->command[0], why_not);
    return std::nullopt;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  loaded->origin = fmt::format("{}, {:.1f} s", compiler->version, took.count());
  if (!keeps)
    loaded->origin += fmt::format(", not kept: {}", unsafe);
  else if (!write_file(kept, bytes))
    loaded->origin += fmt::format(", not kept: cannot write to {}", folder.string());
  return loaded;
}

Status compile_to_file(const std::vector<std::string>& sources, const std::string& file, const std::string& machine,
                       Errors& errors) {
  const std::atomic<bool> cancel{false};
  std::error_code ignored;
  const bool into_folder = fs::is_directory(file, ignored);
  for (const std::string& source : sources) {
    const TemporaryFolder temporary;
    if (temporary.path().empty()) return errors.error("no temporary folder: {}", std::strerror(errno));
    std::string why_not;
    const std::optional<Compiler> compiler = find_compiler(temporary.path(), cancel, why_not);
    if (!compiler || !compile(*compiler, options_for(machine, *compiler), source, temporary.path(), cancel, why_not))
      return errors.error("{}", why_not);
    std::vector<char> bytes;
    if (!read_file(temporary.path() / "program.so", bytes))
      return errors.error("{} wrote no program", compiler->command[0]);
    const fs::path to = into_folder ? fs::path(file) / (program_hash(source) + ".so") : fs::path(file);
    if (!write_file(to, bytes)) return errors.error("cannot write {}", to.string());
    if (!into_folder) break;
  }
  return {};
}

}  // namespace headrace::offload
