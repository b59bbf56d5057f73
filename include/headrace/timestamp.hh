#pragma once
/// \file
/// Time in nanoseconds, and the clock that all elements use.

#include <compare>
#include <cstdint>
#include <string>

namespace headrace {

/// A point in time or a duration, in nanoseconds. Wall-clock points count from the UNIX epoch.
struct Timestamp {
  /// Nanoseconds per second.
  static constexpr int64_t kSecond = 1000000000;

  int64_t ns = 0;

  static constexpr Timestamp from_ns(int64_t n) { return {n}; }
  static constexpr Timestamp from_us(int64_t n) { return {n * 1000}; }
  static constexpr Timestamp from_ms(int64_t n) { return {n * 1000000}; }
  static constexpr Timestamp from_sec(int64_t n) { return {n * 1000000000}; }
  static Timestamp from_double(double seconds) {
    return {static_cast<int64_t>(seconds * 1e9 + (seconds < 0 ? -.5 : .5))};
  }

  constexpr explicit operator bool() const { return ns != 0; }
  constexpr int64_t sec() const { return ns >= 0 ? ns / 1000000000 : -((-ns + 999999999) / 1000000000); }
  constexpr int64_t nsec() const { return ns - sec() * 1000000000; }
  constexpr double to_double() const { return static_cast<double>(ns) * 1e-9; }
  /// "seconds.fraction" with six digits, or nine when it does not fall on a whole microsecond (as Click prints it).
  std::string unparse() const;

  constexpr auto operator<=>(const Timestamp&) const = default;
  constexpr Timestamp operator+(Timestamp o) const { return {ns + o.ns}; }
  constexpr Timestamp operator-(Timestamp o) const { return {ns - o.ns}; }
  constexpr Timestamp& operator+=(Timestamp o) {
    ns += o.ns;
    return *this;
  }
};

/// The process clock. It can be warped: run faster, skip waiting, or be simulated, so that a configuration's behavior
/// does not depend on the speed of the machine (Click's `--simtime` and `timewarp`).
namespace clock {

enum class Warp { kNone, kLinear, kNoWait, kSimulation };

/// Wall-clock time.
Timestamp now();
/// Monotonic time, for timers. In simulation each call advances by a nanosecond, as Click's does.
Timestamp steady();

/// \param speed seconds of warped time per second of real time; used only by kLinear
void set_warp(Warp warp, double speed = 1);
Warp warp();
double speed();
/// Sets both clocks of a simulation.
void set_simulated_now(Timestamp wall, Timestamp steady);
/// In kSimulation and kNoWait: time jumps to `expiry` (steady) if that lies ahead.
void jump_steady(Timestamp expiry);
/// How long to wait in real time for a warped duration.
Timestamp real_delay(Timestamp warped);

}  // namespace clock
}  // namespace headrace
