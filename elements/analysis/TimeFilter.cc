#include "elements/analysis/TimeFilter.hh"

#include <algorithm>
#include <limits>
#include <optional>

#include "headrace/router.hh"

namespace headrace {

namespace {
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
}  // namespace

Status TimeFilter::configure(Args& args) {
  std::optional<Timestamp> start, start_delay, start_after, end, end_delay, end_after, interval;
  bool stop = false;
  std::string call;
  if (!args.read_p("START", start)
           .read_p("END", end)
           .read("START_DELAY", start_delay)
           .read("END_DELAY", end_delay)
           .read("START_AFTER", start_after)
           .read("END_AFTER", end_after)
           .read("INTERVAL", interval)
           .read("STOP", stop)
           .read("END_CALL", call, AnyArg())
           .complete())
    return Status::failed();
  if (start.has_value() + start_delay.has_value() + start_after.has_value() > 1)
    return args.errors().error("START, START_AFTER and START_DELAY are mutually exclusive");
  if (end.has_value() + end_delay.has_value() + end_after.has_value() + interval.has_value() > 1)
    return args.errors().error("END, END_AFTER, END_DELAY and INTERVAL are mutually exclusive");
  if (stop && !call.empty()) return args.errors().error("END_CALL and STOP are mutually exclusive");
  start_from_ = start_delay ? From::kInitialize : start_after ? From::kFirstPacket : From::kEpoch;
  start_ = start.value_or(start_delay.value_or(start_after.value_or(Timestamp()))).ns;
  end_from_ = end_delay ? From::kInitialize : end_after ? From::kFirstPacket : interval ? From::kStart : From::kEpoch;
  end_ = end.value_or(end_delay.value_or(end_after.value_or(interval.value_or(Timestamp::from_ns(kNever))))).ns;
  if (stop) call = "stop";
  const size_t name_end = std::min(call.find_first_of(" \t\n"), call.size());
  call_ = HandlerCall(call.substr(0, name_end));
  call_value_ = call.substr(std::min(call.find_first_not_of(" \t\n", name_end), call.size()));
  count_reasons({"outside the time range"});
  return {};
}

Status TimeFilter::initialize(Errors& errors) {
  const int64_t now = clock::now().ns;
  if (start_from_ == From::kInitialize) start_ += now;
  if (end_from_ == From::kInitialize) end_ += now;
  if (end_from_ == From::kStart && start_from_ != From::kFirstPacket) end_ += start_;
  seen_first_ = start_from_ != From::kFirstPacket && end_from_ != From::kFirstPacket;
  if (call_.empty()) return {};
  call_armed_ = true;
  return call_.bind(router(), this, true, errors);
}

void TimeFilter::see_first(int64_t time) {
  if (seen_first_.exchange(true, std::memory_order_relaxed)) return;
  if (start_from_ == From::kFirstPacket) start_ += time;
  if (end_from_ == From::kFirstPacket) end_ += time;
  if (end_from_ == From::kStart) end_ += start_;
}

void TimeFilter::call_end(int64_t time, Emitter& emit) {
  while (time >= end_.load(std::memory_order_relaxed) && call_armed_.exchange(false, std::memory_order_relaxed)) {
    emit.flush();  // what the call changes must not concern packets that came before
    const int64_t end = end_;
    std::string value = call_value_;
    for (size_t at = 0; (at = value.find("$t", at)) != std::string::npos;) {
      const std::string text = Timestamp::from_ns(time).unparse();
      value.replace(at, 2, text);
      at += text.size();
    }
    Errors errors(Errors::Output::kStderr);
    (void)call_.write(errors, value);
    if (end_ <= end) break;
  }
}

Packet* TimeFilter::act(Packet* p, Emitter& emit) {
  const int64_t time = p->timestamp().ns;
  if (!seen_first_.load(std::memory_order_relaxed)) see_first(time);
  if (time >= end_.load(std::memory_order_relaxed) && time >= start_.load(std::memory_order_relaxed) &&
      call_armed_.load(std::memory_order_relaxed))
    call_end(time, emit);
  if (time >= start_.load(std::memory_order_relaxed) && time < end_.load(std::memory_order_relaxed)) return p;
  emit(1, p);
  return nullptr;
}

void TimeFilter::set_end(int64_t end) {
  end_ = end;
  end_from_ = From::kEpoch;
  call_armed_ = call_.bound();
}

void TimeFilter::add_handlers(Handlers& handlers) {
  const auto time_writer = [](auto set) {
    return [set](const std::string& value, Errors& errors) {
      Timestamp time;
      if (!parse_argument(value, time, ArgContext())) return errors.error("expected time");
      set(time.ns);
      return Status();
    };
  };
  handlers.read("start", [this] { return Timestamp::from_ns(start_).unparse(); });
  handlers.write("start", time_writer([this](int64_t time) {
                   see_first(time);
                   start_ = time;
                 }));
  handlers.read("end", [this] { return Timestamp::from_ns(end_).unparse(); });
  handlers.write("end", time_writer([this](int64_t time) { set_end(time); }));
  handlers.read("interval", [this] { return Timestamp::from_ns(end_ - start_).unparse(); });
  handlers.write("interval", time_writer([this](int64_t time) { set_end(start_ + time); }));
  handlers.write("extend_interval", time_writer([this](int64_t time) { set_end(end_ + time); }));
}

}  // namespace headrace
