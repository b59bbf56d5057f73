#include "elements/analysis/SetTimestampDelta.hh"

namespace headrace {

Status SetTimestampDelta::configure(Args& args) {
  static const Choice<Type> kTypes{{"RANGE", Type::kRange}, {"NOW", Type::kNow}, {"FIRST", Type::kFirst}};
  return args.read("TYPE", type_, kTypes).complete();
}

Packet* SetTimestampDelta::act(Packet* p, Emitter&) {
  const Timestamp time = p->timestamp();
  if (!time) return p;
  switch (type_) {
    case Type::kRange: {
      int64_t first = first_.load(std::memory_order_relaxed);
      if (first == 0 && first_.compare_exchange_strong(first, time.ns, std::memory_order_relaxed)) first = time.ns;
      p->set_timestamp(time - Timestamp::from_ns(first));
      break;
    }
    case Type::kNow:
      p->set_timestamp(clock::now() - time);
      break;
    case Type::kFirst:
      p->set_timestamp(time - Timestamp::from_ns(static_cast<int64_t>(p->anno_u64(anno_offset::kFirstTimestamp))));
      break;
  }
  return p;
}

void SetTimestampDelta::add_handlers(Handlers& handlers) {
  handlers.read("first", [this] { return Timestamp::from_ns(first_.load(std::memory_order_relaxed)).unparse(); });
  handlers.button("reset", [this] { first_.store(0, std::memory_order_relaxed); });
}

}  // namespace headrace
