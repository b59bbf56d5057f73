#pragma once
/// \file
/// Tables and parameters on a CUDA device.

#include "backend/cuda/device.hh"
#include "headrace/device/jobs.hh"
#include "offload/backend.hh"

namespace headrace::cuda {

class CudaMemory final : public offload::DeviceMemory {
 public:
  explicit CudaMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~CudaMemory() override;

  /// Makes the staging buffer and the stream of its own that uploads go over.
  Status open(Errors& errors);

  /// From now on `headrace_update` carries small pieces: many in one start. Null: each is a copy again.
  void update_by(CUfunction function) { update_ = function; }

  uint64_t allocate(size_t bytes) override;
  void release(uint64_t address) override;
  Status send(uint64_t to, const void* from, size_t bytes) override;
  Status finish() override;
  size_t free_bytes() const override { return info().first; }
  size_t total_bytes() const override { return info().second; }

 private:
  static constexpr size_t kPiece = size_t{2} << 20;
  /// A piece is small up to so many bytes; at most so many of them wait in a half.
  static constexpr size_t kSmall = 4096, kMostSmall = 8192;

  UpdatePiece* pieces() const { return reinterpret_cast<UpdatePiece*>(list_.host()) + half_ * kMostSmall; }
  /// Starts the update of the small pieces that wait. Their part of the list stays as it is until the half has traveled.
  bool flush();
  /// Turns to the other half of the staging buffer, when it has traveled.
  bool turn();
  /// Overwrites what has traveled: there may be keys in it.
  void erase(size_t half);
  std::pair<size_t, size_t> info() const;

  std::shared_ptr<Device> device_;
  Stream stream_;
  PinnedMemory staging_;   // two halves of kPiece bytes, one filled while the other travels
  CUevent sent_[2] = {};   // the copies from a half are done
  size_t half_ = 0;        // the one that is filled
  size_t used_ = 0;        // bytes of it
  size_t filled_[2] = {};  // bytes of halves that were turned away from
  PinnedMemory list_;      // of small pieces, for each half
  uint32_t listed_ = 0;    // of them, in the half that is filled
  uint32_t started_ = 0;   // of these
  CUfunction update_ = nullptr;
};

}  // namespace headrace::cuda
