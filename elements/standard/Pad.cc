#include "elements/standard/Pad.hh"

#include <algorithm>
#include <cstring>

#include "headrace/packet.hh"

namespace headrace {

Status Pad::configure(Args& args) {
  std::optional<bool> zero;
  bool random = false, verbose = false;
  if (!args.read_p("LENGTH", length_, Between{0u, Packet::kMaxLength})
           .read("ZERO", zero)
           .read("RANDOM", random)
           .read("MAXLENGTH", max_length_)
           .read("VERBOSE", verbose)
           .complete())
    return Status::failed();
  if (random && zero.value_or(false)) return args.errors().error("ZERO and RANDOM exclude each other");
  fill_ = random ? Fill::kRandom : zero.value_or(true) ? Fill::kZero : Fill::kNothing;
  count_reasons({"no room behind"});
  return {};
}

void Pad::fill_random(uint8_t* to, uint32_t n) {
  while (n > 0) {
    const uint32_t bits = random_.next();
    const uint32_t part = std::min<uint32_t>(n, sizeof bits);
    std::memcpy(to, &bits, part);
    to += part;
    n -= part;
  }
}

Packet* Pad::act(Packet* p, Emitter&) {
  const uint32_t length = p->length();
  uint32_t wanted = length_ ? std::max(length, length_) : length + p->anno_u32(anno_offset::kExtraLength);
  // A sum that wrapped around is beyond any buffer, too.
  if (wanted < length) wanted = UINT32_MAX;
  if (max_length_ && wanted > max_length_) {
    wanted = std::max(length, max_length_);
    limited_.add(0, 1);
  }
  p->set_anno_u32(anno_offset::kExtraLength, 0);
  const uint32_t added = wanted - length;
  if (added == 0) return p;
  if (!p->put(added)) {
    drop(p);
    return nullptr;
  }
  if (fill_ == Fill::kZero) std::memset(p->end_data() - added, 0, added);
  if (fill_ == Fill::kRandom) fill_random(p->end_data() - added, added);
  return p;
}

void Pad::add_handlers(Handlers& handlers) {
  handlers.read("limited", [this] { return std::to_string(limited_.sum(0)); });
}

}  // namespace headrace
