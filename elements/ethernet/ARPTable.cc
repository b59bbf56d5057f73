#include "elements/ethernet/ARPTable.hh"

namespace headrace {

Status ARPTable::configure(Args& args) {
  ArpTable::Limits limits;
  ArpTable::read_limits(args, limits);
  if (!args.complete() || !ArpTable::check_limits(limits, args.errors())) return Status::failed();
  table_.set_limits(limits);
  return {};
}

Status ARPTable::initialize(Errors&) {
  timer_.initialize();
  if (table_.limits().timeout.ns) timer_.schedule_after(table_.limits().timeout.timestamp());
  return {};
}

void ARPTable::run_timer(Timer& timer) {
  table_.expire(clock::steady().ns);
  if (table_.limits().timeout.ns) timer.schedule_after(table_.limits().timeout.timestamp() + Timestamp::from_sec(1));
}

void ARPTable::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] { return table_.unparse(clock::steady().ns); });
  handlers.read("drops", [this] { return std::to_string(table_.drops()); });
  handlers.read("count", [this] { return std::to_string(table_.count()); });
  handlers.read("length", [this] { return std::to_string(table_.waiting()); });
  table_.add_entry_handlers(handlers, *this);
  handlers.button("clear", [this] { table_.clear(); });
}

std::vector<Element::DropCount> ARPTable::drop_counts() const {
  std::vector<DropCount> counts = Element::drop_counts();
  if (table_.drops()) counts.push_back({"no ARP reply in time", table_.drops()});
  return counts;
}

}  // namespace headrace
