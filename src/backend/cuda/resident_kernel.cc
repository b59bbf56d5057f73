#include "backend/cuda/resident_kernel.hh"

#include <algorithm>

namespace headrace::cuda {

ResidentKernel::ResidentKernel(std::shared_ptr<Device> device, CUfunction function, PlanClass plan_class,
                               unsigned most_blocks, unsigned shared_bytes, const ResidentArguments& arguments)
    : device_(std::move(device)),
      function_(function),
      class_(plan_class),
      most_blocks_(most_blocks),
      shared_bytes_(shared_bytes),
      arguments_(arguments) {}

ResidentKernel::~ResidentKernel() {
  if (!open_) return;
  pause();
  device_->remove(this);
}

bool ResidentKernel::open() {
  const size_t mail = size_t{most_blocks_} * team_mail_bytes(arguments_.counters);
  if (!control_.allocate(device_, 64) || !activity_.allocate(device_, sizeof(ResidentActivity)) ||
      !mail_.allocate(device_, mail) || !stream_.create(device_))
    return false;
  arguments_.left = control_.address();
  arguments_.activity = activity_.address();
  arguments_.mail = mail_.address();
  device_->add(this);
  open_ = true;
  return true;
}

void ResidentKernel::serve(const std::vector<Places>& lanes, CUdeviceptr list, int places) {
  const auto not_quiet = device_->not_quiet();
  pause();
  lanes_ = lanes;
  arguments_.lanes = list;
  arguments_.places_of_lane = static_cast<uint32_t>(places);
  arguments_.place_count = static_cast<uint32_t>(lanes.size()) * arguments_.places_of_lane;
  arguments_.teams = std::clamp(arguments_.place_count, 1U, most_blocks_);
  blocks_ = arguments_.teams * std::clamp(most_blocks_ / arguments_.teams, 1U, unsigned{kMostInTeam});
  resume();
}

bool ResidentKernel::launch() {
  if (arguments_.place_count == 0) return true;
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
  for (const Places& lane : lanes_)
    for (uint32_t i = 0; i < arguments_.places_of_lane; ++i)
      __atomic_store_n(&lane.bell(static_cast<int>(i), class_).leave, uint64_t{arguments_.generation},
                       __ATOMIC_RELEASE);
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
  if (device_->driver_is_busy()) return;
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard || paused_ > 0 || device_->failed()) return;
  device_->use();
  const CUresult state = device_->driver().cuStreamQuery(stream_.get());
  if (state == CUresult::kNotReady || !device_->check(state, "the resident kernel")) return;
  if (__atomic_load_n(left(), __ATOMIC_ACQUIRE) != generation_.load(std::memory_order_relaxed))
    device_->fail("the resident kernel has ended without being asked to");
}

}  // namespace headrace::cuda
