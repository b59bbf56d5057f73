#include "flow_elements.hh"

#include <algorithm>

#include "headrace/router.hh"
#include "packets.hh"

namespace headrace::testing {

namespace {

// Behind the UDP header.
constexpr uint32_t kBody = 12;

uint64_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

}  // namespace

Status FlowSource::configure(Args& args) {
  return args.read("FLOWS", flows_)
      .read("LIMIT", limit_)
      .read("BURST", burst_)
      .read("RARE", rare_)
      .read("LONGEST", longest_)
      .read("STOP", stop_)
      .read("WORKERS", workers_)
      .complete();
}

Status FlowSource::initialize(Errors&) {
  const int workers = workers_ > 0 ? workers_ : router().worker_count();
  unfinished_ = workers;
  for (int w = 0; w < workers; ++w) {
    senders_.push_back(std::make_unique<Sender>());
    senders_.back()->next.resize(static_cast<size_t>(flows_));
    senders_.back()->random = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(w);
    senders_.back()->left = limit_;
    tasks_.push_back(std::make_unique<Task>(this, [this, w](Task& task) { return send(task, w); }));
    tasks_.back()->initialize(true, w);
  }
  return {};
}

void FlowSource::take_state(Element& old, Errors&) { senders_.swap(static_cast<FlowSource&>(old).senders_); }

uint64_t FlowSource::sent() const {
  uint64_t all = 0;
  for (const auto& s : senders_) all += s->sent.load();
  return all;
}

bool FlowSource::send(Task& task, int worker) {
  Sender& s = *senders_[static_cast<size_t>(worker)];
  if (s.left == 0) return false;
  task.fast_reschedule();
  if (!active_.load(std::memory_order_acquire)) return false;
  const uint32_t epoch = epoch_.load(std::memory_order_acquire);
  Batch batch;
  while (batch.size() < burst_ && s.left != 0) {
    const uint64_t random = next_random(s.random);
    const auto index = static_cast<uint32_t>(random % static_cast<uint64_t>(flows_));
    const uint32_t flow = static_cast<uint32_t>(worker * flows_) + index;
    const uint32_t kind = rare_ > 0 ? static_cast<uint32_t>(random >> 32) % static_cast<uint32_t>(rare_) : 2;
    static const std::string plain = udp_frame(0x0a000000, 0x01000000);
    const uint32_t usual = longest_ > 64 ? 64 + static_cast<uint32_t>(random >> 20) % (longest_ - 63) : 64;
    const uint32_t length = kind == 1 ? 164 : usual, options = kind == 0 ? 8 : 0;
    Packet* p = Packet::make(length);
    if (!p) break;
    uint8_t* data = p->data();
    std::memset(data, 0, std::min(length, 128u));
    std::memcpy(data, plain.data(), 42);
    data[14] = static_cast<uint8_t>(0x45 + options / 4);
    data[16] = static_cast<uint8_t>((length - 14) >> 8);
    data[17] = static_cast<uint8_t>(length - 14);
    for (int i = 0; i < 3; ++i) {
      data[27 + i] = static_cast<uint8_t>(flow >> (16 - 8 * i));
      data[31 + i] = static_cast<uint8_t>(flow >> (16 - 8 * i));
    }
    if (options) {
      std::memmove(data + 42, data + 34, 8);
      std::memset(data + 34, 1, 8);
    }
    uint32_t* body = reinterpret_cast<uint32_t*>(data + 42 + options);
    const uint32_t values[3] = {flow, s.next[index]++, epoch};
    std::memcpy(body, values, kBody);
    data[24] = data[25] = 0;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 20 + options; i += 2) sum += static_cast<uint32_t>(data[14 + i] << 8 | data[15 + i]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    data[24] = static_cast<uint8_t>(sum >> 8);
    data[25] = static_cast<uint8_t>(sum);
    if (s.left > 0) --s.left;
    batch.push_back(p);
  }
  const int n = batch.size();
  s.sent.store(s.sent.load() + static_cast<uint64_t>(n));
  if (n) output(0).push(batch);
  if (s.left == 0 && unfinished_.fetch_sub(1) == 1 && stop_) router().request_stop();
  return n > 0;
}

FlowSink::FlowSink() : next_(kFlows) {}

void FlowSink::take_state(Element& old, Errors&) {
  auto& before = static_cast<FlowSink&>(old);
  next_.swap(before.next_);
  first_in_order_ = before.first_in_order_;
  received_ = before.received_.load();
  missing_ = before.missing_.load();
  late_ = before.late_.load();
  damaged_ = before.damaged_.load();
  for (size_t port = 0; port < std::size(at_port_); ++port) at_port_[port] = before.at_port_[port].load();
}

void FlowSink::push(int port, Batch& batch) {
  for (Packet* p : batch) {
    // The frame, or what is left of it when its Ethernet header has gone.
    const uint8_t* at = p->data();
    if (p->length() >= 20 && at[12] == 8 && at[13] == 0) at += 14;
    const uint32_t header = (at[0] & 15u) * 4;
    const bool first_fragment = (at[6] & 0x1f) == 0 && at[7] == 0;
    if (!first_fragment) {
      p->kill();
      continue;
    }
    uint32_t values[3];
    std::memcpy(values, at + header + 8, kBody);
    const auto [flow, number, epoch] = values;
    if (at[0] >> 4 != 4 || flow >= kFlows) {
      ++damaged_;
      p->kill();
      continue;
    }
    uint32_t& next = next_[flow];
    if (number < next) {
      late_ += flow >= first_in_order_ ? 1 : 0;
    } else {
      missing_ += flow >= first_in_order_ ? number - next : 0;
      next = number + 1;
    }
    ++received_;
    ++at_port_[static_cast<size_t>(port) & 15];
    if (ports_) {
      bool right = false;
      for (uint32_t e = epoch; e <= newest_->load(std::memory_order_acquire) && e < ports_->size(); ++e)
        right |= (*ports_)[e].load(std::memory_order_acquire) == port;
      stale_ += !right;
    }
    p->kill();
  }
}

HEADRACE_ELEMENT(FlowSource)
HEADRACE_ELEMENT(FlowSink)

}  // namespace headrace::testing
