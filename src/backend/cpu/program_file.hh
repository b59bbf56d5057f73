#pragma once
/// \file
/// Programs for the CPU as files: what may be taken for one, and what may not.

#include <optional>
#include <string>
#include <vector>

#include "offload/cpu_compiler.hh"

namespace headrace::offload {

/// Adds a checksum to what a compiler has made, so that unseal() sees whether a file is what was written.
void seal(std::vector<char>& program);
/// Takes the checksum away. False if there is none, or it is wrong: a part of the file is missing, or has changed.
bool unseal(std::vector<char>& program);

/// Loads a program from memory, so that it may come from a file system that executes nothing, and so that nobody can
/// change it after it was read.
/// \param program a shared object, without checksum
/// \param hashes of the sources from which it may have been made
/// \return nothing and the reason in `why_not` if it is none, cut short, made from another source, or for another processor
std::optional<LoadedProgram> load_program(const std::vector<char>& program, const std::vector<std::string>& hashes,
                                          std::string& why_not);

}  // namespace headrace::offload
