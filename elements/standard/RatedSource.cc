#include "elements/standard/RatedSource.hh"

#include <algorithm>

#include "elements/standard/packet_bytes.hh"
#include "headrace/value_handlers.hh"

namespace headrace {

Status RatedSource::configure(Args& args) {
  data_ = kDefaultData;
  uint32_t rate = 10;
  Bandwidth bandwidth;
  args.read_p("DATA", data_).read_p("RATE", rate).read_p("LIMIT", limit_).read_p("ACTIVE", active_);
  args.read("DATASIZE", length_).read("LENGTH", length_).read("BANDWIDTH", bandwidth);
  if (!end_.read(args).complete() || !end_.check(args.errors())) return Status::failed();
  if (!fill_packet_bytes(data_, length_, bytes_, args.errors())) return Status::failed();
  const uint64_t packets =
      bandwidth.bytes_per_second > 0 ? bandwidth.bytes_per_second / std::max<size_t>(bytes_.size(), 1) : rate;
  bucket_.assign(packets, burst(packets));
  return {};
}

Status RatedSource::initialize(Errors& errors) {
  if (output_is_push(0)) {
    task_.initialize(true);
    timer_.initialize();
  }
  return end_.initialize(*this, errors);
}

int RatedSource::make(Batch& batch, int n) {
  bucket_.refill(clock::steady());
  uint64_t most = std::min(static_cast<uint64_t>(n), bucket_.size());
  if (limit_ >= 0) most = std::min(most, static_cast<uint64_t>(limit_) - count_);
  int made = 0;
  for (; made < static_cast<int>(most); ++made) {
    Packet* p = Packet::make(bytes_.data(), static_cast<uint32_t>(bytes_.size()));
    if (!p) break;
    p->set_timestamp(clock::now());
    batch.push_back(p);
  }
  bucket_.remove(static_cast<uint64_t>(made));
  moved_.add(static_cast<uint64_t>(made), static_cast<uint64_t>(made) * bytes_.size());
  return made;
}

bool RatedSource::run_task(Task& task) {
  if (!active_) return false;
  if (at_limit()) {
    end_();
    return false;
  }
  // One packet at a time as long as that keeps up; otherwise 10000 batches a second.
  const int most = static_cast<int>(std::clamp<uint64_t>(bucket_.rate() / 10000, 1, Batch::kCapacity));
  Batch batch;
  const int n = make(batch, most);
  if (n > 0) {
    output(0).push(batch);
    count_ += static_cast<uint64_t>(n);
    task.fast_reschedule();
  } else {
    // No token, or no buffer: then a tick later there may be one.
    timer_.schedule_after(std::max(bucket_.time_until(1), Timestamp::from_us(10)));
  }
  return n > 0;
}

int RatedSource::pull(int, Batch& batch, int max) {
  if (!active_) return 0;
  if (at_limit()) {
    end_();
    return 0;
  }
  const int n = make(batch, max);
  count_ += static_cast<uint64_t>(n);
  return n;
}

void RatedSource::changed() {
  if (output_is_push(0) && active_) task_.reschedule();
}

void RatedSource::add_handlers(Handlers& handlers) {
  const auto new_bytes = [this] {
    Errors errors(Errors::Output::kStderr);
    (void)fill_packet_bytes(data_, length_, bytes_, errors);
  };
  read_value(handlers, "count", count_);
  handlers.button("reset", [this] {
    count_ = 0;
    bucket_.set(1);
    changed();
  });
  read_value(handlers, "data", data_, Handler::kCalm);
  handlers.write("data", [this, new_bytes](const std::string& text, Errors&) {
    data_ = text;
    new_bytes();
    return Status();
  });
  read_value(handlers, "length", length_);
  write_value(handlers, "length", length_, Between{-1, static_cast<int>(Packet::kMaxLength)}, new_bytes);
  handlers.read("rate", [this] { return std::to_string(bucket_.rate()); });
  handlers.write("rate", [this](const std::string& text, Errors& errors) {
    uint32_t rate;
    if (!parse_value(text, rate, errors)) return Status::failed();
    bucket_.assign_adjust(rate, burst(rate));
    timer_.unschedule();
    changed();
    return Status();
  });
  handlers.value(
      "limit", limit_, [this] { changed(); }, Handler::kCalm);
  read_value(handlers, "active", active_);
  write_value(handlers, "active", active_, [this] {
    if (active_ && !task_.scheduled() && !timer_.scheduled()) bucket_.set(1);
    changed();
  });
}

}  // namespace headrace
