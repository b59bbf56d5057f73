#include "elements/standard/StoreData.hh"

#include <algorithm>

namespace headrace {

Status StoreData::configure(Args& args) {
  args.read_mp("OFFSET", offset_).read_mp("DATA", data_).read_p("MASK", mask_).read("GROW", grow_);
  if (!args.complete()) return Status::failed();
  if (mask_.size() > data_.size()) return args.errors().error("MASK must be no longer than DATA");
  mask_.resize(data_.size(), '\xff');
  count_reasons({"no room at the end"});
  return {};
}

Packet* StoreData::act(Packet* p, Emitter&) {
  if (p->length() <= offset_) return p;
  const size_t there = p->length() - offset_;
  if (grow_ && data_.size() > there && !p->put(static_cast<uint32_t>(data_.size() - there))) {
    drop(p);
    return nullptr;
  }
  const size_t n = std::min<size_t>(data_.size(), p->length() - offset_);
  uint8_t* to = p->data() + offset_;
  for (size_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>((to[i] & ~mask_[i]) | (data_[i] & mask_[i]));
  return p;
}

}  // namespace headrace
