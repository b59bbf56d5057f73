#include "offload/cpu_chains.hh"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <utility>

#include "headrace/thread_name.hh"
#include "headrace/worker.hh"
#include "offload/cpu_program.hh"
#include "offload/cycle_account.hh"
#include "offload/program_text.hh"

namespace headrace::offload {

CpuChains::CpuChains(const std::vector<Plan>& plans, size_t images, int workers, const CompileOptions& options,
                     bool profile)
    : plans_(plans),
      images_(images),
      options_(options),
      profile_(profile),
      sources_{cpu_program_source(plans, profile), cpu_program_source(plans, profile, true)} {
  for (const Plan& plan : plans)
    for (const Step& step : plan.steps())
      if (step.element->may_change() && (step.element->is_plain() || step.element->specialize() != ShaderCode()))
        fixed_.push_back({step.element, image_of(*step.element)});
  if (profile)
    for (const Plan& plan : plans) samples_.emplace_back(plan.steps().size());
  for (int w = 0; w < workers; ++w) workers_.push_back(std::make_unique<OfWorker>());
}

CpuChains::~CpuChains() {
  cancel_.store(true);
  if (finder_.joinable()) finder_.join();
  if (sampler_.joinable()) sampler_.join();
  for (ChainEntry* entry : entries_) entry->set_body(nullptr);
}

void CpuChains::add_entry(ChainEntry& element, int plan, int entry) {
  element.set_place(plan, entry, static_cast<int>(workers_.size()), options_.smallest_batch);
  entries_.push_back(&element);
}

void CpuChains::start() {
  state_ = "being compiled";
  if (options_.mode == CompileOptions::Mode::kWait)
    find();
  else
    finder_ = std::thread([this] {
      name_thread("chain compiler");
      find();
    });
  if (profile_)
    sampler_ = std::thread([this] {
      name_thread("profiler");
      sample();
    });
}

std::vector<uint8_t> CpuChains::image_of(const ShaderElementBase& shader) {
  std::vector<uint8_t> image(shader.image_size());
  shader.copy_image(image.data());
  shader.refresh_image(image.data());
  return image;
}

void CpuChains::changed() {
  // Once one has changed, what is compared may be the address of a table that came and went: there is no way back.
  open_ =
      open_ || std::any_of(fixed_.begin(), fixed_.end(), [](const Fixed& f) { return image_of(*f.shader) != f.image; });
  generation_.fetch_add(1, std::memory_order_relaxed);
}

void CpuChains::sample() {
  // Not in step with anything that workers do.
  constexpr std::chrono::microseconds kShortest{50};
  std::minstd_rand random;
  while (!cancel_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kShortest + std::chrono::microseconds(random() % 64));
    for (const auto& worker : workers_)
      if (const uint32_t mark = __atomic_load_n(&worker->mark, __ATOMIC_RELAXED))
        samples_[mark >> 16][(mark & 0xffff) - 1].fetch_add(1, std::memory_order_relaxed);
  }
}

CpuChains::Profile CpuChains::profile(const Element& element) const {
  Profile sum;
  if (!profile_ || !ready()) return sum;
  for (size_t p = 0; p < plans_.size(); ++p)
    for (size_t s = 0; s < plans_[p].steps().size(); ++s) {
      if (plans_[p].steps()[s].element != &element) continue;
      uint64_t all = 0;
      for (const auto& n : samples_[p]) all += n.load(std::memory_order_relaxed);
      const double share =
          all == 0 ? 0 : static_cast<double>(samples_[p][s].load(std::memory_order_relaxed)) / static_cast<double>(all);
      for (const auto& worker : workers_) {
        const OfPlan& of_plan = worker->plans[p];
        sum.cycles += share * static_cast<double>(of_plan.cycles - of_plan.cycles_before);
        sum.packets += of_plan.passed[s] - of_plan.passed_before[s];
        sum.batches += of_plan.batches[s] - of_plan.batches_before[s];
      }
    }
  return sum;
}

void CpuChains::reset_profile() {
  for (auto& of_plan : samples_)
    for (auto& n : of_plan) n.store(0, std::memory_order_relaxed);
  if (!ready()) return;
  for (const auto& worker : workers_)
    for (size_t p = 0; p < plans_.size(); ++p) {
      OfPlan& of_plan = worker->plans[p];
      of_plan.cycles_before = of_plan.cycles;
      of_plan.passed_before = of_plan.passed;
      of_plan.batches_before = of_plan.batches;
    }
}

void CpuChains::find() {
  std::string why_not;
  std::optional<LoadedProgram> found = find_program(sources_, options_, cancel_, why_not);
  const std::lock_guard guard(lock_);
  if (!found) {
    state_ = fmt::format("not compiled ({}): packets go from element to element", why_not);
  } else {
    program_ = std::move(*found);
    for (size_t w = 0; w < workers_.size(); ++w) prepare(static_cast<int>(w));
    state_ = "compiled: " + program_.origin + without_headers();
    for (ChainEntry* entry : entries_) entry->set_body(this);
    ready_.store(true, std::memory_order_release);
  }
  busy_.store(false, std::memory_order_release);
}

std::string CpuChains::without_headers() const {
  std::set<std::string> classes;
  for (const Plan& plan : plans_)
    for (const Step& step : plan.steps())
      if (step.element->runs_by_packet() && header_of(step).empty()) classes.insert(step.element->class_name());
  return classes.empty() ? "" : fmt::format(", but for {}: no header came with it", fmt::join(classes, ", "));
}

std::string CpuChains::describe() const {
  const std::lock_guard guard(lock_);
  return state_;
}

void CpuChains::copy_images(OfWorker& worker) {
  worker.generation = generation_.load(std::memory_order_relaxed);
  worker.chains = open_ ? program_.program->open : program_.program->chains;
  for (const Plan& plan : plans_)
    for (const Step& step : plan.steps()) step.element->copy_image(worker.images.get() + step.image);
}

std::unique_ptr<CpuChains::Frame> CpuChains::make_frame(OfWorker& worker, size_t plan) const {
  OfPlan& of_plan = worker.plans[plan];
  const uint32_t lists = std::max(program_.program->chains[plan].lists, program_.program->open[plan].lists);
  auto frame = std::make_unique<Frame>();
  frame->plan = &plans_[plan];
  for (const Step& step : plans_[plan].steps()) {
    frame->places.push_back({step.element, worker.images.get() + step.image,
                             static_cast<uint32_t>(frame->outputs.size()),
                             static_cast<uint32_t>(step.element->noutputs())});
    for (int i = 0; i < step.element->noutputs(); ++i) frame->outputs.push_back(step.element->output(i));
  }
  frame->lists = std::make_unique<Batch[]>(lists);
  frame->ways = std::make_unique<uint16_t[]>(size_t{lists} * Batch::kCapacity);
  frame->held.resize(lists);
  frame->run.images = worker.images.get();
  frame->run.counters = of_plan.counters.data();
  frame->run.lists = frame->lists.get();
  frame->run.ways = frame->ways.get();
  frame->run.held = frame->held.data();
  frame->run.rare = &frame->rare;
  frame->run.rare_codes = frame->rare_codes;
  frame->run.mark = &worker.mark;
  frame->run.passed = of_plan.passed.data();
  frame->run.batches = of_plan.batches.data();
  frame->run.host = frame.get();
  frame->run.leave = [](void* host, uint32_t step, Next next, Batch& batch) {
    const Frame& f = *static_cast<Frame*>(host);
    const Frame::Place& place = f.places[step];
    if (next < place.outputs) [[likely]]
      f.outputs[place.first_output + next].push(batch);
    else
      place.element->leave(batch, next);
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
  frame->run.refresh = [](void* host, uint32_t step) {
    const Frame::Place& place = static_cast<Frame*>(host)->places[step];
    place.element->refresh_image(place.image);
  };
  frame->run.decide = [](void* host, uint32_t step, Batch& batch, Next* nexts) {
    static_cast<Frame*>(host)->plan->steps()[step].element->decide(batch.begin(), batch.size(), nexts);
  };
  return frame;
}

void CpuChains::prepare(int id) {
  OfWorker& worker = *workers_[static_cast<size_t>(id)];
  constexpr size_t kAlignment = 64;
  worker.images.reset(
      static_cast<uint8_t*>(std::aligned_alloc(kAlignment, (images_ + kAlignment) / kAlignment * kAlignment)));
  if (!worker.images) throw std::bad_alloc();
  worker.plans = std::make_unique<OfPlan[]>(plans_.size());
  for (size_t p = 0; p < plans_.size(); ++p) {
    OfPlan& of_plan = worker.plans[p];
    of_plan.passed.resize(plans_[p].steps().size());
    of_plan.batches.resize(plans_[p].steps().size());
    of_plan.passed_before = of_plan.batches_before = of_plan.passed;
    for (const Step& step : plans_[p].steps()) of_plan.counters.push_back(step.element->counters_of(id));
    for (std::unique_ptr<Frame>& frame : of_plan.frames) frame = make_frame(worker, p);
  }
}

uint64_t CpuChains::runs(int plan) const {
  uint64_t sum = 0;
  if (!ready()) return sum;
  for (const auto& worker : workers_) sum += worker->plans[static_cast<size_t>(plan)].runs;
  return sum;
}

void CpuChains::run(int plan, int entry, Batch& batch) {
  if (batch.empty()) return;
  const int id = thread_id();
  OfWorker* const worker = workers_[static_cast<size_t>(id)].get();
  if (worker->generation != generation_.load(std::memory_order_relaxed)) [[unlikely]]
    copy_images(*worker);
  OfPlan& of_plan = worker->plans[static_cast<size_t>(plan)];
  if (of_plan.depth == of_plan.frames.size()) [[unlikely]] {
    // An error message that is routed like any packet finds a frame; one about that message goes from element to element.
    const Plan& p = plans_[static_cast<size_t>(plan)];
    p.steps()[p.entries()[static_cast<size_t>(entry)].step].element->push(0, batch);
    return;
  }
  of_plan.runs += 1;
  Frame& frame = *of_plan.frames[of_plan.depth++];
  uint64_t* const outer = CycleAccount::t_running;
  if (profile_) [[unlikely]]
    CycleAccount::charge(&of_plan.cycles);
  worker->chains[plan].entries[entry](frame.run, batch);
  if (profile_) [[unlikely]] {
    __atomic_store_n(&worker->mark, 0, __ATOMIC_RELAXED);
    CycleAccount::charge(outer);
  }
  --of_plan.depth;
  batch.clear();
}

}  // namespace headrace::offload
