#include "cli/output.hh"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace headrace::cli {

namespace {

int g_output_error = 0;         // the first one
std::FILE* g_output = nullptr;  // null: stdout

std::FILE* output() { return g_output ? g_output : stdout; }

void note_output_error() {
  if (g_output_error == 0) g_output_error = errno ? errno : EIO;
}

}  // namespace

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), output()) != text.size()) note_output_error();
}

void write_message(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

bool write_file(const std::string& file, std::string_view text, std::string_view program) {
  if (file == "-") {
    write_output(text);
    return true;
  }
  std::FILE* out = std::fopen(file.c_str(), "wb");
  bool good = out && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out) good = std::fclose(out) == 0 && good;
  if (!good) complain("{}: {}: {}\n", program, file, std::strerror(errno));
  return good;
}

void hold_standard_streams() {
  // Line by line, also into a file or pipe: a router's log is read while it runs.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() takes the lowest free number. Read-only, so that writing to it fails and is reported.
    (void)!open("/dev/null", O_RDONLY);
  }
}

void keep_output_to_command() {
  std::fflush(stdout);
  const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  std::FILE* const own = fd < 0 ? nullptr : fdopen(fd, "w");
  if (!own) {
    if (fd >= 0) close(fd);
    return;
  }
  dup2(STDERR_FILENO, STDOUT_FILENO);
  g_output = own;
}

void outlive_readers() { std::signal(SIGPIPE, SIG_IGN); }

int finish_output(std::string_view program, int status) {
  errno = 0;
  if (std::fflush(output()) != 0) note_output_error();
  if (std::ferror(output()) && g_output_error == 0) {
    // A write that did not go through write_output() has failed, such as a script's; its reason is lost.
    pollfd out{fileno(output()), POLLOUT, 0};
    g_output_error = poll(&out, 1, 0) == 1 && (out.revents & POLLERR) ? EPIPE : EIO;
  }
  if (g_output_error == 0 || g_output_error == EPIPE) return status;
  complain("{}: standard output: {}\n", program, std::strerror(g_output_error));
  return status == 0 ? kFailed : status;
}

}  // namespace headrace::cli
