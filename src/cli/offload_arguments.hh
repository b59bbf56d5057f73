#pragma once
/// \file
/// The options about devices that `run` and `bench` share.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "headrace/offload_options.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"

namespace headrace::cli {

/// Adds --mode, --backend, --run, --job and so on. `options` must outlive the parsing.
void add_offload_arguments(CLI::App& app, OffloadOptions& options);

/// Sets the number of packet buffers for this many workers, with jobs in flight if the options or an Offload element
/// ask for them. Before the first packet is made.
void size_packet_pool(int workers, const OffloadOptions& options, const lang::Configuration& configuration);

/// What a benchmark reports of offloading: mode, backend, counts, latencies of jobs; an empty object without it.
nlohmann::ordered_json offload_report(const Router& router);

}  // namespace headrace::cli
