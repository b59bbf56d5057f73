#pragma once
/// \file
/// How much of a device's time a packet of each chain takes, learnt from what gets through while it is busy.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <vector>

namespace headrace::balance {

/// A device that is busy all the time says one thing: the sum over chains of packets a second by time per packet is 1.
/// As the mixture of chains changes, the times follow from several such sums (a Kalman filter whose state are the
/// times). Packets come back by whole jobs: what a sample counts too much, because a job has just ended, the next one
/// lacks. So the state has this surplus, too (noise that is a moving average: Anderson and Moore, Optimal Filtering,
/// 1979, section 11.5). Before the device was ever busy, times are 0: it has no limit that is known.
class DeviceTimes {
 public:
  explicit DeviceTimes(size_t chains = 0) : times_(chains, 0.0), errors_((chains + 1) * (chains + 1), 0.0) {}

  bool known() const { return known_; }
  double seconds(size_t chain) const { return times_[chain]; }
  /// What it hardly exceeds, by all that is known.
  double most_seconds(size_t chain) const { return times_[chain] + std::sqrt(std::max(error(chain, chain), 0.0)); }
  /// The part of its time that these rates take.
  double used(const std::vector<double>& per_second) const {
    double sum = 0;
    for (size_t k = 0; k < times_.size(); ++k) sum += per_second[k] * times_[k];
    return sum;
  }

  /// What came back of it.
  struct Seen {
    explicit Seen(size_t chains) : per_second(chains, 0.0), spread(chains, 0.0), at_end(chains, 0.0) {}
    std::vector<double> per_second;  ///< by chain: packets
    std::vector<double> spread;      ///< the variance of these, besides that of jobs which end near its ends
    std::vector<double> at_end;      ///< the variance that packets have which come back by whole jobs, at either end
    bool follows = false;            ///< it begins where the last one that was said ended
    double starved = 0;              ///< part of the looks that found nothing to do there
  };
  /// It was busy for this part of the time. `full`: more packets came than it took; `sure`: by far more.
  void busy(const Seen& seen, double part, bool full, bool sure = false) {
    const std::vector<double>& per_second = seen.per_second;
    double all = 0;
    for (const double r : per_second) all += r;
    if (!(all > 0) || !(part > 0)) return;
    if (!seen.follows) forget_surplus(seen);
    const double off = known_ ? part - used(per_second) - surplus_ : 0;
    // Where a sample is but a few jobs long, it is off by one or the other; and what is not known yet is no change.
    const double expected = variance_of(covariances(seen), seen);
    const double wrong = std::max(std::abs(off) - 2 * std::sqrt(std::max(expected, 0.0)), 0.0) / part;
    bool other = false;
    if (full && calm_ > hold_) {
      // Was it as fast as it was known to be before?
      const bool mistake = std::abs(part - used(per_second) / tried_) < 0.1 * part;
      hold_ = mistake ? std::min(2 * hold_, kMostHold) : kLeastHold;
      // It became so much faster that packets are other ones, which says nothing about who takes how much less.
      other = !mistake && times_.size() > 1 && tried_ < kOther;
    } else if (wrong > kFar) {
      hold_ = kLeastHold;
    }
    if (full) {
      calm_ = 0;
      tried_ = 1;
    }
    far_ = wrong > kFar ? far_ + (sure ? 2 : 1) : 0;
    if (!known_) {
      // All chains alike, and little is certain but the sum.
      known_ = true;
      std::fill(times_.begin(), times_.end(), part / all);
      forget();
    } else if (other || far_ >= (times_.size() > 1 ? 3 : 2)) {
      // Something has changed: all may be as wrong as the sum is.
      for (double& t : times_) t *= part / (part - off);
      forget();
      far_ = 0;
    }
    ++seen_;
    if (full) {
      correct(seen, part, true);
    } else if (used(per_second) > 1) {
      // It cannot be used more than all the time: those that are least known are less. Of a single one, as little as is
      // needed.
      correct(seen, 1, times_.size() == 1);
    } else if (off < 0) {
      // That they cannot be more does not say whose is less; and workers look more often while there is nothing to do.
      for (double& t : times_) t *= std::max(part / (part - off), 0.95);
    }
  }

  /// The plan wants more of the device than is believed to be there, and it took all that came. After some such steps it
  /// may be faster than was known: takes more and more off. How many steps, grows with each time that this was a
  /// mistake. `idle`: it often had nothing to do. `alone`: no job took longer than it does in a device with nothing else,
  /// so that the device is far from full.
  void calm(bool idle, bool alone = false) {
    calm_ += idle || alone ? 3 : 1;
    if (calm_ <= hold_) return;
    trying_ = kTrying;
    const double less = 1 - std::min(0.01 * (calm_ - hold_), alone ? 0.3 : 0.1);
    // What was known before is as likely: as soon as the device is full, it is to show which.
    const double off = 1 - tried_, more = 1 - tried_ * less;
    for (size_t k = 0; k < times_.size(); ++k)
      for (size_t j = 0; j < times_.size(); ++j) error(k, j) += (more * more - off * off) * times_[k] * times_[j];
    for (double& t : times_) t *= less;
    tried_ *= less;
  }
  /// Another one has learnt these times, by chain; 0: it did not know. They are as likely as if some samples had told.
  void learn(const std::vector<double>& seconds) {
    constexpr double kUnsure = 0.1;
    if (seconds.size() != times_.size() ||
        std::any_of(seconds.begin(), seconds.end(), [](double s) { return !(s > 0); }))
      return;
    times_ = seconds;
    known_ = true;
    forget();
    for (size_t k = 0; k < times_.size(); ++k) error(k, k) = (kUnsure * times_[k]) * (kUnsure * times_[k]);
  }
  /// A step has passed.
  void pass() { trying_ = std::max(trying_ - 1, 0); }
  /// All are less by this part: what was seen was not all that the device can do.
  void is_less(double part) {
    for (double& t : times_) t *= part;
    for (double& e : errors_) e *= part * part;
    calm_ = 0;
    hold_ = kLeastHold;
    tried_ = 1;
  }
  /// A job of this chain has shown that it cannot be more.
  void at_most(size_t chain, double seconds) { times_[chain] = std::min(times_[chain], seconds); }

  /// Packets are other ones now.
  void doubt() {
    forget();
    hold_ = kLeastHold;
  }

  /// The times if this chain takes as little as may be; others then take more, as far as only sums are known. Empty if
  /// that is hardly less than is believed, was supposed too often already, or calm() is trying whether all take less.
  /// `bold`: what is believed may be wrong by far, as when the device became slower for another chain only.
  std::vector<double> suppose(size_t chain, bool bold = false) const {
    const size_t n = times_.size();
    const double variance = error(chain, chain), deviation = std::sqrt(variance);
    if (!known_ || guesses_ == 0 || trying_ > 0 || deviation < kSure * times_[chain]) return {};
    const double least = bold ? kLeastOfAll : kLeast;
    const double less = std::min(kBelievable * deviation, (1 - least) * times_[chain]);
    std::vector<double> supposed = times_;
    for (size_t k = 0; k < n; ++k)
      supposed[k] = std::max(times_[k] - less * error(k, chain) / variance, least * times_[k]);
    return supposed;
  }
  /// Little was seen since packets or the device became other ones.
  bool is_new() const { return seen_ < kNew; }
  /// Nothing has changed for some time.
  bool is_settled() const { return seen_ > kSettled; }
  /// How often packets or the device became other ones.
  int forgotten() const { return forgotten_; }
  /// What was supposed is tried.
  void guess() { --guesses_; }

 private:
  // Parts of a time, or of the device's time.
  static constexpr double kNoise = 0.015;  // besides whole jobs
  static constexpr double kDrift = 0.01;   // of all times together, by sample
  static constexpr double kUnknown = 1.5;
  static constexpr double kAtAnEnd = 0.01;  // of a variance, where what is believed is all but impossible
  static constexpr double kFar = 0.25;
  static constexpr double kOther = 0.75;                     // of what times were
  static constexpr double kLeast = 0.1, kLeastOfAll = 0.01;  // of what a time was before
  static constexpr double kSure = 0.05, kBelievable = 1.5;
  static constexpr int kLeastHold = 2, kMostHold = 128, kGuesses = 16, kNew = 10, kSettled = 20;
  static constexpr int kTrying = 6;

  /// The square of a time, as far as is known: one that is believed to be short may be long.
  double square(size_t k) const { return times_[k] * times_[k] + (times_.size() > 1 ? error(k, k) : 0); }

  /// The covariance of the errors of two times; of the surplus behind the last time.
  double& error(size_t k, size_t j) { return errors_[k * (times_.size() + 1) + j]; }
  double error(size_t k, size_t j) const { return errors_[k * (times_.size() + 1) + j]; }

  /// The variance of the surplus at one end of a sample.
  double variance_at_end(const Seen& seen) const {
    double variance = 0;
    for (size_t k = 0; k < times_.size(); ++k) variance += seen.at_end[k] * square(k);
    return variance;
  }
  /// Nothing is known of the beginning of this sample.
  void forget_surplus(const Seen& seen) {
    const size_t n = times_.size();
    surplus_ = 0;
    for (size_t k = 0; k < n; ++k) error(k, n) = error(n, k) = 0;
    error(n, n) = variance_at_end(seen);
  }
  /// Of the part of the device's time that this sample says, with each time and the surplus.
  std::vector<double> covariances(const Seen& seen) const {
    const size_t n = times_.size();
    std::vector<double> with(n + 1);
    for (size_t k = 0; k <= n; ++k) {
      with[k] = error(k, n);
      for (size_t j = 0; j < n; ++j) with[k] += error(k, j) * seen.per_second[j];
    }
    return with;
  }
  /// Of that part, which has `with` as covariances.
  double variance_of(const std::vector<double>& with, const Seen& seen) const {
    const size_t n = times_.size();
    double variance = with[n] + variance_at_end(seen);
    for (size_t k = 0; k < n; ++k) variance += seen.spread[k] * square(k) + with[k] * seen.per_second[k];
    return variance;
  }

  /// Mean and variance of a normal distribution of which only what lies from `least` to `most` is possible.
  static void truncate(double& mean, double& variance, double least, double most) {
    const double sigma = std::sqrt(variance), a = (least - mean) / sigma, b = (most - mean) / sigma;
    // By the smaller tail, as the difference of numbers near one is not exact.
    const auto below = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
    const double inside = a > 0 ? below(-a) - below(-b) : below(b) - below(a);
    if (inside < 1e-6) {
      mean = a > 0 ? least : most;
      variance *= kAtAnEnd;
      return;
    }
    const auto density = [](double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); };
    const auto weighted = [&](double x) { return std::isfinite(x) ? x * density(x) : 0; };
    const double shift = (density(a) - density(b)) / inside;
    mean += sigma * shift;
    variance *= std::clamp(1 + (weighted(a) - weighted(b)) / inside - shift * shift, 0.0, 1.0);
  }

  /// A sum of times and the surplus, of which `with` are the covariances with each, is another by `off`, and so is its
  /// variance.
  void shift(const std::vector<double>& with, double variance, double off, double variance_off) {
    const size_t n = times_.size();
    for (size_t k = 0; k <= n; ++k) {
      (k < n ? times_[k] : surplus_) += with[k] * off / variance;
      for (size_t j = 0; j <= n; ++j) error(k, j) += with[k] * with[j] * (variance_off / variance) / variance;
    }
  }

  /// These rates take this part of the device's time; or at most this, if not `exact`. That is why such a sample leaves
  /// much unsure: it was anything from nothing on.
  void correct(const Seen& seen, double part, bool exact) {
    const size_t n = times_.size();
    // Devices become slower and faster for all chains. What is known of their proportions holds.
    for (size_t k = 0; k < n; ++k)
      for (size_t j = 0; j < n; ++j) error(k, j) += (kDrift * times_[k]) * (kDrift * times_[j]);
    std::vector<double> with = covariances(seen), least(n);
    const double variance = kNoise * kNoise + 0.25 * seen.starved * seen.starved + variance_of(with, seen),
                 at_end = variance_at_end(seen);
    for (size_t k = 0; k < n; ++k) least[k] = kLeast * times_[k];
    const double before = used(seen.per_second) + surplus_;
    // From here on the surplus is that of its end, of which so far is only known how much it may be.
    surplus_ = 0;
    for (size_t k = 0; k < n; ++k) error(k, n) = error(n, k) = 0;
    error(n, n) = at_end;
    with[n] = -at_end;
    double after = part, left = 0;
    if (!exact) {
      after = before;
      left = variance;
      truncate(after, left, 0, part);
    }
    shift(with, variance, after - before, left - variance);
    // No time is less than nothing. One that would be is a little more, and so others are less, as far as only sums are
    // known.
    for (size_t round = 0; round < 2 * n; ++round) {
      size_t lowest = 0;
      for (size_t k = 1; k < n; ++k)
        if (times_[k] - least[k] < times_[lowest] - least[lowest]) lowest = k;
      if (times_[lowest] >= least[lowest]) break;
      for (size_t k = 0; k <= n; ++k) with[k] = error(lowest, k);
      const double unsure = std::max(error(lowest, lowest), 1e-30);
      double time = times_[lowest], rest = unsure;
      truncate(time, rest, 0, std::numeric_limits<double>::infinity());
      shift(with, unsure, std::max(time, least[lowest]) - times_[lowest], rest - unsure);
      times_[lowest] = std::max(times_[lowest], least[lowest]);
    }
    for (size_t k = 0; k < n; ++k) times_[k] = std::max(times_[k], least[k]);
  }

  void forget() {
    const size_t n = times_.size();
    double mean = 0;
    for (const double t : times_) mean += t / static_cast<double>(n);
    const double at_end = error(n, n);
    std::fill(errors_.begin(), errors_.end(), 0.0);
    for (size_t k = 0; k < n; ++k) {
      // What was next to nothing may be much now: any of them may be as much as they are on average.
      times_[k] = std::max(times_[k], 0.3 * mean);
      const double unknown = kUnknown * std::max(times_[k], mean);
      error(k, k) = unknown * unknown;
    }
    error(n, n) = at_end;
    guesses_ = kGuesses;
    seen_ = 0;
    ++forgotten_;
  }

  std::vector<double> times_;
  double surplus_ = 0;          ///< part of the device's time that the last sample counted too much at its end
  std::vector<double> errors_;  ///< the covariance of the errors of times, and of the surplus
  bool known_ = false;
  double tried_ = 1;  ///< what calm() has made of the times
  int trying_ = 0;    ///< steps in which that is under way
  int seen_ = 0;      ///< samples since forget()
  int forgotten_ = 0;
  int far_ = 0, calm_ = 0, hold_ = kLeastHold, guesses_ = 0;
};

}  // namespace headrace::balance
