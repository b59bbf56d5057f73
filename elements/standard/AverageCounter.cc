#include "elements/standard/AverageCounter.hh"

#include <algorithm>

namespace headrace {

Status AverageCounter::configure(Args& args) { return args.read_p("IGNORE", ignore_).complete(); }

void AverageCounter::count(Packet* const* begin, Packet* const* end) {
  if (begin == end) return;
  const int64_t now = clock::steady().ns;
  int64_t first = first_.load(std::memory_order_relaxed);
  if (first == 0 && first_.compare_exchange_strong(first, now, std::memory_order_relaxed)) first = now;
  if (now - first >= Timestamp::from_sec(ignore_).ns) {
    uint64_t bytes = 0;
    for (Packet* const* p = begin; p != end; ++p) bytes += (*p)->length();
    counts_.add(kPackets, static_cast<uint64_t>(end - begin));
    counts_.add(kBytes, bytes);
  }
  last_.local() = now;
}

void AverageCounter::push(int, Batch& batch) {
  count(batch.begin(), batch.end());
  output(0).push(batch);
}

int AverageCounter::pull(int, Batch& batch, int max) {
  const int before = batch.size();
  const int n = input(0).pull(batch, max);
  count(batch.begin() + before, batch.end());
  return n;
}

double AverageCounter::rate(int which) const {
  int64_t last = 0;
  for (int t = 0; t < last_.size(); ++t) last = std::max(last, last_[t].get());
  // At least a millisecond, so that a single burst has a rate.
  const int64_t span = std::max(last - first_.load(std::memory_order_relaxed) - Timestamp::from_sec(ignore_).ns,
                                Timestamp::from_ms(1).ns);
  return static_cast<double>(counts_.sum(which)) * 1e9 / static_cast<double>(span);
}

void AverageCounter::reset() {
  counts_.reset();
  first_.store(0, std::memory_order_relaxed);
  for (int t = 0; t < last_.size(); ++t) last_[t] = 0;
}

void AverageCounter::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kPackets)); });
  handlers.read("byte_count", [this] { return std::to_string(counts_.sum(kBytes)); });
  handlers.read("rate", [this] { return fmt::format("{}", rate(kPackets)); });
  handlers.read("byte_rate", [this] { return fmt::format("{}", rate(kBytes)); });
  handlers.button("reset", [this] { reset(); });
}

}  // namespace headrace
