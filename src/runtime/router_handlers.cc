#include <fmt/format.h>

#include <algorithm>

#include "base/argument_text.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "headrace/version.hh"
#include "runtime/packages.hh"
#include "runtime/runtime.hh"

namespace headrace {

namespace {

std::string list_handlers(const Handlers& handlers) {
  std::string s;
  for (const auto& [name, h] : handlers.all()) s += fmt::format("{}\t{}\n", name, h.flag_letters());
  return s;
}

/// The connections of each port, as Click's `ports` handler shows them.
std::string list_ports(const Element& e) {
  std::string s;
  const auto side = [&](bool output) {
    const int n = output ? e.noutputs() : e.ninputs();
    s += fmt::format("{} {}{}\n", n, output ? "output" : "input", n == 1 ? "" : "s");
    for (int p = 0; p < n; ++p) {
      s += (output ? e.output_is_push(p) : e.input_is_push(p)) ? "push\t" : "pull\t";
      bool first = true;
      for (const Router::Connection& c : e.router().connections()) {
        if (output ? (c.from != &e || c.from_port != p) : (c.to != &e || c.to_port != p)) continue;
        s += fmt::format("{}{} [{}]", first ? "" : ", ", (output ? c.to : c.from)->name(),
                         output ? c.to_port : c.from_port);
        first = false;
      }
      s += '\n';
    }
  };
  side(false);
  side(true);
  return s;
}

}  // namespace

void Router::add_element_handlers(Element& e) {
  Handlers& h = e.handlers_;
  h.read(
      "name", [&e] { return e.name(); }, Handler::kCalm);
  h.read(
      "class", [&e] { return std::string(e.class_name()); }, Handler::kCalm);
  h.read(
      "config", [&e] { return e.configuration(); }, Handler::kCalm);
  if (e.can_live_reconfigure())
    h.write("config", [&e](const std::string& value, Errors& errors) { return e.reconfigure(value, errors); });
  h.read(
      "ports", [&e] { return list_ports(e); }, Handler::kCalm);
  h.read(
      "handlers", [&h] { return list_handlers(h); }, Handler::kCalm);
  h.read("drop_reasons", [&e] {
    std::string s;
    for (const Element::DropCount& d : e.drop_counts()) s += fmt::format("{}\t{}\n", d.packets, d.reason);
    return s;
  });
  if (options_.profile)
    h.read("cycles", [this, &e] {
      const ElementProfile p = profile(&e);
      return fmt::format("{} {} {}\n", p.cycles, p.packets, p.batches);
    });
  if (!e.tasks().empty()) {
    h.read("scheduled", [&e] { return std::string(e.tasks()[0]->scheduled() ? "true" : "false"); });
    h.write("scheduled", [&e](const std::string& value, Errors& errors) {
      bool on = true;
      if (!value.empty() && !parse_argument(value, on, ArgContext(nullptr, &errors)))
        return errors.error("expected true or false");
      for (Task* task : e.tasks()) on ? task->reschedule() : task->unschedule();
      return Status();
    });
    h.read("tickets", [&e] { return std::to_string(e.tasks()[0]->tickets()); });
    h.write("tickets", [&e](const std::string& value, Errors& errors) {
      int n;
      if (!parse_argument(value, n, ArgContext(nullptr, &errors)) || n < 1 || n > 32768)
        return errors.error("expected tickets between 1 and 32768");
      for (Task* task : e.tasks()) task->set_tickets(n);
      return Status();
    });
  }
  h.read("home_thread",
         [&e] { return std::to_string(e.tasks().empty() ? e.home_thread() : e.tasks()[0]->home_thread()); });
  e.add_handlers(h);
}

void Router::add_root_handlers() {
  Handlers& h = root_handlers_;
  h.read(
      "version", [] { return std::string(kVersion); }, Handler::kCalm);
  h.read("list", [this] {
    std::string s = fmt::format("{}\n", elements_.size());
    for (const auto& e : elements_) s += e->name() + "\n";
    return s;
  });
  h.read("classes", [] {
    std::string s;
    for (const ElementInfo* info : all_element_infos()) s += fmt::format("{}\n", info->name);
    return s;
  });
  h.read("config", [this] {
    // Programs generate compact configurations, so their original layout does not matter.
    const bool compact = std::find(requirements_.begin(), requirements_.end(), "compact_config") != requirements_.end();
    return compact ? flat_configuration() : source_;
  });
  if (options_.hotconfig)
    h.write(
        "hotconfig", [this](const std::string& text, Errors& errors) { return options_.hotconfig(text, errors); },
        Handler::kThreadSafe);
  h.read("hotswaps", [this] {
    const Runtime::Swaps swaps = runtime_.swaps();
    return fmt::format("count {}\nlast_us {:.1f}\nmost_us {:.1f}\n", swaps.count,
                       static_cast<double>(swaps.last_ns) * 1e-3, static_cast<double>(swaps.most_ns) * 1e-3);
  });
  h.read("flatconfig", [this] { return flat_configuration(); });
  h.read("packages", [] {
    std::string s;
    for (const std::string& p : loaded_packages()) s += p + "\n";
    return s;
  });
  h.read("requirements", [this] {
    std::string s;
    for (const std::string& r : requirements_) s += r + "\n";
    return s;
  });
  h.read(
      "driver", [] { return std::string("userlevel"); }, Handler::kCalm);
  h.read("handlers", [&h] { return list_handlers(h); });
  h.read("threads", [this] { return std::to_string(runtime_.threads()); });
  h.read("drops", [this] {
    std::string s;
    for (const Drop& d : drops()) s += fmt::format("{}\t{}\t{}\n", d.packets, d.element, d.reason);
    return s;
  });
  h.read("buffers_in_use", [] { return std::to_string(PacketPool::instance().in_use()); });
  h.read("active_ports", [this] {
    std::string s;
    for (const Connection& c : connections_)
      s += fmt::format("{} [{}] -> [{}] {}\n", c.from->name(), c.from_port, c.to_port, c.to->name());
    return s;
  });
  h.write(
      "stop",
      [this](const std::string& value, Errors&) {
        // Any other word is a button's value, as in `write stop true`.
        int n = 1;
        if (!parse_argument(value, n, {})) n = 1;
        adjust_run_count(-n);
        return Status();
      },
      Handler::kButton | Handler::kThreadSafe);
  h.read("timewarp", [] {
    switch (clock::warp()) {
      case clock::Warp::kSimulation:
        return std::string("simulation");
      case clock::Warp::kNoWait:
        return std::string("nowait");
      default:
        return fmt::format("{}", clock::speed());
    }
  });
  h.write("timewarp", [](const std::string& value, Errors& errors) {
    double speed;
    if (value == "nowait") {
      clock::set_warp(clock::Warp::kNoWait);
    } else if (parse_argument(value, speed, ArgContext(nullptr, &errors)) && speed > 0) {
      clock::set_warp(clock::Warp::kLinear, speed);
    } else {
      return errors.error("expected a speed above 0, or 'nowait'");
    }
    return Status();
  });
}

}  // namespace headrace
