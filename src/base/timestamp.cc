#include "headrace/timestamp.hh"

#include <fmt/core.h>

#include <atomic>
#include <ctime>

namespace headrace {

std::string Timestamp::unparse() const {
  const int64_t s = sec();
  const int64_t n = nsec();
  // sec() rounds down, so -0.5 s is -1 s + 0.5 s; print the sign and the magnitude.
  if (ns < 0) return "-" + Timestamp{-ns}.unparse();
  if (n % 1000 == 0) return fmt::format("{}.{:06}", s, n / 1000);
  return fmt::format("{}.{:09}", s, n);
}

namespace clock {
namespace {

// Written only while no worker runs (start-up, or a write handler at a quiescent point); simulation runs on one thread.
Warp g_warp = Warp::kNone;
double g_speed = 1;
int64_t g_offset[2] = {0, 0};  // [steady]: warped = raw * speed + offset, or the simulated time itself

int64_t raw(bool steady) {
  timespec ts;
  clock_gettime(steady ? CLOCK_MONOTONIC : CLOCK_REALTIME, &ts);
  return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

int64_t scaled(int64_t raw_ns) {
  return g_speed == 1 ? raw_ns : static_cast<int64_t>(static_cast<long double>(raw_ns) * g_speed);
}

int64_t warped(bool steady) {
  if (g_warp == Warp::kSimulation) {
    const int64_t now = g_offset[steady];
    ++g_offset[0];
    ++g_offset[1];
    return now;
  }
  return scaled(raw(steady)) + g_offset[steady];
}

}  // namespace

Timestamp now() { return {warped(false)}; }
Timestamp steady() { return {warped(true)}; }
Warp warp() { return g_warp; }
double speed() { return g_speed; }

void set_warp(Warp warp, double speed) {
  if (warp == Warp::kLinear && g_warp == Warp::kNone && speed == 1) warp = Warp::kNone;
  const int64_t before[2] = {warped(false), warped(true)};
  g_warp = warp;
  g_speed = warp == Warp::kLinear ? speed : 1;
  for (int steady = 0; steady < 2; ++steady) {
    if (warp == Warp::kNone) {
      g_offset[steady] = 0;
    } else if (warp == Warp::kSimulation) {
      g_offset[steady] = before[steady];
    } else {
      g_offset[steady] = before[steady] - scaled(raw(steady != 0));
    }
  }
}

void set_simulated_now(Timestamp wall, Timestamp steady) {
  g_offset[0] = wall.ns;
  g_offset[1] = steady.ns;
}

void jump_steady(Timestamp expiry) {
  if (g_warp == Warp::kSimulation) {
    if (g_offset[1] < expiry.ns) {
      g_offset[0] += expiry.ns - g_offset[1];
      g_offset[1] = expiry.ns;
    }
  } else if (g_warp == Warp::kNoWait) {
    const int64_t ahead = expiry.ns - warped(true);
    if (ahead > 0) {
      g_offset[0] += ahead;
      g_offset[1] += ahead;
    }
  }
}

Timestamp real_delay(Timestamp warped_delay) {
  if (g_warp == Warp::kSimulation || g_warp == Warp::kNoWait) return {0};
  return {static_cast<int64_t>(static_cast<double>(warped_delay.ns) / g_speed)};
}

}  // namespace clock
}  // namespace headrace
