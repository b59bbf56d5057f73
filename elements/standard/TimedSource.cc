#include "elements/standard/TimedSource.hh"

#include "elements/standard/packet_bytes.hh"
#include "headrace/value_handlers.hh"

namespace headrace {

Status TimedSource::configure(Args& args) {
  data_ = kDefaultData;
  args.read_p("INTERVAL", interval_).read_p("DATA", data_).read("LIMIT", limit_).read("ACTIVE", active_);
  args.read("HEADROOM", headroom_, Between{0, 1024});
  if (!end_.read(args).complete()) return Status::failed();
  if (data_.size() > Packet::kMaxLength)
    return args.errors().error("packet too long, maximum is {}", Packet::kMaxLength);
  return end_.check(args.errors());
}

Status TimedSource::initialize(Errors& errors) {
  timer_.initialize();
  if (active_) timer_.schedule_after(interval_.timestamp());
  return end_.initialize(*this, errors);
}

void TimedSource::run_timer(Timer& timer) {
  if (!active_) return;
  if (limit_ >= 0 && count_ >= limit_) {
    end_();
    return;
  }
  if (Packet* p = Packet::make(data_.data(), static_cast<uint32_t>(data_.size()), headroom_)) {
    p->set_timestamp(clock::now());
    moved_.add(1, p->length());
    output(0).push(p);
    count_ += 1;
  }
  timer.reschedule_after(interval_.timestamp());
}

void TimedSource::add_handlers(Handlers& handlers) {
  const auto start = [this] {
    if (active_ && !timer_.scheduled()) timer_.schedule_after({});
  };
  read_value(handlers, "count", count_);
  handlers.button("reset", [this, start] {
    count_ = 0;
    start();
  });
  read_value(handlers, "data", data_, Handler::kCalm);
  handlers.write("data", [this](const std::string& text, Errors& errors) {
    if (text.size() > Packet::kMaxLength) return errors.error("packet too long, maximum is {}", Packet::kMaxLength);
    data_ = text;
    return Status();
  });
  read_value(handlers, "interval", interval_, Handler::kCalm);
  write_value(handlers, "interval", interval_);
  handlers.value("limit", limit_, {}, Handler::kCalm);
  handlers.value("active", active_, start, Handler::kCalm);
  read_value(handlers, "headroom", headroom_, Handler::kCalm);
  write_value(handlers, "headroom", headroom_, Between{0, 1024}, {});
}

}  // namespace headrace
