#include "elements/analysis/RecordTimestamp.hh"

#include <algorithm>

#include "elements/analysis/NumberPacket.hh"

namespace headrace {

namespace {
constexpr uint64_t kDefaultTimes = 65536, kMostTimes = 1 << 28;
}  // namespace

Status RecordTimestamp::configure(Args& args) {
  bool dynamic = false;
  const int most = static_cast<int>(Packet::kMaxLength);
  args.read("N", size_, Between{0, kMostTimes}).read("OFFSET", place_.offset, Between{-1, most});
  args.read("COUNTER", counter_).read("NET_ORDER", place_.net_order).read("SAMPLE", sample_).read("DYNAMIC", dynamic);
  if (!args.complete()) return Status::failed();
  if (size_ == 0) size_ = kDefaultTimes;
  sample_ = std::max(sample_, 1u);
  times_ = std::make_unique<std::atomic<int64_t>[]>(size_);
  return {};
}

Status RecordTimestamp::initialize(Errors&) {
  if (counter_) place_.net_order = counter_->place().net_order;
  return {};
}

void RecordTimestamp::keep(uint64_t number, Timestamp now) {
  if (number < size_)
    times_[number].store(now.ns, std::memory_order_relaxed);
  else
    lost_.add(0, 1);
}

void RecordTimestamp::push(int, Batch& batch) {
  const Timestamp now = clock::steady();
  if (place_.offset < 0) {
    uint64_t number = next_.fetch_add(static_cast<uint64_t>(batch.size()), std::memory_order_relaxed);
    for (int i = 0; i < batch.size(); ++i) keep(number++, now);
  } else {
    for (const Packet* p : batch) {
      if (!place_.fits(*p)) {
        lost_.add(0, 1);
        continue;
      }
      const uint64_t number = place_.read(*p);
      if (number % sample_ == 0) keep(number / sample_, now);
    }
  }
  output(0).push(batch);
}

Timestamp RecordTimestamp::take(uint64_t number) {
  number /= sample_;
  if (number >= size_) return {};
  return Timestamp::from_ns(times_[number].exchange(0, std::memory_order_relaxed));
}

void RecordTimestamp::add_handlers(Handlers& handlers) {
  handlers.read("lost", [this] { return std::to_string(lost_.sum(0)); });
}

}  // namespace headrace
