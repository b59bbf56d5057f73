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

  /// It was busy for this part of the time while so many packets of each chain came back.
  void busy(const std::vector<double>& per_second, double part) {
    const size_t n = times_.size();
    double all = 0;
    for (const double r : per_second) all += r;
    if (!(all > 0) || !(part > 0)) return;
    if (!known_) {
      // All chains alike, and little is certain.
      known_ = true;
      std::fill(times_.begin(), times_.end(), part / all);
      forget();
      return;
    }
    const double off = part - used(per_second);
    far_ = std::abs(off) > kFar * part ? far_ + 1 : 0;
    if (far_ >= 2) {
      // Something has changed: all may be as wrong as the sum is.
      for (double& t : times_) t *= part / (part - off);
      forget();
      far_ = 0;
      return;
    }
    for (size_t k = 0; k < n; ++k) errors_[k * n + k] += (kDrift * times_[k]) * (kDrift * times_[k]);
    std::vector<double> moves(n, 0.0);
    double doubt = kNoise * kNoise;
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n; ++j) moves[k] += errors_[k * n + j] * per_second[j];
      doubt += moves[k] * per_second[k];
    }
    for (size_t k = 0; k < n; ++k) {
      const double least = 0.2 * times_[k], most = 5 * times_[k];
      times_[k] = std::clamp(times_[k] + moves[k] * off / doubt, least, most);
      for (size_t j = 0; j < n; ++j) errors_[k * n + j] -= moves[k] * moves[j] / doubt;
    }
  }

  /// It may be faster than was known: takes this part off.
  void hope(double part) {
    for (double& t : times_) t *= 1 - part;
  }
  void hope(size_t chain, double part) { times_[chain] *= 1 - part; }

 private:
  static constexpr double kNoise = 0.03;  // of a sum, as packets come back by whole jobs
  static constexpr double kDrift = 0.02;  // of a time, by sample
  static constexpr double kFar = 0.25;

  void forget() {
    const size_t n = times_.size();
    std::fill(errors_.begin(), errors_.end(), 0.0);
    for (size_t k = 0; k < n; ++k) errors_[k * n + k] = times_[k] * times_[k];
  }

  std::vector<double> times_;
  std::vector<double> errors_;  ///< the covariance of their errors
  bool known_ = false;
  int far_ = 0;
};

}  // namespace headrace::balance
