#pragma once
#include <atomic>
#include <headrace/element.hh>
#include <memory>

namespace headrace {

/// A learning Ethernet switch.
///
///     EtherSwitch([keyword TIMEOUT, CAPACITY])
///
/// Input i and output i, push, two or more of each: the frames of one network. The switch learns the port of an
/// Ethernet address from the source addresses of frames. A frame for a known address leaves by that port, or is dropped
/// if it came from there; a frame for an unknown or a group address leaves by all outputs except the one of its input.
///
/// TIMEOUT: seconds of silence after which an address is forgotten; 0: no learning. Default 300.
/// CAPACITY: maximum number of addresses; without room, a new address replaces the one in the same hash bucket that has
/// been silent for the longest time. Default 16384.
///
/// Handlers: `table` (r) one line "address port" per known address; `timeout` (rw); `count` (r) known addresses;
/// `flush` (w) forgets all.
class EtherSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"2-/="};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"#/[^#]"};

  Status configure(Args& args) override;
  void push(int port, Batch& batch) override;
  void add_handlers(Handlers& handlers) override;
  void take_state(Element& old, Errors& errors) override;

 private:
  static constexpr int kWays = 8;
  /// What is known of an address. Workers read and write it at any time: the association is one word, and of two that
  /// learn at the same time one wins.
  struct Entry {
    std::atomic<uint64_t> association{0};  // address << 16 | port; 0: none, as no address that sends is 0
    std::atomic<uint32_t> seen{0};         // seconds of steady time
  };
  struct Known {
    uint64_t address;
    int port;
  };

  Entry* place(uint64_t address) const;
  bool alive(const Entry& entry, uint32_t now) const;
  void learn(uint64_t address, int port, uint32_t now);
  /// The port of an address, or -1.
  int find(uint64_t address, uint32_t now) const;
  void flood(int from, Batch& batch);
  std::vector<Known> known() const;

  uint32_t places_ = 0;  // a power of two, of kWays entries each
  std::unique_ptr<Entry[]> entries_;
  std::atomic<uint32_t> timeout_{300};
};

HEADRACE_ELEMENT(EtherSwitch)

}  // namespace headrace
