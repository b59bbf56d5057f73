#include "elements/analysis/TimeRange.hh"

#include <algorithm>

namespace headrace {

Status TimeRange::configure(Args& args) { return args.read("SIMPLE", simple_).complete(); }

Packet* TimeRange::act(Packet* p, Emitter&) {
  const int64_t time = p->timestamp().ns;
  if (time == 0) return p;
  Seen& seen = seen_.local();
  if (seen.first == 0 || (!simple_ && time < seen.first)) seen.first = time;
  if (simple_ || seen.last == 0 || time > seen.last) seen.last = time;
  return p;
}

Timestamp TimeRange::first() const {
  int64_t first = 0;
  for (int t = 0; t < seen_.size(); ++t)
    if (const int64_t time = seen_[t].first; time != 0) first = first == 0 ? time : std::min(first, time);
  return Timestamp::from_ns(first);
}

Timestamp TimeRange::last() const {
  int64_t last = 0;
  for (int t = 0; t < seen_.size(); ++t)
    if (const int64_t time = seen_[t].last; time != 0) last = last == 0 ? time : std::max(last, time);
  return Timestamp::from_ns(last);
}

void TimeRange::add_handlers(Handlers& handlers) {
  handlers.read("first", [this] { return first().unparse(); });
  handlers.read("last", [this] { return last().unparse(); });
  handlers.read("range", [this] { return first().unparse() + " " + last().unparse(); });
  handlers.read("interval", [this] { return (last() - first()).unparse(); });
  handlers.button("reset", [this] {
    for (int t = 0; t < seen_.size(); ++t) {
      seen_[t].first = 0;
      seen_[t].last = 0;
    }
  });
}

}  // namespace headrace
