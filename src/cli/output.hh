#pragma once
/// \file
/// Output of commands. Nothing here throws: what a closed pipe or a full disk does to the output is reported once, when
/// the command ends.

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace headrace::cli {

/// Exit statuses besides 0.
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;  ///< the command line is wrong

/// Writes to standard output. A failure is remembered for finish_output().
void write_output(std::string_view text);
void write_message(std::string_view text);

/// Writes `text` to `file`; "-" is standard output. False with a message that begins with `program` if that fails.
bool write_file(const std::string& file, std::string_view text, std::string_view program);

/// Prints to standard output.
template <typename... A>
void print(fmt::format_string<A...> format, A&&... arguments) {
  write_output(fmt::format(format, std::forward<A>(arguments)...));
}
/// Prints to standard error.
template <typename... A>
void complain(fmt::format_string<A...> format, A&&... arguments) {
  write_message(fmt::format(format, std::forward<A>(arguments)...));
}

/// Keeps files that are opened later from becoming standard input, output or error where one of these is closed.
void hold_standard_streams();
/// For commands whose output programs read: what elements write to standard output goes to standard error from now on,
/// and standard output gets what write_output() writes, alone.
void keep_output_to_command();
/// For commands that run a router: a reader that closes a pipe or socket does not end the process.
void outlive_readers();
/// Writes what is buffered. Returns `status`, or kFailed with a message if output was lost. A reader that closed its end
/// of a pipe has lost nothing that it wanted.
int finish_output(std::string_view program, int status);

}  // namespace headrace::cli
