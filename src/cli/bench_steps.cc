#include "cli/bench_steps.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "cli/output.hh"
#include "headrace/args.hh"
#include "headrace/text.hh"
#include "offload/engine.hh"

namespace headrace::cli {

namespace {

constexpr double kWindow = 0.01;  // seconds

/// One thing that a step changes.
struct Change {
  enum class What : uint8_t { kRate, kLength, kPayload, kMode, kHandler };
  What what;
  std::string value;
  double number = 0;         // kRate
  std::string handler = {};  // kHandler: its name
};

struct Step {
  int at_ms = 0;
  int line = 0;
  std::string text;
  std::vector<Change> changes;
};

class StepsFile {
 public:
  explicit StepsFile(std::string name) : name_(std::move(name)) {}

  /// Reports every mistake.
  bool read() {
    std::ifstream in(name_);
    if (!in) {
      complain("{}: {}\n", name_, std::strerror(errno));
      return false;
    }
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) {
      const std::string_view words = trimmed(std::string_view(text).substr(0, text.find('#')));
      if (!words.empty()) read_line(line, words);
    }
    if (good_ && steps_.empty()) {
      complain("{}: no steps\n", name_);
      good_ = false;
    }
    return good_;
  }

  /// What only the router can tell: devices, handlers.
  bool check(LiveRouter& live) {
    for (const Step& step : steps_)
      for (const Change& c : step.changes) {
        if (c.what == Change::What::kMode && !live.has_devices())
          mistake(step.line, "mode=" + c.value, "nothing runs on a device here");
        if (c.what != Change::What::kHandler) continue;
        Errors errors;
        HandlerCall call(c.handler);
        if (!call.bind(live.router(), nullptr, true, errors)) mistake(step.line, c.handler, trimmed(errors.str()));
      }
    return good_;
  }

  void mistake(int line, std::string_view word, std::string_view what) {
    complain("{}:{}: '{}': {}\n", name_, line, word, what);
    good_ = false;
  }

  const std::vector<Step>& steps() const { return steps_; }
  bool changes_mode() const {
    return std::any_of(steps_.begin(), steps_.end(), [](const Step& s) {
      return std::any_of(s.changes.begin(), s.changes.end(),
                         [](const Change& c) { return c.what == Change::What::kMode; });
    });
  }

 private:
  void read_line(int line, std::string_view words) {
    Step& step = steps_.emplace_back();
    step.line = line;
    step.text = words;
    const std::string_view time = next_word(words);
    constexpr int kMostMs = 3600 * 1000;
    if (const std::optional<int> ms = whole_number<int>(time, kMostMs)) {
      step.at_ms = *ms;
      if (last_ms_ && *ms < *last_ms_)
        mistake(line, time, fmt::format("earlier than the step before it, at {} ms", *last_ms_));
      else if (last_ms_ == ms)
        mistake(line, time, "two steps at one time");
      last_ms_ = ms;
    } else {
      mistake(line, time, fmt::format("expected a time in milliseconds, from 0 to {}", kMostMs));
    }
    bool any = false;
    for (std::string_view word = next_word(words); !word.empty(); word = next_word(words)) {
      any = true;
      if (word == "handler") {
        Change c{.what = Change::What::kHandler, .value = {}};
        const std::string_view name = next_word(words);
        if (name.empty()) mistake(line, word, "expected the name of a handler behind it");
        c.handler = name;
        c.value = trimmed(words);
        if (!name.empty()) step.changes.push_back(c);
        return;
      }
      read_setting(line, word, step);
    }
    if (!any) mistake(line, time, "nothing behind it to change");
  }

  void read_setting(int line, std::string_view word, Step& step) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
    Change c{.what = Change::What::kRate, .value = std::string(value)};
    if (key == "rate") {
      if (!parse_argument(value, c.number, ArgContext()) || !(c.number >= 0) || c.number > 1e5)
        return mistake(line, word, "expected millions of packets per second, from 0 to 100000; 0: as many as possible");
    } else if (key == "length") {
      c.what = Change::What::kLength;
      if (const auto length = whole_number<int>(value, 1514); !length || *length < 60)
        return mistake(line, word, "expected bytes of a frame, from 60 to 1514");
    } else if (key == "payload") {
      c.what = Change::What::kPayload;
      if (value != "text" && value != "random") return mistake(line, word, "expected text or random");
    } else if (key == "mode") {
      c.what = Change::What::kMode;
      if (OffloadOptions mode; !mode.set_mode(value))
        return mistake(line, word, "expected auto, cpu, device or fixed=FRACTION");
    } else {
      return mistake(line, word, "expected rate=, length=, payload=, mode= or handler NAME VALUE");
    }
    for (const Change& other : step.changes)
      if (other.what == c.what) return mistake(line, word, fmt::format("{} is there twice", key));
    step.changes.push_back(c);
  }

  std::string name_;
  std::vector<Step> steps_;
  std::optional<int> last_ms_;
  bool good_ = true;
};

/// What happened in a hundredth of a second.
struct Window {
  double ms = 0;  // when it began
  double in_mpps = 0, out_mpps = 0;
  uint64_t delays = 0;
  double p50_us = 0, p99_us = 0;
};

/// From one step to the next.
struct Phase {
  double begin_ms = 0, end_ms = 0;
  std::string text;
  size_t first = 0, windows = 0;
  double in_mpps = 0, out_mpps = 0;  // medians of the last third
  std::optional<double> p99_us;      // likewise; nothing where sources have no rate
  std::optional<double> to_095_ms, to_098_ms;
  // In the end, by the balancer's model; nothing where no balancer decides, or it states none.
  std::optional<double> optimum_mpps;
  bool load_is_less = false;  // than that: what arrives is the aim

  std::optional<double> of_optimum() const {
    if (!optimum_mpps || load_is_less) return std::nullopt;
    return out_mpps / *optimum_mpps;
  }
};

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class StepsRun {
 public:
  using Next = LiveRouter::Next;

  StepsRun(const BenchOptions& options, StepsFile& file, LiveRouter& live)
      : file_(file), live_(live), seconds_(options.seconds) {}

  Next control(double now) {
    if (start_ == 0) {
      start_ = now;
      last_ = take_snapshot(live_.router());
      if (file_.steps().front().at_ms > 0) begin_phase(0, "as configured");
    }
    const double t = now - start_;
    if (now - last_.totals.seconds >= kWindow) close_window();
    const std::vector<Step>& steps = file_.steps();
    if (next_ < steps.size() && t * 1e3 >= steps[next_].at_ms) {
      const Step& step = steps[next_++];
      // So that no window belongs to two phases.
      if (now > last_.totals.seconds) close_window();
      end_phase();
      for (const Change& c : step.changes)
        if (!apply(step, c)) return Next::kFailed;
      begin_phase((last_.totals.seconds - start_) * 1e3, step.text);
    }
    if (next_ < steps.size() || t * 1e3 < phases_.back().begin_ms + seconds_ * 1e3) return Next::kGoOn;
    end_phase();
    return Next::kDone;
  }

  nlohmann::ordered_json to_json() const {
    nlohmann::ordered_json j, phases = nlohmann::ordered_json::array(), windows = nlohmann::ordered_json::array();
    const auto maybe = [](const std::optional<double>& value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    };
    for (const Phase& p : phases_)
      phases.push_back({{"begin_ms", p.begin_ms},
                        {"end_ms", p.end_ms},
                        {"step", p.text},
                        {"in_mpps", p.in_mpps},
                        {"out_mpps", p.out_mpps},
                        {"p99_us", maybe(p.p99_us)},
                        {"to_095_ms", maybe(p.to_095_ms)},
                        {"to_098_ms", maybe(p.to_098_ms)},
                        {"optimum_mpps", maybe(p.optimum_mpps)},
                        {"aim", !p.optimum_mpps  ? nlohmann::ordered_json()
                                : p.load_is_less ? "load"
                                                 : "optimum"},
                        {"of_optimum", maybe(p.of_optimum())}});
    for (const Window& w : windows_)
      windows.push_back({{"ms", w.ms},
                         {"in_mpps", w.in_mpps},
                         {"out_mpps", w.out_mpps},
                         {"p50_us", w.delays ? nlohmann::ordered_json(w.p50_us) : nlohmann::ordered_json()},
                         {"p99_us", w.delays ? nlohmann::ordered_json(w.p99_us) : nlohmann::ordered_json()}});
    j["phases"] = phases;
    j["windows"] = windows;
    return j;
  }

  void print_table() const {
    print("{:>9}{:>11}{:>11}{:>11}{:>10}{:>10}{:>11}{:>8}  {}\n", "from ms", "Mpps in", "out", "p99 us", "to 0.95",
          "to 0.98", "optimum", "of it", "step");
    const auto ms = [](const std::optional<double>& time) { return time ? fmt::format("{:.0f}", *time) : "never"; };
    const auto figure = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.3f}", *value) : std::string("-");
    };
    for (const Phase& p : phases_)
      print("{:>9.0f}{:>11.3f}{:>11.3f}{:>11}{:>10}{:>10}{:>11}{:>8}  {}\n", p.begin_ms, p.in_mpps, p.out_mpps,
            p.p99_us ? fmt::format("{:.1f}", *p.p99_us) : "-", ms(p.to_095_ms), ms(p.to_098_ms), figure(p.optimum_mpps),
            p.load_is_less ? "load" : figure(p.of_optimum()), p.text);
  }

 private:
  void close_window() {
    const Snapshot now = take_snapshot(live_.router());
    const double seconds = now.totals.seconds - last_.totals.seconds;
    Histogram latency = now.latency;
    latency.subtract(last_.latency);
    windows_.push_back({.ms = (last_.totals.seconds - start_) * 1e3,
                        .in_mpps = mpps(now.totals.in.packets - last_.totals.in.packets, seconds),
                        .out_mpps = mpps(now.totals.out.packets - last_.totals.out.packets, seconds),
                        .delays = latency.count(),
                        .p50_us = static_cast<double>(latency.quantile(0.5)) * 1e-3,
                        .p99_us = static_cast<double>(latency.quantile(0.99)) * 1e-3});
    last_ = now;
  }

  bool apply(const Step& step, const Change& c) {
    bool good = false;
    switch (c.what) {
      case Change::What::kRate:
        good = live_.set_rate(c.number);
        break;
      case Change::What::kLength:
        good = live_.write_sources("length", c.value);
        break;
      case Change::What::kPayload:
        good = live_.write_sources("payload", c.value);
        break;
      case Change::What::kMode:
        good = live_.write("offload_mode", c.value);
        break;
      case Change::What::kHandler:
        good = live_.write(c.handler, c.value);
        break;
    }
    if (!good) file_.mistake(step.line, c.handler.empty() ? c.value : c.handler, "could not be written");
    return good;
  }

  void begin_phase(double ms, const std::string& text) {
    Phase& p = phases_.emplace_back();
    p.begin_ms = ms;
    p.text = text;
    p.first = windows_.size();
  }

  void end_phase() {
    if (phases_.empty()) return;
    Phase& p = phases_.back();
    p.end_ms = (last_.totals.seconds - start_) * 1e3;
    p.windows = windows_.size() - p.first;
    const size_t third = p.first + p.windows - p.windows / 3;
    std::vector<double> in, out, p99;
    for (size_t i = third; i < windows_.size(); ++i) {
      in.push_back(windows_[i].in_mpps);
      out.push_back(windows_[i].out_mpps);
      if (windows_[i].delays) p99.push_back(windows_[i].p99_us);
    }
    p.in_mpps = middle(in);
    p.out_mpps = middle(out);
    if (!p99.empty()) p.p99_us = middle(p99);
    if (const offload::Engine* const engine = live_.router().engine(); engine && engine->mode() == "auto") {
      const double optimum = engine->balance() ? engine->balance()->optimum_mpps() : 0, load = live_.rate();
      if (optimum > 0) p.optimum_mpps = optimum;
      p.load_is_less = load > 0 && load < optimum;
    }
    p.to_095_ms = reached(p, 0.95);
    p.to_098_ms = reached(p, 0.98);
  }

  /// When the rate was `part` of the last third's for good, in milliseconds from the step. A pause of the machine within
  /// one or two windows does not count: each has the median of itself and two on both sides.
  std::optional<double> reached(const Phase& p, double part) const {
    std::optional<double> when;
    if (p.out_mpps == 0) return when;
    for (size_t i = 0; i < p.windows; ++i) {
      std::vector<double> near;
      for (size_t k = i < 2 ? 0 : i - 2; k < std::min(i + 3, p.windows); ++k)
        near.push_back(windows_[p.first + k].out_mpps);
      if (middle(near) < part * p.out_mpps)
        when.reset();
      else if (!when)
        when = windows_[p.first + i].ms - p.begin_ms;
    }
    return when;
  }

  StepsFile& file_;
  LiveRouter& live_;
  const double seconds_;  // of the last phase
  double start_ = 0;
  size_t next_ = 0;  // step
  Snapshot last_;    // the end of the last window
  std::vector<Window> windows_;
  std::vector<Phase> phases_;
};

}  // namespace

int bench_steps(lang::Configuration configuration, const BenchOptions& options, const std::string& file) {
  const std::string conf = options.source.landmark();
  StepsFile steps(file);
  // Mistakes that only the router can show come behind those in the text, in the same run.
  const bool readable = steps.read();
  if (steps.steps().empty()) return kFailed;
  if (options.rate > 0) (void)pace(configuration, options.rate);
  if (measure_latencies(configuration) == 0) {
    complain("headrace bench: {} has no TrafficSink, so rates and latencies cannot be measured\n", conf);
    return kFailed;
  }
  LiveRouter live(options, steps.changes_mode());
  StepsRun run(options, steps, live);
  const bool good = live.run(
      configuration, [&] { return steps.check(live) && readable; }, [&](double now) { return run.control(now); });
  if (!good) return kFailed;
  if (!options.json) {
    print("{}, {} worker{}\n", conf, options.workers, options.workers == 1 ? "" : "s");
    run.print_table();
    if (live.report().contains("sequence")) print("sequence {}\n", live.report()["sequence"].dump());
    print("reordered {}, lost {}\n", live.report()["reordered"].get<uint64_t>(), live.lost());
    return 0;
  }
  nlohmann::ordered_json j;
  j["conf"] = conf;
  j["traffic"] = options.traffic.empty() ? "as configured" : options.traffic;
  j["workers"] = options.workers;
  j["steps"] = run.to_json();
  j.update(live.report());
  add_origin(j);
  print("{}\n", j.dump(2));
  return 0;
}

}  // namespace headrace::cli
