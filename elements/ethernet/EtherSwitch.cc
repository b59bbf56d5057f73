#include "elements/ethernet/EtherSwitch.hh"

#include <algorithm>
#include <array>

namespace headrace {

namespace {

constexpr uint32_t kEthernetHeader = 14;
/// One network: VLANs share what is learned.
constexpr uint16_t kNetwork = 0;

EtherAddress to_address(uint64_t value) {
  std::array<uint8_t, 6> bytes;
  for (int i = 5; i >= 0; --i, value >>= 8) bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
  return EtherAddress(bytes);
}

uint32_t to_seconds(const Interval& interval) {
  return static_cast<uint32_t>(std::min<int64_t>(interval.ns / 1'000'000'000, UINT32_MAX));
}

uint32_t now_in_seconds() { return static_cast<uint32_t>(clock::steady().ns / 1'000'000'000); }

}  // namespace

Status EtherSwitch::configure(Args& args) {
  count_reasons({"back to where it came from", "no Ethernet header", "no buffer for a copy"});
  uint32_t capacity = 16384;
  Interval timeout = Interval::from_sec(300);
  args.read("TIMEOUT", timeout).read("CAPACITY", capacity, Between{1, MacTable::kMostAddresses});
  if (!args.complete()) return Status::failed();
  table_ = std::make_unique<MacTable>(capacity);
  table_->set_timeout(to_seconds(timeout));
  return {};
}

void EtherSwitch::flood(int from, Batch& batch) {
  // The last output gets the frames themselves.
  const int last = from == noutputs() - 1 ? from - 1 : noutputs() - 1;
  for (int out = 0; out < last; ++out) {
    if (out == from) continue;
    Batch copies;
    for (const Packet* p : batch) {
      if (Packet* copy = p->clone())
        copies.push_back(copy);
      else
        count_drops(1, 2);
    }
    if (!copies.empty()) output(out).push(copies);
  }
  output(last).push(batch);
}

void EtherSwitch::push(int port, Batch& batch) {
  const uint32_t now = now_in_seconds();
  const auto input = static_cast<uint32_t>(port);
  // Frames in a row that go the same way leave together. -1: to all.
  Batch run;
  int run_to = -1;
  const auto leave = [&] {
    if (run.empty()) return;
    if (run_to < 0)
      flood(port, run);
    else
      output(run_to).push(run);
    run.clear();
  };
  for (Packet* p : batch) {
    if (p->length() < kEthernetHeader) {
      drop(p, 1);
      continue;
    }
    table_->learn(MacTable::load_address(p->data() + 6), kNetwork, input, now);
    const std::optional<uint32_t> found = table_->find(MacTable::load_address(p->data()), kNetwork, now);
    const int to = found ? static_cast<int>(*found) : -1;
    if (to == port) {
      drop(p, 0);
      continue;
    }
    if (to != run_to) {
      leave();
      run_to = to;
    }
    run.push_back(p);
  }
  leave();
}

void EtherSwitch::take_state(Element& old, Errors&) {
  auto& from = static_cast<EtherSwitch&>(old);
  if (from.noutputs() > noutputs() || from.table_->places() != table_->places()) return;
  from.table_->set_timeout(table_->timeout());
  table_.swap(from.table_);
}

void EtherSwitch::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] {
    std::string text;
    for (const MacTable::Known& k : table_->known(now_in_seconds()))
      text += fmt::format("{} {}\n", to_address(k.address).unparse(), k.port);
    return text;
  });
  handlers.read("count", [this] { return std::to_string(table_->known(now_in_seconds()).size()); });
  handlers.read("timeout", [this] { return std::to_string(table_->timeout()); });
  handlers.write("timeout", [this](const std::string& text, Errors& errors) {
    Interval interval;
    if (!parse_argument(text, interval, ArgContext(nullptr, nullptr)))
      return errors.error("expected timeout (integer)");
    table_->set_timeout(to_seconds(interval));
    return Status();
  });
  handlers.button("flush", [this] { table_->clear(); });
}

}  // namespace headrace
