#include "io/dpdk/plan.hh"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "io/dpdk/eal.hh"

namespace headrace::io::dpdk {

namespace {

/// Takes over a setting of the port that an element may leave open; two that differ are an error.
void agree(const Port& port, const char* what, int& setting, int wanted, Errors& errors) {
  if (wanted == 0) return;
  if (setting != 0 && setting != wanted)
    (void)errors.error("{}: {} is {} here and {} elsewhere", port.name(), what, wanted, setting);
  setting = wanted;
}

std::string name_of(const std::string& device) { return device.substr(0, device.find(',')); }

}  // namespace

std::shared_ptr<Plan> Plan::of(const void* router) {
  static std::mutex lock;
  static std::map<const void*, std::weak_ptr<Plan>> plans;
  std::lock_guard guard(lock);
  std::erase_if(plans, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<Plan> plan = plans[router].lock();
  if (!plan) plans[router] = plan = std::make_shared<Plan>();
  return plan;
}

int Plan::receive(const std::string& device, const ReceiveWants& wants) {
  wants_.push_back({device, wants, std::nullopt, {}, {}, {}});
  return static_cast<int>(wants_.size()) - 1;
}

int Plan::send(const std::string& device, const SendWants& wants) {
  wants_.push_back({device, std::nullopt, wants, {}, {}, {}});
  return static_cast<int>(wants_.size()) - 1;
}

Plan::Grant Plan::grant(int number, int workers, const std::shared_ptr<LinkWatch>& links, Errors& errors) {
  if (!start_eal(errors)) return {};
  if (!carried_out_) {
    carried_out_ = true;
    carry_out(workers, links);
  }
  Want& want = wants_[static_cast<size_t>(number)];
  for (const std::string& text : want.errors) (void)errors.error("{}", text);
  for (const std::string& text : want.warnings) errors.warning("{}", text);
  return std::move(want.grant);
}

void Plan::carry_out(int workers, const std::shared_ptr<LinkWatch>& links) {
  // A virtual device is named with its arguments once; elsewhere its name is enough.
  std::map<std::string, std::string> full;
  for (Want& want : wants_) {
    std::string& text = full[name_of(want.device)];
    if (want.device.find(',') == std::string::npos) {
      if (text.empty()) text = want.device;
    } else {
      if (text.find(',') != std::string::npos && text != want.device)
        want.errors.push_back(
            fmt::format("{} is given with different arguments: '{}' and '{}'", name_of(text), text, want.device));
      text = want.device;
    }
  }
  std::vector<std::pair<std::shared_ptr<Port>, std::vector<Want*>>> by_port;
  for (Want& want : wants_) {
    Errors errors;
    // By number, address or name, it may be the same.
    const std::shared_ptr<Port> port = Port::open(full[name_of(want.device)], errors);
    for (const std::string& line : errors.lines()) want.errors.push_back(line);
    if (!port) continue;
    auto at = std::find_if(by_port.begin(), by_port.end(), [&](const auto& entry) { return entry.first == port; });
    if (at == by_port.end()) at = by_port.insert(by_port.end(), {port, {}});
    at->second.push_back(&want);
  }
  for (auto& [port, wants] : by_port) carry_out_on(port, wants, workers, links);
}

void Plan::carry_out_on(const std::shared_ptr<Port>& port, std::vector<Want*>& wants, int workers,
                        const std::shared_ptr<LinkWatch>& links) {
  Errors errors;
  const PortInfo info = port->info();
  PortSettings settings;
  settings.backlog = 0;
  const bool sends = std::any_of(wants.begin(), wants.end(), [](const Want* want) { return want->send.has_value(); });
  if (!sends) settings.backlog = SendWants{}.backlog;

  std::vector<Want*> receivers;
  for (Want* want : wants)
    if (want->receive) receivers.push_back(want);
  std::vector<bool> taken;
  const auto take = [&](Want& want, int first, int n) {
    taken.resize(std::max(taken.size(), static_cast<size_t>(first + n)));
    for (int q = first; q < first + n; ++q) {
      if (taken[static_cast<size_t>(q)]) (void)errors.error("{}: receive queue {} is read twice", port->name(), q);
      taken[static_cast<size_t>(q)] = true;
    }
    want.grant.first_queue = first;
    want.grant.queues = n;
  };
  // Those that name a queue first.
  for (Want* want : receivers)
    if (want->receive->queue >= 0) take(*want, want->receive->queue, std::max(want->receive->queues, 1));
  for (Want* want : receivers) {
    const ReceiveWants& w = *want->receive;
    if (w.queue >= 0) continue;
    int n = w.queues;
    if (n <= 0) {
      n = receivers.size() == 1 && info.distributes ? std::min(workers, info.most_receive_queues) : 1;
      n = std::clamp(n, w.least_queues, std::max(w.least_queues, w.most_queues));
    }
    int first = 0;
    while (first < static_cast<int>(taken.size()) && taken[static_cast<size_t>(first)]) ++first;
    take(*want, first, n);
  }
  settings.receive_queues = std::max<int>(static_cast<int>(taken.size()), 1);
  // The queues of a port that does not distribute are often half of a pair: the other side counts on that.
  settings.transmit_queues = 0;
  for (const Want* want : wants)
    if (want->send) settings.transmit_queues = std::max(settings.transmit_queues, want->send->queues);
  if (settings.transmit_queues == 0) settings.transmit_queues = info.distributes ? workers : settings.receive_queues;
  for (size_t q = 0; q < taken.size(); ++q)
    if (!taken[q])
      wants.front()->warnings.push_back(
          fmt::format("{}: no element reads receive queue {}, so its packets are lost", port->name(), q));

  for (const Want* want : wants) {
    if (want->receive) {
      agree(*port, "NDESC", settings.receive_descriptors, want->receive->descriptors, errors);
      agree(*port, "MTU", settings.mtu, want->receive->mtu, errors);
      settings.promiscuous = settings.promiscuous.value_or(false) || want->receive->promiscuous;
      settings.verify_checksums |= want->receive->verify_checksums;
      if (want->receive->mac) {
        if (settings.mac && *settings.mac != *want->receive->mac)
          (void)errors.error("{}: MAC is {} here and {} elsewhere", port->name(), want->receive->mac->unparse(),
                             settings.mac->unparse());
        settings.mac = want->receive->mac;
      }
    } else {
      agree(*port, "NDESC", settings.transmit_descriptors, want->send->descriptors, errors);
      agree(*port, "MTU", settings.mtu, want->send->mtu, errors);
      settings.backlog = std::max(settings.backlog, want->send->backlog);
      settings.ip_checksums |= want->send->ip_checksums;
      settings.l4_checksums |= want->send->l4_checksums;
    }
  }
  std::vector<std::string> mistakes = errors.lines();
  for (const Want* want : wants) mistakes.insert(mistakes.end(), want->errors.begin(), want->errors.end());
  if (mistakes.empty() && !port->start(settings, links, errors)) mistakes = errors.lines();
  // Whichever element is asked first tells.
  for (Want* want : wants) {
    want->errors = mistakes;
    if (mistakes.empty()) want->grant.port = port;
  }
}

}  // namespace headrace::io::dpdk
