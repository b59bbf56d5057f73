#pragma once
/// \file
/// What makes programs for the CPU run: the system's compiler, and programs that it made before.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// Finds a program: in `options.file`, in the user's cache, among those that were installed, or by the compiler
/// $HEADRACE_CXX, g++ or clang++. Takes seconds.
/// \param sources the best one first; the others will do where they were compiled beforehand
/// \param cancel when it becomes true, a running compiler is stopped
/// \return nothing and the reason in `why_not` if there is none
std::optional<LoadedProgram> find_program(const std::vector<std::string>& sources, const CompileOptions& options,
                                          const std::atomic<bool>& cancel, std::string& why_not);

/// Compiles the first source to `file`, or if that is a folder, each to the file in it that find_program() looks for.
/// \param machine the processor to compile for, as the compiler's option -march names it
Status compile_to_file(const std::vector<std::string>& sources, const std::string& file, const std::string& machine,
                       Errors& errors);

}  // namespace headrace::offload
