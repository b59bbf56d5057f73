#include "elements/devices/TrafficSource.hh"

#include <fmt/format.h>

#include "elements/devices/frame_stamp.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "src/io/memory/payloads.hh"
#include "tables/lpm6/route_file6.hh"

namespace headrace {

namespace {

/// What is written of each frame's header: with a whole cache line, one store does.
constexpr size_t kWholeLine = 64;

struct TrafficArg {
  bool parse(std::string_view text, TrafficSpec& spec, const ArgContext& context) const {
    std::string word;
    if (!FileName{}.parse(text, word, context)) return false;
    if (word == "uniform") {
      spec.kind = TrafficSpec::Kind::kUniform;
    } else if (word == "imix") {
      spec.kind = TrafficSpec::Kind::kImix;
    } else if (word == "zipf") {
      spec.kind = TrafficSpec::Kind::kZipf;
    } else {
      spec.kind = TrafficSpec::Kind::kReplay;
      return InputFile{}.parse(text, spec.file, context);
    }
    return true;
  }
};

struct PayloadArg {
  bool parse(std::string_view text, std::string& payload, const ArgContext& context) const {
    if (text != "any" && text != "random" && text != "text") return context.error("expected any, random or text");
    payload = text;
    return true;
  }
};

}  // namespace

Status TrafficSource::configure(Args& args) {
  TrafficSpec traffic;
  std::string prefixes;
  bool active = true;
  Status status = args.read_p("TRAFFIC", traffic, TrafficArg{})
                      .read("PREFIXES", prefixes, InputFile{})
                      .read("LENGTH", spec_.length, Between{60, 1514})
                      .read("PAYLOAD", payload_, PayloadArg{})
                      .read("FLOWS", spec_.flows, Between{1, 1 << 26})
                      .read("SKEW", spec_.skew, Between{0.0, 10.0})
                      .read("SEED", spec_.seed)
                      .read("TTL", spec_.ttl)
                      .read("LIMIT", limit_)
                      .read("RATE", rate_, Between{0.0, 1e12})
                      .read("BURST", burst_, Between{1, Batch::kCapacity})
                      .read("BUFFERS", buffers_, Between{8192, 16384})
                      .read("STOP", stop_)
                      .read("ACTIVE", active)
                      .read("STAMP", stamp_)
                      .complete();
  active_ = active;
  spec_.kind = traffic.kind;
  spec_.file = traffic.file;
  if (!status.ok() || prefixes.empty()) return status;
  if (spec_.kind == TrafficSpec::Kind::kReplay) return args.errors().error("PREFIXES: TRAFFIC is a file of frames");
  const uint32_t shortest = stamp_ ? FrameStamp::kAtIp6 + FrameStamp::kSize : kShortestIp6;
  if (spec_.length < shortest) return args.errors().error("LENGTH: out of range, bound {}", shortest);
  std::vector<TextRoute6> lines;
  if (!read_routes6(prefixes, lines, args.errors())) return Status::failed();
  if (lines.empty()) return args.errors().error("PREFIXES: {}: no prefixes", prefixes);
  spec_.prefixes.clear();
  for (const TextRoute6& line : lines) spec_.prefixes.push_back(line.prefix);
  return status;
}

Status TrafficSource::initialize(Errors& errors) {
  constexpr size_t kPayloadBytes = size_t{8} << 20;
  PacketPool::instance().expect(buffers_ + 1024);
  keeps_payload_ = payload_ != "any";
  if (payload_ == "text") fill_buffers(make_text_payload(kPayloadBytes, spec_.seed));
  if (payload_ == "random") fill_buffers(make_random_payload(kPayloadBytes, spec_.seed));
  const int workers = router().worker_count();
  const int before = errors.error_count();
  std::vector<TrafficShare> shares = make_traffic(spec_, workers, errors);
  if (errors.error_count() != before) return Status::failed();
  size_t all = 0;
  int last = 0;  // the last worker with any flow gets what rounding leaves
  for (int w = 0; w < workers; ++w) {
    all += shares[w].size();
    if (shares[w].size() > 0) last = w;
  }
  int64_t unassigned = limit_;
  for (int w = 0; w < workers; ++w) {
    auto sender = std::make_unique<Sender>();
    sender->share = std::move(shares[w]);
    if (limit_ >= 0) {
      // In proportion to the flows.
      const auto part = static_cast<int64_t>(static_cast<double>(limit_) * static_cast<double>(sender->share.size()) /
                                             static_cast<double>(all));
      sender->left = w == last ? unassigned : part;
      unassigned -= sender->left;
    }
    if (rate_ > 0 && sender->share.size() > 0)
      sender->interval_ns = 1e9 / (rate_ * static_cast<double>(sender->share.size()) / static_cast<double>(all));
    senders_.push_back(std::move(sender));
    tasks_of_workers_.push_back(std::make_unique<Task>(this, [this, w](Task& task) { return send(task, w); }));
    tasks_of_workers_.back()->initialize(true, w);
  }
  unfinished_ = workers;
  return {};
}

void TrafficSource::take_state(Element& old, Errors&) {
  auto* const before = dynamic_cast<TrafficSource*>(&old);
  if (!before || before->configuration() != configuration()) return;
  for (size_t w = 0; w < senders_.size() && w < before->senders_.size(); ++w) {
    const Sender& from = *before->senders_[w];
    Sender& to = *senders_[w];
    if (from.next < to.share.size()) to.next = from.next;
    to.left = from.left;
    to.due = from.due;
  }
}

bool TrafficSource::send(Task& task, int worker) {
  Sender& sender = *senders_[worker];
  if (!active_.load(std::memory_order_relaxed)) return false;
  if (sender.share.size() == 0 || sender.left == 0) {
    if (unfinished_.fetch_sub(1) == 1 && stop_) router().request_stop();
    return false;
  }
  PacketPool& pool = PacketPool::instance();
  if (sender.reserved < buffers_) {
    // In steps: the system clears memory when it is first used, and a round must be short.
    constexpr uint32_t kStep = 512;
    const uint32_t wanted = std::min<uint32_t>(sender.reserved + kStep, buffers_);
    sender.reserved = pool.reserve(wanted) < wanted ? buffers_ : wanted;
  }
  Batch batch;
  int wanted = sender.left < 0 || sender.left > burst_ ? burst_ : static_cast<int>(sender.left);
  double first_due = 0;
  if (sender.interval_ns > 0) {
    wanted = due_frames(sender, wanted);
    first_due = sender.due;
    task.fast_reschedule();
    // Awake all the same: the next frame is due before a sleep would end.
    if (wanted == 0) return true;
    sender.due += wanted * sender.interval_ns;
  }
  const int got = static_cast<int>(pool.allocate_bulk(batch.begin(), static_cast<uint32_t>(wanted)));
  batch.resize(got);
  uint64_t* counters = counters_.local();
  counters[kMissed] += static_cast<uint64_t>(wanted - got);
  task.fast_reschedule();
  if (got == 0) return false;
  const uint64_t bytes = !sender.share.frames.empty()     ? fill_frames(sender, batch)
                         : !sender.share.records6.empty() ? fill_records6(sender, batch)
                                                          : fill_records(sender, batch);
  counters[kPackets] += static_cast<uint64_t>(got);
  counters[kBytes] += bytes;
  if (sender.left > 0) sender.left -= got;
  if (sender.interval_ns > 0)
    for (int i = 0; i < batch.size(); ++i)
      batch[i]->set_anno_u64(anno_offset::kFirstTimestamp, static_cast<uint64_t>(first_due + i * sender.interval_ns));
  if (stamp_) {
    const double first = sender.interval_ns > 0 ? first_due : static_cast<double>(FrameStamp::now_ns());
    for (int i = 0; i < batch.size(); ++i)
      FrameStamp::write(batch[i]->data(), batch[i]->length(), static_cast<uint64_t>(first + i * sender.interval_ns));
  }
  task.received(got, burst_);
  output(0).push(batch);
  return true;
}

int TrafficSource::due_frames(Sender& sender, int most) {
  const auto now = static_cast<double>(FrameStamp::now_ns());
  if (sender.due == 0) sender.due = now;
  if (now < sender.due) return 0;
  const double frames = (now - sender.due) / sender.interval_ns + 1;
  return frames < most ? static_cast<int>(frames) : most;
}

template <size_t kHeader, typename Record, typename Write>
uint64_t TrafficSource::fill_from(const std::vector<Record>& records, Sender& sender, Batch& batch, Write&& write) {
  constexpr int kAhead = 16;
  // Records come one after the other, but hardware alone does not ask for them early enough.
  constexpr size_t kRecordsAhead = 2048 / sizeof(Record);
  const Record* const all = records.data();
  const size_t count = records.size();
  size_t at = sender.next;
  uint64_t bytes = 0;
  const int n = batch.size();
  uint8_t header[64];
  std::memcpy(header, sender.share.header, 64);
  for (int i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      __builtin_prefetch(batch[i + kAhead], 1);
      __builtin_prefetch(batch[i + kAhead]->buffer() + Packet::kDefaultHeadroom, 1);
    }
    __builtin_prefetch(all + at + kRecordsAhead);
    Packet* p = batch[i];
    const Record& r = all[at];
    if (++at == count) at = 0;
    p->reset(r.length);
    p->set_rx_hash(r.hash);
    uint8_t* d = p->data();
    std::memcpy(d, header, kHeader);
    write(d, r);
    bytes += r.length;
  }
  sender.next = at;
  return bytes;
}

uint64_t TrafficSource::fill_records(Sender& sender, Batch& batch) {
  const auto write = [](uint8_t* d, const TrafficRecord& r) {
    const uint16_t ip_length = __builtin_bswap16(static_cast<uint16_t>(r.length - 14));
    const uint16_t udp_length = __builtin_bswap16(static_cast<uint16_t>(r.length - 34));
    std::memcpy(d + 16, &ip_length, 2);
    std::memcpy(d + 24, &r.checksum, 2);
    std::memcpy(d + 30, &r.dst, 4);
    std::memcpy(d + 34, &r.src_port, 2);
    std::memcpy(d + 38, &udp_length, 2);
  };
  constexpr size_t kHeaders = 14 + 20 + 8;
  return keeps_payload_ ? fill_from<kHeaders>(sender.share.records, sender, batch, write)
                        : fill_from<kWholeLine>(sender.share.records, sender, batch, write);
}

uint64_t TrafficSource::fill_records6(Sender& sender, Batch& batch) {
  const auto write = [](uint8_t* d, const TrafficRecord6& r) {
    // What follows the IPv6 header: its payload, and all of the UDP packet.
    const uint16_t length = __builtin_bswap16(static_cast<uint16_t>(r.length - 54));
    std::memcpy(d + 18, &length, 2);
    std::memcpy(d + 38, r.dst, 16);
    std::memcpy(d + 54, &r.src_port, 2);
    std::memcpy(d + 58, &length, 2);
  };
  return keeps_payload_ ? fill_from<kShortestIp6>(sender.share.records6, sender, batch, write)
                        : fill_from<kWholeLine>(sender.share.records6, sender, batch, write);
}

uint64_t TrafficSource::fill_frames(Sender& sender, Batch& batch) {
  const std::vector<TrafficShare::Frame>& frames = sender.share.frames;
  uint64_t bytes = 0;
  for (int i = 0; i < batch.size(); ++i) {
    const TrafficShare::Frame& f = frames[sender.next];
    if (++sender.next == frames.size()) sender.next = 0;
    Packet* p = batch[i];
    const auto length = static_cast<uint32_t>(f.bytes.size());
    if (length > p->capacity() - Packet::kDefaultHeadroom) [[unlikely]] {
      // A jumbo frame: this buffer is too small for it.
      p->kill();
      p = Packet::make(f.bytes.data(), length);
      if (!p) {
        batch[i] = batch[batch.size() - 1];
        batch.resize(batch.size() - 1);
        --i;
        counters_.add(kMissed, 1);
        continue;
      }
      batch[i] = p;
    } else {
      p->reset(length);
      std::memcpy(p->data(), f.bytes.data(), length);
    }
    p->set_rx_hash(f.hash);
    bytes += length;
  }
  return bytes;
}

PortTotals TrafficSource::totals(Direction, int thread) const {
  return {counters_.of_thread(thread, kPackets), counters_.of_thread(thread, kBytes)};
}

void TrafficSource::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counters_.sum(kPackets)); });
  handlers.read("byte_count", [this] { return std::to_string(counters_.sum(kBytes)); });
  handlers.read("missed", [this] { return std::to_string(counters_.sum(kMissed)); });
  handlers.button("reset_counts", [this] { counters_.reset(); });
  handlers.read("active", [this] { return std::string(active_ ? "true" : "false"); });
  handlers.write(
      "active",
      [this](const std::string& value, Errors& errors) {
        bool on;
        if (!parse_argument(value, on, ArgContext(nullptr, &errors))) return errors.error("expected true or false");
        active_ = on;
        if (on)
          for (auto& task : tasks_of_workers_) task->reschedule();
        return Status();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
