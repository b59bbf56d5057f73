#include "elements/analysis/TimestampDiff.hh"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "elements/analysis/RecordTimestamp.hh"
#include "headrace/chatter.hh"

namespace headrace {

namespace {

constexpr uint64_t kDefaultDelays = 65536, kMostDelays = 1 << 28;
constexpr int kClassShift = 56;

double mean_of(const std::vector<double>& delays) {
  if (delays.empty()) return 0;
  return std::accumulate(delays.begin(), delays.end(), 0.) / static_cast<double>(delays.size());
}

double deviation_of(const std::vector<double>& delays) {
  if (delays.empty()) return 0;
  const double mean = mean_of(delays);
  double sum = 0;
  for (const double delay : delays) sum += (delay - mean) * (delay - mean);
  return std::sqrt(sum / static_cast<double>(delays.size()));
}

double percentile_of(std::vector<double> delays, double percent) {
  if (delays.empty()) return 0;
  const auto at = std::clamp(percent, 0., 100.) / 100 * static_cast<double>(delays.size());
  const auto nth = delays.begin() + static_cast<std::ptrdiff_t>(std::min(static_cast<size_t>(at), delays.size() - 1));
  std::nth_element(delays.begin(), nth, delays.end());
  return *nth;
}

}  // namespace

Status TimestampDiff::configure(Args& args) {
  count_reasons({"no time recorded"});
  const int most = static_cast<int>(Packet::kMaxLength);
  args.read_mp("RECORDER", recorder_).read("OFFSET", place_.offset, Between{0, most});
  args.read("N", size_, Between{0, kMostDelays}).read("MAXDELAY", max_delay_ms_).read("NANO", nano_);
  args.read("SAMPLE", sample_, Between{1, INT32_MAX}).read("VERBOSE", verbose_);
  args.read("TC_OFFSET", class_offset_).read("TC_MASK", class_mask_);
  if (!args.complete()) return Status::failed();
  if (size_ == 0) size_ = kDefaultDelays;
  records_ = std::make_unique<Record[]>(size_);
  return {};
}

Status TimestampDiff::initialize(Errors&) {
  // Only now the recorder knows: it may have it from its COUNTER.
  place_.net_order = recorder_->net_order();
  return {};
}

Next TimestampDiff::measure(const Packet& p, Timestamp now) {
  if (!place_.fits(p)) return 1;
  const uint64_t number = place_.read(p);
  if (number % sample_ != 0) return 0;
  const Timestamp sent = recorder_->take(number);
  if (!sent) return 1;
  const auto delay = static_cast<uint64_t>(std::max<int64_t>((now - sent).ns, 0));
  if (delay > uint64_t{max_delay_ms_} * 1000000) {
    if (verbose_) chatter("Packet {} experienced delay {} ms > {} ms", number, delay / 1000000, max_delay_ms_);
    return 0;
  }
  const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index >= size_) return 0;
  uint64_t its_class = 0;
  if (class_offset_ >= 0 && static_cast<uint32_t>(class_offset_) < p.length())
    its_class = p.data()[class_offset_] & class_mask_;
  records_[index].store(((nano_ ? delay : delay / 1000) | its_class << kClassShift) + 1, std::memory_order_release);
  return 0;
}

void TimestampDiff::push(int, Batch& batch) {
  const Timestamp now = clock::steady();
  Next nexts[Batch::kCapacity];
  for (int i = 0; i < batch.size(); ++i) nexts[i] = measure(*batch[i], now);
  push_split(batch, nexts);
}

size_t TimestampDiff::recorded() const { return std::min(next_.load(std::memory_order_acquire), size_); }

std::vector<double> TimestampDiff::delays(size_t begin, int of_class) const {
  std::vector<double> delays;
  for (size_t i = begin; i < recorded(); ++i) {
    const uint64_t stored = records_[i].load(std::memory_order_acquire);
    if (stored == 0) continue;
    const uint64_t record = stored - 1;
    if (of_class != kAnyClass && record >> kClassShift != static_cast<uint64_t>(of_class)) continue;
    delays.push_back(static_cast<double>(record & ((uint64_t{1} << kClassShift) - 1)));
  }
  return delays;
}

void TimestampDiff::add_handlers(Handlers& handlers) {
  // Statistics of the delays, behind `words` parameters of their own.
  using Statistic = std::function<double(const std::vector<double>& parameters, size_t begin)>;
  const auto add = [&handlers](const std::string& name, size_t words, Statistic statistic) {
    handlers.read_with(name, [words, statistic](const std::string& text, std::string& value, Errors& errors) {
      std::vector<double> parameters;
      if (!parse_argument(text, parameters, ArgContext()) || parameters.size() < words ||
          parameters.size() > words + 1 ||
          std::any_of(parameters.begin(), parameters.end(), [](double p) { return !(p >= 0 && p < 1e9); }))
        return errors.error("expected {} and the number of delays to leave out", words == 0 ? "nothing" : "a number");
      value = fmt::format(
          "{}", statistic(parameters, parameters.size() > words ? static_cast<size_t>(parameters[words]) : 0));
      return Status();
    });
  };
  for (const char* name : {"avg", "average"})
    add(name, 0, [this](const auto&, size_t begin) { return mean_of(delays(begin)); });
  add("avg_tc", 1, [this](const auto& p, size_t begin) { return mean_of(delays(begin, static_cast<int>(p[0]))); });
  add("stddev", 0, [this](const auto&, size_t begin) { return deviation_of(delays(begin)); });
  static constexpr std::pair<const char*, double> kPercentiles[] = {
      {"min", 0},     {"perc00", 0},  {"perc01", 1},  {"perc05", 5},  {"perc10", 10},   {"perc25", 25}, {"median", 50},
      {"perc75", 75}, {"perc90", 90}, {"perc95", 95}, {"perc99", 99}, {"perc100", 100}, {"max", 100}};
  for (const auto& [name, percent] : kPercentiles)
    add(name, 0,
        [this, percent = percent](const auto&, size_t begin) { return percentile_of(delays(begin), percent); });
  add("perc", 1, [this](const auto& p, size_t begin) { return percentile_of(delays(begin), p[0]); });
  handlers.read("index", [this] { return std::to_string(static_cast<int64_t>(recorded()) - 1); });
  handlers.read("last", [this] {
    const size_t n = recorded();
    const std::vector<double> last = n == 0 ? std::vector<double>() : delays(n - 1);
    return fmt::format("{}", last.empty() ? 0 : last[0]);
  });
  const auto dump = [this](bool numbered) {
    std::string lines;
    size_t i = 0;
    for (const double delay : delays(0))
      lines += (numbered ? std::to_string(i++) + ": " : "") + fmt::format("{}\n", delay);
    return lines;
  };
  handlers.read("dump", [dump] { return dump(true); });
  handlers.read("dump_list", [dump] { return dump(false); });
  handlers.read("lost", [this] { return std::to_string(next_.load(std::memory_order_relaxed) - recorded()); });
}

}  // namespace headrace
