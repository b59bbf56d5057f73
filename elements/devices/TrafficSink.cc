#include "elements/devices/TrafficSink.hh"

#include <fmt/format.h>

#include <algorithm>

#include "elements/devices/TrafficSource.hh"
#include "elements/devices/frame_stamp.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {
constexpr const char* kReasons[] = {"",           "",          "not IP",         "bad checksum",
                                    "bad length", "wrong TTL", "wrong next hop", "reordered"};
constexpr uint32_t kEthernet = 14;
}  // namespace

Status TrafficSink::configure(Args& args) {
  return args.read("CHECK", check_)
      .read("TTL", ttl_, Between{0, 255})
      .read("TABLE", table_)
      .read("PORT", table_port_)
      .read("LATENCY", measures_)
      .read("STAMP", stamp_)
      .read("SEQUENCE", numbers_)
      .read("BURST", burst_, Between{1, Batch::kCapacity})
      .complete();
}

Status TrafficSink::initialize(Errors& errors) {
  if (table_) {
    lookup_ = table_->handlers().find("lookup");
    if (!lookup_) return errors.error("TABLE: '{}' has no 'lookup' handler", table_->declaration());
  }
  if (numbers_) {
    for (const auto& e : router().elements())
      if (auto* source = dynamic_cast<TrafficSource*>(e.get()); source && source->has_sequence())
        sources_.push_back(source);
    if (sources_.empty()) return errors.error("SEQUENCE: no TrafficSource of this router has SEQUENCE");
  }
  if (measures_ || stamp_) {
    const auto& all = router().elements();
    const auto sources = std::count_if(
        all.begin(), all.end(), [](const auto& e) { return dynamic_cast<const TrafficSource*>(e.get()) != nullptr; });
    due_time_ = DueTime(static_cast<size_t>(sources));
    times_ = std::make_unique<PerThread<Times>>();
    forget_flows();
  }
  if (input_is_pull(0)) {
    task_.initialize(true);
    signal_ = Signal::upstream_nonempty(this, 0, &task_);
  }
  return {};
}

void TrafficSink::take_state(Element& old, Errors&) {
  auto* const before = dynamic_cast<TrafficSink*>(&old);
  if (!before || !times_ || !before->times_) return;
  std::swap(times_, before->times_);
  if (before->due_time_.sources() != due_time_.sources()) forget_flows();
  counters_.add(kReordered, before->counters_.sum(kReordered));
}

void TrafficSink::forget_flows() {
  for (int thread = 0; thread < times_->size(); ++thread)
    (*times_)[thread].last_of_flow.assign(Times::kFlows * due_time_.sources(), 0);
}

void TrafficSink::push(int, Batch& batch) {
  uint64_t bytes = 0;
  for (const Packet* p : batch) {
    bytes += p->length();
    if (check_) [[unlikely]]
      check(*p);
  }
  if (times_) [[unlikely]]
    measure(batch);
  if (numbers_) [[unlikely]]
    check_numbers(batch);
  uint64_t* counters = counters_.local();
  counters[kPackets] += static_cast<uint64_t>(batch.size());
  counters[kBytes] += bytes;
  batch.kill();
}

void TrafficSink::measure(const Batch& batch) {
  const uint64_t now = FrameStamp::now_ns();
  Times& times = times_->local();
  if (stamp_) {
    for (int i = 0; i < batch.size(); ++i)
      if (const uint64_t due = FrameStamp::read(batch[i]->data(), batch[i]->length()))
        times.latency.add(now > due ? now - due : 0);
    return;
  }
  uint64_t overtaken = 0;
  for (int i = 0; i < batch.size(); ++i) {
    const uint64_t due = batch[i]->anno_u64(anno_offset::kFirstTimestamp);
    if (due == 0) continue;
    const uint64_t ns = due_time_.ns(due);
    times.latency.add(now > ns ? now - ns : 0);
    // The lowest bits of the hash are those of the worker.
    const uint32_t flow = (batch[i]->rx_hash() >> 7) % Times::kFlows;
    uint64_t& last = times.last_of_flow[due_time_.source(due) * Times::kFlows + flow];
    overtaken += due < last;
    last = due;
  }
  counters_.add(kReordered, overtaken);
}

void TrafficSink::check_numbers(Batch& batch) {
  for (const Packet* p : batch)
    if (FrameSequence s; s.read(p->data(), p->length()) && s.source < sources_.size())
      sources_[s.source]->sequence().arrive(s);
}

FlowSequence::Counts TrafficSink::sequence() const {
  FlowSequence::Counts all;
  for (TrafficSource* source : sources_) all += source->sequence().counts();
  return all;
}

void TrafficSink::add_latency(Histogram& to) const {
  for (int thread = 0; times_ && thread < times_->size(); ++thread) to.add((*times_)[thread].latency);
}

void TrafficSink::reset() {
  counters_.reset();
  for (int thread = 0; times_ && thread < times_->size(); ++thread) (*times_)[thread].latency.clear();
  for (TrafficSource* source : sources_) source->sequence().reset();
}

bool TrafficSink::run_task(Task& task) {
  Batch batch;
  const int n = input(0).pull(batch, burst_);
  if (n > 0) push(0, batch);
  if (n > 0 || signal_.active()) task.fast_reschedule();
  return n > 0;
}

void TrafficSink::check(const Packet& p) {
  const uint8_t* d = p.data();
  if (p.length() >= kEthernet && d[12] == 0x86 && d[13] == 0xdd) return check6(p);
  if (p.length() < kEthernet + 20 || d[12] != 8 || d[13] != 0 || d[14] >> 4 != 4) return report(kNotIp, p);
  const uint8_t* ip = d + kEthernet;
  const uint32_t header = (ip[0] & 15) * 4u;
  const uint32_t total = static_cast<uint32_t>(ip[2] << 8 | ip[3]);
  if (header < 20 || total < header || total + kEthernet > p.length()) return report(kBadLength, p);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < header; i += 2) sum += static_cast<uint32_t>(ip[i] << 8 | ip[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  if (sum != 0xffff) return report(kBadChecksum, p);
  if (ttl_ >= 0 && ip[8] != ttl_) return report(kBadTtl, p);
  if (lookup_) check_route(fmt::format("{}.{}.{}.{}", ip[16], ip[17], ip[18], ip[19]), p);
}

void TrafficSink::check6(const Packet& p) {
  constexpr uint32_t kHeader = 40;
  const uint8_t* ip = p.data() + kEthernet;
  if (p.length() < kEthernet + kHeader || ip[0] >> 4 != 6) return report(kNotIp, p);
  const uint32_t payload = static_cast<uint32_t>(ip[4] << 8 | ip[5]);
  if (payload + kHeader + kEthernet > p.length()) return report(kBadLength, p);
  if (ttl_ >= 0 && ip[7] != ttl_) return report(kBadTtl, p);
  if (lookup_) check_route(Ip6Address::from_bytes(ip + 24).unparse(), p);
}

void TrafficSink::check_route(const std::string& destination, const Packet& p) {
  std::string answer;
  Errors ignored;
  if (!lookup_->read(destination, answer, ignored) || std::atoi(answer.c_str()) != table_port_ || answer.empty())
    report(kBadPort, p);
}

void TrafficSink::report(Counter what, const Packet& p) {
  counters_.add(what, 1);
  std::lock_guard guard(lock_);
  if (!examples_[what].empty()) return;
  for (uint32_t i = 0; i < p.length() && i < 64; ++i) examples_[what] += fmt::format("{:02x}", p.data()[i]);
}

PortTotals TrafficSink::totals(Direction, int thread) const {
  return {counters_.of_thread(thread, kPackets), counters_.of_thread(thread, kBytes)};
}

void TrafficSink::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counters_.sum(kPackets)); });
  handlers.read("byte_count", [this] { return std::to_string(counters_.sum(kBytes)); });
  handlers.read("bad", [this] {
    uint64_t bad = 0;
    for (int c = kNotIp; c < kReordered; ++c) bad += counters_.sum(c);
    return std::to_string(bad);
  });
  handlers.read("bad_details", [this] {
    std::lock_guard guard(lock_);
    std::string s;
    for (int c = kNotIp; c < kReordered; ++c)
      if (const uint64_t n = counters_.sum(c)) s += fmt::format("{}\t{}\t{}\n", n, kReasons[c], examples_[c]);
    return s;
  });
  handlers.read("latency", [this] {
    Histogram all;
    add_latency(all);
    return fmt::format("p50 {:.1f} us, p99 {:.1f}, p99.9 {:.1f}, max {:.1f}\n",
                       static_cast<double>(all.quantile(0.5)) * 1e-3, static_cast<double>(all.quantile(0.99)) * 1e-3,
                       static_cast<double>(all.quantile(0.999)) * 1e-3, static_cast<double>(all.max()) * 1e-3);
  });
  handlers.read("reordered", [this] { return std::to_string(reordered()); });
  handlers.read("sequence_checked", [this] { return std::to_string(sequence().checked); });
  handlers.read("sequence_lost", [this] { return std::to_string(sequence().lost); });
  handlers.read("sequence_doubled", [this] { return std::to_string(sequence().doubled); });
  handlers.read("sequence_reordered", [this] { return std::to_string(sequence().reordered); });
  handlers.button("reset_counts", [this] { reset(); });
}

}  // namespace headrace
