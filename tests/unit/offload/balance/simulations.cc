#include "unit/offload/balance/simulations.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "support/source_dir.hh"

namespace headrace::balance {

std::unique_ptr<Balancer> balancer_of(const char* text) {
  std::string error;
  std::unique_ptr<Balancer> balancer = make_balancer(text, error);
  EXPECT_TRUE(balancer) << error;
  return balancer;
}

std::vector<Phase> machine_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::string error;
  std::vector<Phase> phases = read_machine(text.str(), error);
  EXPECT_FALSE(phases.empty()) << path << ": " << error;
  return phases;
}

std::vector<Phase> machine(const char* name) {
  return machine_file(std::filesystem::path(kSourceDir) / "bench/machines" / fmt::format("{}.json", name));
}

std::vector<Phase> small_bursts(bool matcher) {
  std::vector<Phase> phases = machine(matcher ? "h100-matcher-512" : "h100-ipv4");
  phases.resize(1);
  Machine& m = phases[0].machine;
  m.workers = 2;
  m.burst = matcher ? 64 : 128;
  m.burst_cycles = matcher ? 300 : 130;
  m.chains[0].batch_cycles = matcher ? 600 : 450;
  m.chains[0].cpu = matcher ? 600 : 65;
  m.cold_cycles = 20000;
  return phases;
}

}  // namespace headrace::balance
