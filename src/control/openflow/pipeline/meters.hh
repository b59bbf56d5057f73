#pragma once
/// \file
/// The meters of a switch (ONF TS-023, sections 5.7 and 7.3.4.4).

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "control/openflow/pipeline/flow_entry.hh"
#include "control/openflow/pipeline/number_pool.hh"
#include "tables/openflow/meter.hh"

namespace headrace::openflow {

class Meters {
 public:
  static constexpr uint32_t kMost = 65536;
  static constexpr uint32_t kMostBands = 16;
  /// The last number of a meter, and the one of all.
  static constexpr uint32_t kLastNumber = 0xffff0000, kAll = 0xffffffff;

  Meters();
  ~Meters();

  /// ADD and MODIFY; workers see the change at once. Errors: METER_MOD_FAILED with its codes.
  ErrorCode add(const MeterMod& mod, Time now);
  ErrorCode modify(const MeterMod& mod);
  /// Removes a meter that no flow entry names any more.
  void remove(uint32_t number);
  void begin_grace() { places_.begin_grace(); }

  bool has(uint32_t number) const { return meters_.contains(number); }
  uint32_t place_of(uint32_t number) const { return meters_.at(number).place; }
  /// Its entries are being removed, then it is.
  void leave(uint32_t number) { meters_.at(number).leaving = true; }
  bool is_leaving(uint32_t number) const { return meters_.at(number).leaving; }
  std::unordered_set<uint32_t>& entries(uint32_t number) { return meters_.at(number).entries; }
  std::vector<uint32_t> numbers() const;

  MeterStats statistics(uint32_t number, Time now) const;
  MeterConfig configuration(uint32_t number) const;
  static MeterFeatures features();

  /// For workers: the meter at a place, which is ProgramView::meter() - 1; null: there is none any more. Valid until the
  /// next quiescent state.
  Meter* at(uint32_t place) const { return table_[place].load(std::memory_order_acquire); }
  /// Of meters by place, of bands by band_counter().
  EntryCounters& counters() { return counters_; }
  EntryCounters& band_counters() { return band_counters_; }
  static uint32_t band_counter(uint32_t place, uint32_t band) { return place * kMostBands + band; }

 private:
  struct Metered {
    MeterConfig config;
    uint32_t place = 0;
    Time created = 0;
    std::vector<Count> band_base;  // what had been counted before the bands were changed
    std::unordered_set<uint32_t> entries;
    bool leaving = false;
  };

  static ErrorCode check(const MeterMod& mod);
  static std::unique_ptr<Meter> make(const MeterMod& mod);
  /// Replaces what workers find.
  void publish(uint32_t place, std::unique_ptr<Meter> meter);

  std::unique_ptr<std::atomic<Meter*>[]> table_;
  std::map<uint32_t, Metered> meters_;
  NumberPool places_{kMost};
  EntryCounters counters_, band_counters_;
};

}  // namespace headrace::openflow
