#include "tables/openflow/datapath.hh"

#include <map>
#include <mutex>

namespace headrace::openflow {

namespace {

struct KnownDatapaths {
  std::mutex lock;
  std::map<std::string, std::weak_ptr<Datapath>> by_name;
};

KnownDatapaths& known_datapaths() {
  static KnownDatapaths known;
  return known;
}

}  // namespace

void Datapath::count(const Visits& met) {
  EntryCounters& entries = entry_counters();
  if (met.entry(0) != Visits::kNone) entries.add(met.entry(0), 1, met.length(), entries.keeps_times() ? now() : 0);
  if (!met.is_simple()) count_more(met);
}

bool publish_datapath(const std::string& name, const std::shared_ptr<Datapath>& datapath) {
  KnownDatapaths& known = known_datapaths();
  const std::lock_guard guard(known.lock);
  std::weak_ptr<Datapath>& place = known.by_name[name];
  const std::shared_ptr<Datapath> there = place.lock();
  if (there && there != datapath) return false;
  place = datapath;
  return true;
}

std::shared_ptr<Datapath> find_datapath(const std::string& name) {
  KnownDatapaths& known = known_datapaths();
  const std::lock_guard guard(known.lock);
  const auto it = known.by_name.find(name);
  return it == known.by_name.end() ? nullptr : it->second.lock();
}

}  // namespace headrace::openflow
