// What a worker does of balancing: it sends packets to the sides that their buckets have, measures what they cost, and
// moves the shares of devices between two decisions of the balancer.

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "headrace/packet_pool.hh"
#include "offload/job_clock.hh"
#include "offload/job_queue.hh"

namespace headrace::offload {

namespace {

/// Batches and polls between two looks at the clock.
constexpr int kBatchesPerLook = 16;
constexpr double kTickUs = 1000;
/// A sample is at least so long, unless a decision ends it.
constexpr double kSpanUs = 5000;
constexpr double kAloneUs = 20000;  // after which what is on the CPU stays there
/// Shares that differ by no more are the same: a decision repeats what the last sample told.
constexpr double kSame = 0.02;
/// Shares move by so much before buckets do.
constexpr double kWorthMoving = 0.01;
/// What it costs to divide packets among the sides, in cycles per packet.
constexpr double kDividingCycles = 9;
/// Steps through the buckets, so that neighbors do not move together.
constexpr uint32_t kBucketStep = 617;
/// A bucket with more than one in so many packets is heavy: what others do not make up for.
constexpr int64_t kHeavy = 8;
/// Fewer packets say little about buckets.
constexpr uint64_t kManyPackets = 1000;

}  // namespace

bool JobQueue::arrive_balanced(ChainEntry& entry, Batch& batch) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  Balance& balance = of_plan.balance;
  const int n = batch.size();
  balance.arrived += static_cast<uint64_t>(n);
  const uint64_t since = meter_.timed() ? meter_.since() : 0;
  if (meter_.timed()) {
    meter_.arrive(n);
    balance.looked_at += static_cast<uint64_t>(n);
    for (const Packet* p : batch) balance.bytes_looked_at += p->length();
  }
  if (balance.all_to == Balance::kCpu && balance.probe == 0 && rests(of_plan)) [[likely]] {
    events_[kCpuPackets] += static_cast<uint64_t>(n);
    if (meter_.timed()) {
      const LoadMeter::Part part = meter_.begin();
      entry.process(batch);
      const uint64_t cycles = meter_.end(part);
      balance.cpu.cycles += cycles;
      balance.cpu.timed += static_cast<uint64_t>(n);
      balance.cpu_batches.add(static_cast<uint64_t>(n), cycles);
    } else {
      entry.process(batch);
    }
    balance.cpu.packets += static_cast<uint64_t>(n);
    if (since != 0) add_delay(of_plan, LoadMeter::now() - since, n);
    return false;
  }
  if (since != 0) {
    const uint64_t look = LoadMeter::now() - since;
    look_cycles_ = look_cycles_ == 0 ? look : (7 * look_cycles_ + look) / 8;
  }
  arrived_ = true;
  const auto on_cpu = [&] { return balance.cpu.packets - of_plan.gathered.released; };
  const uint64_t cpu_before = on_cpu();
  send_balanced(entry, batch.begin(), n, -1);
  batch.clear();
  // Less than before if a decision came meanwhile, with which all is counted anew.
  if (const auto done = static_cast<int64_t>(on_cpu() - cpu_before); since != 0 && done > 0)
    add_delay(of_plan, LoadMeter::now() - since, static_cast<int>(done));
  return true;
}

void JobQueue::add_delay(OfPlan& of_plan, uint64_t cycles, int n) {
  of_plan.balance.delays.add(static_cast<uint64_t>(static_cast<double>(cycles) * 1e3 / cycles_per_us_),
                             static_cast<uint32_t>(n));
}

bool JobQueue::takes_all(OfPlan& of_plan, int device) {
  for (const Line& line : of_plan.lines)
    if (!line.parked.empty()) return false;
  if (of_plan.all_on == device) return true;
  for (size_t d = 0; d < of_plan.lines.size(); ++d)
    if (static_cast<int>(d) != device && !of_plan.lines[d].empty()) return false;
  for (uint16_t bucket = 0; bucket < kBuckets; ++bucket)
    if (device_of(of_plan, bucket) != device) move_bucket(of_plan, bucket, device);
  of_plan.all_on = device;
  return true;
}

void JobQueue::send_balanced(const ChainEntry& entry, Packet** packets, int n, int only) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  Balance& balance = of_plan.balance;
  if (balance.all_to != Balance::kMixed || balance.probe > 0) release_gathered(of_plan);
  // All to one device, as in mode `device`.
  if (balance.all_to >= 0 && balance.probe == 0 && only < 0 && usable(balance.all_to) &&
      takes_all(of_plan, balance.all_to)) {
    const bool timed = meter_.timed();
    const LoadMeter::Part part = timed ? meter_.begin() : LoadMeter::Part{};
    to_device(entry, balance.all_to, packets, nullptr, n);
    if (timed) {
      Measured& measured = balance.devices[static_cast<size_t>(balance.all_to)];
      measured.pack_cycles += meter_.end(part);
      measured.packed += static_cast<uint64_t>(n);
    }
    return;
  }
  if (balance.probe > 0 && only < 0) {
    // Before the others, of which some may be of the same flows.
    const int m = std::min(balance.probe, n);
    balance.probe -= m;
    send_probe(entry, packets, m);
    packets += m;
    n -= m;
    if (n == 0) return;
  }
  use_sides(of_plan, balance.side);
  // All of a flow to one side: other threads may find meanwhile that a device is well or not.
  bool all_usable = true;
  for (size_t d = 0; d < devices_.size(); ++d) {
    usable_now_[d] = only == static_cast<int>(d) || usable(static_cast<int>(d));
    all_usable &= usable_now_[d] || balance.shares[d] <= 0;
  }
  send_divided(entry, packets, n, only, all_usable);
}

void JobQueue::send_probe(const ChainEntry& entry, Packet** packets, int n) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  const int wanted = of_plan.balance.decision.probe_device;
  const int side = wanted >= 0 && usable(wanted) ? wanted : -1;
  const bool timed_before = meter_.time_all();
  probing_ = untidy_ = true;
  const LoadMeter::Part part = meter_.begin();
  Packet* go[Batch::kCapacity];
  uint16_t buckets[Batch::kCapacity];
  int k = 0;
  for (int i = 0; i < n; ++i) {
    const uint16_t bucket = bucket_of(*packets[i]);
    if (of_plan.buckets.parked[bucket] > 0 ||
        (side >= 0 && device_of(of_plan, bucket) != side && in_flight(of_plan, bucket))) {
      send_behind(entry, packets[i], bucket, side);
      continue;
    }
    go[k] = packets[i];
    buckets[k++] = bucket;
  }
  if (side >= 0 && k > 0) to_device(entry, side, go, buckets, k);
  const uint64_t cycles = meter_.end(part);
  if (side >= 0 && k > 0 && of_plan.balance.warming_there > 0) {
    of_plan.balance.warming_there -= k;
  } else if (side >= 0 && k > 0) {
    Measured& measured = of_plan.balance.devices[static_cast<size_t>(side)];
    measured.packed += static_cast<uint64_t>(k);
    measured.pack_cycles += cycles;
  }
  if (side < 0 && k > 0) to_cpu(entry.plan(), entry.step(), go, buckets, k);
  probing_ = false;
  meter_.restore(timed_before);
}

void JobQueue::overflow(const ChainEntry& entry, int device, Packet** packets, const uint16_t* buckets, int n,
                        uint64_t given) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  const auto count = [&](int k) {
    if (unparking_) return;
    of_plan.balance.devices[static_cast<size_t>(device)].full += static_cast<uint64_t>(k);
    events_[kFullLane] += static_cast<uint64_t>(k);
  };
  // Those that were parked before, and all whose buckets are not known, wait for a place.
  if (!buckets || unparking_ || of_plan.balance.all_to != Balance::kMixed) {
    count(n);
    park(entry, device, packets, buckets, n, given);
    return;
  }
  Packet *here[Batch::kCapacity], *waiting[Batch::kCapacity];
  uint16_t buckets_here[Batch::kCapacity], buckets_waiting[Batch::kCapacity];
  int stay = 0, wait = 0, k = 0;
  const int slice = releasing_ ? n : std::max(of_plan.balance.decision.slice, 1);
  for (; k < n && stay < slice; ++k) {
    const bool waits = of_plan.buckets.parked[buckets[k]] > 0 || in_flight(of_plan, buckets[k]);
    here[stay] = waiting[wait] = packets[k];
    buckets_here[stay] = buckets_waiting[wait] = buckets[k];
    wait += waits;
    stay += !waits;
  }
  count(k);
  if (wait > 0) park(entry, device, waiting, buckets_waiting, wait, given);
  if (stay > 0) to_cpu(entry.plan(), entry.step(), here, buckets_here, stay);
  if (k == n) return;
  release_done();
  (void)unpark(entry.plan(), device);
  // What follows must not overtake packets of its flows that still wait.
  wait = stay = 0;
  for (; k < n; ++k) {
    const bool waits = of_plan.buckets.parked[buckets[k]] > 0;
    here[stay] = waiting[wait] = packets[k];
    buckets_here[stay] = buckets_waiting[wait] = buckets[k];
    wait += waits;
    stay += !waits;
  }
  if (wait > 0) park(entry, device, waiting, buckets_waiting, wait, given);
  if (stay > 0) to_device(entry, device, here, buckets_here, stay, given);
}

void JobQueue::process_in_slices(int plan, uint16_t step, Batch& batch) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  const int slice = std::max(of_plan.balance.decision.slice, 1);
  if (releasing_ || slice >= batch.size() || !is_balanced(of_plan) || of_plan.balance.all_to == Balance::kCpu) {
    process(plan, step, batch);
    return;
  }
  for (int at = 0; at < batch.size();) {
    // A device must not wait for packets that are here already.
    for (Line& line : of_plan.lines)
      if (line.open && line.size == 1 && line.open->size > 0) submit(*line.open);
    Batch part;
    for (const int end = std::min(at + slice, batch.size()); at < end; ++at) part.push_back(batch[at]);
    process(plan, step, part);
    if (at >= batch.size()) break;
    release_done();
    for (size_t d = 0; d < devices_.size(); ++d) (void)unpark(plan, static_cast<int>(d));
  }
}

// --- What the worker and the balancer tell each other

void JobQueue::tick() {
  until_tick_ = kBatchesPerLook;
  const uint64_t now = LoadMeter::now();
  const double us = static_cast<double>(now - ticked_) / cycles_per_us_;
  if (ticked_ != 0 && us < kTickUs) return;
  const bool decides = std::any_of(entries_.begin(), entries_.end(), [](const ChainEntry* entry) {
    return entry->in_effect().mode == OffloadOptions::Mode::kAuto;
  });
  const bool began = std::exchange(ticked_, now) == 0 || decides != decides_;
  decides_ = decides;
  if (began) {
    // What packets cost in other modes, and how many came, says nothing of the balancer's decisions.
    (void)meter_.take();
    bursts_before_ = meter_.bursts();
    looks_cycles_ = looks_packets_ = 0;
    start_span(now);
  }
  for (OfPlan& of_plan : of_plan_) {
    if (of_plan.balance.decision.follow && decides && !began) follow(of_plan, us / 1e3);
    if (!of_plan.settled) settle(of_plan);
  }
  const BalanceLink::Decision* const decision = decides ? link_.decision() : nullptr;
  if (began || (!decision && static_cast<double>(now - span_began_) < kSpanUs * cycles_per_us_)) return;
  if (WorkerSample* const sample = link_.sample_place()) {
    fill_sample(*sample, now);
    link_.sample_ready(decides);
  } else if (!decision) {
    return;  // the last one has not been read: this one goes on
  }
  // Not in the time of any sample.
  start_span(tidy(now) ? LoadMeter::now() : now);
  if (decision) {
    take(*decision);
    link_.decision_taken();
  }
  for (int p = 0; p < static_cast<int>(of_plan_.size()); ++p) update_gate(p);
}

bool JobQueue::tidy(uint64_t now) {
  bool alone = true;
  for (const OfPlan& of_plan : of_plan_) {
    if (!of_plan.entry) continue;
    const OffloadOptions& options = of_plan.entry->in_effect();
    alone &=
        is_balanced(of_plan) ? of_plan.balance.all_to == Balance::kCpu : options.mode == OffloadOptions::Mode::kCpu;
    // It would take longer than many bounds.
    if (options.p99_us > 0) return false;
  }
  untidy_ |= !alone;
  if (!alone || !untidy_) alone_since_ = now;
  if (static_cast<double>(now - alone_since_) < kAloneUs * cycles_per_us_ || !idle()) return false;
  PacketPool::instance().sort();
  untidy_ = false;
  return true;
}

void JobQueue::follow(OfPlan& of_plan, double ms) {
  Balance& balance = of_plan.balance;
  const LoadMeter::Sum& time = meter_.sum();
  const double waiting = time.timed > 0 ? static_cast<double>(time.waiting) / static_cast<double>(time.timed) : 0;
  uint64_t arrived = 0;
  for (const OfPlan& any : of_plan_) arrived += any.balance.arrived;
  const double spent = (1 - waiting) * static_cast<double>(LoadMeter::now() - span_began_);
  const double per_packet = arrived > 0 ? spent / static_cast<double>(arrived) : 0;
  for (size_t d = 0; d < devices_.size(); ++d) {
    Measured& m = balance.devices[d];
    const auto full = static_cast<double>(m.full - std::exchange(m.full_before, m.full));
    const auto went = static_cast<double>(m.packets - std::exchange(m.packets_before, m.packets));
    const auto polls = static_cast<double>(m.polls - std::exchange(m.polls_before, m.polls));
    const auto starved = static_cast<double>(m.starved - std::exchange(m.starved_before, m.starved));
    balance.followed[d] = {full > 0 ? full / (full + went) : 0, polls > 0 ? starved / polls : 0, waiting};
    if (!usable(static_cast<int>(d)))
      balance.shares[d] = 0;
    else if (balance.decision.shares[d] > 0)
      balance.shares[d] = std::max(balance.shares[d], balance::kNothing);
  }
  balance::follow_shares(balance.shares, balance.followed, balance.lean,
                         balance::worth_dividing(kDividingCycles, per_packet), ms);
  bool moved = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const double share = balance.shares[d];
    const bool at_end = (share <= balance::kNothing || balance::is_everything(share)) && share != balance.given[d];
    moved |= at_end || std::abs(share - balance.given[d]) > kWorthMoving;
  }
  if (moved) give_out_buckets(of_plan);
}

void JobQueue::give_out_buckets(OfPlan& of_plan) {
  Balance& balance = of_plan.balance;
  std::copy(balance.shares.begin(), balance.shares.end(), balance.given.begin());
  const int was = std::exchange(balance.all_to, Balance::kCpu);
  const bool in_force = of_plan.side == balance.side.data();
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (balance.shares[d] > balance::kNothing) balance.all_to = Balance::kMixed;
    if (balance::is_everything(balance.shares[d])) {
      balance.all_to = static_cast<int>(d);
      break;
    }
  }
  if (balance.all_to != Balance::kMixed) {
    if (in_force) unsettle(of_plan);
    std::fill(balance.side.begin(), balance.side.end(), static_cast<uint8_t>(balance.all_to + 1));
    return;
  }
  // Buckets of which nothing is known count a little, so that they are divided, too.
  const auto weight_of = [&](size_t b) { return int64_t{balance.weight[b]} * 16 + 1; };
  int64_t all = 0;
  std::vector<int64_t>& missing = missing_;
  std::fill(missing.begin(), missing.end(), 0);
  for (size_t b = 0; b < kBuckets; ++b) {
    const int64_t weight = weight_of(b);
    all += weight;
    missing[balance.side[b]] -= weight;
  }
  double to_devices = 0;
  for (size_t d = 0; d < devices_.size(); ++d) {
    to_devices += balance.shares[d];
    room_[d + 1] = static_cast<int64_t>(balance.shares[d] * static_cast<double>(all));
  }
  room_[0] = static_cast<int64_t>((1 - to_devices) * static_cast<double>(all));
  for (size_t side = 0; side < missing.size(); ++side) missing[side] += room_[side];
  const auto worth = static_cast<int64_t>(kWorthMoving * static_cast<double>(all));
  if (was == Balance::kMixed &&
      std::all_of(missing.begin(), missing.end(), [&](int64_t m) { return std::abs(m) < worth; }))
    return;
  if (in_force) unsettle(of_plan);
  // Heavy ones first: what they leave is for the others. Where none of the sides has room for one, it stays, unless it is
  // far more at home elsewhere.
  std::array<size_t, kHeavy> heavy;
  size_t n = 0;
  for (size_t b = 0; b < kBuckets && n < heavy.size(); ++b)
    if (kHeavy * weight_of(b) > all) heavy[n++] = b;
  std::sort(heavy.begin(), heavy.begin() + static_cast<std::ptrdiff_t>(n),
            [&](size_t a, size_t b) { return weight_of(a) > weight_of(b); });
  for (size_t i = 0; i < n; ++i) {
    const int64_t weight = weight_of(heavy[i]);
    uint8_t& side = balance.side[heavy[i]];
    const auto most = std::max_element(room_.begin(), room_.end());
    const bool far = *most > room_[side] + weight / 4;
    if (room_[side] < weight - weight / 64 && (*most >= weight || far)) {
      missing[side] += weight;
      side = static_cast<uint8_t>(most - room_.begin());
      missing[side] -= weight;
    }
    room_[side] -= weight;
  }
  for (size_t i = 0; i < kBuckets; ++i) {
    const size_t b = (next_bucket_ + i * kBucketStep) % kBuckets;
    const int64_t weight = weight_of(b);
    if (kHeavy * weight > all) continue;
    int64_t& from = missing[balance.side[b]];
    // From a side that has too much to the one that lacks most, if that brings both nearer to what they should have.
    if (from >= 0) continue;
    const auto most = std::max_element(missing.begin(), missing.end());
    if (*most <= 0) break;
    if (weight > std::min(-from, *most) * 3 / 2) continue;
    from += weight;
    *most -= weight;
    balance.side[b] = static_cast<uint8_t>(most - missing.begin());
  }
  next_bucket_ = (next_bucket_ + kBucketStep) % kBuckets;
}

double JobQueue::heaviest_part(const Balance& balance) {
  uint64_t all = 0;
  uint32_t most = 0;
  for (const uint32_t weight : balance.weight) {
    all += weight;
    most = std::max(most, weight);
  }
  return all > kManyPackets ? static_cast<double>(most) / static_cast<double>(all) : 0;
}

void JobQueue::fill_sample(WorkerSample& sample, uint64_t now) {
  const LoadMeter::Sum time = meter_.take();
  const uint64_t cycles = now - span_began_;
  const double awake = static_cast<double>(cycles - std::min(cycles, time.slept));
  const double per_timed = time.timed > 0 ? awake / static_cast<double>(time.timed) : 0;
  const auto of_timed = [&](uint64_t part) {
    return static_cast<uint64_t>(std::min(static_cast<double>(part) * per_timed, awake));
  };
  sample.decision = decision_;
  sample.ns = static_cast<int64_t>(static_cast<double>(cycles) * 1e3 / cycles_per_us_);
  sample.cycles = cycles;
  sample.busy = of_timed(time.busy);
  sample.waiting = of_timed(time.waiting);
  sample.outside = time.outside;
  const Bursts& bursts = meter_.bursts();
  sample.bursts = bursts.all - bursts_before_.all;
  sample.full_bursts = bursts.full - bursts_before_.full;
  bursts_before_ = bursts;
  // What looks cost is a part of what devices cost. It comes with the next packets if none came back.
  looks_cycles_ += static_cast<double>(of_timed(time.looks));
  bool any_timed = false;
  for (const OfPlan& of_plan : of_plan_)
    for (const Measured& m : of_plan.balance.devices) {
      looks_packets_ += static_cast<double>(m.packets);
      any_timed |= m.timed > 0 && m.packed > 0;
    }
  const double look_cost = any_timed ? looks_cycles_ / looks_packets_ : 0;
  if (any_timed) looks_cycles_ = looks_packets_ = 0;
  sample.stretch_ns = static_cast<int64_t>(static_cast<double>(longest_stretch_) * 1e3 / cycles_per_us_);
  for (size_t p = 0; p < of_plan_.size(); ++p) {
    Balance& balance = of_plan_[p].balance;
    ChainSample& chain = sample.chains[p];
    chain.arrived = balance.arrived;
    chain.bytes = balance.looked_at > 0 ? static_cast<uint64_t>(static_cast<double>(balance.arrived) *
                                                                static_cast<double>(balance.bytes_looked_at) /
                                                                static_cast<double>(balance.looked_at))
                                        : 0;
    double device_cycles = 0, device_packets = 0;
    chain.cpu.packets = balance.cpu.packets;
    chain.cpu.timed = balance.cpu.timed;
    chain.cpu.cycles = balance.cpu.cycles;
    chain.cpu_batches = balance.cpu_batches;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const Measured& m = balance.devices[d];
      DeviceSample& device = chain.devices[d];
      device.packets = m.packets;
      // A packet's cost has two parts, which were measured for different packets.
      device.timed = std::min(m.timed, m.packed);
      device.cycles =
          device.timed == 0
              ? 0
              : static_cast<uint64_t>(static_cast<double>(device.timed) *
                                      (look_cost + static_cast<double>(m.cycles) / static_cast<double>(m.timed) +
                                       static_cast<double>(m.pack_cycles) / static_cast<double>(m.packed)));
      device_cycles += static_cast<double>(device.cycles);
      device_packets += static_cast<double>(device.timed);
      device.jobs = m.jobs;
      device.job_ns = m.job_ns;
      device.stream_jobs = m.stream_jobs;
      device.stream_job_ns = m.stream_job_ns;
      device.full = m.full;
      device.polls = m.polls;
      device.starved = m.starved;
      device.share = balance.reported[d] = balance.shares[d];
      device.lane = has_lane(static_cast<int>(d));
      device.well = device.lane ? usable(static_cast<int>(d)) : devices_[d]->well();
    }
    balance.lean.see_cpu(static_cast<double>(balance.cpu.cycles), static_cast<double>(balance.cpu.timed));
    balance.lean.see_devices(device_cycles, device_packets);
    chain.heaviest = balance.all_to == Balance::kMixed ? heaviest_part(balance) : 0;
    chain.delays = balance.delays.count();
    chain.delay_p50_ns = balance.delays.quantile(0.5);
    chain.delay_p99_ns = balance.delays.quantile(0.99);
  }
}

void JobQueue::start_span(uint64_t now) {
  span_began_ = now;
  longest_stretch_ = 0;
  for (OfPlan& of_plan : of_plan_) {
    Balance& balance = of_plan.balance;
    balance.arrived = balance.looked_at = balance.bytes_looked_at = 0;
    balance.cpu = {};
    balance.cpu_batches = {};
    std::fill(balance.devices.begin(), balance.devices.end(), Measured{});
    balance.delays.clear();
    for (uint32_t& weight : balance.weight) weight -= weight / 2;
  }
}

void JobQueue::take(const BalanceLink::Decision& decision) {
  decision_ = decision.number;
  for (size_t p = 0; p < of_plan_.size(); ++p) {
    OfPlan& of_plan = of_plan_[p];
    Balance& balance = of_plan.balance;
    const ChainDecision& next = decision.chains[p];
    // A worker that follows stays where it has moved to, unless the balancer wants something else than what it saw.
    bool other = !next.follow || !balance.decision.follow;
    for (size_t d = 0; d < next.shares.size(); ++d)
      other |= std::abs(next.shares[d] - balance.reported[d]) > kSame && next.shares[d] != balance.decision.shares[d];
    std::copy(next.shares.begin(), next.shares.end(), balance.decision.shares.begin());
    balance.decision.follow = next.follow;
    balance.decision.slice = next.slice;
    balance.decision.stream = next.stream;
    balance.decision.probe_device = next.probe_device;
    balance.probe = next.probe;
    if (next.probe > 0) {
      const bool of_cpu = next.probe_device < 0;
      balance.warming = of_cpu ? balance::warming_packets(next.probe) : 0;
      balance.warming_there = of_cpu ? 0 : balance::warming_packets(next.probe, next.job);
    }
    balance.tuning.job = next.job;
    balance.tuning.max_wait_us = next.max_wait_us;
    balance.tuning.places = next.places;
    if (!other) continue;
    std::copy(next.shares.begin(), next.shares.end(), balance.shares.begin());
    give_out_buckets(of_plan);
  }
}

}  // namespace headrace::offload
