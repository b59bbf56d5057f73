#include "tables/files/record_file.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace headrace {

int RecordFile::open(const std::string& name, Mode mode) {
  close();
  const int how = O_WRONLY | O_CREAT | O_CLOEXEC | (mode == Mode::kAppend ? O_APPEND : O_TRUNC);
  fd_ = name == "-" ? STDOUT_FILENO : ::open(name.c_str(), how, 0666);
  if (fd_ < 0) return errno;
  struct stat status;
  can_cut_ = fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  return 0;
}

void RecordFile::close() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
  fd_ = -1;
}

size_t RecordFile::write(std::string_view bytes, std::span<const uint32_t> ends) {
  size_t whole = 0, done = 0;
  while (whole < ends.size() && fd_ >= 0) {
    size_t last = can_cut_ ? ends.size() : whole + 1;
    while (last < ends.size() && ends[last] - done <= PIPE_BUF) ++last;
    done += write_bytes(bytes.substr(done, ends[last - 1] - done));
    while (whole < last && ends[whole] <= done) ++whole;
    if (whole == last) continue;
    const size_t good = whole > 0 ? ends[whole - 1] : 0;
    if (!cut_off(done - good)) close();
    break;
  }
  return whole;
}

/// Returns how many of the bytes were written; if not all, error() says why.
size_t RecordFile::write_bytes(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      error_ = errno;
      break;
    }
  }
  return done;
}

/// Takes the last `n` bytes off the file. False if that cannot be done.
bool RecordFile::cut_off(size_t n) {
  if (n == 0) return true;
  const off_t end = lseek(fd_, 0, SEEK_CUR), good = end - static_cast<off_t>(n);
  struct stat status;
  // Another process may have written behind it.
  if (!can_cut_ || good < 0 || fstat(fd_, &status) != 0 || status.st_size != end) return false;
  return ftruncate(fd_, good) == 0 && lseek(fd_, good, SEEK_SET) == good;
}

}  // namespace headrace
