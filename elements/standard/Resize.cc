#include "elements/standard/Resize.hh"

#include <algorithm>

#include "headrace/value_handlers.hh"

namespace headrace {

namespace {
constexpr Between<int, int> kResizeRange{-static_cast<int>(Packet::kMaxLength), static_cast<int>(Packet::kMaxLength)};
}  // namespace

Status Resize::configure(Args& args) {
  count_reasons({"no room in the buffer"});
  int32_t head = 0, tail = 0;
  if (!args.read_p("HEAD", head, kResizeRange).read_p("TAIL", tail, kResizeRange).complete()) return Status::failed();
  head_ = head;
  tail_ = tail;
  return {};
}

Packet* Resize::act(Packet* p, Emitter&) {
  bool room = true;
  if (head_ > 0)
    room = p->push(static_cast<uint32_t>(head_));
  else
    p->pull(std::min(static_cast<uint32_t>(-head_), p->length()));
  if (tail_ > 0)
    room = room && p->put(static_cast<uint32_t>(tail_));
  else
    p->take(std::min(static_cast<uint32_t>(-tail_), p->length()));
  if (room) return p;
  drop(p);
  return nullptr;
}

void Resize::add_handlers(Handlers& handlers) {
  read_value(handlers, "head", head_);
  write_value(handlers, "head", head_, kResizeRange, {});
  read_value(handlers, "tail", tail_);
  write_value(handlers, "tail", tail_, kResizeRange, {});
}

}  // namespace headrace
