#include "elements/devices/FromDump.hh"

#include <fmt/format.h>

#include "headrace/router.hh"
#include "headrace/value_handlers.hh"
#include "src/io/pcap/link_type.hh"

namespace headrace {

namespace {
constexpr int kDumpBurst = 32;
}  // namespace

FromDump::FromDump()
    : OneWayPort(Direction::kIn),
      random_(std::random_device{}()),
      timer_(this, [this](Timer&) { set_active(active_); }) {}

FromDump::~FromDump() {
  if (held_) held_->kill();
}

Status FromDump::configure(Args& args) {
  count_reasons({"not IP", "no buffer"});
  std::optional<Timestamp> start, end;
  std::optional<Interval> start_after, end_after, interval;
  bool mmap = false;
  args.read_mp("FILENAME", filename_, FileName{}).read_p("TIMING", timing_).read("ACTIVE", active_);
  args.read("SAMPLE", sample_, Between{0, 1}).read("FORCE_IP", force_ip_).read("FILEPOS", start_position_);
  args.read("START", start).read("START_AFTER", start_after).read("END", end).read("END_AFTER", end_after);
  args.read("INTERVAL", interval).read("MMAP", mmap);
  if (!end_.read(args).complete()) return Status::failed();
  if (sample_ == 0) args.errors().warning("SAMPLE probability is 0; emitting no packets");
  if (start && start_after) return args.errors().error("START and START_AFTER are mutually exclusive");
  if (end.has_value() + end_after.has_value() + interval.has_value() > 1)
    return args.errors().error("END, END_AFTER, and INTERVAL are mutually exclusive");
  first_time_ = start_after ? start_after->timestamp() : start;
  first_relative_ = start_after.has_value();
  last_time_ = end_after ? end_after->timestamp() : interval ? interval->timestamp() : end;
  last_relative_ = end_after.has_value();
  last_interval_ = interval.has_value();
  return end_.check(args.errors());
}

Status FromDump::initialize(Errors& errors) {
  if (!end_.initialize(*this, errors)) return Status::failed();
  timer_.initialize();
  if (output_is_push(0)) {
    task_.initialize(active_);
    nonfull_ = Signal::downstream_nonfull(this, 0, &task_);
  }
  if (!active_) nonempty_.sleep();
  if (!reader_.open(filename_, errors)) return Status::failed();
  const int type = reader_.link_type();
  if (io::link_type_name(type) == "IP") force_ip_ = true;
  if (force_ip_ && !io::can_find_ip(type))
    return errors.error("{}: unknown linktype {}; can't force IP packets", reader_.name(), type);
  return start_position_ ? reader_.seek(start_position_, errors) : Status();
}

void FromDump::prepare_times(Timestamp first) {
  times_known_ = true;
  if (first_relative_) *first_time_ += first;
  if (last_relative_)
    *last_time_ += first;
  else if (last_interval_)
    *last_time_ += first_time_.value_or(first);
  if (timing_) timing_offset_ = clock::steady() - first;
}

FromDump::Next FromDump::read(Packet*& p) {
  io::CaptureReader::Record record;
  if (reader_.next(record, complaints_) != io::CaptureReader::Got::kRecord) {
    reader_.close();
    return Next::kEnd;
  }
  if (!times_known_) prepare_times(record.time);
  if (first_time_ && record.time < *first_time_) return Next::kNothing;
  // The handler may put off the end.
  while (last_time_ && record.time >= *last_time_) {
    const Timestamp before = *last_time_;
    end();
    if (!active_) return Next::kNothing;
    if (last_time_ && *last_time_ == before) last_time_.reset();
  }
  if (sample_ < 1 && std::uniform_real_distribution<double>()(random_) >= sample_) return Next::kNothing;
  p = io::make_packet(record);
  if (p) return Next::kPacket;
  moved_.add(1, record.captured);
  count_drops(1, kNoBuffer);
  return Next::kNothing;
}

bool FromDump::due(const Packet& p) {
  const Timestamp at = p.timestamp() + timing_offset_;
  if (clock::steady() >= at) return true;
  timer_.schedule_at(at);
  if (output_is_pull(0)) nonempty_.sleep();
  return false;
}

FromDump::Next FromDump::next(Packet*& p) {
  if (held_) {
    p = held_;
  } else if (const Next got = read(p); got != Next::kPacket) {
    return got;
  }
  held_ = nullptr;
  if (timing_ && !due(*p)) {
    held_ = p;
    return Next::kNotYet;
  }
  moved_.add(1, p->length());
  if (!force_ip_ || io::mark_ip_header(*p, reader_.link_type())) {
    count_ += 1;
    return Next::kPacket;
  }
  if (noutputs() > 1)
    output(1).push(p);
  else
    drop(p);
  return Next::kNothing;
}

void FromDump::send() {
  if (!batch_.empty()) output(0).push(batch_);
  batch_.clear();
}

void FromDump::end() {
  // What a handler sees then is that all packets have been sent.
  send();
  if (end_.stops()) {
    active_ = false;
    router().request_stop();
  } else if (!end_.empty()) {
    end_();
  } else if (last_time_) {
    active_ = false;
  }
}

bool FromDump::run_task(Task& task) {
  if (!active_ || (waits_for_room() && !nonfull_.active())) return false;
  const uint64_t before = count_;
  Next got = Next::kPacket;
  // Some of the packets may be left out. A queue that is about to be full gets no more than it has room for.
  for (int n = 0; n < kDumpBurst && active_ && (got == Next::kPacket || got == Next::kNothing); ++n) {
    Packet* p = nullptr;
    got = next(p);
    if (p && got == Next::kPacket) batch_.push_back(p);
    if (waits_for_room()) {
      send();
      if (!nonfull_.active()) break;
    }
  }
  send();
  if (got == Next::kEnd)
    end();
  else if (got != Next::kNotYet && active_)
    task.fast_reschedule();
  return count_ > before;
}

int FromDump::pull(int, Batch& batch, int max) {
  int n = 0;
  while (n < max && active_) {
    Packet* p = nullptr;
    const Next got = next(p);
    if (got == Next::kPacket) {
      batch.push_back(p);
      ++n;
    } else if (got == Next::kNotYet) {
      return n;
    } else if (got == Next::kEnd) {
      if (n == 0 && nonempty_.active()) {
        nonempty_.sleep();
        end();
      }
      return n;
    }
  }
  if (!active_) nonempty_.sleep();
  return n;
}

Notifier* FromDump::notifier(NotifierKind kind, bool output, int port) {
  return output && port == 0 && kind == NotifierKind::kNonempty && output_is_pull(0) ? &nonempty_ : nullptr;
}

void FromDump::set_active(bool active) {
  active_ = active;
  if (!active) return;
  if (output_is_push(0))
    task_.reschedule();
  else
    nonempty_.wake();
}

void FromDump::add_handlers(Handlers& handlers) {
  reader_.add_handlers(handlers);
  handlers.read("sampling_prob", [this] { return fmt::format("{:g}", sample_); });
  handlers.read("encap", [this] { return io::link_type_name(reader_.link_type()); });
  read_value(handlers, "count", count_);
  handlers.button("reset_counts", [this] { count_ = 0; });
  read_value(handlers, "active", active_);
  write_value(handlers, "active", active_, [this] { set_active(active_); });
  handlers.button("stop", [this] {
    set_active(false);
    router().request_stop();
  });
  handlers.write("extend_interval", [this](const std::string& text, Errors& errors) {
    Interval more;
    if (!parse_argument(text, more, ArgContext())) return errors.error("'extend_interval' takes a time interval");
    if (last_time_) {
      *last_time_ += more.timestamp();
      set_active(true);
    }
    return Status();
  });
  handlers.button("reset_timing", [this] {
    first_relative_ = last_relative_ = last_interval_ = false;
    times_known_ = false;
  });
}

}  // namespace headrace
