#include "cli/bench_sweep.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/output.hh"
#include "headrace/text.hh"
#include "offload/engine.hh"

namespace headrace::cli {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// 0 where nothing passed.
double ratio(double rate, double of) { return of > 0 ? rate / of : 0; }

nlohmann::ordered_json spread(const std::vector<double>& values) {
  return {{"median", median(values)},
          {"min", *std::min_element(values.begin(), values.end())},
          {"max", *std::max_element(values.begin(), values.end())},
          {"runs", values}};
}

/// A load that was tried some times, and how often the delay kept its bound.
struct Tried {
  double mpps;
  int kept, tries;
};

/// A setting, and what was measured under it.
struct Point {
  explicit Point(std::string mode_text, int job_size = 0, int most_jobs = 0)
      : mode(std::move(mode_text)), job(job_size), places(most_jobs) {}

  std::string mode;  // as written to `offload_mode`
  int job = 0, places = 0;
  std::vector<double> rates;   // Mpps, of the rounds
  std::vector<double> finals;  // of the comparison in the end
  // With a rate: 99th percentiles of the delay, in microseconds.
  std::vector<double> delays, final_delays;
  double on_devices = 0;  // the part of the packets, in the last run
  // Of the comparison in the end: the part of their time that workers had packets, and with auto the optimum in Mpps by
  // the balancer's model at the end of each run, where it states one.
  std::vector<double> busy, stated;
  // With a bound on the delay: loads, in Mpps, that keep it and that do not.
  double kept = 0, broken = 0;
  double kept_p99_us = 0;
  // The tries of a load between them: how many broke the bound, and the 99th percentiles of those that did not.
  int breaches = 0;
  std::vector<double> within;
  std::vector<Tried> tried;  // the loads before

  bool fixed() const { return mode != "auto"; }
  std::string name() const {
    return mode == "auto" || mode == "cpu" ? mode : fmt::format("{}, {} jobs of {}", mode, places, job);
  }
};

std::vector<Point> make_points(const SweepOptions& sweep) {
  std::vector<double> fractions = sweep.fractions;
  // The sides alone are always compared.
  fractions.insert(fractions.end(), {0.0, 1.0});
  std::sort(fractions.begin(), fractions.end());
  fractions.erase(std::unique(fractions.begin(), fractions.end()), fractions.end());
  std::vector<Point> points;
  for (const double f : fractions) {
    if (f == 0) {
      points.emplace_back("cpu");
      continue;
    }
    for (const int job : sweep.jobs)
      for (const int places : sweep.places)
        points.emplace_back(f == 1 ? "device" : fmt::format("fixed={}", f), job, places);
  }
  points.emplace_back("auto", *std::max_element(sweep.jobs.begin(), sweep.jobs.end()),
                      *std::max_element(sweep.places.begin(), sweep.places.end()));
  return points;
}

/// The best rate of one chain and one device.
struct Optimum {
  double mpps = 0;    // 0: not measured
  std::string about;  // how it was found, or why not
};

/// The measurements, one after the other, on the control thread.
class Sweep {
 public:
  using Next = LiveRouter::Next;

  Sweep(const BenchOptions& options, const SweepOptions& sweep, LiveRouter& live)
      : options_(options), sweep_(sweep), live_(live), points_(make_points(sweep)) {}

  Next control(double now) {
    if (!measuring_) {
      if (changed_at_ == 0) {
        if (at_ == schedule_.size() && !plan()) return Next::kDone;
        if (!apply(points_[schedule_[at_]])) return Next::kFailed;
        changed_at_ = now;
      }
      if (now - changed_at_ < sweep_.settle) return Next::kGoOn;
      measuring_ = true;
      begin_ = take_snapshot(live_.router());
      jobs_begin_ = live_.router().engine()->event(offload::kJobPackets);
      load_ = live_.router().engine()->balance()->load();
      busy_.clear();
      return Next::kGoOn;
    }
    look_at_load();
    if (now - begin_.totals.seconds < options_.seconds) return Next::kGoOn;
    note(points_[schedule_[at_]]);
    measuring_ = false;
    changed_at_ = 0;
    ++at_;
    return Next::kGoOn;
  }

  nlohmann::ordered_json to_json() const {
    nlohmann::ordered_json j;
    j["rounds"] = sweep_.rounds;
    j["seconds"] = options_.seconds;
    j["settle"] = sweep_.settle;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Point& p : points_) {
      nlohmann::ordered_json row = {{"mode", p.mode}};
      if (p.fixed() && p.mode != "cpu") row.update({{"job", p.job}, {"places", p.places}});
      row["mpps"] = spread(p.rates);
      if (!p.finals.empty()) row["final_mpps"] = spread(p.finals);
      if (!p.delays.empty()) row["p99_us"] = spread(p.delays);
      if (!p.final_delays.empty()) row["final_p99_us"] = spread(p.final_delays);
      row["on_devices"] = p.on_devices;
      if (sweep_.p99_us > 0) {
        row["p99_kept"] = {{"mpps", p.kept}, {"p99_us", p.kept_p99_us}};
        for (const Tried& load : p.tried)
          row["loads"].push_back({{"mpps", load.mpps}, {"kept", load.kept}, {"tries", load.tries}});
      }
      rows.push_back(row);
    }
    j["points"] = rows;
    const Point &best = points_[best_], &side = points_[better_side()], &ours = points_.back();
    j["cpu_mpps"] = median(points_[cpu_].finals);
    j["device_mpps"] = median(points_[device_].finals);
    j["best"] = best.name();
    j["best_mpps"] = median(best.finals);
    j["auto_mpps"] = median(ours.finals);
    j["auto_to_best"] = ratio(median(ours.finals), median(best.finals));
    j["auto_to_better_side"] = ratio(median(ours.finals), median(side.finals));
    const Optimum r_star = optimum();
    j["r_star_mpps"] = r_star.mpps > 0 ? nlohmann::ordered_json(r_star.mpps) : nlohmann::ordered_json();
    j["r_star"] = r_star.about;
    if (r_star.mpps > 0) {
      j["auto_to_r_star"] = median(ours.finals) / r_star.mpps;
      j["best_to_r_star"] = median(best.finals) / r_star.mpps;
    }
    j["model_mpps"] = ours.stated.empty() ? nlohmann::ordered_json() : spread(ours.stated);
    if (!ours.stated.empty() && options_.rate == 0) {
      j["auto_to_model"] = median(ours.finals) / median(ours.stated);
      j["best_to_model"] = median(best.finals) / median(ours.stated);
    }
    if (options_.rate > 0) {
      j["offered_mpps"] = options_.rate;
      j["auto_to_cpu_p99"] = ratio(median(ours.final_delays), median(points_[cpu_].final_delays));
    }
    if (sweep_.p99_us > 0) {
      const Point& highest = highest_load();
      j["p99_bound"] = {{"us", sweep_.p99_us},
                        {"best", highest.kept > 0 ? highest.name() : "none keeps it"},
                        {"best_mpps", highest.kept},
                        {"auto_mpps", ours.kept},
                        {"auto_to_best", highest.kept > 0 ? ours.kept / highest.kept : 1.0}};
    }
    return j;
  }

  void print_table() const {
    const bool bound = sweep_.p99_us > 0, paced = options_.rate > 0;
    const auto column = [](bool wanted, const std::string& text) {
      return wanted ? fmt::format("{:>16}", text) : std::string();
    };
    print("{:<28}{:>10}{:>10}{:>10}{:>10}{:>12}{}\n", "setting", "Mpps", "min", "max", "of best", "on devices",
          column(paced, "p99 us") + column(bound, fmt::format("p99<{:g} us", sweep_.p99_us)));
    const double best = median(points_[best_].rates);
    for (const Point& p : points_) {
      const auto [least, most] = std::minmax_element(p.rates.begin(), p.rates.end());
      print("{:<28}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>12.3f}{}\n", p.name(), median(p.rates), *least, *most,
            ratio(median(p.rates), best), p.on_devices,
            column(paced, fmt::format("{:.1f}", median(p.delays))) + column(bound, fmt::format("{:.3f}", p.kept)));
    }
    const double ours = median(points_.back().finals), fixed = median(points_[best_].finals);
    print("\nmeasured again, in turn (medians of {}):\n", sweep_.rounds);
    print("best fixed: {}, {:.3f} Mpps\n", points_[best_].name(), fixed);
    print("cpu {:.3f}, device {:.3f} ({})\n", median(points_[cpu_].finals), median(points_[device_].finals),
          points_[device_].name());
    print("auto {:.3f}: {:.3f} of the best, {:.3f} of the better side\n", ours, ratio(ours, fixed),
          ratio(ours, median(points_[better_side()].finals)));
    const auto shares = [&](double of) {
      return fmt::format("auto {:.3f} of it, best fixed {:.3f}", ours / of, fixed / of);
    };
    if (const Optimum r_star = optimum(); r_star.mpps > 0)
      print("R* {:.3f} Mpps, {}: {}\n", r_star.mpps, r_star.about, shares(r_star.mpps));
    else
      print("R* {}\n", r_star.about);
    if (const double stated = median(points_.back().stated); stated > 0)
      print("optimum {:.3f} Mpps by the balancer's model{}\n", stated, paced ? "" : ": " + shares(stated));
    else
      print("the balancer states no optimum\n");
    if (paced) {
      const double cpu = median(points_[cpu_].final_delays), own = median(points_.back().final_delays);
      print("p99: cpu {:.1f} us, auto {:.1f}, {:.3f} of it\n", cpu, own, ratio(own, cpu));
    }
    if (!bound) return;
    const Point& highest = highest_load();
    if (highest.kept == 0)
      print("no setting keeps p99 below {:g} us\n", sweep_.p99_us);
    else
      print("p99 below {:g} us: best {} up to {:.3f} Mpps; auto up to {:.3f}, {:.3f} of it\n", sweep_.p99_us,
            highest.name(), highest.kept, points_.back().kept, points_.back().kept / highest.kept);
  }

 private:
  enum class Phase : uint8_t { kBegin, kRounds, kFinals, kLoads };
  /// Halves of the range in which the highest load lies.
  static constexpr int kHalvings = 6;

  bool apply(const Point& p) {
    const double load = phase_ == Phase::kLoads ? (p.kept + p.broken) / 2 : options_.rate;
    if (!live_.set_rate(load) || !live_.write("offload_mode", p.mode)) return false;
    return p.job == 0 || live_.write("offload_tuning", fmt::format("places={} job={}", p.places, p.job));
  }

  void note(Point& p) {
    const Snapshot end = take_snapshot(live_.router());
    const uint64_t packets = end.totals.in.packets - begin_.totals.in.packets;
    const double rate = mpps(packets, end.totals.seconds - begin_.totals.seconds);
    Histogram latency = end.latency;
    latency.subtract(begin_.latency);
    const double p99_us = static_cast<double>(latency.quantile(0.99)) * 1e-3;
    if (phase_ != Phase::kLoads) {
      if (options_.rate > 0) (phase_ == Phase::kRounds ? p.delays : p.final_delays).push_back(p99_us);
      (phase_ == Phase::kRounds ? p.rates : p.finals).push_back(rate);
      const uint64_t jobs = live_.router().engine()->event(offload::kJobPackets) - jobs_begin_;
      p.on_devices = packets ? static_cast<double>(jobs) / static_cast<double>(packets) : 0;
      if (phase_ != Phase::kFinals) return;
      if (!busy_.empty()) p.busy.push_back(median(busy_));
      if (const double stated = live_.router().engine()->balance()->optimum_mpps(); !p.fixed() && stated > 0)
        p.stated.push_back(stated);
      return;
    }
    constexpr double kAll = 0.98;  // of what is offered
    const double load = (p.kept + p.broken) / 2;
    if (latency.count() > 0 && p99_us <= sweep_.p99_us && rate >= kAll * load) {
      p.within.push_back(p99_us);
    } else {
      ++p.breaches;
    }
  }

  /// Samples of a few milliseconds, of which the median counts: while a worker has lost its CPU to another process it
  /// seems to be busy.
  void look_at_load() {
    const offload::BalanceLoop::Load load = live_.router().engine()->balance()->load();
    if (load.cycles == load_.cycles) return;
    busy_.push_back(static_cast<double>(load.busy - load_.busy) / static_cast<double>(load.cycles - load_.cycles));
    load_ = load;
  }

  /// A load counts as kept if most of its tries kept it: a machine that pauses for a moment breaks any bound.
  bool is_kept(const Point& p) const { return 2 * p.within.size() > static_cast<size_t>(sweep_.rounds); }
  bool is_decided(const Point& p) const { return is_kept(p) || 2 * p.breaches >= sweep_.rounds; }
  /// Halves the range of each setting by what its tries say.
  void halve() {
    for (Point& p : points_) {
      const double load = (p.kept + p.broken) / 2;
      const int kept = static_cast<int>(p.within.size());
      p.tried.push_back({load, kept, kept + p.breaches});
      if (is_kept(p)) {
        p.kept = load;
        p.kept_p99_us = median(p.within);
      } else {
        p.broken = load;
      }
      p.within.clear();
      p.breaches = 0;
    }
    ++halvings_;
  }

  /// What is to be measured next; false: nothing.
  bool plan() {
    schedule_.clear();
    at_ = 0;
    if (phase_ == Phase::kBegin) {
      phase_ = Phase::kRounds;
      // Back and forth, so that a machine that becomes slower does not favor the first ones.
      for (int round = 0; round < sweep_.rounds; ++round)
        for (size_t i = 0; i < points_.size(); ++i) schedule_.push_back(round % 2 ? points_.size() - 1 - i : i);
      return true;
    }
    if (phase_ == Phase::kRounds) {
      phase_ = Phase::kFinals;
      find_best();
      // The best of many has had luck: once more, against few.
      std::vector<size_t> compared = {best_, cpu_, device_, points_.size() - 1};
      std::sort(compared.begin(), compared.end());
      compared.erase(std::unique(compared.begin(), compared.end()), compared.end());
      for (int round = 0; round < sweep_.rounds; ++round) {
        schedule_.insert(schedule_.end(), compared.begin(), compared.end());
        std::reverse(compared.begin(), compared.end());
      }
      return true;
    }
    if (sweep_.p99_us == 0) return false;
    if (phase_ == Phase::kFinals)
      for (Point& p : points_) p.broken = median(p.rates);
    else if (std::all_of(points_.begin(), points_.end(), [this](const Point& p) { return is_decided(p); }))
      halve();
    phase_ = Phase::kLoads;
    if (halvings_ == kHalvings) return false;
    for (size_t i = 0; i < points_.size(); ++i)
      if (!is_decided(points_[i])) schedule_.push_back(i);
    return true;
  }

  void find_best() {
    const auto better = [this](size_t a, size_t b) { return median(points_[a].rates) > median(points_[b].rates); };
    std::optional<size_t> best, device;
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point& p = points_[i];
      if (p.fixed() && (!best || better(i, *best))) best = i;
      if (p.mode == "device" && (!device || better(i, *device))) device = i;
      if (p.mode == "cpu") cpu_ = i;
    }
    best_ = *best;
    device_ = *device;
  }

  size_t better_side() const { return median(points_[cpu_].finals) > median(points_[device_].finals) ? cpu_ : device_; }
  /// R* = (W f + B (c - d)) / (o + c), from the runs of the sides: W f / (o + c) is the CPU's rate, B the device's, and
  /// B (o + d) are the cycles for which workers are busy beside the device.
  Optimum optimum() const {
    constexpr double kBusy = 0.97;
    const double cpu = median(points_[cpu_].finals), device = median(points_[device_].finals);
    if (options_.rate > 0) return {0, "not measured: sources have a rate"};
    if (cpu == 0 || device == 0)
      return {0, fmt::format("not measured: nothing passed on the {}", cpu == 0 ? "CPU" : "device")};
    if (points_[device_].busy.empty()) return {0, "not measured: workers did not say how busy they were"};
    const double busy = median(points_[device_].busy);
    if (busy >= kBusy) return {std::max(cpu, device), "the better side, as workers bind"};
    if (device <= busy * cpu) return {std::max(cpu, device), "the better side, as the device costs workers no less"};
    return {device + (1 - busy) * cpu,
            fmt::format("as the CPU would do the rest in the {:.2f} of the time that workers wait", 1 - busy)};
  }
  const Point& highest_load() const {
    return *std::max_element(points_.begin(), points_.end() - 1,
                             [](const Point& a, const Point& b) { return a.kept < b.kept; });
  }

  const BenchOptions& options_;
  const SweepOptions& sweep_;
  LiveRouter& live_;
  std::vector<Point> points_;  // the last is auto
  Phase phase_ = Phase::kBegin;
  std::vector<size_t> schedule_;  // points to be measured in this phase
  size_t at_ = 0;                 // of these
  double changed_at_ = 0;
  bool measuring_ = false;
  Snapshot begin_;
  uint64_t jobs_begin_ = 0;
  offload::BalanceLoop::Load load_;  // at the last look
  std::vector<double> busy_;         // of the time between two looks
  size_t best_ = 0, cpu_ = 0, device_ = 0;
  int halvings_ = 0;
};

/// The items of a list with commas.
std::vector<std::string_view> items(std::string_view list) {
  std::vector<std::string_view> found;
  for (;;) {
    const size_t comma = list.find(',');
    found.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return found;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

bool SweepOptions::parse() {
  const auto read = [this](std::string_view text) {
    for (size_t part = 0;; ++part) {
      const size_t x = text.find('x');
      for (const std::string_view item : items(text.substr(0, x))) {
        if (part == 0) {
          OffloadOptions fraction;
          if (!fraction.set_mode(fmt::format("fixed={}", item))) {
            mistake = fmt::format("expected a fraction from 0 to 1, got '{}'", item);
            return false;
          }
          fractions.push_back(fraction.fraction);
          continue;
        }
        const std::optional<int> number = whole_number<int>(item, part == 1 ? 65536 : 256);
        if (!number || *number == 0) {
          mistake =
              fmt::format("expected {}, got '{}'",
                          part == 1 ? "packets of a job, from 1 to 65536" : "jobs on a device, from 1 to 256", item);
          return false;
        }
        (part == 1 ? jobs : places).push_back(*number);
      }
      if (x == std::string_view::npos) return true;
      text.remove_prefix(x + 1);
      if (part == 2) {
        mistake = fmt::format("expected FRACTIONSxJOBSxPLACES, got '{}' behind them", text);
        return false;
      }
    }
  };
  SweepOptions standard;
  if (points != kDefault) {
    standard.points = kDefault;
    (void)standard.parse();
  }
  if (!read(points == "default" ? kDefault : points)) return false;
  if (jobs.empty()) jobs = standard.jobs;
  if (places.empty()) places = standard.places;
  return true;
}

int bench_sweep(lang::Configuration configuration, BenchOptions options, const SweepOptions& sweep) {
  const std::string file = options.source.landmark();
  if ((sweep.p99_us > 0 || options.rate > 0) && measure_latencies(configuration) == 0) {
    complain("headrace bench: {} has no TrafficSink, so latency cannot be measured\n", file);
    return kFailed;
  }
  // The limits of what can be tuned.
  options.offload.job = *std::max_element(sweep.jobs.begin(), sweep.jobs.end());
  options.offload.jobs = *std::max_element(sweep.places.begin(), sweep.places.end());
  LiveRouter live(options, true);
  Sweep measurements(options, sweep, live);
  const bool good = live.run(
      configuration,
      [&] {
        if (!live.has_devices())
          complain(
              "headrace bench: --sweep needs a device and a chain that runs on it; without a GPU there is "
              "--backend reference\n");
        return live.has_devices();
      },
      [&](double now) { return measurements.control(now); });
  if (!good) return kFailed;
  if (!options.json) {
    print("{}, {} worker{}\n", file, options.workers, options.workers == 1 ? "" : "s");
    measurements.print_table();
    if (live.report().contains("sequence")) print("sequence {}\n", live.report()["sequence"].dump());
    print("reordered {}, lost {}\n", live.report()["reordered"].get<uint64_t>(), live.lost());
    return 0;
  }
  nlohmann::ordered_json j;
  j["conf"] = file;
  j["traffic"] = options.traffic.empty() ? "as configured" : options.traffic;
  j["workers"] = options.workers;
  j["sweep"] = measurements.to_json();
  j.update(live.report());
  add_origin(j);
  print("{}\n", j.dump(2));
  return 0;
}

}  // namespace headrace::cli
