#pragma once
/// \file
/// What makes programs for the CPU run: the system's compiler, and programs that it made before.

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "headrace/compile_options.hh"
#include "headrace/compiled.hh"
#include "headrace/error.hh"

namespace headrace::offload {

/// A program in this process. It stays as long as `handle`.
struct LoadedProgram {
  std::shared_ptr<void> handle;
  const CompiledProgram* program = nullptr;
  std::string origin;  ///< "g++ (Debian 12.2.0-14) 12.2.0, 0.5 s", "..., kept in /home/u/.cache/headrace", or a file
};

/// Identifies a source together with all headers that it includes.
std::string program_hash(const std::string& source);

/// Finds the program of a source: in `options.file`, in the user's cache, among those that were installed, or by the
/// compiler $HEADRACE_CXX, g++ or clang++. Takes seconds.
/// \param cancel when it becomes true, a running compiler is stopped
/// \return nothing and the reason in `why_not` if there is none
std::optional<LoadedProgram> find_program(const std::string& source, const CompileOptions& options,
                                          const std::atomic<bool>& cancel, std::string& why_not);

/// Compiles a source to `file`, or if that is a folder, to the file in it that find_program() looks for.
/// \param machine the processor to compile for, as the compiler's option -march names it
Status compile_to_file(const std::string& source, const std::string& file, const std::string& machine, Errors& errors);

}  // namespace headrace::offload
