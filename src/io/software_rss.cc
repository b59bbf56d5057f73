#include "headrace/software_rss.hh"

#include <algorithm>
#include <atomic>
#include <utility>

#include "headrace/alarm.hh"
#include "headrace/element.hh"
#include "headrace/flow_hash.hh"
#include "headrace/router.hh"
#include "headrace/worker.hh"

namespace headrace {

namespace {
/// Most packets delivered of one ring before the next has its turn.
constexpr uint32_t kDeliveryBurst = 64;
}  // namespace

struct SoftwareRss::Row {
  /// Packets in order, linked by Packet::next().
  struct Line {
    Packet* first = nullptr;
    Packet* last = nullptr;

    bool empty() const { return first == nullptr; }
    void push_back(Packet* p) {
      p->set_next(nullptr, 0);
      (first ? last->set_next(p, 0) : void(first = p));
      last = p;
    }
  };

  Row(int workers, int receiver, uint32_t capacity) : rings(workers), held(workers), parts(new Batch[workers]) {
    for (int to = 0; to < workers; ++to)
      if (to != receiver) rings[to] = std::make_unique<PacketRing>(capacity);
  }
  void hold(int to, Packet* p) {
    held[static_cast<size_t>(to)].push_back(p);
    ++holds;
  }

  std::vector<std::unique_ptr<PacketRing>> rings;  // by worker; null for the receiver itself
  /// What found its ring full, by worker, and how many packets these are. Only the receiver uses them.
  std::vector<Line> held;
  uint32_t holds = 0;
  bool gate_closed = false;
  /// The packets of a batch, sorted by worker. Only the receiver uses them. Empty between calls, but for the receiver's
  /// own, which wait for those that others hand over: elements behind like large batches.
  std::unique_ptr<Batch[]> parts;
};

SoftwareRss::SoftwareRss(Element& owner, std::function<void(Batch&)> deliver)
    : owner_(owner), deliver_(std::move(deliver)) {}

SoftwareRss::~SoftwareRss() { clear(); }

void SoftwareRss::initialize(const std::vector<int>& receivers, int reason, uint32_t capacity, bool spread,
                             WhenFull when_full) {
  workers_ = owner_.router().threads();
  reason_ = reason;
  if (workers_ < 2 || !spread) return;
  wait_ = when_full == WhenFull::kWait;
  if (wait_) gate_ = owner_.router().add_gate(owner_);
  rings_.resize(workers_);
  for (const int receiver : receivers)
    if (!rings_[receiver]) rings_[receiver] = std::make_unique<Row>(workers_, receiver, capacity);
  for (int worker = 0; worker < workers_; ++worker) {
    tasks_.push_back(
        std::make_unique<Task>(&owner_, [this, worker](Task& task) { return deliver_handed(task, worker); }));
    tasks_.back()->initialize(false, worker);
  }
}

void SoftwareRss::wake_all(int fd, bool on) {
  for (size_t worker = 0; worker < tasks_.size(); ++worker)
    if (!rings_[worker]) set_alarm(owner_.router(), static_cast<int>(worker), fd, on);
}

SoftwareRss::Lost SoftwareRss::spread(Batch& batch, Begin begin) {
  if (begin == Begin::kEthernet) {
    for (Packet* p : batch) p->set_rx_hash(toeplitz_frame(p->data(), p->length()));
  } else if (begin == Begin::kIp) {
    for (Packet* p : batch) p->set_rx_hash(toeplitz_ip(p->data(), p->length()));
  }
  if (rings_.empty()) {
    deliver_(batch);
    return {};
  }
  return hand_over(*rings_[thread_id()], batch);
}

SoftwareRss::Lost SoftwareRss::hand_over(Row& row, Batch& batch) {
  Lost lost;
  const int here = thread_id();
  // What has been held for longer goes first.
  if (row.holds > 0) [[unlikely]]
    (void)hand_over_held(row, here);
  Batch& own = row.parts[here];
  int told[kMaxThreads + 1], tolds = 0;
  for (Packet* p : batch) {
    const int to = rss_worker(p->rx_hash(), workers_);
    if (to == here && own.full()) {
      Batch full;  // what is delivered may come back here
      for (Packet* mine : own) full.push_back(mine);
      own.clear();
      deliver_(full);
    }
    row.parts[to].push_back(p);
  }
  for (int to = 0; to < workers_; ++to) {
    Batch& part = row.parts[to];
    if (part.empty()) continue;
    if (to != here) {
      const int n = part.size();
      int taken = 0;
      if (row.held[to].empty())
        taken = static_cast<int>(row.rings[to]->enqueue(part.begin(), static_cast<uint32_t>(n)));
      for (int i = taken; i < n; ++i) {
        if (wait_ && row.holds < kMostHeld) {
          row.hold(to, part[i]);
          continue;
        }
        ++lost.packets;
        lost.bytes += part[i]->length();
        owner_.drop(part[i], reason_);
      }
      part.clear();
    }
    told[tolds++] = to;
  }
  if (row.holds > 0) [[unlikely]] {
    update_gate(row, here);
    told[tolds++] = here;  // it asks again for room
  }
  tell(told, tolds);
  return lost;
}

void SoftwareRss::tell(const int* workers, int n) {
  // Not before: a task may find its ring empty, and sleep. Most are scheduled already, and a look does not take the
  // cache line away from their workers. The fence is for that look: it must not come before the rings are filled.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < n; ++i)
    if (Task& task = *tasks_[workers[i]]; !task.scheduled()) task.reschedule();
}

void SoftwareRss::update_gate(Row& row, int worker) {
  const bool close = row.holds > 0;
  if (gate_ < 0 || close == row.gate_closed) return;
  row.gate_closed = close;
  tasks_[worker]->set_gate(gate_, close);
}

bool SoftwareRss::hand_over_held(Row& row, int here) {
  const uint32_t before = row.holds;
  int told[kMaxThreads], tolds = 0;
  for (int to = 0; to < workers_; ++to) {
    if (row.held[to].empty()) continue;
    if (to == here) {
      // All of it is taken out before: what is delivered may come back here.
      Packet* next = std::exchange(row.held[to], {}).first;
      while (next) {
        Batch batch;
        for (; next && !batch.full(); next = next->next()) batch.push_back(next);
        row.holds -= static_cast<uint32_t>(batch.size());
        deliver_(batch);
      }
      continue;
    }
    Row::Line& line = row.held[to];
    for (;;) {
      Batch some;
      for (Packet* p = line.first; p && !some.full(); p = p->next()) some.push_back(p);
      const auto n = static_cast<uint32_t>(some.size());
      // Behind the last one that goes. Its owner may have it from then on.
      Packet* behind[Batch::kCapacity];
      for (uint32_t i = 0; i < n; ++i) behind[i] = some[static_cast<int>(i)]->next();
      const uint32_t taken = row.rings[to]->enqueue(some.begin(), n);
      some.clear();
      if (taken == 0) break;
      line.first = behind[taken - 1];
      row.holds -= taken;
      if (tolds == 0 || told[tolds - 1] != to) told[tolds++] = to;
      if (taken < n || line.empty()) break;
    }
  }
  tell(told, tolds);
  update_gate(row, here);
  return row.holds < before;
}

bool SoftwareRss::deliver_handed(Task& task, int worker) {
  bool worked = false, more = false;
  if (Row* const own = rings_[worker].get(); own && own->holds > 0) [[unlikely]] {
    worked = hand_over_held(*own, worker);
    more = own->holds > 0;
  }
  // The counterpart of hand_over()'s: whoever still saw this task scheduled has filled the rings that are looked at now.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Batch batch;
  const auto deliver = [&] {
    if (batch.empty()) return;
    worked = true;
    deliver_(batch);
    batch.clear();
  };
  for (const std::unique_ptr<Row>& row : rings_) {
    if (!row) continue;
    if (Batch& own = row->parts[worker]; !row->rings[worker] && !own.empty()) {
      if (batch.size() + own.size() > Batch::kCapacity) deliver();
      for (Packet* p : own) batch.push_back(p);
      own.clear();
    }
    if (!row->rings[worker]) continue;
    PacketRing& ring = *row->rings[worker];
    if (batch.size() + static_cast<int>(kDeliveryBurst) > Batch::kCapacity) deliver();
    const int before = batch.size();
    batch.resize(before + static_cast<int>(kDeliveryBurst));
    batch.resize(before + static_cast<int>(ring.dequeue(batch.begin() + before, kDeliveryBurst)));
    more |= ring.size() > 0;
  }
  deliver();
  if (more) task.fast_reschedule();
  return worked;
}

uint64_t SoftwareRss::held() const {
  uint64_t n = 0;
  for (size_t worker = 0; worker < rings_.size(); ++worker) {
    const auto& row = rings_[worker];
    if (!row) continue;
    n += static_cast<uint64_t>(row->parts[worker].size()) + row->holds;
    for (const auto& ring : row->rings)
      if (ring) n += ring->size();
  }
  return n;
}

void SoftwareRss::take_state(SoftwareRss& old) {
  if (!active() || rings_.size() != old.rings_.size() || old.held() == 0) return;
  for (size_t from = 0; from < rings_.size(); ++from) {
    if (!old.rings_[from]) continue;
    if (!rings_[from])
      rings_[from] = std::move(old.rings_[from]);
    else
      std::swap(*rings_[from], *old.rings_[from]);
  }
  for (const auto& task : tasks_) task->reschedule();
}

void SoftwareRss::take_state(SoftwareRss& old, const std::function<bool(Packet&)>& adopt, int reason) {
  if (!active() || rings_.size() != old.rings_.size()) return;
  const auto take = [&](Row& row, Packet* p) {
    if (adopt(*p))
      row.hold(rss_worker(p->rx_hash(), workers_), p);
    else
      owner_.drop(p, reason);
  };
  for (int from = 0; from < workers_; ++from) {
    Row* const before = old.rings_[from].get();
    if (!before) continue;
    Row& row = *rings_[from];
    for (int to = 0; to < workers_; ++to) {
      // In the order in which they would have been delivered.
      for (Packet* p : before->parts[to]) take(row, p);
      before->parts[to].clear();
      Packet* packets[kDeliveryBurst];
      while (const uint32_t got = before->rings[to] ? before->rings[to]->dequeue(packets, kDeliveryBurst) : 0)
        std::for_each_n(packets, got, [&](Packet* p) { take(row, p); });
      for (Packet *p = std::exchange(before->held[to], {}).first, *next; p; p = next) {
        next = p->next();
        take(row, p);
      }
    }
    before->holds = 0;
    update_gate(row, from);
    tasks_[from]->reschedule();
  }
}

uint64_t SoftwareRss::clear() {
  uint64_t n = 0;
  Packet* packets[kDeliveryBurst];
  for (size_t worker = 0; worker < rings_.size(); ++worker) {
    const auto& row = rings_[worker];
    if (!row) continue;
    n += static_cast<uint64_t>(row->parts[worker].size());
    row->parts[worker].kill();
    n += row->holds;
    row->holds = 0;
    for (Row::Line& line : row->held)
      for (Packet *p = std::exchange(line, {}).first, *next; p; p = next) {
        next = p->next();
        p->kill();
      }
    for (const auto& ring : row->rings)
      while (const uint32_t got = ring ? ring->dequeue(packets, kDeliveryBurst) : 0) {
        for (uint32_t i = 0; i < got; ++i) packets[i]->kill();
        n += got;
      }
  }
  return n;
}

}  // namespace headrace
