#include "backend/cuda/device_memory.hh"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace::cuda {

namespace {

constexpr size_t kAlignment = 16;  // of what is copied to the staging buffer
/// Of an update's kernel: few, because they run beside a kernel that stays.
constexpr unsigned kUpdateBlocks = 16;

}  // namespace

CudaMemory::~CudaMemory() {
  if (device_->failed()) return;
  device_->use();
  for (const CUevent event : sent_)
    if (event != nullptr) device_->driver().cuEventDestroy(event);
}

Status CudaMemory::open(Errors& errors) {
  if (staging_.host() != nullptr) return {};
  if (!staging_.allocate(device_, 2 * kPiece) || !list_.allocate(device_, 2 * kMostSmall * sizeof(UpdatePiece)))
    return errors.error("CUDA device {}: no {} KiB of pinned memory", device_->ordinal(), 2 * kPiece >> 10);
  bool ok = stream_.create(device_);
  for (CUevent& event : sent_) ok = ok && device_->check(device_->driver().cuEventCreate(&event, 0), "making an event");
  return ok ? Status() : errors.error("CUDA device {} has failed", device_->ordinal());
}

uint64_t CudaMemory::allocate(size_t bytes) { return device_->allocate(bytes); }

void CudaMemory::release(uint64_t address) {
  // What was sent may be for this memory.
  if (address == 0 || !finish()) return;
  device_->release(address);
}

bool CudaMemory::flush() {
  uint32_t n = listed_ - started_;
  if (n == 0) return true;
  CUdeviceptr list = list_.address() + (half_ * kMostSmall + started_) * sizeof(UpdatePiece);
  CUdeviceptr data = staging_.address() + half_ * kPiece;
  started_ = listed_;
  void* values[] = {&list, &n, &data};
  const unsigned blocks = std::min<unsigned>((n + kJobWarps - 1) / kJobWarps, kUpdateBlocks);
  return device_->check(
      device_->driver().cuLaunchKernel(update_, blocks, 1, 1, kJobThreads, 1, 1, 0, stream_.get(), values, nullptr),
      "updating tables");
}

bool CudaMemory::turn() {
  const Driver& driver = device_->driver();
  if (!flush()) return false;
  if (!device_->check(driver.cuEventRecord(sent_[half_], stream_.get()), "uploading")) return false;
  filled_[half_] = used_;
  half_ = 1 - half_;
  used_ = 0;
  listed_ = started_ = 0;
  // An event that was never recorded counts as done.
  if (!device_->wait([&] { return driver.cuEventQuery(sent_[half_]); }, "uploading")) return false;
  erase(half_);
  return true;
}

void CudaMemory::erase(size_t half) {
  if (const size_t bytes = std::exchange(filled_[half], 0); bytes > 0)
    explicit_bzero(staging_.host() + half * kPiece, bytes);
}

Status CudaMemory::send(uint64_t to, const void* from, size_t bytes) {
  if (device_->failed()) return Status::failed();
  device_->use();
  const auto* source = static_cast<const uint8_t*>(from);
  while (bytes > 0) {
    if (used_ == kPiece && !turn()) return Status::failed();
    const size_t n = std::min(bytes, kPiece - used_);
    uint8_t* const piece = staging_.host() + half_ * kPiece + used_;
    std::memcpy(piece, source, n);
    if (update_ != nullptr && bytes <= kSmall && to % kAlignment == 0) {
      pieces()[listed_++] = {to, static_cast<uint32_t>(used_), static_cast<uint32_t>(n)};
    } else if (!flush() ||
               !device_->check(device_->driver().cuMemcpyHtoDAsync(to, piece, n, stream_.get()), "uploading")) {
      return Status::failed();
    }
    used_ = std::min(kPiece, (used_ + n + kAlignment - 1) / kAlignment * kAlignment);
    if (listed_ == kMostSmall) used_ = kPiece;  // there is no room for another one
    source += n;
    to += n;
    bytes -= n;
  }
  return {};
}

Status CudaMemory::finish() {
  if (device_->failed()) return Status::failed();
  device_->use();
  if (!flush() || !stream_.wait("uploading")) return Status::failed();
  filled_[half_] = std::exchange(used_, 0);
  for (const size_t half : {0, 1}) erase(half);
  listed_ = started_ = 0;
  return {};
}

std::pair<size_t, size_t> CudaMemory::info() const {
  size_t free = 0, total = 0;
  device_->use();
  device_->driver().cuMemGetInfo(&free, &total);
  return {free, total};
}

}  // namespace headrace::cuda
