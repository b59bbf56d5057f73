#include "elements/devices/TrafficSource.hh"

#include <fmt/format.h>

#include "elements/devices/frame_stamp.hh"
#include "headrace/ip_protocol.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "headrace/text.hh"
#include "src/io/memory/payloads.hh"
#include "tables/lpm6/route_file6.hh"

namespace headrace {

namespace {

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

struct ProtocolArg {
  bool parse(std::string_view text, uint8_t& protocol, const ArgContext& context) const {
    if (text != "tcp" && text != "udp") return context.error("expected tcp or udp");
    protocol = text == "tcp" ? ip_protocol::kTcp : ip_protocol::kUdp;
    return true;
  }
};

/// Positive numbers, blanks between.
struct WeightsArg {
  bool parse(std::string_view text, std::vector<double>& weights, const ArgContext& context) const {
    for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
      double& weight = weights.emplace_back();
      if (!parse_argument(word, weight, ArgContext()) || !(weight > 0) || weight > 1e6)
        return context.error("expected numbers from more than 0 to 1000000, got '{}'", word);
    }
    return true;
  }
};

constexpr size_t kPayloadBytes = size_t{8} << 20;

}  // namespace

uint32_t TrafficSource::shortest() const {
  // Frames inside rules have the room that they need, whatever is asked for.
  if (!spec_.rules.empty()) return 60;
  const bool ip6 = !spec_.prefixes.empty();
  return std::max(60u, (ip6 ? FrameStamp::kAtIp6 : FrameStamp::kAtIp4) + spec_.payload);
}

Status TrafficSource::configure(Args& args) {
  TrafficSpec traffic;
  std::string prefixes, rules;
  bool active = true;
  Status status = args.read_p("TRAFFIC", traffic, TrafficArg{})
                      .read("PREFIXES", prefixes, InputFile{})
                      .read("RULES", rules, InputFile{})
                      .read("MISS", spec_.miss, Between{0.0, 1.0})
                      .read("PROTOCOL", spec_.protocol, ProtocolArg{})
                      .read("CHECKSUM", sums_payload_)
                      .read("LENGTH", spec_.length, Between{60, 1514})
                      .read("PAYLOAD", payload_, PayloadArg{})
                      .read("FLOWS", spec_.flows, Between{1, 1 << 26})
                      .read("SKEW", spec_.skew, Between{0.0, 10.0})
                      .read("SEED", spec_.seed)
                      .read("TTL", spec_.ttl)
                      .read("LIMIT", limit_)
                      .read("RATE", rate_, Between{0.0, 1e12})
                      .read("WEIGHTS", weights_, WeightsArg{})
                      .read("BURST", burst_, Between{1, Batch::kCapacity})
                      .read("BUFFERS", buffers_, Between{8192, 16384})
                      .read("STOP", stop_)
                      .read("ACTIVE", active)
                      .read("STAMP", stamp_)
                      .read("SEQUENCE", numbers_)
                      .complete();
  active_ = active;
  rate_now_ = rate_;
  payload_now_ = payload_;
  spec_.kind = traffic.kind;
  spec_.file = traffic.file;
  if (!status.ok()) return status;
  const bool replay = spec_.kind == TrafficSpec::Kind::kReplay;
  if (replay && numbers_) status = args.errors().error("SEQUENCE: TRAFFIC is a file of frames");
  if (replay && !prefixes.empty()) status = args.errors().error("PREFIXES: TRAFFIC is a file of frames");
  if (replay && !rules.empty()) status = args.errors().error("RULES: TRAFFIC is a file of frames");
  if (replay && spec_.protocol != 0) status = args.errors().error("PROTOCOL: TRAFFIC is a file of frames");
  if (!prefixes.empty() && !rules.empty()) status = args.errors().error("RULES: PREFIXES are given, too");
  if (spec_.miss != 0 && rules.empty()) status = args.errors().error("MISS: there are no RULES");
  if (!status.ok()) return status;
  spec_.payload = (stamp_ ? FrameStamp::kSize : 0) + (numbers_ ? FrameSequence::kSize : 0);
  if (!prefixes.empty() && !read_prefixes(prefixes, args.errors())) return Status::failed();
  if (!rules.empty() && !read_traffic_rules(rules, spec_, args.errors())) return Status::failed();
  spec_.shortest = shortest();
  if (!replay && spec_.length < spec_.shortest)
    return args.errors().error("LENGTH: out of range, bound {}", spec_.shortest);
  return status;
}

bool TrafficSource::read_prefixes(const std::string& prefixes, Errors& errors) {
  std::vector<TextRoute6> lines;
  if (!read_routes6(prefixes, lines, errors)) return false;
  if (lines.empty()) return errors.error("PREFIXES: {}: no prefixes", prefixes).ok();
  spec_.prefixes.clear();
  for (const TextRoute6& line : lines) spec_.prefixes.push_back(line.prefix);
  return true;
}

Status TrafficSource::initialize(Errors& errors) {
  PacketPool::instance().expect(buffers_ + 1024);
  if (payload_ == "text") fill_buffers(make_text_payload(kPayloadBytes, spec_.seed));
  if (payload_ == "random") fill_buffers(make_random_payload(kPayloadBytes, spec_.seed));
  const int workers = router().worker_count();
  const int before = errors.error_count();
  std::vector<TrafficShare> shares = make_traffic(spec_, workers, errors);
  if (errors.error_count() != before) return Status::failed();
  spec_.rules = {};  // of a million they take 300 MB
  weights_.resize(static_cast<size_t>(workers), 1);
  double all = 0;
  int last = 0;  // the last worker with any flow gets what rounding leaves
  for (int w = 0; w < workers; ++w) {
    all += weights_[w] * static_cast<double>(shares[w].size());
    if (shares[w].size() > 0) last = w;
  }
  int64_t unassigned = limit_;
  uint32_t flows = 0;
  for (int w = 0; w < workers; ++w) {
    auto sender = std::make_unique<Sender>();
    sender->share = std::move(shares[w]);
    // In proportion to the flows.
    const double weight = weights_[w] * static_cast<double>(sender->share.size());
    sender->part = weight / all;
    if (limit_ >= 0) {
      const auto part = static_cast<int64_t>(static_cast<double>(limit_) * weight / all);
      sender->left = w == last ? unassigned : part;
      unassigned -= sender->left;
    }
    set_rate(*sender, rate_);
    sender->keeps_payload = payload_ != "any";
    if (numbers_) {
      sender->flows = find_flows(spec_, sender->share);
      sender->first_flow = flows;
      sender->sent.resize(sender->flows.count);
      flows += sender->flows.count;
    }
    senders_.push_back(std::move(sender));
    tasks_of_workers_.push_back(std::make_unique<Task>(this, [this, w](Task& task) { return send(task, w); }));
    tasks_of_workers_.back()->initialize(true, w);
  }
  unfinished_ = workers;
  find_number();
  if (numbers_) {
    sequence_ = std::make_unique<FlowSequence>(flows);
    if (number_ >= FrameSequence::kMostSources)
      return errors.error("SEQUENCE: more than {} sources have it", FrameSequence::kMostSources);
  }
  return {};
}

void TrafficSource::find_number() {
  size_t sources = 0;
  uint32_t numbered = 0;
  for (const auto& e : router().elements()) {
    const auto* source = dynamic_cast<const TrafficSource*>(e.get());
    if (!source) continue;
    if (source == this) {
      source_number_ = sources;
      number_ = numbered;
    }
    ++sources;
    numbered += source->numbers_;
  }
  due_time_ = DueTime(sources);
}

void TrafficSource::set_rate(Sender& sender, double rate) const {
  sender.rate = rate;
  sender.interval_ns = rate > 0 && sender.part > 0 ? 1e9 / (rate * sender.part) : 0;
  sender.due = 0;
}

void TrafficSource::take_state(Element& old, Errors&) {
  auto* const before = dynamic_cast<TrafficSource*>(&old);
  if (!before || before->configuration() != configuration()) return;
  rate_now_ = before->rate_now_.load();
  length_now_ = before->length_now_.load();
  // Buffers keep their marks, and the senders of `before` have stopped.
  contents_ = before->contents_;
  payload_now_ = before->payload_now_;
  content_now_ = before->content_now_.load();
  payload_of_buffer_ = std::move(before->payload_of_buffer_);
  payload_number_ = before->payload_number_.load();
  if (numbers_ && before->senders_.size() == senders_.size()) std::swap(sequence_, before->sequence_);
  for (size_t w = 0; w < senders_.size() && w < before->senders_.size(); ++w) {
    Sender& from = *before->senders_[w];
    Sender& to = *senders_[w];
    adopt_changes(to);
    if (from.next < to.share.size()) to.next = from.next;
    to.left = from.left;
    to.due = from.rate == to.rate ? from.due : 0;
    if (from.sent.size() == to.sent.size()) std::swap(to.sent, from.sent);
  }
}

void TrafficSource::adopt_changes(Sender& sender) {
  sender.changes = changes_.load(std::memory_order_acquire);
  const double rate = rate_now_.load(std::memory_order_relaxed);
  if (rate != sender.rate) set_rate(sender, rate);
  const uint32_t length = length_now_.load(std::memory_order_relaxed);
  if (length != sender.length) {
    sender.length = length;
    sender.unsized = sender.share.size();
  }
  const uint32_t payload = payload_number_.load(std::memory_order_acquire);
  if (payload != sender.payload) {
    sender.payload = payload;
    sender.keeps_payload = true;
    sender.unfilled = PacketPool::instance().buffers();
  }
}

// As they are sent, since a pass over all of them would take too long for a round.
void TrafficSource::resize(Sender& sender, size_t frames) const {
  TrafficShare& share = sender.share;
  const auto length = static_cast<uint16_t>(sender.length);
  size_t at = sender.next;
  for (frames = std::min(frames, sender.unsized); frames > 0; --frames, --sender.unsized) {
    if (!share.narrow.empty())
      set_length(share.narrow[at], std::max<uint32_t>(length, share.narrow[at].size + spec_.payload));
    else if (!share.wide.empty())
      set_length(share.wide[at], std::max<uint32_t>(length, share.wide[at].size + spec_.payload));
    else if (!share.records6.empty())
      share.records6[at].length = length;
    else
      set_length(share.records[at], share.header, length);
    if (++at == share.size()) at = 0;
  }
}

void TrafficSource::refill(Sender& sender, Batch& batch) {
  const std::string& content = *content_now_.load(std::memory_order_relaxed);
  const PacketPool& pool = PacketPool::instance();
  const auto* const base = static_cast<const uint8_t*>(pool.base());
  // Buffers of any worker may come by the pool: looked at until all might have come without one that needs it.
  sender.unfilled -= std::min(sender.unfilled, static_cast<uint32_t>(batch.size()));
  for (Packet* p : batch) {
    const size_t place = static_cast<size_t>(reinterpret_cast<const uint8_t*>(p) - base) / PacketPool::kStride;
    if (pool.contains(p)) {
      if (payload_of_buffer_[place] == sender.payload) continue;
      payload_of_buffer_[place] = sender.payload;
      sender.unfilled = pool.buffers();
    }
    const uint32_t header = std::min<uint32_t>(FrameStamp::place(p->data()), sizeof(WideHeader));
    const uint32_t room = p->capacity() - Packet::kDefaultHeadroom - header;
    // Steps by a prime, so that buffers begin at all places of the content.
    std::memcpy(p->data() + header, content.data() + place * 7919 % (content.size() - room), room);
  }
}

void TrafficSource::number_frames(Sender& sender, Batch& batch, size_t first) const {
  for (Packet* p : batch) {
    const uint32_t flow = sender.flows.of_frame[first];
    if (++first == sender.share.size()) first = 0;
    const uint32_t at = FrameStamp::place(p->data()) + (stamp_ ? FrameStamp::kSize : 0);
    if (at + FrameSequence::kSize > p->length()) continue;
    FrameSequence{number_, sender.first_flow + flow, sender.sent[flow]++}.write(p->data() + at);
  }
}

bool TrafficSource::send(Task& task, int worker) {
  Sender& sender = *senders_[worker];
  if (!active_.load(std::memory_order_relaxed)) return false;
  if (sender.share.size() == 0 || sender.left == 0) {
    if (unfinished_.fetch_sub(1) == 1 && stop_) router().request_stop();
    return false;
  }
  if (changes_.load(std::memory_order_relaxed) != sender.changes) [[unlikely]]
    adopt_changes(sender);
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
  const size_t first = sender.next;
  if (sender.unsized > 0) [[unlikely]]
    resize(sender, static_cast<size_t>(got));
  const uint64_t bytes = fill(sender, batch);
  if (sender.unfilled > 0) [[unlikely]]
    refill(sender, batch);
  if (numbers_) [[unlikely]]
    number_frames(sender, batch, first);
  counters[kPackets] += static_cast<uint64_t>(got);
  counters[kBytes] += bytes;
  if (sender.left > 0) sender.left -= got;
  if (sender.interval_ns > 0)
    for (int i = 0; i < batch.size(); ++i)
      batch[i]->set_anno_u64(anno_offset::kFirstTimestamp,
                             due_time_.make(static_cast<uint64_t>(first_due + i * sender.interval_ns), source_number_));
  if (stamp_) {
    const double time = sender.interval_ns > 0 ? first_due : static_cast<double>(FrameStamp::now_ns());
    for (int i = 0; i < batch.size(); ++i)
      FrameStamp::write(batch[i]->data(), batch[i]->length(), static_cast<uint64_t>(time + i * sender.interval_ns));
  }
  if (sums_payload_) add_payloads(sender, batch, first);
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
  handlers.read("rate", [this] { return fmt::format("{}", rate_now_.load()); });
  handlers.write(
      "rate",
      [this](const std::string& value, Errors& errors) -> Status {
        double rate = 0;
        if (!parse_argument(value, rate, ArgContext()) || !(rate >= 0) || rate > 1e12)
          return errors.error("expected a number from 0 to 1e12");
        rate_now_ = rate;
        changed();
        return {};
      },
      Handler::kThreadSafe);
  handlers.read("length", [this] {
    const bool differ = spec_.kind == TrafficSpec::Kind::kImix || spec_.kind == TrafficSpec::Kind::kReplay;
    const uint32_t now = length_now_;
    return std::to_string(now > 0 ? now : differ ? 0 : spec_.length);
  });
  handlers.write(
      "length", [this](const std::string& value, Errors& errors) { return write_length(value, errors); },
      Handler::kThreadSafe);
  handlers.read("payload", [this] {
    std::lock_guard guard(lock_);
    return payload_now_;
  });
  handlers.write(
      "payload", [this](const std::string& value, Errors& errors) { return write_payload(value, errors); },
      Handler::kThreadSafe);
}

Status TrafficSource::write_length(const std::string& value, Errors& errors) {
  if (spec_.kind == TrafficSpec::Kind::kReplay) return errors.error("TRAFFIC is a file of frames");
  const std::optional<uint32_t> length = whole_number<uint32_t>(value, 1514);
  if (!length || *length < spec_.shortest) return errors.error("expected a number from {} to 1514", spec_.shortest);
  length_now_ = *length;
  changed();
  return {};
}

Status TrafficSource::write_payload(const std::string& value, Errors& errors) {
  if (spec_.kind == TrafficSpec::Kind::kReplay) return errors.error("TRAFFIC is a file of frames");
  if (value != "text" && value != "random") return errors.error("expected text or random");
  std::lock_guard guard(lock_);
  std::shared_ptr<const std::string>& content = contents_[value];
  if (!content)
    content = std::make_shared<const std::string>(value == "text" ? make_text_payload(kPayloadBytes, spec_.seed)
                                                                  : make_random_payload(kPayloadBytes, spec_.seed));
  if (!payload_of_buffer_) payload_of_buffer_ = std::make_unique<uint32_t[]>(PacketPool::instance().buffers());
  payload_now_ = value;
  content_now_ = content.get();
  payload_number_.fetch_add(1, std::memory_order_release);
  changed();
  return {};
}

}  // namespace headrace
