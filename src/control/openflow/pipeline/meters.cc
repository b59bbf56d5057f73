#include "control/openflow/pipeline/meters.hh"

#include <utility>

#include "control/openflow/pipeline/duration.hh"

namespace headrace::openflow {

Meters::Meters() : table_(new std::atomic<Meter*>[kMost]()) {}

Meters::~Meters() {
  for (const auto& [number, metered] : meters_) publish(metered.place, nullptr);
}

ErrorCode Meters::check(const MeterMod& mod) {
  constexpr uint16_t kUnits = meter_flag::kKbps | meter_flag::kPktps;
  constexpr uint16_t kKnown = kUnits | meter_flag::kBurst | meter_flag::kStats;
  // Drop precedences of RFC 2597.
  constexpr uint8_t kMostLevels = 3;
  if (mod.meter == 0 || mod.meter > kLastNumber) return ErrorCode::kMeterModInvalidMeter;
  if ((mod.flags & ~kKnown) != 0 || (mod.flags & kUnits) == kUnits) return ErrorCode::kMeterModBadFlags;
  if (mod.bands.size() > kMostBands) return ErrorCode::kMeterModOutOfBands;
  for (const MeterBand& band : mod.bands) {
    if (band.type != MeterBandType::kDrop && band.type != MeterBandType::kDscpRemark)
      return ErrorCode::kMeterModBadBand;
    if (band.rate == 0) return ErrorCode::kMeterModBadRate;
    if ((mod.flags & meter_flag::kBurst) != 0 && band.burst == 0) return ErrorCode::kMeterModBadBurst;
    if (band.type == MeterBandType::kDscpRemark &&
        (band.precedence_levels == 0 || band.precedence_levels > kMostLevels))
      return ErrorCode::kMeterModBadBandValue;
  }
  return ErrorCode::kNone;
}

std::unique_ptr<Meter> Meters::make(const MeterMod& mod) {
  const bool by_packets = (mod.flags & meter_flag::kPktps) != 0;
  const uint64_t unit = by_packets ? 1 : 1000;
  std::vector<MeterRate> rates;
  for (const MeterBand& band : mod.bands)
    rates.push_back({band.rate * unit, (mod.flags & meter_flag::kBurst) != 0 ? band.burst * unit : 0,
                     band.type == MeterBandType::kDscpRemark ? band.precedence_levels : uint8_t{0}});
  return std::make_unique<Meter>(rates, by_packets);
}

void Meters::publish(uint32_t place, std::unique_ptr<Meter> meter) {
  Meter* const old = table_[place].exchange(meter.release(), std::memory_order_acq_rel);
  if (old != nullptr) rcu::retire([old = std::shared_ptr<Meter>(old)] {});
}

ErrorCode Meters::add(const MeterMod& mod, Time now) {
  if (has(mod.meter)) return ErrorCode::kMeterModMeterExists;
  if (const ErrorCode error = check(mod); error != ErrorCode::kNone) return error;
  const auto place = places_.take();
  if (!place) return ErrorCode::kMeterModOutOfMeters;
  counters_.reserve(*place + 1);
  counters_.clear(*place);
  band_counters_.reserve((*place + 1) * kMostBands);
  for (uint32_t band = 0; band < kMostBands; ++band) band_counters_.clear(band_counter(*place, band));
  Metered metered;
  metered.config = {mod.flags, mod.meter, mod.bands};
  metered.place = *place;
  metered.created = now;
  metered.band_base.resize(mod.bands.size());
  meters_.emplace(mod.meter, std::move(metered));
  publish(*place, make(mod));
  return ErrorCode::kNone;
}

ErrorCode Meters::modify(const MeterMod& mod) {
  const auto at = meters_.find(mod.meter);
  if (at == meters_.end())
    return mod.meter == 0 || mod.meter > kLastNumber ? ErrorCode::kMeterModInvalidMeter
                                                     : ErrorCode::kMeterModUnknownMeter;
  if (const ErrorCode error = check(mod); error != ErrorCode::kNone) return error;
  Metered& metered = at->second;
  metered.config = {mod.flags, mod.meter, mod.bands};
  metered.band_base.clear();
  for (uint32_t band = 0; band < mod.bands.size(); ++band)
    metered.band_base.push_back(band_counters_.sum(band_counter(metered.place, band)));
  publish(metered.place, make(mod));
  return ErrorCode::kNone;
}

void Meters::remove(uint32_t number) {
  const auto at = meters_.find(number);
  if (at == meters_.end()) return;
  publish(at->second.place, nullptr);
  places_.give_up(at->second.place);
  meters_.erase(at);
}

std::vector<uint32_t> Meters::numbers() const {
  std::vector<uint32_t> all;
  for (const auto& [number, metered] : meters_) all.push_back(number);
  return all;
}

MeterStats Meters::statistics(uint32_t number, Time now) const {
  const Metered& metered = meters_.at(number);
  MeterStats stats;
  stats.meter = number;
  stats.flows = static_cast<uint32_t>(metered.entries.size());
  const Count count = counters_.sum(metered.place);
  stats.packets = count.packets;
  stats.bytes = count.bytes;
  set_duration(stats, now - metered.created);
  for (uint32_t band = 0; band < metered.band_base.size(); ++band) {
    const Count met = band_counters_.sum(band_counter(metered.place, band));
    stats.bands.push_back({met.packets - metered.band_base[band].packets, met.bytes - metered.band_base[band].bytes});
  }
  return stats;
}

MeterConfig Meters::configuration(uint32_t number) const { return meters_.at(number).config; }

MeterFeatures Meters::features() {
  MeterFeatures features;
  features.max_meters = kMost;
  features.band_types =
      1u << static_cast<uint32_t>(MeterBandType::kDrop) | 1u << static_cast<uint32_t>(MeterBandType::kDscpRemark);
  features.capabilities = meter_flag::kKbps | meter_flag::kPktps | meter_flag::kBurst | meter_flag::kStats;
  features.max_bands = kMostBands;
  features.max_colors = 0;
  return features;
}

}  // namespace headrace::openflow
