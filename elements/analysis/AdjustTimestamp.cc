#include "elements/analysis/AdjustTimestamp.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status AdjustTimestamp::configure(Args& args) {
  return args.read_p("TIME", by_, SignedTime()).read("FIRST", first_).read("ALL", all_).complete();
}

Packet* AdjustTimestamp::act(Packet* p, Emitter&) {
  const Timestamp time =
      first_ ? Timestamp::from_ns(static_cast<int64_t>(p->anno_u64(anno_offset::kFirstTimestamp))) : p->timestamp();
  if (!time && !all_) return p;
  if (first_)
    p->set_anno_u64(anno_offset::kFirstTimestamp, static_cast<uint64_t>((time + by_).ns));
  else
    p->set_timestamp(time + by_);
  return p;
}

void AdjustTimestamp::add_handlers(Handlers& handlers) {
  read_value(handlers, "time", by_);
  write_value(handlers, "time", by_, SignedTime(), {});
}

}  // namespace headrace
