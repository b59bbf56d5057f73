#pragma once
/// \file
/// Packets that the control thread gives to a worker: packet-outs, and packets from buffers.

#include <atomic>
#include <cstdint>
#include <vector>

#include "headrace/packet.hh"
#include "headrace/rcu.hh"
#include "headrace/ring.hh"

namespace headrace::openflow {

/// Bounded, from the control thread to the one worker that runs the switch's task. Their memory is made and freed by the
/// control thread.
class InjectionQueue {
 public:
  static constexpr uint32_t kMost = 1024;

  /// A packet and what is to be done with it.
  struct Injection {
    Packet* packet = nullptr;
    uint32_t in_port = 0;
    std::vector<uint32_t> program;  ///< as OpenFlowPipeline::packet_out() has made it
  };

  InjectionQueue() : places_(kMost), todo_(kMost) {}
  ~InjectionQueue() {
    (void)take(static_cast<int>(kMost), [](Injection& injection) { injection.packet->kill(); });
  }
  InjectionQueue(const InjectionQueue&) = delete;
  InjectionQueue& operator=(const InjectionQueue&) = delete;

  /// Takes the packet. False: the queue is full, and the packet is still the caller's. Control thread.
  bool offer(Packet* packet, uint32_t in_port, std::vector<uint32_t>&& program) {
    const uint64_t offered = offered_.load(std::memory_order_relaxed);
    if (offered - done_.load(std::memory_order_acquire) == kMost) return false;
    const auto place = static_cast<uint32_t>(offered % kMost);
    places_[place] = {packet, in_port, std::move(program)};
    begun_[place].store(rcu::now(), std::memory_order_relaxed);
    offered_.store(offered + 1, std::memory_order_release);
    todo_.enqueue(&place, 1);
    return true;
  }
  /// Calls `act` for at most `most` packets, which it takes; returns how many there were. One worker.
  template <typename Act>
  int take(int most, Act&& act) {
    int taken = 0;
    for (uint32_t place; taken < most && todo_.dequeue(&place, 1) == 1; ++taken) {
      act(places_[place]);
      done_.fetch_add(1, std::memory_order_release);
    }
    return taken;
  }
  bool empty() const { return todo_.size() == 0; }

  /// For rcu::Copy: programs that wait name nothing that was unpublished before this; 0: none waits. Any thread.
  rcu::Epoch oldest() const {
    const uint64_t done = done_.load(std::memory_order_acquire);
    if (offered_.load(std::memory_order_acquire) == done) return 0;
    return begun_[done % kMost].load(std::memory_order_relaxed);
  }

 private:
  std::vector<Injection> places_;
  Ring<uint32_t> todo_;
  std::atomic<rcu::Epoch> begun_[kMost] = {};  // by place: when it was offered
  std::atomic<uint64_t> offered_{0}, done_{0};
};

}  // namespace headrace::openflow
