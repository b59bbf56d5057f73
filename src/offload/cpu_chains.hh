#pragma once
/// \file
/// The chains of one router, compiled for the CPU.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "headrace/compile_options.hh"
#include "headrace/device/chain_entry.hh"
#include "headrace/single_writer.hh"
#include "offload/cpu_compiler.hh"
#include "offload/plan.hh"

namespace headrace::offload {

/// Runs chains that a compiler has made one function of. Until the compiler is done, or if there is none, packets go
/// from element to element. A worker changes over between two batches.
class CpuChains final : public ChainBody {
 public:
  /// \param plans must outlive this object
  /// \param images the size of a block with the shaders of all plans
  /// \param profile measure elements, see profile()
  CpuChains(const std::vector<Plan>& plans, size_t images, int workers, const CompileOptions& options, bool profile);
  ~CpuChains();
  CpuChains(const CpuChains&) = delete;
  CpuChains& operator=(const CpuChains&) = delete;

  /// The element in front of entry number `entry` of plan `plan`.
  void add_entry(ChainEntry& element, int plan, int entry);
  /// Looks for a compiled program, and waits for it if the options say so. Call when all entries are there.
  void start();
  /// Call after something in a shader may have changed, while no worker runs.
  void changed();
  /// True once packets take the compiled way.
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  /// True until it is known whether the chains can be compiled.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  /// "compiled: ...", "being compiled", or why packets go from element to element.
  std::string describe() const;

  const std::vector<Plan>& plans() const { return plans_; }
  /// How many batches a chain has run.
  uint64_t runs(int plan) const;

  /// What one element has done in chains, if profiles are measured. The cycles of a chain are divided among its elements
  /// by samples: a thread looks several thousand times a second where each worker is.
  struct Profile {
    double cycles = 0;
    uint64_t packets = 0;
    uint64_t batches = 0;
  };
  Profile profile(const Element& element) const;
  void reset_profile();

  void run(int plan, int entry, Batch& batch) override;

 private:
  /// What a chain needs while it runs on a worker. Packets that leave it may come to it again while it does, so there are
  /// several of one chain.
  struct Frame {
    std::unique_ptr<Batch[]> lists;
    std::unique_ptr<uint16_t[]> ways;
    std::vector<uint16_t> held;
    Batch rare;
    uint16_t rare_codes[Batch::kCapacity];
    const Plan* plan = nullptr;
    /// What the program calls for each batch, by step: here it lies in few cache lines, in elements in many.
    struct Place {
      ShaderElementBase* element;
      uint8_t* image;
      uint32_t first_output, outputs;  // among those of all steps
    };
    std::vector<Place> places;
    std::vector<Port> outputs;
    ChainRun run;
  };
  static constexpr size_t kFrames = 2;
  struct OfPlan {
    std::vector<uint64_t*> counters;  // by step
    std::array<std::unique_ptr<Frame>, kFrames> frames;
    size_t depth = 0;  // frames in use
    SingleWriter<uint64_t> runs = 0;
    uint64_t cycles = 0;                    // this and what follows only if profiles are measured
    std::vector<uint64_t> passed, batches;  // by step
    /// All of these at the last reset.
    uint64_t cycles_before = 0;
    std::vector<uint64_t> passed_before, batches_before;
  };
  struct alignas(64) OfWorker {
    std::unique_ptr<uint8_t[], decltype(&std::free)> images{nullptr, &std::free};
    uint64_t generation = 0;  // of the images
    const CompiledChain* chains = nullptr;
    uint32_t mark = 0;  // where the worker is; written by programs with marks
    std::unique_ptr<OfPlan[]> plans;
  };

  /// Shaders whose values are part of the program, and these values.
  struct Fixed {
    const ShaderElementBase* shader;
    std::vector<uint8_t> image;
  };
  static std::vector<uint8_t> image_of(const ShaderElementBase& shader);
  void find();
  /// For describe(): what classes are no part of the program, though they could be.
  std::string without_headers() const;
  void sample();
  /// Makes what a worker needs, before packets come.
  void prepare(int worker);
  void copy_images(OfWorker& worker);
  std::unique_ptr<Frame> make_frame(OfWorker& worker, size_t plan) const;

  const std::vector<Plan>& plans_;
  const size_t images_;
  const CompileOptions options_;
  const bool profile_;
  const std::vector<std::string> sources_;
  std::vector<Fixed> fixed_;
  bool open_ = false;  // some of them have other values now, or had
  std::vector<ChainEntry*> entries_;
  std::vector<std::unique_ptr<OfWorker>> workers_;
  std::atomic<uint64_t> generation_{1};
  std::atomic<bool> ready_{false}, busy_{true}, cancel_{false};
  LoadedProgram program_;
  mutable std::mutex lock_;
  std::string state_;
  std::thread finder_, sampler_;
  std::vector<std::vector<std::atomic<uint64_t>>> samples_;  // by plan and step
};

}  // namespace headrace::offload
