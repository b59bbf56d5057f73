#include "control/openflow/switch/ports.hh"

#include <fmt/format.h>

#include <algorithm>

#include "control/openflow/pipeline/duration.hh"

namespace headrace::openflow {

namespace {

/// What the port of a version can be told.
uint64_t known_config(Version version) {
  uint32_t wire = 0;
  for (const Definition& row : port_config_flags())
    if (row.number(version) != kAbsent) wire |= static_cast<uint32_t>(row.number(version));
  return flags_from_wire(port_config_flags(), version, wire);
}

template <typename Combine>
DeviceCounters combined(const DeviceCounters& a, const DeviceCounters& b, const Combine& combine) {
  DeviceCounters c;
  for (const auto member : {&DeviceCounters::rx_packets, &DeviceCounters::rx_bytes, &DeviceCounters::rx_dropped,
                            &DeviceCounters::rx_errors, &DeviceCounters::rx_frame_errors, &DeviceCounters::rx_overruns,
                            &DeviceCounters::rx_crc_errors, &DeviceCounters::tx_packets, &DeviceCounters::tx_bytes,
                            &DeviceCounters::tx_dropped, &DeviceCounters::tx_errors, &DeviceCounters::collisions})
    c.*member = combine(a.*member, b.*member);
  return c;
}

DeviceCounters sum(const DeviceCounters& a, const DeviceCounters& b) {
  return combined(a, b, [](uint64_t x, uint64_t y) { return x + y; });
}
/// A counter that is less than before was reset meanwhile.
DeviceCounters since(const DeviceCounters& now, const DeviceCounters& before) {
  return combined(now, before, [](uint64_t x, uint64_t y) { return x >= y ? x - y : x; });
}

}  // namespace

SwitchPorts::SwitchPorts(uint64_t datapath, const PortCounters& counters, Publish publish)
    : datapath_(datapath),
      counters_(counters),
      publish_(std::move(publish)),
      words_(new std::atomic<uint32_t>[kMostPorts + 1]) {
  for (uint32_t i = 0; i <= kMostPorts; ++i) words_[i].store(port_word::kClosed, std::memory_order_relaxed);
}

// --- Devices --------------------------------------------------------------------------------------------------------

std::vector<PortStatus> SwitchPorts::bind(const std::vector<Ends>& ends, const std::optional<Ends>& local, Time now) {
  unbind();
  std::map<uint32_t, Ends> wanted;
  for (size_t i = 0; i < ends.size(); ++i) wanted[static_cast<uint32_t>(i + 1)] = ends[i];
  if (local) wanted[port::kLocal] = *local;
  std::vector<PortStatus> changes;
  for (auto it = ports_.begin(); it != ports_.end();) {
    const auto [number, state] = *it++;
    if (wanted.contains(number)) continue;
    changes.push_back({PortReason::kDelete, state.shown});
    remove(number);
  }
  for (const auto& [number, its_ends] : wanted) {
    const auto [it, is_new] = ports_.try_emplace(number);
    State& state = it->second;
    if (is_new) {
      state.created = now;
      state.traffic_before = counters_.sum(port_place(number));
    }
    state.ends = its_ends;
    state.device = DeviceState();
    state.counters_at_bind = counters_of(its_ends);
    look(state);
    const bool changed = update(number, state, true);
    if (is_new || changed) changes.push_back({is_new ? PortReason::kAdd : PortReason::kModify, state.shown});
  }
  return changes;
}

void SwitchPorts::unbind() {
  for (auto& [number, state] : ports_) {
    state.counters_before = device_counters(state);
    state.ends = {};
    state.counters_at_bind = {};
  }
}

void SwitchPorts::forget_devices() {
  for (auto& [number, state] : ports_) {
    state.ends = {};
    state.counters_at_bind = {};
  }
}

void SwitchPorts::remove(uint32_t number) {
  ports_.erase(number);
  words_[place_of(number)].store(port_word::kClosed, std::memory_order_relaxed);
  publish_(number, port_word::kClosed, false);
}

std::vector<PortStatus> SwitchPorts::refresh() {
  std::vector<PortStatus> changes;
  for (auto& [number, state] : ports_) {
    look(state);
    if (update(number, state)) changes.push_back({PortReason::kModify, state.shown});
  }
  return changes;
}

void SwitchPorts::look(State& state) {
  std::optional<DeviceState> seen;
  state.gone = false;
  for (const HasDevice* const end : {state.ends.in, state.ends.out}) {
    if (end == nullptr) continue;
    const std::optional<DeviceState> one = end->device_state();
    if (!one) {
      state.gone = true;
    } else if (!seen) {
      seen = one;
    } else {
      // Two devices are one port: what does not work one way does not work.
      seen->enabled &= one->enabled;
      seen->carrier &= one->carrier;
    }
  }
  if (seen) state.device = *seen;
}

// --- Descriptions ---------------------------------------------------------------------------------------------------

EtherAddress SwitchPorts::made_address(uint32_t number) const {
  std::array<uint8_t, 6> bytes;
  if (number == port::kLocal) {
    // By custom the low 48 bits of the id are the switch's own address (ONF TS-023, section 7.3.1).
    for (size_t i = 0; i < 6; ++i) bytes[i] = static_cast<uint8_t>(datapath_ >> (40 - 8 * i));
    return EtherAddress(bytes);
  }
  const uint64_t mixed = datapath_ * 0x9e3779b97f4a7c15u;
  bytes = {0x02,
           static_cast<uint8_t>(mixed >> 56),
           static_cast<uint8_t>(mixed >> 48),
           static_cast<uint8_t>(mixed >> 40),
           static_cast<uint8_t>(number >> 8),
           static_cast<uint8_t>(number)};
  return EtherAddress(bytes);
}

Port SwitchPorts::describe(uint32_t number, const State& state) const {
  const DeviceState& device = state.device;
  Port port;
  port.number = number;
  port.address = device.address.value_or(made_address(number)).bytes();
  port.name = !device.name.empty()     ? device.name
              : number == port::kLocal ? std::string("local")
                                       : fmt::format("port{}", number);
  if (port.name.size() >= text_size::kPortName) port.name.resize(text_size::kPortName - 1);
  port.config = state.config | (device.enabled ? 0 : port_config::kPortDown);
  const bool link = device.enabled && device.carrier && !state.gone;
  port.state = (link ? 0 : port_state::kLinkDown) |
               (link && (port.config & port_config::kPortDown) == 0 ? port_state::kLive : 0);
  port.current = device.current;
  port.advertised = device.advertised;
  port.supported = device.supported;
  port.peer = device.peer;
  constexpr uint32_t kKilobits = 1000;  // a megabit
  port.current_speed = device.speed * kKilobits;
  port.max_speed = std::max(device.most_speed, device.speed) * kKilobits;
  return port;
}

bool SwitchPorts::update(uint32_t number, State& state, bool publish_always) {
  Port next = describe(number, state);
  const bool alive = (next.state & port_state::kLive) != 0;
  const auto bit = [&](uint64_t flag, uint32_t word) { return (next.config & flag) != 0 ? word : 0; };
  const uint32_t word =
      bit(port_config::kNoReceive, port_word::kNoReceive) |
      bit(port_config::kNoReceiveStp10, port_word::kNoReceiveStp) |
      bit(port_config::kNoForward, port_word::kNoForward) | bit(port_config::kNoPacketIn, port_word::kNoPacketIn) |
      bit(port_config::kNoFlood10, port_word::kNoFlood) |
      bit(port_config::kPortDown, port_word::kNoReceive | port_word::kNoReceiveStp | port_word::kNoForward) |
      (alive ? 0 : port_word::kNoFlood);
  if (publish_always || word != state.word || alive != state.alive) {
    words_[place_of(number)].store(word, std::memory_order_relaxed);
    publish_(number, word, alive);
  }
  state.word = word;
  state.alive = alive;
  const bool changed = next != state.shown;
  state.shown = std::move(next);
  return changed;
}

std::vector<Port> SwitchPorts::descriptions() const {
  std::vector<Port> all;
  for (const auto& [number, state] : ports_) all.push_back(state.shown);
  return all;
}

ErrorCode SwitchPorts::port_mod(const PortMod& mod, Version version, std::vector<PortStatus>& changes) {
  const auto it = ports_.find(mod.port);
  if (it == ports_.end()) return ErrorCode::kPortModBadPort;
  State& state = it->second;
  if (mod.address != state.shown.address) return ErrorCode::kPortModBadHwAddr;
  if ((mod.mask & ~known_config(version)) != 0) return ErrorCode::kPortModBadConfig;
  // Devices negotiate as the host has set them up.
  if (mod.advertise != 0 && mod.advertise != state.shown.advertised) return ErrorCode::kPortModBadAdvertise;
  uint64_t mask = mod.mask, config = mod.config & mod.mask;
  if ((mask & ~config & port_config::kPortDown) != 0 && !state.device.enabled) return ErrorCode::kPortModEperm;
  if (version != Version::k1_0 && (mask & port_config::kNoReceive) != 0) {
    // 1.3 has one bit for all frames, 1.0 a second one for those of the spanning tree.
    mask |= port_config::kNoReceiveStp10;
    if ((config & port_config::kNoReceive) != 0) config |= port_config::kNoReceiveStp10;
  }
  state.config = (state.config & ~mask) | config;
  if (update(mod.port, state)) changes.push_back({PortReason::kModify, state.shown});
  return ErrorCode::kNone;
}

// --- Statistics -----------------------------------------------------------------------------------------------------

PortCounters::Count SwitchPorts::traffic(uint32_t number, const State& state) const {
  PortCounters::Count count = counters_.sum(port_place(number));
  const PortCounters::Count& before = state.traffic_before;
  count.rx_packets -= before.rx_packets;
  count.rx_bytes -= before.rx_bytes;
  count.tx_packets -= before.tx_packets;
  count.tx_bytes -= before.tx_bytes;
  count.rx_dropped -= before.rx_dropped;
  count.tx_dropped -= before.tx_dropped;
  return count;
}

DeviceCounters SwitchPorts::counters_of(const Ends& ends) {
  DeviceCounters counters;
  for (const HasDevice* const end : {ends.in, ends.out == ends.in ? nullptr : ends.out})
    if (end != nullptr) counters = sum(counters, end->device_counters());
  return counters;
}

DeviceCounters SwitchPorts::device_counters(const State& state) {
  return sum(state.counters_before, since(counters_of(state.ends), state.counters_at_bind));
}

ErrorCode SwitchPorts::statistics(const PortStatsRequest& request, Time now, std::vector<PortStats>& statistics) const {
  if (request.port != port::kAny && !has(request.port)) return ErrorCode::kRequestBadPort;
  for (const auto& [number, state] : ports_) {
    if (request.port != port::kAny && request.port != number) continue;
    const DeviceCounters device = device_counters(state);
    const PortCounters::Count passed = traffic(number, state);
    PortStats& port = statistics.emplace_back();
    port.port = number;
    port.rx_packets = passed.rx_packets;
    port.rx_bytes = passed.rx_bytes;
    port.tx_packets = passed.tx_packets;
    port.tx_bytes = passed.tx_bytes;
    port.rx_dropped = device.rx_dropped + passed.rx_dropped;
    port.tx_dropped = device.tx_dropped + passed.tx_dropped;
    port.rx_errors = device.rx_errors;
    port.tx_errors = device.tx_errors;
    port.rx_frame_errors = device.rx_frame_errors;
    port.rx_overruns = device.rx_overruns;
    port.rx_crc_errors = device.rx_crc_errors;
    port.collisions = device.collisions;
    set_duration(port, now - state.created);
  }
  return ErrorCode::kNone;
}

}  // namespace headrace::openflow
