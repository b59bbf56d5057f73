#pragma once
/// \file
/// The totals of device ports over time, and rates as text.

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/device_port.hh"
#include "headrace/router.hh"

namespace headrace::cli {

/// Totals of all device ports at one moment.
struct Totals {
  double seconds = 0;  // steady clock
  PortTotals in, out;
  uint64_t drops = 0;
  uint64_t missed = 0;
  std::vector<uint64_t> in_of_worker;
};
Totals read_totals(const Router& router);

/// Packets a second, in millions, and bits a second, in billions, between two moments. The wire takes 24 bytes more a
/// frame: check sequence, preamble and gap.
double mpps(uint64_t packets, double seconds);
double gbps(uint64_t bytes, double seconds);
inline constexpr int kWireOverhead = 24;

/// The same as text with a unit that fits: "12.34 Mpps", "870 pps"; "1.50 Gbps", "0 bps".
std::string packet_rate(uint64_t packets, double seconds);
std::string bit_rate(uint64_t bytes, double seconds);

}  // namespace headrace::cli
