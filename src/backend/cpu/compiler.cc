// The system's C++ compiler, for programs that run on the CPU.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "backend/cpu/program_file.hh"
#include "backend/program_cache.hh"
#include "offload/cpu_compiler.hh"
#include "offload/cpu_program.hh"

namespace headrace::offload {

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

/// A compiler that takes longer hangs; and one that takes longer to say its version.
constexpr std::chrono::seconds kLongest{120}, kLongestAnswer{5};

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

/// Runs a program, without a shell, with its output in a file. Returns its exit status; -1 if it did not end by itself
/// within `longest`, with the reason in `why_not`.
int run_program(const Arguments& arguments, const fs::path& output, std::chrono::seconds longest,
                const std::atomic<bool>& cancel, std::string& why_not) {
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
    const bool hangs = std::chrono::steady_clock::now() - begin > longest;
    if (done < 0 || hangs || cancel.load()) {
      why_not = hangs ? fmt::format("{} took more than {} s", arguments[0], longest.count())
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

/// $HEADRACE_CXX, which may have arguments, else g++, clang++ and c++.
std::vector<Arguments> commands() {
  if (const char* const wanted = std::getenv("HEADRACE_CXX")) {
    std::istringstream words(wanted);
    Arguments command;
    for (std::string word; words >> word;) command.push_back(word);
    if (!command.empty()) return {command};
  }
  return {{"g++"}, {"clang++"}, {"c++"}};
}

/// Why there is no program, by compiler.
struct Reasons {
  std::string absent, failed;
  static void add(std::string& list, const std::string& reason) { list += (list.empty() ? "" : "; ") + reason; }
  std::string text() const { return failed.empty() ? "no C++ compiler: " + absent : failed; }
};

/// The compiler of this command, if it answers.
std::optional<Compiler> find_compiler(const Arguments& command, const fs::path& folder, const std::atomic<bool>& cancel,
                                      Reasons& reasons) {
  Arguments ask = command;
  ask.emplace_back("--version");
  const fs::path answer = folder / "version";
  std::string reason;
  const int status = run_program(ask, answer, kLongestAnswer, cancel, reason);
  std::string text = beginning_of(answer);
  text = text.substr(0, text.find('\n'));
  if (status == 0 && !text.empty()) return Compiler{command, text};
  Reasons::add(reasons.absent, status >= 0 ? fmt::format("{} --version failed", command[0]) : reason);
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

/// Compiles in `folder`. Nothing, and the reason in `reasons`, if that makes no program.
std::optional<std::vector<char>> compile(const Compiler& compiler, const Arguments& options, const std::string& source,
                                         const fs::path& folder, const std::atomic<bool>& cancel, Reasons& reasons) {
  const auto write = [&](const fs::path& path, std::string_view text) {
    return write_file(path, std::vector<char>(text.begin(), text.end()));
  };
  bool written = write(folder / "program.cc", source);
  for (const auto& [path, text] : included_headers(source)) written &= write(folder / "include" / path, text);
  if (!written) {
    Reasons::add(reasons.failed, fmt::format("cannot write to {}", folder.string()));
    return std::nullopt;
  }
  Arguments command = compiler.command;
  command.insert(command.end(), options.begin(), options.end());
  command.push_back("-DHEADRACE_PROGRAM_HASH=\"" + program_hash(source) + "\"");
  const fs::path log = folder / "log", made = folder / "program.so";
  command.insert(command.end(), {"-I", folder / "include", "-o", made, folder / "program.cc"});
  std::error_code ignored;
  fs::remove(made, ignored);
  std::string why_not;
  const int status = run_program(command, log, kLongest, cancel, why_not);
  std::vector<char> program;
  if (status > 0)
    why_not = fmt::format("{} does not compile the chains:\n{}", compiler.command[0], beginning_of(log));
  else if (status == 0 && !read_file(made, program))
    why_not = fmt::format("{} wrote no program", compiler.command[0]);
  if (why_not.empty()) return program;
  Reasons::add(reasons.failed, why_not);
  return std::nullopt;
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

/// A program that an earlier call has written, as it was written.
std::optional<LoadedProgram> read_program(const fs::path& file, const std::vector<std::string>& hashes,
                                          std::string& why_not) {
  std::vector<char> bytes;
  if (!read_file(file, bytes)) {
    why_not = std::strerror(errno);
    return std::nullopt;
  }
  if (!unseal(bytes)) {
    why_not = "it is no compiled configuration, or not all of one";
    return std::nullopt;
  }
  return load_program(bytes, hashes, why_not);
}

std::optional<LoadedProgram> find_installed(const std::string& hash) {
  for (const fs::path& folder : installed_folders()) {
    const fs::path file = folder / (hash + ".so");
    std::string ignored;
    if (auto loaded = read_program(file, {hash}, ignored)) {
      loaded->origin = file.string();
      return loaded;
    }
  }
  return std::nullopt;
}

/// Where programs of this compiler are kept, and whether they can be.
struct Cache {
  fs::path folder;
  bool keeps = false;
  std::string why_not;

  Cache() : folder(cache_folder()) { keeps = safe_folder(folder, why_not); }
  fs::path file(const std::string& source_hash, const Compiler& compiler, const Arguments& options) const {
    ContentHash all;
    all.add(source_hash);
    all.add(compiler.version);
    for (const std::string& word : compiler.command) all.add(word);
    for (const std::string& word : options) all.add(word);
    all.add(processor());
    return folder / ("cpu-" + all.hex() + ".so");
  }
};

/// What this compiler makes of a source, now or earlier.
std::optional<LoadedProgram> find_compiled(const Compiler& compiler, const std::string& source, const std::string& hash,
                                           const Cache& cache, const fs::path& folder, const std::atomic<bool>& cancel,
                                           Reasons& reasons) {
  const auto begin = std::chrono::steady_clock::now();
  const Arguments options = options_for("native", compiler);
  const fs::path kept = cache.file(hash, compiler, options);
  std::string why_not;
  if (cache.keeps && is_own(kept))
    if (auto loaded = read_program(kept, {hash}, why_not)) {
      loaded->origin = fmt::format("{}, kept in {}", compiler.version, cache.folder.string());
      return loaded;
    }
  // One that came with the program is as good.
  if (auto loaded = find_installed(hash)) return loaded;
  std::optional<std::vector<char>> program = compile(compiler, options, source, folder, cancel, reasons);
  if (!program) return std::nullopt;
  auto loaded = load_program(*program, {hash}, why_not);
  if (!loaded) {
    Reasons::add(reasons.failed, fmt::format("what {} made cannot be used: {}", compiler.command[0], why_not));
    return std::nullopt;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  loaded->origin = fmt::format("{}, {:.1f} s", compiler.version, took.count());
  seal(*program);
  if (!cache.keeps)
    loaded->origin += fmt::format(", not kept: {}", cache.why_not);
  else if (!write_file(kept, *program))
    loaded->origin += fmt::format(", not kept: cannot write to {}", cache.folder.string());
  return loaded;
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
  std::vector<std::string> hashes;
  for (const std::string& source : sources) hashes.push_back(program_hash(source));
  if (!options.file.empty()) {
    auto loaded = read_program(options.file, hashes, why_not);
    if (loaded)
      loaded->origin = options.file;
    else
      why_not = fmt::format("{}: {}", options.file, why_not);
    return loaded;
  }
  const TemporaryFolder temporary;
  if (temporary.path().empty()) {
    why_not = fmt::format("no temporary folder: {}", std::strerror(errno));
    return std::nullopt;
  }
  const Cache cache;
  Reasons reasons;
  for (const Arguments& command : commands()) {
    if (cancel.load()) break;
    const std::optional<Compiler> compiler = find_compiler(command, temporary.path(), cancel, reasons);
    if (!compiler) continue;
    if (auto loaded = find_compiled(*compiler, sources[0], hashes[0], cache, temporary.path(), cancel, reasons))
      return loaded;
  }
  why_not = reasons.text();
  // What came with the program and is for any values is not as good as what a compiler makes.
  for (const std::string& hash : hashes)
    if (auto loaded = find_installed(hash)) {
      if (!reasons.failed.empty()) loaded->origin += fmt::format(" ({})", reasons.failed);
      return loaded;
    }
  return std::nullopt;
}

Status compile_to_file(const std::vector<std::string>& sources, const std::string& file, const std::string& machine,
                       Errors& errors) {
  const std::atomic<bool> cancel{false};
  std::error_code ignored;
  const bool into_folder = fs::is_directory(file, ignored);
  for (const std::string& source : sources) {
    const TemporaryFolder temporary;
    if (temporary.path().empty()) return errors.error("no temporary folder: {}", std::strerror(errno));
    Reasons reasons;
    std::optional<std::vector<char>> program;
    for (const Arguments& command : commands()) {
      if (program) break;
      if (const auto compiler = find_compiler(command, temporary.path(), cancel, reasons))
        program = compile(*compiler, options_for(machine, *compiler), source, temporary.path(), cancel, reasons);
    }
    if (!program) return errors.error("{}", reasons.text());
    seal(*program);
    const fs::path to = into_folder ? fs::path(file) / (program_hash(source) + ".so") : fs::path(file);
    if (!write_file(to, *program)) return errors.error("cannot write {}", to.string());
    if (!into_folder) break;
  }
  return {};
}

}  // namespace headrace::offload
