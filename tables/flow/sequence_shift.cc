#include "tables/flow/sequence_shift.hh"

namespace headrace {

bool SequenceShift::add(bool direction, uint32_t from, int32_t bytes) {
  Way& way = ways_[direction];
  std::vector<Change>& changes = way.changes;
  if (!changes.empty()) {
    if (!reached(from, changes.back().from)) return false;
    if (from == changes.back().from) changes.pop_back();
  }
  const int32_t before = changes.empty() ? way.before : changes.back().total;
  changes.push_back({from, before + bytes});
  // What lies far behind counts as if it had always been there.
  while (changes.size() > kMostChanges || (changes.size() > 1 && reached(from, changes.front().from + kOutdated))) {
    way.before = changes.front().total;
    changes.erase(changes.begin());
  }
  return true;
}

uint32_t SequenceShift::sequence(bool direction, uint32_t sender) const {
  const Way& way = ways_[direction];
  for (auto change = way.changes.rbegin(); change != way.changes.rend(); ++change)
    if (reached(sender, change->from)) return sender + static_cast<uint32_t>(change->total);
  return sender + static_cast<uint32_t>(way.before);
}

uint32_t SequenceShift::acknowledgment(bool direction, uint32_t receiver) const {
  const Way& way = ways_[!direction];
  for (auto change = way.changes.rbegin(); change != way.changes.rend(); ++change) {
    const uint32_t sender = receiver - static_cast<uint32_t>(change->total);
    if (reached(sender, change->from)) return sender;
  }
  return receiver - static_cast<uint32_t>(way.before);
}

bool SequenceShift::outdated(bool direction, uint32_t sender) const {
  const Way& way = ways_[direction];
  return !way.changes.empty() && reached(sender, way.changes.back().from + kOutdated);
}

void SequenceShift::settle(bool direction) {
  Way& way = ways_[direction];
  way.before = total(direction);
  way.changes.clear();
}

int32_t SequenceShift::total(bool direction) const {
  const Way& way = ways_[direction];
  return way.changes.empty() ? way.before : way.changes.back().total;
}

}  // namespace headrace
