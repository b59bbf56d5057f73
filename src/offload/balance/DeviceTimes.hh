#pragma once
/// \file
/// How much of a device's time a packet of each chain takes, learnt from what gets through while it is busy.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace headrace::balance {

/// A device that is busy all the time says one thing: the sum over chains of packets a second by time per packet is 1.
/// As the mixture of chains changes, the times follow from several such sums (a Kalman filter whose state are the
/// times). Before the device was ever busy, they are 0: it has no limit that is known.
class DeviceTimes {
 public:
  explicit DeviceTimes(size_t chains = 0) : times_(chains, 0.0), errors_(chains * chains, 0.0) {}

  bool known() const { return known_; }
  double seconds(size_t chain) const { return times_[chain]; }
  /// The part of its time that these rates take.
  double used(const std::vector<double>& per_second) const {
    double sum = 0;
    for (size_t k = 0; k < times_.size(); ++k) sum += per_second[k] * times_[k];
    return sum;
  }

  /// It was busy for this part of the time while so many packets of each chain came back. `full`: more packets came than
  /// it took; `sure`: by far more.
  void busy(const std::vector<double>& per_second, double part, bool full, bool sure = false) {
    double all = 0;
    for (const double r : per_second) all += r;
    if (!(all > 0) || !(part > 0)) return;
    const double off = known_ ? part - used(per_second) : 0;
    const double wrong = std::abs(off) / part;
    if (full && calm_ > hold_) hold_ = wrong < 0.1 ? std::min(2 * hold_, kMostHold) : kLeastHold;
    if (wrong > kFar) hold_ = kLeastHold;
    if (full) calm_ = 0;
    far_ = wrong > kFar ? far_ + (sure ? 2 : 1) : 0;
    if (!known_) {
      // All chains alike, and little is certain but the sum.
      known_ = true;
      std::fill(times_.begin(), times_.end(), part / all);
      forget();
    } else if (far_ >= (times_.size() > 1 ? 3 : 2)) {
      // Something has changed: all may be as wrong as the sum is.
      for (double& t : times_) t *= part / (part - off);
      forget();
      far_ = 0;
    }
    correct(per_second, part);
  }

  /// The plan wants more of the device than is believed to be there, and it took all that came. After some such steps it
  /// may be faster than was known: takes more and more off. How many steps, grows with each time that this was a
  /// mistake. `idle`: it often had nothing to do.
  void calm(bool idle) {
    calm_ += idle ? 3 : 1;
    if (calm_ > hold_) hope(std::min(0.01 * (calm_ - hold_), 0.1));
  }
  /// A job of this chain has shown that it cannot be more.
  void at_most(size_t chain, double seconds) { times_[chain] = std::min(times_[chain], seconds); }

  /// It may be faster than was known: takes this part off.
  void hope(double part) {
    for (double& t : times_) t *= 1 - part;
  }
  void hope(size_t chain, double part) { times_[chain] *= 1 - part; }

 private:
  static constexpr double kNoise = 0.015;  // of a sum, as packets come back by whole jobs
  static constexpr double kDrift = 0.02;   // of a time, by sample
  static constexpr double kFar = 0.25;
  static constexpr int kLeastHold = 2, kMostHold = 64;

  void correct(const std::vector<double>& per_second, double part) {
    const size_t n = times_.size();
    const double off = part - used(per_second);
    for (size_t k = 0; k < n; ++k) errors_[k * n + k] += (kDrift * times_[k]) * (kDrift * times_[k]);
    std::vector<double> moves(n, 0.0);
    double doubt = kNoise * kNoise;
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n; ++j) moves[k] += errors_[k * n + j] * per_second[j];
      doubt += moves[k] * per_second[k];
    }
    for (size_t k = 0; k < n; ++k) {
      const double least = 0.1 * times_[k], most = 5 * times_[k];
      times_[k] = std::clamp(times_[k] + moves[k] * off / doubt, least, most);
      for (size_t j = 0; j < n; ++j) errors_[k * n + j] -= moves[k] * moves[j] / doubt;
    }
  }

  void forget() {
    const size_t n = times_.size();
    std::fill(errors_.begin(), errors_.end(), 0.0);
    for (size_t k = 0; k < n; ++k) errors_[k * n + k] = 2 * times_[k] * times_[k];
  }

  std::vector<double> times_;
  std::vector<double> errors_;  ///< the covariance of their errors
  bool known_ = false;
  int far_ = 0, calm_ = 0, hold_ = kLeastHold;
};

}  // namespace headrace::balance
