#include "control/openflow/switch/switch_datapath.hh"

namespace headrace::openflow {

ClosedPorts SwitchDatapath::closed_ports() const {
  if (!any_closed_.load(std::memory_order_acquire)) return {};
  return {true, no_receive_.get(), no_receive_stp_.get(), no_forward_.get()};
}

void SwitchDatapath::publish_port(uint32_t port, uint32_t word, bool alive) {
  pipeline_.set_port_alive(port, alive);
  if (!alive) addresses_.forget_port(port);
  const uint32_t place = port_place(port);
  closed_.no_receive.set(place, (word & port_word::kNoReceive) != 0);
  closed_.no_receive_stp.set(place, (word & port_word::kNoReceiveStp) != 0);
  closed_.no_forward.set(place, (word & port_word::kNoForward) != 0);
  no_receive_.set(closed_.no_receive);
  no_receive_stp_.set(closed_.no_receive_stp);
  no_forward_.set(closed_.no_forward);
  any_closed_.store(
      closed_.no_receive != PortSet() || closed_.no_receive_stp != PortSet() || closed_.no_forward != PortSet(),
      std::memory_order_release);
}

void SwitchDatapath::count_more(const Visits& met) {
  const uint32_t length = met.length();
  const Time now = pipeline_.entry_counters().keeps_times() ? clock_() : 0;
  for (uint32_t k = 1; k < Visits::kMost; ++k) {
    const uint32_t entry = met.entry(k);
    if (entry == Visits::kNone) break;
    pipeline_.entry_counters().add(entry, 1, length, now);
  }
  if (met.missed() != Visits::kNone) pipeline_.miss_counters().add(met.missed(), 1, length, now);
  if (met.group() != Visits::kNone) pipeline_.groups().counters().add(met.group(), 1, length, now);
  if (met.bucket() != Visits::kNone) pipeline_.groups().bucket_counters().add(met.bucket(), 1, length, now);
}

Datapath::Verdict SwitchDatapath::meter(uint32_t place, uint32_t length) {
  Meters& meters = pipeline_.meters();
  Meter* const meter = meters.at(place);
  if (meter == nullptr) return {};
  const Time now = clock_();
  meters.counters().add(place, 1, length, now);
  const int band = meter->measure(now, length);
  if (band == Meter::kNoBand) return {};
  meters.band_counters().add(Meters::band_counter(place, static_cast<uint32_t>(band)), 1, length, now);
  const uint32_t levels = meter->levels(band);
  return {levels == 0, levels};
}

void SwitchDatapath::packet_in(const PacketForController& in) {
  const bool from_port = in.in_port <= port::kMax || in.in_port == port::kLocal;
  // The bit is about misses only (ONF TS-023, section 7.2.1).
  if (in.reason == PacketForController::Reason::kNoMatch && from_port &&
      (ports_.word(in.in_port) & port_word::kNoPacketIn) != 0)
    return packet_ins_.refuse(PacketInReason::kNoMatch);
  QueuedPacketIn about;
  about.reason = static_cast<PacketInReason>(in.reason);
  about.table = in.table;
  about.max_length = in.max_length;
  about.entry = in.entry;
  about.in_port = in.in_port;
  about.metadata = in.metadata;
  about.tunnel_id = in.tunnel_id;
  (void)packet_ins_.offer(in.packet, about, clock_());
}

uint32_t SwitchDatapath::normal(const Packet& frame, uint32_t in_port) {
  constexpr uint32_t kAddresses = 12, kTag = 4;
  if (frame.length() < kAddresses) return 0;
  const uint8_t* const bytes = frame.data();
  const uint64_t to = MacTable::load_address(bytes), from = MacTable::load_address(bytes + 6);
  // Frames of the link itself are not forwarded (IEEE 802.1D, table 7-10).
  if (to >> 4 == 0x0180c200000) return 0;
  uint16_t network = 0;
  if (frame.length() >= kAddresses + kTag && bytes[12] == 0x81 && bytes[13] == 0)
    network = static_cast<uint16_t>((bytes[14] & 0xf) << 8 | bytes[15]);
  const uint32_t now = seconds();
  if (in_port <= port::kMax || in_port == port::kLocal) addresses_.learn(from, network, in_port, now);
  return addresses_.find(to, network, now).value_or(port::kFlood);
}

}  // namespace headrace::openflow
