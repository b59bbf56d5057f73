#include "elements/analysis/NumberPacket.hh"

#include "headrace/headers.hh"

namespace headrace {

Status NumberPacket::configure(Args& args) {
  count_reasons({"no room at the end"});
  const int most = static_cast<int>(Packet::kMaxLength - PacketNumber::kSize);
  return args.read_p("OFFSET", place_.offset, Between{0, most}).read("NET_ORDER", place_.net_order).complete();
}

void NumberPacket::number(Batch& batch, int from) {
  const int n = batch.size();
  uint64_t next = count_.fetch_add(static_cast<uint64_t>(n - from), std::memory_order_relaxed);
  int kept = from;
  for (int i = from; i < n; ++i, ++next) {
    Packet* p = batch[i];
    if (!place_.fits(*p)) {
      if (!p->put(static_cast<uint32_t>(place_.offset) + PacketNumber::kSize - p->length())) {
        drop(p);
        continue;
      }
      if (Ip4Header* ip = ip4_header(*p)) ip->total_length = static_cast<uint16_t>(p->network_length());
    }
    place_.write(*p, next);
    batch[kept++] = p;
  }
  batch.resize(kept);
}

void NumberPacket::push(int, Batch& batch) {
  number(batch, 0);
  if (!batch.empty()) output(0).push(batch);
}

int NumberPacket::pull(int, Batch& batch, int max) {
  const int before = batch.size();
  if (input(0).pull(batch, max) > 0) number(batch, before);
  return batch.size() - before;
}

void NumberPacket::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(count_.load(std::memory_order_relaxed)); });
}

}  // namespace headrace
