// Machine files of the simulator.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "offload/balance/machine.hh"

namespace headrace::balance {

namespace {

using MachineJson = nlohmann::json;

/// Reads the fields of one object; the first mistake is kept.
class MachineFields {
 public:
  MachineFields(const MachineJson& json, std::string path, std::string& error)
      : json_(json), path_(std::move(path)), error_(error) {
    if (!json_.is_object()) fail(path_, "an object");
  }
  /// No more fields are read: others are mistakes.
  void done() {
    if (!error_.empty() || !json_.is_object()) return;
    for (const auto& [name, value] : json_.items())
      if (known_.count(name) == 0) fail(path_, fmt::format("no field '{}'", name));
  }

  const MachineJson* find(const char* name) {
    known_.insert(name);
    if (!error_.empty() || !json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  void number(const char* name, double& value, double least, double most) {
    if (const MachineJson* j = find(name)) read(*j, at(name), value, least, most);
  }
  void number(const char* name, int& value, int least, int most) {
    double wide = value;
    number(name, wide, least, most);
    value = static_cast<int>(wide);
  }
  /// One number, or a list of them.
  void numbers(const char* name, std::vector<double>& values, double least, double most) {
    const MachineJson* j = find(name);
    if (!j) return;
    values.clear();
    if (!j->is_array()) return read(*j, at(name), values.emplace_back(), least, most);
    for (const MachineJson& one : *j) read(one, at(name), values.emplace_back(), least, most);
  }
  void text(const char* name, std::string& value) {
    const MachineJson* j = find(name);
    if (j && !j->is_string()) return fail(at(name), "a text");
    if (j) value = j->get<std::string>();
  }
  void flag(const char* name, bool& value) {
    const MachineJson* j = find(name);
    if (j && !j->is_boolean()) return fail(at(name), "true or false");
    if (j) value = j->get<bool>();
  }
  template <typename F>
  void list(const char* name, F each) {
    const MachineJson* j = find(name);
    if (!j) return;
    if (!j->is_array()) return fail(at(name), "a list");
    for (size_t i = 0; i < j->size(); ++i) each((*j)[i], fmt::format("{}[{}]", at(name), i));
  }
  void fail(const std::string& where, const std::string& expected) {
    if (error_.empty()) error_ = fmt::format("{}: expected {}", where.empty() ? "the file" : where, expected);
  }
  std::string at(const char* name) const { return path_.empty() ? name : path_ + "." + name; }

 private:
  void read(const MachineJson& j, const std::string& where, double& value, double least, double most) {
    if (!j.is_number() || !(j.get<double>() >= least && j.get<double>() <= most))
      return fail(where, fmt::format("a number from {} to {}", least, most));
    value = j.get<double>();
  }

  const MachineJson& json_;
  std::string path_;
  std::string& error_;
  std::set<std::string> known_;
};

Machine machine_of(const MachineJson& json, std::string& error) {
  Machine m;
  MachineFields f(json, "", error);
  f.find("steps");
  f.find("about");
  f.text("name", m.name);
  f.number("workers", m.workers, 1, 256);
  f.number("ghz", m.ghz, 0.01, 100);
  f.number("outside", m.outside, 0, 1e6);
  f.number("burst_cycles", m.burst_cycles, 0, 1e7);
  f.number("burst", m.burst, 1, 4096);
  f.number("ring", m.ring, 1, 1 << 20);
  f.numbers("mpps", m.mpps, 0, 1e4);
  std::vector<double> first;
  f.numbers("first_device", first, 0, 255);
  for (const double d : first) m.first_device.push_back(static_cast<int>(d));
  f.number("noise", m.noise, 0, 1);
  f.number("missing", m.missing, 0, 1);
  f.number("late", m.late, 0, 1);
  f.number("look_cycles", m.look_cycles, 0, 1e6);
  f.number("cold_cycles", m.cold_cycles, 0, 1e7);
  f.number("pause_ms", m.pause_ms, 0, 1e4);
  f.number("pauses", m.pauses, 0, 1e4);
  f.number("step_ms", m.step_ms, 0.1, 1e4);
  f.list("devices", [&](const MachineJson& j, const std::string& path) {
    Machine::Device& d = m.devices.emplace_back();
    MachineFields g(j, path, error);
    g.text("name", d.name);
    g.number("node", d.node, -1, 255);
    g.number("link_gb", d.link_gb, 0.001, 1e5);
    g.number("job_us", d.job_us, 0, 1e6);
    g.number("packet_ns", d.packet_ns, 0, 1e6);
    g.number("job_cycles", d.job_cycles, 0, 1e7);
    g.number("steal_cycles", d.steal_cycles, 0, 1e7);
    g.number("slow", d.slow, 0.001, 1e4);
    g.flag("well", d.well);
    g.flag("resident", d.resident);
    g.flag("stream", d.stream);
    g.number("resident_idle_us", d.resident_idle_us, 0, 1000000000);
    g.number("start_us", d.start_us, 0, 1e6);
    g.number("start_cycles", d.start_cycles, 0, 1e7);
    g.number("stream_us", d.stream_us, 0, 1e6);
    g.number("stream_job_cycles", d.stream_job_cycles, 0, 1e7);
    g.number("stays", d.stays, 0, 1);
    g.done();
  });
  f.list("chains", [&](const MachineJson& j, const std::string& path) {
    Machine::Chain& c = m.chains.emplace_back();
    MachineFields g(j, path, error);
    g.text("name", c.name);
    g.number("part", c.part, 0, 1);
    g.number("cpu", c.cpu, 0, 1e7);
    g.number("cpu_beside", c.cpu_beside, 0, 1e7);
    g.number("batch_cycles", c.batch_cycles, 0, 1e7);
    g.numbers("device", c.device, 0, 1e7);
    g.numbers("mpps", c.mpps, 0, 1e5);
    g.number("link_bytes", c.link_bytes, 0, 1 << 20);
    g.flag("payload", c.payload);
    g.number("most_job", c.most_job, 1, 1 << 16);
    g.number("job_bytes", c.job_bytes, 0, 1 << 24);
    g.number("most_places", c.most_places, 1, 1 << 12);
    g.number("most_wait_us", c.most_wait_us, 0, 1000000);
    g.number("p99_us", c.p99_us, 0, 1e7);
    // One number holds for all devices.
    if (c.device.size() == 1) c.device.resize(m.devices.size(), c.device[0]);
    if (c.mpps.size() == 1) c.mpps.resize(m.devices.size(), c.mpps[0]);
    if (c.device.size() != m.devices.size()) g.fail(g.at("device"), "a number for each device");
    if (c.mpps.size() != m.devices.size()) g.fail(g.at("mpps"), "a number for each device");
    g.done();
  });
  if (m.chains.empty()) f.fail("chains", "at least one");
  double parts = 0;
  for (const Machine::Chain& c : m.chains) parts += c.part;
  if (!(parts > 0.999 && parts < 1.001)) f.fail("chains", "parts that add up to 1");
  f.done();
  return m;
}

}  // namespace

std::vector<Phase> read_machine(std::string_view text, std::string& error) {
  error.clear();
  MachineJson json = MachineJson::parse(text, nullptr, false, true);
  if (json.is_discarded()) {
    error = "the file: expected JSON";
    return {};
  }
  std::vector<Phase> phases;
  phases.push_back({0, machine_of(json, error)});
  if (!error.empty()) return {};
  const MachineJson steps = json.value("steps", MachineJson::array());
  if (!steps.is_array()) error = "steps: expected a list";
  for (size_t i = 0; i < steps.size() && error.empty(); ++i) {
    double at = 0;
    MachineFields f(steps[i], fmt::format("steps[{}]", i), error);
    f.number("at_s", at, 0, 1e6);
    const MachineJson* const change = f.find("change");
    f.done();
    if (!error.empty()) break;
    if (!change || !change->is_object() || at <= phases.back().at_s) {
      error = fmt::format("steps[{}]: expected at_s, later than the step before, and change", i);
      break;
    }
    json.merge_patch(*change);
    phases.push_back({at, machine_of(json, error)});
    const Machine &a = phases.front().machine, &b = phases.back().machine;
    if (error.empty() && (a.workers != b.workers || a.chains.size() != b.chains.size() ||
                          a.devices.size() != b.devices.size() || a.ghz != b.ghz))
      error = fmt::format("steps[{}]: expected as many workers, chains and devices as before, and the same clock", i);
  }
  if (!error.empty()) return {};
  return phases;
}

}  // namespace headrace::balance
