#pragma once
/// \file
/// The ports of a switch (ONF TS-023, sections 4 and 7.2.1; OpenFlow 1.0.0, section 5.2.1).

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "control/openflow/errors.hh"
#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "control/openflow/pipeline/flow_entry.hh"
#include "headrace/device_state.hh"
#include "tables/openflow/port_counters.hh"
#include "tables/openflow/port_set_view.hh"
#include "tables/openflow/port_word.hh"

namespace headrace::openflow {

/// Ports 1 to n, and LOCAL. They belong to the switch and outlive a configuration, which binds them to its devices.
///
/// A port is live while its device has a carrier, or has none of its own, and nobody has put it down. PORT_DOWN is shown
/// when a controller has set it, or while the device is not enabled by the host; it stops frames, and does not change the
/// device.
class SwitchPorts {
 public:
  static constexpr uint32_t kMostPorts = kMostSwitchPorts;

  /// The elements behind a port; null: none, and then there is nothing that can go down.
  struct Ends {
    const HasDevice* in = nullptr;
    const HasDevice* out = nullptr;
  };
  /// Called with what changes for packets: of each port that bind() binds, and later when its word or liveness changes.
  using Publish = std::function<void(uint32_t port, uint32_t word, bool alive)>;

  /// \param datapath the switch's id; ports without an address of their own get one that follows from it
  /// \param counters where workers count
  SwitchPorts(uint64_t datapath, const PortCounters& counters, Publish publish);

  /// Ports 1 to n are bound to `ends`, and LOCAL to `local` if there is one. Configuration and counters of a number that
  /// was there before stay. Returns what has changed, for port status messages. No worker counts meanwhile.
  /// \param ends at most kMostPorts
  std::vector<PortStatus> bind(const std::vector<Ends>& ends, const std::optional<Ends>& local, Time now);
  /// The elements of bind() are going away; what they have counted stays.
  void unbind();
  /// They may have gone already.
  void forget_devices();
  /// Looks at the devices again: call it when they have changed. Returns what has changed.
  std::vector<PortStatus> refresh();

  /// Appends to `changes` what has changed. Errors: PORT_MOD_FAILED with its codes; then nothing has changed.
  ErrorCode port_mod(const PortMod& mod, Version version, std::vector<PortStatus>& changes);
  /// All ports by their numbers, LOCAL last.
  std::vector<Port> descriptions() const;
  /// Of one port or, for ANY, of all. Errors: BAD_REQUEST/BAD_PORT.
  ErrorCode statistics(const PortStatsRequest& request, Time now, std::vector<PortStats>& statistics) const;
  bool has(uint32_t port) const { return ports_.contains(port); }

  // --- For workers.

  /// Bits of port_word; all of those that stop frames for a port that does not exist.
  uint32_t word(uint32_t port) const {
    const uint32_t place = place_of(port);
    return place > kMostPorts ? port_word::kClosed : words_[place].load(std::memory_order_relaxed);
  }
  bool floods(uint32_t port) const { return (word(port) & port_word::kNoFlood) == 0; }

 private:
  struct State {
    Ends ends;
    DeviceState device;  // as it was seen last
    bool gone = false;   // the device was there, and is not
    uint64_t config = 0;
    Time created = 0;
    PortCounters::Count traffic_before;  // of an earlier port of this number
    DeviceCounters counters_before, counters_at_bind;
    Port shown;
    uint32_t word = 0;
    bool alive = false;
  };

  static uint32_t place_of(uint32_t port) { return port == port::kLocal ? 0 : port == 0 ? kMostPorts + 1 : port; }
  /// What has passed the port since it was created.
  PortCounters::Count traffic(uint32_t number, const State& state) const;
  static DeviceCounters counters_of(const Ends& ends);
  /// Since the port was created.
  static DeviceCounters device_counters(const State& state);
  static void look(State& state);
  EtherAddress made_address(uint32_t number) const;
  Port describe(uint32_t number, const State& state) const;
  /// Follows a change of device or configuration. True if the description has changed.
  bool update(uint32_t number, State& state, bool publish_always = false);
  void remove(uint32_t number);

  const uint64_t datapath_;
  const PortCounters& counters_;
  const Publish publish_;
  std::map<uint32_t, State> ports_;  // LOCAL, the greatest number, comes last
  std::unique_ptr<std::atomic<uint32_t>[]> words_;
};

}  // namespace headrace::openflow
