#include <cstring>

#include "headrace/worker.hh"

namespace headrace {

namespace detail {
constinit thread_local int t_thread_id = kForeignThread;
int g_thread_count = 1;
}  // namespace detail

namespace {
/// Runs on the first thread of the process. The compiler barrier keeps LLVM from folding the store into the variable's
/// initializer, which would make every thread the first one.
[[maybe_unused]] const int g_first_thread = [] {
  asm volatile("" ::: "memory");
  return detail::t_thread_id = 0;
}();
}  // namespace

void ThreadCounters::resize(int count) {
  std::free(cells_);
  count_ = count;
  threads_ = thread_count();
  stride_ = (static_cast<size_t>(count) + 7) & ~size_t{7};
  cells_ = nullptr;
  if (count == 0) return;
  const size_t bytes = 2 * stride_ * threads_ * sizeof(uint64_t);
  cells_ = static_cast<uint64_t*>(std::aligned_alloc(64, bytes));
  if (!cells_) throw std::bad_alloc();
  std::memset(cells_, 0, bytes);
}

uint64_t ThreadCounters::load(int thread, int index) const {
  return __atomic_load_n(cells_ + thread * stride_ + index, __ATOMIC_RELAXED);
}

uint64_t ThreadCounters::of_thread(int thread, int index) const {
  return load(thread, index) - load(threads_ + thread, index);
}

uint64_t ThreadCounters::sum(int index) const {
  uint64_t total = 0;
  for (int t = 0; t < threads_; ++t) total += of_thread(t, index);
  return total;
}

void ThreadCounters::reset() {
  for (int t = 0; t < threads_; ++t)
    for (int i = 0; i < count_; ++i) cells_[(threads_ + t) * stride_ + i] = load(t, i);
}

}  // namespace headrace
