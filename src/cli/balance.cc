// `headrace balance`: lets balancers decide about samples of traces, of other programs, and of simulated machines.

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/output.hh"
#include "cli/source.hh"
#include "headrace/balancer.hh"
#include "offload/balance/sanitize.hh"
#include "offload/balance/simulator.hh"
#include "offload/balance/trace.hh"
#include "runtime/packages.hh"

namespace headrace::cli {

namespace {

constexpr const char* kBalanceName = "headrace balance";

int wrong(const std::string& where, const std::string& what) {
  complain("{}: {}: {}\n", kBalanceName, where, what);
  return kFailed;
}

void list_balancers() {
  for (const BalancerInfo& info : all_balancers()) print("{:<12}{}\n", info.name, info.about);
}

void tell_mistakes(const std::string& name, const balance::Corrections& corrections) {
  for (const std::string& line : corrections.lines()) complain("{}: {}: corrected: {}\n", kBalanceName, name, line);
}

/// A balancer that decides about the samples of a trace.
struct Asked {
  std::string name;  ///< in the trace
  std::unique_ptr<Balancer> balancer;
  BalanceDecision last;
  balance::Corrections corrections;
};

void tell_mistakes(const std::vector<Asked>& all) {
  for (const Asked& asked : all) tell_mistakes(asked.name, asked.corrections);
}

/// Reads a trace line by line from `in`. Decisions go to standard output, or are compared with those of the trace.
int decide(std::istream& in, const std::string& where, const std::string& balancer_text, bool replay) {
  balance::TraceReader reader;
  std::vector<Asked> all;           // those of one router
  std::deque<std::string> decided;  // what the trace should have next
  uint64_t number = 0;              // of the decision
  int compared = 0;
  for (std::string text; std::getline(in, text);) {
    balance::TraceLine line;
    if (!reader.read(text, line)) return wrong(where, reader.error());
    if (auto* head = std::get_if<balance::TraceHead>(&line)) {
      if (!head->beside) {
        tell_mistakes(all);
        all.clear();
        decided.clear();
        number = 0;
      }
      Asked& asked = all.emplace_back();
      asked.name = head->balancer;
      std::string error;
      asked.balancer = make_balancer(balancer_text.empty() ? head->balancer : balancer_text, error);
      // The trace is right, but comes from a program that has other balancers.
      if (!asked.balancer && balancer_text.empty())
        return wrong(fmt::format("the balancer of {}", where),
                     error + ". --package loads one from a package; --balancer chooses another one");
      if (!asked.balancer) return wrong("--balancer", error);
      const std::string threw =
          balance::thrown_by("start()", [&] { asked.balancer->set_setup(std::move(head->setup)); });
      if (!threw.empty()) return wrong(fmt::format("the balancer of {}", where), threw);
      balance::teach(*asked.balancer, head->learnt, asked.corrections);
    } else if (const auto* sample = std::get_if<BalanceSample>(&line)) {
      ++number;
      decided.clear();
      for (Asked& asked : all) {
        asked.last = balance::decide(*asked.balancer, *sample, asked.last, number, asked.corrections);
        decided.push_back(balance::trace_line(asked.last, all.size() > 1 ? asked.name : ""));
      }
      if (replay) continue;
      for (const std::string& decision : decided) write_output(decision + "\n");
      // Who wrote the sample waits for the decision.
      if (finish_output(kBalanceName, 0) != 0) return kFailed;
    } else if (replay) {
      if (decided.empty()) return wrong(where, fmt::format("line {}: a decision without a sample", reader.lines()));
      if (const std::string& now = decided.front(); now != text) {
        size_t at = 0;
        while (at < std::min(now.size(), text.size()) && now[at] == text[at]) ++at;
        const size_t from = at < 30 ? 0 : at - 30;
        return wrong(where, fmt::format("line {}: differs from byte {} on\n  trace: {}\n  now:   {}", reader.lines(),
                                        at + 1, text.substr(from, 70), now.substr(from, 70)));
      }
      decided.pop_front();
      ++compared;
    }
  }
  if (all.empty()) return wrong(where, "expected a trace, found nothing");
  tell_mistakes(all);
  if (replay) print("{} decisions are the same\n", compared);
  return 0;
}

nlohmann::ordered_json json_of(const balance::SimulatedPhase& p, uint64_t seed) {
  return {{"seed", seed},
          {"at_s", p.at_s},
          {"optimum_mpps", p.optimum_mpps},
          {"mpps", p.mpps},
          {"of_optimum", p.optimum_mpps > 0 ? p.mpps / p.optimum_mpps : 0},
          {"at_95_ms", p.at_95_ms},
          {"at_98_ms", p.at_98_ms},
          {"cycling", p.cycling},
          {"p99_us", p.p99_us},
          {"bound_us", p.bound_us},
          {"over_bound", p.over_bound},
          {"share", p.share},
          {"worker_cycles", p.worker_cycles},
          {"stated_mpps", p.stated_mpps},
          {"why", p.why}};
}

std::string time_ms(double ms) { return ms < 0 ? "never" : fmt::format("{:.0f}", ms); }

nlohmann::ordered_json json_of(const balance::SimulatedScore& score) {
  return {{"phases", score.phases},           {"of_optimum_98", score.near}, {"at_95_in_100_ms", score.soon_95},
          {"at_98_in_100_ms", score.soon_98}, {"steady", score.steady},      {"bound_held", score.held}};
}

/// Kinds of noise: numbers from `first` to `last`.
struct Seeds {
  uint64_t first = 1, last = 1;
  bool several() const { return first != last; }
};

/// Reads "7" or "1-100"; nothing if it is neither.
std::optional<Seeds> read_seeds(const std::string& text) {
  Seeds seeds;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, seeds.first);
  seeds.last = seeds.first;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, seeds.last);
  if (read.ec != std::errc() || read.ptr != end || seeds.last < seeds.first) return std::nullopt;
  return seeds;
}

void print_phase(const balance::SimulatedPhase& p) {
  print("{:>6.2f} {:>9.2f} {:>9.2f} {:>6.3f} {:>7} {:>7} {:>8.3f} {:>8.0f} {:>6.2f}  {}\n", p.at_s, p.optimum_mpps,
        p.mpps, p.optimum_mpps > 0 ? p.mpps / p.optimum_mpps : 0, time_ms(p.at_95_ms), time_ms(p.at_98_ms), p.cycling,
        p.p99_us, p.share, p.why);
}

int run_simulation(const std::string& file, const std::string& balancer_text, double seconds, Seeds seeds, bool as_json,
                   bool trace) {
  std::ifstream in(find_installed(file, "machines", ".json"));
  if (!in) {
    const std::vector<std::string> names = installed_names("machines", ".json");
    return wrong(file, names.empty() ? "cannot be read"
                                     : fmt::format("cannot be read; installed are {}", fmt::join(names, ", ")));
  }
  std::stringstream text;
  text << in.rdbuf();
  std::string error;
  const std::vector<balance::Phase> phases = balance::read_machine(text.str(), error);
  if (phases.empty()) return wrong(file, error);
  const std::string name = balancer_text.empty() ? "Model" : balancer_text;
  // As long after the last step as it takes to settle.
  if (seconds <= 0) seconds = phases.back().at_s + 0.5;
  balance::SimulatedScore score;
  std::vector<balance::Simulated> outcomes;
  double step_us = 0;
  balance::Corrections corrections;
  for (uint64_t seed = seeds.first;; ++seed) {
    // Each begins with one that has learnt nothing.
    const std::unique_ptr<Balancer> balancer = make_balancer(name, error);
    if (!balancer) return wrong("--balancer", error);
    const std::string threw = balance::thrown_by(
        "start()", [&] { outcomes.push_back(balance::simulate(phases, *balancer, seconds, seed, trace ? name : "")); });
    if (!threw.empty()) return wrong(name, threw);
    balance::Simulated& r = outcomes.back();
    for (const balance::SimulatedPhase& p : r.phases) score.add(p);
    step_us += (r.step_us - step_us) / static_cast<double>(outcomes.size());
    corrections.add(r.corrections);
    r.steps.clear();
    if (seed == seeds.last) break;
  }
  tell_mistakes(name, corrections);
  if (trace) {
    for (const std::string& line : outcomes[0].trace) write_output(line + "\n");
    return 0;
  }
  if (as_json) {
    nlohmann::ordered_json json{
        {"machine", phases[0].machine.name}, {"balancer", name},        {"step_us", step_us},
        {"complaints", corrections.all()},   {"score", json_of(score)}, {"phases", nlohmann::ordered_json::array()}};
    for (size_t i = 0; i < outcomes.size(); ++i)
      for (const balance::SimulatedPhase& p : outcomes[i].phases) json["phases"].push_back(json_of(p, seeds.first + i));
    write_output(json.dump(2) + "\n");
    return 0;
  }
  print("{}, {}: a decision took {:.0f} us\n", phases[0].machine.name, name, step_us);
  if (seeds.several()) print("{:>6} ", "seed");
  print("{:>6} {:>9} {:>9} {:>6} {:>7} {:>7} {:>8} {:>8} {:>6}  {}\n", "at s", "optimum", "Mpps", "part", "ms 0.95",
        "ms 0.98", "cycling", "p99 us", "share", "why");
  for (size_t i = 0; i < outcomes.size(); ++i)
    for (const balance::SimulatedPhase& p : outcomes[i].phases) {
      if (seeds.several()) print("{:>6} ", seeds.first + i);
      print_phase(p);
    }
  if (seeds.several())
    print(
        "of {} phases, {} reach 0.98 of the optimum, {} 0.95 and {} 0.98 of it within 100 ms, {} are steady, {} hold "
        "their bound\n",
        score.phases, score.near, score.soon_95, score.soon_98, score.steady, score.held);
  return 0;
}

}  // namespace

int balance_command(int argc, char** argv) {
  CommandLine line(
      kBalanceName,
      "Lets a balancer decide. Without options it reads a trace from standard input, the setup and then samples, "
      "and answers each sample with a decision. docs/balancing.md describes the lines.");
  std::string balancer, replay, machine, path, seeds_text = "1";
  std::vector<std::string> packages;
  double seconds = 0;
  bool list = false, as_json = false, trace = false;
  line.add_flag("--list", list, "List the balancers");
  line.add_option("--balancer", balancer, "The balancer; default: that of the trace, or Model")
      ->option_text("NAME[=ARG]");
  line.add_option("-p,--package", packages, "Load the balancers of a package first; may be repeated")
      ->allow_extra_args(false)
      ->option_text("NAME");
  line.add_option("-C,--clickpath", path, "Folders for packages, separated by ':'; $HEADRACE_PATH is searched, too")
      ->option_text("PATH");
  CLI::Option* replay_option =
      line.add_option("--replay", replay, "Check that the trace's decisions are made again, byte for byte")
          ->option_text("TRACE");
  CLI::Option* simulate_option =
      line.add_option("--simulate", machine,
                      "Simulate a machine; a name without a folder is looked for in the current folder, then among "
                      "the installed machines (PREFIX/share/headrace/machines)")
          ->option_text("FILE");
  simulate_option->excludes(replay_option);
  line.add_option("--seconds", seconds, "Simulated time; default: half a second after the last change")
      ->check(CLI::Range(0.0, 1e4))
      ->option_text("S")
      ->needs(simulate_option);
  line.add_option("--seeds", seeds_text,
                  "The noise of the measurements: a number, or a first and a last one to simulate all from one to the "
                  "other; default: 1")
      ->option_text("N[-M]")
      ->needs(simulate_option);
  line.add_flag("--json", as_json, "Print the simulation's outcome as JSON")->needs(simulate_option);
  line.add_flag("--trace", trace, "Print the simulation's trace instead of its outcome")->needs(simulate_option);
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  for (const std::string& folder : split_path(path))
    if (!folder.empty()) add_package_path(folder);
  for (const std::string& package : packages)
    if (!load_package(package, {}, errors)) return kFailed;

  if (list) {
    list_balancers();
    return 0;
  }
  if (!machine.empty()) {
    const std::optional<Seeds> seeds = read_seeds(seeds_text);
    if (!seeds) return wrong("--seeds", fmt::format("expected a number or two as in 1-100, found '{}'", seeds_text));
    if (trace && seeds->several()) return wrong("--seeds", "a trace is of one seed");
    return run_simulation(machine, balancer, seconds, *seeds, as_json, trace);
  }
  if (!replay.empty() && replay != "-") {
    std::ifstream in(replay);
    if (!in) return wrong(replay, "cannot be read");
    return decide(in, replay, balancer, true);
  }
  return decide(std::cin, "<stdin>", balancer, !replay.empty());
}

}  // namespace headrace::cli
