// How a worker divides packets between the CPU and devices: by the sides of their buckets, keeping each flow's order.

#include <algorithm>
#include <utility>

#include "headrace/batch_size.hh"
#include "offload/job_clock.hh"
#include "offload/job_queue.hh"

namespace headrace::offload {

void JobQueue::use_sides(OfPlan& of_plan, const std::vector<uint8_t>& side) const {
  if (of_plan.side == side.data()) [[likely]]
    return;
  of_plan.side = side.data();
  unsettle(of_plan);
}

void JobQueue::use_fixed_sides(OfPlan& of_plan, uint32_t below, int device) const {
  FixedSides& fixed = of_plan.fixed;
  use_sides(of_plan, fixed.side);
  if (fixed.below == below && fixed.device == device) [[likely]]
    return;
  fixed.below = below;
  fixed.device = device;
  std::fill_n(fixed.side.begin(), below, static_cast<uint8_t>(device + 1));
  std::fill(fixed.side.begin() + below, fixed.side.end(), uint8_t{0});
  unsettle(of_plan);
}

void JobQueue::send_divided(const ChainEntry& entry, Packet** packets, int n, int only, bool all_usable) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  const int devices = static_cast<int>(devices_.size());
  Divided divided;
  Batch here;
  Gathered& gathered = of_plan.gathered;
  const auto looks = [&] { return only >= 0 || !all_usable || !of_plan.settled || !none_parked(of_plan); };
  if (gathered.step != entry.step() || gathered.batch->size() + n > Batch::kCapacity || looks()) [[unlikely]] {
    release_gathered(of_plan);
    gathered.step = entry.step();
  }
  LoadMeter::Part part{};
  if (meter_.timed()) part = meter_.begin();
  // Once more: what was released may have moved buckets.
  if (looks()) [[unlikely]] {
    divided.here = &here;
    divide_looking(entry, packets, n, only, all_usable, divided);
  } else {
    divided.here = gathered.batch.get();
    if (devices > 1)
      divide<true>(of_plan, packets, n, divided);
    else
      divide<false>(of_plan, packets, n, divided);
  }
  const int go = divided.go;
  if (go > 0 && divided.device >= 0) {
    to_device(entry, divided.device, divided.there, divided.buckets_there, go, divided.given);
  } else if (go > 0) {
    Packet* of_one[Batch::kCapacity];
    uint16_t buckets_of_one[Batch::kCapacity];
    for (int d = 0; d < devices; ++d) {
      int k = 0;
      for (int i = 0; i < go; ++i) {
        if (divided.device_of[i] != d) continue;
        of_one[k] = divided.there[i];
        buckets_of_one[k++] = divided.buckets_there[i];
      }
      if (k > 0) to_device(entry, d, of_one, buckets_of_one, k, divided.given);
    }
  }
  if (meter_.timed()) {
    // What dividing costs is part of what devices cost: without them nothing is divided.
    const uint64_t cycles = meter_.end(part);
    const uint8_t* const device_of = divided.device_of;
    for (int d = 0; d < devices && go > 0; ++d) {
      const auto k = static_cast<uint64_t>(divided.device == d   ? go
                                           : divided.device >= 0 ? 0
                                                                 : std::count(device_of, device_of + go, d));
      Measured& measured = of_plan.balance.devices[static_cast<size_t>(d)];
      measured.packed += k;
      measured.pack_cycles += cycles * k / static_cast<uint64_t>(go);
    }
  }
  const bool settled = divided.given == of_plan.division && of_plan.settled;
  uint16_t step = entry.step();
  if (divided.here == gathered.batch.get()) {
    if (settled) [[likely]] {
      gather(entry, n, n - go);
      return;
    }
    // Meanwhile there may be others, and of another entry.
    step = gathered.step;
    take_gathered(of_plan, here);
  }
  if (here.empty()) return;
  if (settled) {
    events_[kCpuPackets] += static_cast<uint64_t>(here.size());
    process_in_slices(entry.plan(), step, here);
  } else {
    to_cpu(entry.plan(), step, here.begin(), nullptr, here.size());
  }
}

void JobQueue::gather(const ChainEntry& entry, int n, int came) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  Gathered& gathered = of_plan.gathered;
  const int have = gathered.batch->size();
  if (have == 0) return;
  if (have == came && meter_.timed()) gathered.since = meter_.since();
  const bool divides = of_plan.side == of_plan.fixed.side.data() || of_plan.balance.all_to == Balance::kMixed;
  const int batch = default_batch();
  bool waits = divides && !releasing_ && 2 * n >= batch && have + came <= batch + batch / 4;
  if (waits) {
    const int64_t now = JobClock::ns();
    if (gathered.began == 0) {
      gathered.began = std::max<int64_t>(now, 1);
      gathered.max_wait_us = std::min(entry.in_effect().max_wait_us, tuning_of(of_plan).max_wait_us);
    }
    // The next ones will come as soon after these as these after the last ones.
    const int64_t next = now + (now - std::exchange(gathered.arrived, now));
    waits = next - gathered.began < int64_t{gathered.max_wait_us} * 1000;
  }
  if (!waits) release_gathered(of_plan);
}

void JobQueue::take_gathered(OfPlan& of_plan, Batch& to) {
  Gathered& gathered = of_plan.gathered;
  std::copy(gathered.batch->begin(), gathered.batch->end(), to.begin());
  to.resize(gathered.batch->size());
  gathered.batch->clear();
  gathered.began = gathered.since = 0;
}

void JobQueue::release_gathered(OfPlan& of_plan) {
  Gathered& gathered = of_plan.gathered;
  // Some may come back while they are processed.
  while (!gathered.batch->empty()) {
    const uint64_t since = gathered.since;
    const bool waited = gathered.began != 0;
    Batch batch;
    take_gathered(of_plan, batch);
    const int n = batch.size();
    events_[kCpuPackets] += static_cast<uint64_t>(n);
    // While they waited, a chain in front of this one may have sent others of their flows to a device.
    const bool before = std::exchange(sends_waiting_, sends_waiting_ || waited);
    process_in_slices(of_plan.entry->plan(), gathered.step, batch);
    sends_waiting_ = before;
    gathered.released += static_cast<uint64_t>(n);
    if (since != 0) add_delay(of_plan, LoadMeter::now() - since, n);
  }
}

template <bool kSeveral>
void JobQueue::divide(OfPlan& of_plan, Packet** packets, int n, Divided& to) {
  const uint8_t* const side_of = of_plan.side;
  uint32_t* const weight = of_plan.balance.weight.data();
  Packet** const here = to.here->end();
  // No branch depends on a side: nothing predicts them.
  const auto count = static_cast<size_t>(n);
  size_t go = 0;
  uint8_t some = 0, every = UINT8_MAX;
  for (size_t i = 0; i < count; ++i) {
    Packet* const p = packets[i];
    const uint16_t bucket = bucket_of(*p);
    const uint8_t side = side_of[bucket];
    // Of one device the number, plus 1, is 1.
    const size_t goes = kSeveral ? side != 0 : side;
    ++weight[bucket];
    here[i - go] = to.there[go] = p;
    to.buckets_there[go] = bucket;
    if constexpr (kSeveral) {
      to.device_of[go] = static_cast<uint8_t>(side - 1);
      some |= side;
      every &= static_cast<uint8_t>(side | (goes - 1));
    }
    go += goes;
  }
  to.go = static_cast<int>(go);
  to.here->resize(to.here->size() + n - to.go);
  to.given = of_plan.division;
  to.device = !kSeveral ? 0 : some == every ? int{some} - 1 : -1;
}

void JobQueue::divide_looking(const ChainEntry& entry, Packet** packets, int n, int only, bool all_usable,
                              Divided& to) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  uint16_t buckets[Batch::kCapacity];
  int16_t sides[Batch::kCapacity];
  bool given = only < 0 || !of_plan.parked_strayed;
  // First all sides: packets that are sent behind others may bring in the next decision.
  for (int i = 0; i < n; ++i) {
    const uint16_t bucket = buckets[i] = bucket_of(*packets[i]);
    of_plan.balance.weight[bucket] += only < 0;
    const int wanted = int{of_plan.side[bucket]} - 1;
    // A flow that sends more than the device takes would never leave it if what was parked did not go where it should now.
    const int side = wanted >= 0 && only >= 0 ? only : wanted;
    const bool lost = side >= 0 && !all_usable && !usable_now_[static_cast<size_t>(side)];
    given &= !lost;
    sides[i] = static_cast<int16_t>(lost ? -1 : side);
  }
  to.given = given ? of_plan.division : 0;
  int stay = 0, go = 0;
  bool one = true;
  for (int i = 0; i < n; ++i) {
    Packet* const p = packets[i];
    const uint16_t bucket = buckets[i];
    const int side = sides[i];
    const bool parked = of_plan.buckets.parked[bucket] > 0;
    const bool goes = side >= 0, moved = goes & (device_of(of_plan, bucket) != side);
    if (only < 0 && (parked | moved) && (parked || in_flight(of_plan, bucket))) [[unlikely]] {
      send_behind(entry, p, bucket, side);
      continue;
    }
    (*to.here)[stay] = to.there[go] = p;
    to.buckets_there[go] = bucket;
    to.device_of[go] = static_cast<uint8_t>(side);
    one &= !goes | (to.device_of[0] == side);
    go += int{goes};
    stay += int{!goes};
  }
  to.here->resize(stay);
  to.go = go;
  to.device = go > 0 && one ? to.device_of[0] : -1;
}

uint64_t JobQueue::last_job(const OfPlan& of_plan, uint16_t bucket) {
  const Line& line = of_plan.line(device_of(of_plan, bucket));
  const auto behind = static_cast<uint16_t>(of_plan.buckets.job[bucket] - line.released);
  return std::max(line.untracked, line.released + (behind <= line.size ? behind : 0));
}

bool JobQueue::in_flight(const OfPlan& of_plan, uint16_t bucket) {
  return last_job(of_plan, bucket) > of_plan.line(device_of(of_plan, bucket)).released;
}

void JobQueue::move_bucket(OfPlan& of_plan, uint16_t bucket, int device) {
  of_plan.buckets.device[bucket] = static_cast<uint8_t>(device);
  of_plan.buckets.job[bucket] = static_cast<uint16_t>(of_plan.line(device).released);
}

bool JobQueue::none_parked(const OfPlan& of_plan) {
  return std::all_of(of_plan.lines.begin(), of_plan.lines.end(), [](const Line& line) { return line.parked.empty(); });
}

void JobQueue::unsettle(OfPlan& of_plan) const {
  of_plan.settled = false;
  ++of_plan.division;
  // While packets are unparked, the others are in no line.
  of_plan.parked_strayed |= unparking_;
  for (Line& line : of_plan.lines) {
    line.strayed = line.released + line.size;
    of_plan.parked_strayed |= !line.parked.empty();
  }
}

void JobQueue::settle(OfPlan& of_plan) const {
  // They are from before buckets moved.
  if (!of_plan.gathered.batch->empty()) return;
  bool parked = unparking_;
  for (const Line& line : of_plan.lines) {
    if (line.strayed > line.released) return;
    parked |= !line.parked.empty();
  }
  if (!parked) of_plan.parked_strayed = false;
  of_plan.settled = !of_plan.parked_strayed;
}

}  // namespace headrace::offload
