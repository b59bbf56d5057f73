#include "elements/standard/InfiniteSource.hh"

#include <algorithm>

#include "elements/standard/packet_bytes.hh"
#include "headrace/value_handlers.hh"

namespace headrace {

Status InfiniteSource::configure(Args& args) {
  data_ = kDefaultData;
  limit_ = -1;
  burst_ = 1;
  length_ = -1;
  active_ = timestamp_ = true;
  args.read_p("DATA", data_).read_p("LIMIT", limit_).read_p("BURST", burst_).read_p("ACTIVE", active_);
  args.read("TIMESTAMP", timestamp_).read("DATASIZE", length_).read("LENGTH", length_);
  if (!end_.read(args).complete()) return Status::failed();
  if (burst_ < 1) return args.errors().error("burst size must be >= 1");
  if (!end_.check(args.errors())) return Status::failed();
  count_ = 0;
  return make_bytes(args.errors());
}

Status InfiniteSource::make_bytes(Errors& errors) { return fill_packet_bytes(data_, length_, bytes_, errors); }

Status InfiniteSource::initialize(Errors& errors) {
  if (output_is_push(0)) {
    task_.initialize(true);
    nonfull_ = Signal::downstream_nonfull(this, 0, &task_);
  }
  return end_.initialize(*this, errors);
}

Status InfiniteSource::live_reconfigure(Args& args) {
  if (!configure(args) || !end_.initialize(*this, args.errors())) return Status::failed();
  changed();
  return {};
}

uint64_t InfiniteSource::remaining(uint64_t n) const {
  if (limit_ < 0) return n;
  const uint64_t limit = static_cast<uint64_t>(limit_);
  return limit > count_ ? std::min(n, limit - count_) : 0;
}

int InfiniteSource::make(Batch& batch, int n) {
  const Timestamp now = timestamp_ ? clock::now() : Timestamp{};
  int made = 0;
  for (; made < n; ++made) {
    Packet* p = Packet::make(bytes_.data(), static_cast<uint32_t>(bytes_.size()));
    if (!p) break;
    if (timestamp_) p->set_timestamp(now);
    batch.push_back(p);
  }
  moved_.add(static_cast<uint64_t>(made), static_cast<uint64_t>(made) * bytes_.size());
  return made;
}

bool InfiniteSource::run_task(Task& task) {
  if (!active_) return false;
  const uint64_t burst = remaining(static_cast<uint64_t>(burst_));
  // A source that has sent everything is done, even if no element pulls more.
  if (burst == 0) {
    if (limit_ >= 0) end_();
    return false;
  }
  if (!nonfull_.active()) return false;
  uint64_t sent = 0;
  while (sent < burst) {
    Batch batch;
    const int n = make(batch, static_cast<int>(std::min<uint64_t>(burst - sent, Batch::kCapacity)));
    if (n == 0) break;
    output(0).push(batch);
    sent += n;
  }
  count_ += sent;
  // Out of buffers is not the end: others give some back.
  task.fast_reschedule();
  return sent > 0;
}

int InfiniteSource::pull(int, Batch& batch, int max) {
  const int n = active_ ? static_cast<int>(remaining(static_cast<uint64_t>(max))) : 0;
  if (n == 0) {
    if (nonempty_.active()) {
      nonempty_.sleep();
      if (active_) end_();
    }
    return 0;
  }
  const int made = make(batch, n);
  count_ += made;
  return made;
}

Notifier* InfiniteSource::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty && output_is_pull(0) ? &nonempty_ : nullptr;
}

void InfiniteSource::changed() {
  if (!active_ || remaining(1) == 0) return;
  if (output_is_push(0))
    task_.reschedule();
  else
    nonempty_.wake();
}

void InfiniteSource::add_handlers(Handlers& handlers) {
  const auto changed = [this] { this->changed(); };
  const auto new_bytes = [this] {
    Errors errors(Errors::Output::kStderr);
    (void)make_bytes(errors);
    this->changed();
  };
  read_value(handlers, "count", count_);
  handlers.button("reset", [this] {
    count_ = 0;
    this->changed();
  });
  read_value(handlers, "data", data_, Handler::kCalm);
  handlers.write("data", [this, new_bytes](const std::string& text, Errors&) {
    data_ = text;
    new_bytes();
    return Status();
  });
  handlers.value("limit", limit_, changed, Handler::kCalm);
  read_value(handlers, "burst", burst_, Handler::kCalm);
  write_value(handlers, "burst", burst_, Between{1, INT32_MAX}, changed);
  handlers.value("active", active_, changed);
  read_value(handlers, "length", length_, Handler::kCalm);
  write_value(handlers, "length", length_, Between{-1, static_cast<int>(Packet::kMaxLength)}, new_bytes);
}

}  // namespace headrace
