#include "control/openflow/switch/switch_datapath.hh"

namespace headrace::openflow {

ClosedPorts SwitchDatapath::closed_ports() const {
  if (!any_closed_.load(std::memory_order_acquire)) return {};
  return {true, closed_in_.get(), closed_out_.get()};
}

void SwitchDatapath::set_closed(const ClosedPorts& closed) {
  closed_in_.set(closed.in);
  closed_out_.set(closed.out);
  any_closed_.store(closed.any, std::memory_order_release);
}

void SwitchDatapath::count(const Visits* visits, int n) {
  const Time now = clock_();
  EntryCounters& entries = pipeline_.entry_counters();
  for (int i = 0; i < n; ++i)
    if (visits[i].entries[0] != Visits::kNone) entries.prefetch(visits[i].entries[0]);
  for (int i = 0; i < n; ++i) {
    const Visits& met = visits[i];
    const uint32_t length = met.length();
    for (uint32_t k = 0; k < Visits::kMost && met.entries[k] != Visits::kNone; ++k)
      entries.add(met.entries[k], 1, length, now);
    if (met.missed() != 0) [[unlikely]]
      pipeline_.miss_counters().add(met.missed() - 1, 1, length, now);
    if (met.group != 0) pipeline_.groups().counters().add(met.group - 1, 1, length, now);
    if (met.bucket != Visits::kNone) pipeline_.groups().bucket_counters().add(met.bucket, 1, length, now);
  }
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

void SwitchDatapath::packet_in(const PacketForController&) {}

uint32_t SwitchDatapath::normal(const Packet&, uint32_t) { return port::kFlood; }

}  // namespace headrace::openflow
