#include "offload/cpu_chains.hh"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "headrace/worker.hh"
#include "offload/cpu_program.hh"

namespace headrace::offload {

CpuChains::CpuChains(const std::vector<Plan>& plans, size_t images, int workers)
    : plans_(plans), images_(images), source_(cpu_program_source(plans)) {
  for (int w = 0; w < workers; ++w) workers_.push_back(std::make_unique<OfWorker>());
}

CpuChains::~CpuChains() {
  cancel_.store(true);
  if (finder_.joinable()) finder_.join();
  for (ChainEntry* entry : entries_) entry->set_body(nullptr);
}

void CpuChains::add_entry(ChainEntry& element, int plan, int entry) {
  element.set_place(plan, entry, static_cast<int>(workers_.size()));
  entries_.push_back(&element);
}

void CpuChains::start(const CompileOptions& options) {
  state_ = "being compiled";
  if (options.mode == CompileOptions::Mode::kWait)
    find(options);
  else
    finder_ = std::thread([this, options] { find(options); });
}

void CpuChains::find(const CompileOptions& options) {
  std::string why_not;
  std::optional<LoadedProgram> found = find_program(source_, options, cancel_, why_not);
  const std::lock_guard guard(lock_);
  if (found && found->program->chain_count != plans_.size()) why_not = "it has other chains";
  if (!found || !why_not.empty()) {
    state_ = "not compiled: " + why_not;
    return;
  }
  program_ = std::move(*found);
  state_ = "compiled: " + program_.origin;
  for (ChainEntry* entry : entries_) entry->set_body(this);
  ready_.store(true, std::memory_order_release);
}

std::string CpuChains::describe() const {
  const std::lock_guard guard(lock_);
  return state_;
}

void CpuChains::copy_images(OfWorker& worker) {
  worker.generation = generation_.load(std::memory_order_relaxed);
  for (const Plan& plan : plans_)
    for (const Step& step : plan.steps()) step.element->copy_image(worker.images.get() + step.image);
}

CpuChains::Frame& CpuChains::new_frame(OfWorker& worker, int plan) {
  OfPlan& of_plan = worker.plans[static_cast<size_t>(plan)];
  const CompiledChain& chain = program_.program->chains[plan];
  auto frame = std::make_unique<Frame>();
  frame->plan = &plans_[static_cast<size_t>(plan)];
  frame->lists = std::make_unique<Batch[]>(chain.lists);
  frame->held.resize(chain.lists);
  frame->run.images = worker.images.get();
  frame->run.counters = of_plan.counters.data();
  frame->run.lists = frame->lists.get();
  frame->run.held = frame->held.data();
  frame->run.rare = &frame->rare;
  frame->run.rare_codes = frame->rare_codes;
  frame->run.host = frame.get();
  frame->run.leave = [](void* host, uint32_t step, Next next, Batch& batch) {
    static_cast<Frame*>(host)->plan->steps()[step].element->leave(batch, next);
  };
  frame->run.leave_rare = [](void* host) {
    Frame& f = *static_cast<Frame*>(host);
    Batch rest, out;
    uint16_t codes[Batch::kCapacity];
    const int n = f.rare.size();
    std::copy_n(f.rare.begin(), n, rest.begin());
    std::copy_n(f.rare_codes, n, codes);
    f.rare.clear();
    for (int left = n; left > 0;) {
      const uint16_t code = codes[0];
      int kept = 0;
      out.clear();
      for (int i = 0; i < left; ++i) {
        if (codes[i] == code) {
          out.push_back(rest[i]);
        } else {
          rest[kept] = rest[i];
          codes[kept++] = codes[i];
        }
      }
      left = kept;
      const Exit& exit = f.plan->exits()[static_cast<size_t>(code - kExit)];
      f.plan->steps()[exit.step].element->leave(out, exit.port);
    }
  };
  frame->run.decide = [](void* host, uint32_t step, Batch& batch, Next* nexts) {
    static_cast<Frame*>(host)->plan->steps()[step].element->decide(batch.begin(), batch.size(), nexts);
  };
  return *of_plan.frames.emplace_back(std::move(frame));
}

CpuChains::OfWorker& CpuChains::prepare(int id) {
  OfWorker& worker = *workers_[static_cast<size_t>(id)];
  constexpr size_t kAlignment = 64;
  worker.images.reset(static_cast<uint8_t*>(
      std::aligned_alloc(kAlignment, (images_ + kAlignment) / kAlignment * kAlignment)));
  if (!worker.images) throw std::bad_alloc();
  worker.plans = std::make_unique<OfPlan[]>(plans_.size());
  for (size_t p = 0; p < plans_.size(); ++p) {
    OfPlan& of_plan = worker.plans[p];
    for (const Step& step : plans_[p].steps()) {
      of_plan.counters.push_back(step.element->local_counters());
      if (step.element->refreshes()) of_plan.refreshed.emplace_back(step.element, step.image);
    }
    // Two, so that an error message that is routed like any packet finds one.
    for (int i = 0; i < 2; ++i) new_frame(worker, static_cast<int>(p));
  }
  copy_images(worker);
  return worker;
}

uint64_t CpuChains::runs(int plan) const {
  uint64_t sum = 0;
  for (const auto& worker : workers_)
    if (worker->plans) sum += worker->plans[static_cast<size_t>(plan)].runs;
  return sum;
}

void CpuChains::run(int plan, int entry, Batch& batch) {
  if (batch.empty()) return;
  const int id = thread_id();
  OfWorker* worker = workers_[static_cast<size_t>(id)].get();
  if (!worker->images) [[unlikely]]
    worker = &prepare(id);
  if (worker->generation != generation_.load(std::memory_order_relaxed)) [[unlikely]]
    copy_images(*worker);
  OfPlan& of_plan = worker->plans[static_cast<size_t>(plan)];
  for (const auto& [element, image] : of_plan.refreshed) element->refresh_image(worker->images.get() + image);
  if (of_plan.depth == of_plan.frames.size()) [[unlikely]]
    new_frame(*worker, plan);
  of_plan.runs += 1;
  Frame& frame = *of_plan.frames[of_plan.depth++];
  program_.program->chains[plan].entries[entry](frame.run, batch);
  --of_plan.depth;
  batch.clear();
}

}  // namespace headrace::offload
