#pragma once
/// \file
/// A source and a sink of numbered packets of many flows, for tests in real time.

#include <atomic>
#include <memory>
#include <vector>

#include "headrace/element.hh"

namespace headrace::testing {

/// Sends frames of UDP in IPv4, each with its flow's number, its number in the flow, and the epoch in which it was
/// made. Every worker has flows of its own.
///
///     FlowSource([keywords FLOWS, LIMIT, BURST, RARE, LONGEST, STOP, WORKERS])
///
/// FLOWS: of each worker. LIMIT: packets of each worker; -1 for no limit. RARE: one packet in so many has IP options,
/// another is too long for a link of 100 bytes. LONGEST: frames have 64 to so many bytes, at random. STOP: stop the
/// router when every worker has sent its share. WORKERS: how many send; the others have nothing to do.
class FlowSource final : public Element {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  /// Goes on with the flows where `old` was.
  void take_state(Element& old, Errors& errors) override;

  uint64_t sent() const;
  /// What later packets say about the state of the tables.
  void set_epoch(uint32_t epoch) { epoch_.store(epoch, std::memory_order_release); }
  void set_active(bool active) { active_.store(active, std::memory_order_release); }

 private:
  struct Sender {
    std::vector<uint32_t> next;  // of each flow
    uint64_t random = 1;
    int64_t left = -1;
    std::atomic<uint64_t> sent{0};
  };
  bool send(Task& task, int worker);

  int flows_ = 64;
  int64_t limit_ = -1;
  int burst_ = 32;
  int rare_ = 0;
  uint32_t longest_ = 0;
  bool stop_ = false;
  int workers_ = 0;
  std::atomic<bool> active_{true};
  std::atomic<uint32_t> epoch_{0};
  std::atomic<int> unfinished_{0};
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

/// Takes FlowSource's packets and checks that each flow's come in order, all of them, once.
class FlowSink final : public Element {
 public:
  static constexpr Ports kPorts{"-/0"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr int kFlows = 1 << 16;

  FlowSink();
  void push(int port, Batch& batch) override;
  /// Expects of each flow what `old` would have.
  void take_state(Element& old, Errors& errors) override;

  /// Does not look for missing and late packets of the flows before this one.
  void look_at_order_from(uint32_t flow) { first_in_order_ = flow; }

  uint64_t received() const { return received_.load(); }
  uint64_t received_at(int port) const { return at_port_[static_cast<size_t>(port)].load(); }
  /// Packets that were missing when the next of their flow came, and packets that came after a later one of theirs.
  uint64_t missing() const { return missing_.load(); }
  uint64_t late() const { return late_.load(); }
  uint64_t damaged() const { return damaged_.load(); }
  /// Packets made in epoch e may come to the ports of epoch e and later ones: port_of_epoch[e], if it is set.
  void expect_ports(const std::vector<std::atomic<int>>* port_of_epoch, const std::atomic<uint32_t>* newest) {
    ports_ = port_of_epoch;
    newest_ = newest;
  }
  uint64_t stale() const { return stale_.load(); }

 private:
  uint32_t first_in_order_ = 0;
  std::vector<uint32_t> next_;  // of each flow: one worker's, so nobody else touches it
  std::atomic<uint64_t> received_{0}, missing_{0}, late_{0}, damaged_{0}, stale_{0};
  std::atomic<uint64_t> at_port_[16] = {};
  const std::vector<std::atomic<int>>* ports_ = nullptr;
  const std::atomic<uint32_t>* newest_ = nullptr;
};

}  // namespace headrace::testing
