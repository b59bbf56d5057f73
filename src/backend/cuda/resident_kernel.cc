#include "backend/cuda/resident_kernel.hh"

namespace headrace::cuda {

ResidentKernel::ResidentKernel(std::shared_ptr<Device> device, CUfunction function, unsigned blocks,
                               unsigned shared_bytes, const ResidentArguments& arguments, uint8_t* places)
    : device_(std::move(device)),
      function_(function),
      blocks_(blocks),
      shared_bytes_(shared_bytes),
      arguments_(arguments),
      places_(places) {}

ResidentKernel::~ResidentKernel() {
  if (!running_) return;
  pause();
  device_->remove(this);
  const Device::Quiet quiet(*device_);
  control_.reset();
  activity_.reset();
  mail_.reset();
}

bool ResidentKernel::start() {
  const size_t mail = size_t{arguments_.teams} * team_mail_bytes(arguments_.counters);
  if (!control_.allocate(device_, 64) || !activity_.allocate(device_, sizeof(ResidentActivity)) ||
      !mail_.allocate(device_, mail) || !stream_.create(device_))
    return false;
  arguments_.left = control_.address();
  arguments_.activity = activity_.address();
  arguments_.mail = mail_.address();
  device_->add(this);
  running_ = true;
  const std::lock_guard guard(lock_);
  // Made under a Quiet: its end starts the kernel.
  ++paused_;
  return true;
}

bool ResidentKernel::launch() {
  device_->use();
  // 0 is what the words that ask to leave begin with.
  const uint32_t next = generation_.load(std::memory_order_relaxed) + 1;
  arguments_.generation = next == 0 ? 1 : next;
  generation_.store(arguments_.generation, std::memory_order_release);
  void* parameters[] = {&arguments_};
  return device_->check(device_->driver().cuLaunchKernel(function_, blocks_, 1, 1, kJobThreads, 1, 1, shared_bytes_,
                                                         stream_.get(), parameters, nullptr),
                        "starting the resident kernel");
}

void ResidentKernel::pause() {
  const std::lock_guard guard(lock_);
  if (paused_++ > 0 || device_->failed()) return;
  for (uint32_t i = 0; i < arguments_.place_count; ++i) {
    auto* bell = reinterpret_cast<Doorbell*>(places_ + i * arguments_.place_stride);
    __atomic_store_n(&bell->leave, uint64_t{arguments_.generation}, __ATOMIC_RELEASE);
  }
  stream_.wait("the resident kernel was asked to leave");
}

void ResidentKernel::resume() {
  const std::lock_guard guard(lock_);
  if (--paused_ == 0 && !device_->failed()) launch();
}

void ResidentKernel::start_again() {
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard || paused_ > 0 || device_->failed()) return;
  if (__atomic_load_n(left(), __ATOMIC_ACQUIRE) != generation_.load(std::memory_order_relaxed)) return;
  // In the order of its stream: the next kernel starts when the last block of this one has left.
  launch();
}

void ResidentKernel::check() {
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard || paused_ > 0 || device_->failed()) return;
  device_->use();
  const CUresult state = device_->driver().cuStreamQuery(stream_.get());
  if (state == CUresult::kNotReady || !device_->check(state, "the resident kernel")) return;
  if (__atomic_load_n(left(), __ATOMIC_ACQUIRE) != generation_.load(std::memory_order_relaxed))
    device_->fail("the resident kernel has ended without being asked to");
}

}  // namespace headrace::cuda
