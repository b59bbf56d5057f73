#pragma once
/// \file
/// What `run` and `bench` share: a configuration file, workers, and the totals of device ports over time.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headrace/device_port.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

/// Reads and parses a configuration file ("-": standard input); errors have been printed when it fails.
bool load_configuration(const std::string& file, const std::map<std::string, std::string>& variables,
                        lang::Configuration& out);
/// The same in two steps: the text of a file, and what it says.
bool read_configuration(const std::string& file, std::string& text, Errors& errors);
Status parse_configuration(const std::string& text, const std::string& file,
                           const std::map<std::string, std::string>& variables, lang::Configuration& out,
                           Errors& errors);

/// Separates "NAME=value" words from file names.
bool split_variable(const std::string& word, std::map<std::string, std::string>& variables);

/// Sets `KEY value` among an element's arguments, in place of one that is there (by keyword, or at `position`).
void set_argument(lang::ElementDecl& element, const std::string& key, const std::string& value, int position = -1);

/// CPUs that this process may use, in order.
std::vector<int> usable_cpus();

/// Sets options.real_time for options.threads workers. False, with a message that begins with `program`, where these
/// workers must not run under the real-time policy that the process was started with.
bool plan_scheduling(const char* program, Runtime::Options& options);

/// "AMD EPYC, 2 CPUs, Linux 6.18.5".
std::string machine_name();
/// Cycles of the time-stamp counter in a second, measured once.
double tsc_hz();

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

/// 901899 as "901,899".
std::string grouped(uint64_t n);

}  // namespace headrace::cli
