#include "control/openflow/switch/packet_in_queue.hh"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace headrace::openflow {

PacketInQueue::PacketInQueue(const Options& options)
    : ring_(options.most, options.most),
      limits_{RateLimit(options.rates[0].packets, options.rates[0].burst),
              RateLimit(options.rates[1].packets, options.rates[1].burst),
              RateLimit(options.rates[2].packets, options.rates[2].burst)},
      event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  static_assert(kPacketInReasons == 3);
  if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

PacketInQueue::~PacketInQueue() {
  for (QueuedPacketIn in; ring_.dequeue(&in, 1) == 1;) in.packet->kill();
  close(event_);
}

void PacketInQueue::set_wanted(PacketInReason reason, bool wanted) {
  const uint32_t bit = 1u << static_cast<uint32_t>(reason);
  if (wanted) {
    wanted_.fetch_or(bit, std::memory_order_relaxed);
  } else {
    wanted_.fetch_and(~bit, std::memory_order_relaxed);
  }
}

bool PacketInQueue::offer(const Packet& packet, const QueuedPacketIn& about, int64_t now) {
  const PacketInReason reason = about.reason;
  const auto number = static_cast<uint32_t>(reason);
  if ((wanted_.load(std::memory_order_relaxed) >> number & 1) == 0) return lose(reason, Loss::kUnwanted);
  if (!limits_[number].take(now)) return lose(reason, Loss::kLimited);
  if (ring_.size() >= ring_.capacity()) return lose(reason, Loss::kFull);
  QueuedPacketIn in = about;
  in.packet = packet.clone();
  if (in.packet == nullptr) return lose(reason, Loss::kNoBuffer);
  if (ring_.enqueue(&in, 1) == 0) {
    in.packet->kill();
    return lose(reason, Loss::kFull);
  }
  counters_.add(counter_of(reason), 1);
  // A system call, but only for the first packet after the control thread has found nothing.
  if (waiting_.exchange(false, std::memory_order_acq_rel)) wake();
  return true;
}

int PacketInQueue::drain(int most, const std::function<void(const QueuedPacketIn&)>& take) {
  int taken = 0;
  for (QueuedPacketIn in; taken < most && ring_.dequeue(&in, 1) == 1; ++taken) take(in);
  if (taken == most) return taken;
  uint64_t count;
  (void)!read(event_, &count, sizeof count);
  // Who queues a packet after this wakes; what was queued before is seen here.
  (void)waiting_.exchange(true, std::memory_order_acq_rel);
  if (ring_.size() > 0 && waiting_.exchange(false, std::memory_order_acq_rel)) wake();
  return taken;
}

void PacketInQueue::wake() {
  const uint64_t one = 1;
  (void)!write(event_, &one, sizeof one);
}

}  // namespace headrace::openflow
