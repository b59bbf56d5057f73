#include "elements/standard/AverageCounter.hh"

#include <algorithm>

namespace headrace {

namespace {
// Preamble, start of frame and the least gap between frames; then the check sequence.
constexpr uint64_t kWireBytes = 20, kCheckBytes = 4;
}  // namespace

Status AverageCounter::configure(Args& args) {
  return args.read_p("IGNORE", ignore_)
      .read_p("LINK_FCS", link_fcs_)
      .read("MAX", max_)
      .read("THRESHOLD", threshold_)
      .complete();
}

void AverageCounter::count(Packet* const* begin, Packet* const* end) {
  if (begin == end) return;
  const int64_t now = clock::steady().ns;
  int64_t first = first_.load(std::memory_order_relaxed);
  if (first == 0 && first_.compare_exchange_strong(first, now, std::memory_order_relaxed)) first = now;
  if (max_ > 0 && now - first >= Timestamp::from_sec(max_).ns) return;
  if (now - first >= ignore_.ns) {
    uint64_t bytes = 0;
    for (Packet* const* p = begin; p != end; ++p) bytes += (*p)->length();
    counts_.add(kPackets, static_cast<uint64_t>(end - begin));
    counts_.add(kBytes, bytes);
  }
  last_.local() = now;
  if (threshold_ > 0 && now - first > Timestamp::kSecond && !above_.load(std::memory_order_relaxed) &&
      static_cast<double>(counted(kPacketCount)) > threshold_ * span() && !above_.exchange(true))
    reset(0);
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

uint64_t AverageCounter::counted(What what) const {
  const uint64_t packets = counts_.sum(kPackets), bytes = counts_.sum(kBytes);
  switch (what) {
    case kPacketCount:
      return packets;
    case kByteCount:
      return bytes;
    case kBitCount:
      return bytes * 8;
    default:
      return (bytes + packets * (kWireBytes + (link_fcs_ ? kCheckBytes : 0))) * 8;
  }
}

double AverageCounter::span() const {
  int64_t last = 0;
  for (int t = 0; t < last_.size(); ++t) last = std::max(last, last_[t].get());
  const int64_t span = last - first_.load(std::memory_order_relaxed) - ignore_.ns;
  // At least a millisecond, so that a single burst has a rate.
  return Timestamp::from_ns(std::max(span, Timestamp::from_ms(1).ns)).to_double();
}

void AverageCounter::reset(int64_t first) {
  counts_.reset();
  first_.store(first, std::memory_order_relaxed);
  for (int t = 0; t < last_.size(); ++t) last_[t] = 0;
}

void AverageCounter::add_handlers(Handlers& handlers) {
  static constexpr std::pair<const char*, What> kNames[] = {
      {"", kPacketCount}, {"byte_", kByteCount}, {"bit_", kBitCount}, {"link_", kLinkCount}};
  for (const auto& [name, what] : kNames) {
    handlers.read(name + std::string("count"), [this, what = what] { return std::to_string(counted(what)); });
    handlers.read(name + std::string("rate"),
                  [this, what = what] { return fmt::format("{}", static_cast<double>(counted(what)) / span()); });
  }
  handlers.read("time", [this] { return fmt::format("{}", span()); });
  handlers.button("reset", [this] { reset(0); });
  handlers.button("reset_now", [this] { reset(clock::steady().ns); });
}

}  // namespace headrace
