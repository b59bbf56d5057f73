#pragma once
/// \file
/// The commands of the executable. Each gets its own name as argv[0] and returns the exit status.

namespace headrace::cli {

/// `headrace run`: runs a configuration on all cores, with a live line and a report.
int run_command(int argc, char** argv);
/// `headrace bench`: measures a configuration.
int bench_command(int argc, char** argv);
/// `headrace limits`: what this machine and its device can do, to set results beside.
int limits_command(int argc, char** argv);
int patterns_command(int argc, char** argv);
/// `headrace check`: everything but running.
int check_command(int argc, char** argv);
/// `headrace graph`: a configuration and its chains as DOT or SVG.
int graph_command(int argc, char** argv);
/// `headrace elements`: the table of elements, or one element's page.
int elements_command(int argc, char** argv);
/// `headrace flatten`, and the name click-flatten: a configuration without compound elements.
int flatten_command(int argc, char** argv);
/// `headrace click`, and the name click: Click's user-level driver.
int click_command(int argc, char** argv);
/// The name click-buildtool: answers `provides`.
int buildtool_command(int argc, char** argv);

}  // namespace headrace::cli
