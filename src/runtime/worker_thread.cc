#include "runtime/worker_thread.hh"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace headrace {

WorkerThread::WorkerThread() : event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

WorkerThread::~WorkerThread() {
  if (event_fd_ >= 0) close(event_fd_);
}

void WorkerThread::wake() {
  const uint64_t one = 1;
  if (write(event_fd_, &one, sizeof one) < 0 && errno != EAGAIN) return;
}

void WorkerThread::clear_wake() {
  uint64_t count;
  if (read(event_fd_, &count, sizeof count) < 0 && errno != EAGAIN) return;
}

}  // namespace headrace
