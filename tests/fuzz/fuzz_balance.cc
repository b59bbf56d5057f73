/// Fuzzes traces and the balancers that read them: any text gives a line or an error, any samples give decisions that
/// need no repair, and what was decided reads back as it was.
///
/// An input is the text of a trace.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "offload/balance/sanitize.hh"
#include "offload/balance/trace.hh"

namespace {

using namespace headrace;

void require_that(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

/// Large setups are slow, and no others.
bool is_small(const BalanceSetup& setup) {
  return static_cast<size_t>(setup.workers) * (setup.chains.size() + 1) * (setup.devices.size() + 1) <= 1024;
}

std::unique_ptr<Balancer> balancer_of(const balance::TraceHead& head) {
  std::string error;
  std::unique_ptr<Balancer> balancer = make_balancer(head.balancer, error);
  if (!balancer) balancer = make_balancer("Model", error);
  balancer->set_setup(head.setup);
  balancer->learn(head.learnt);
  // The last name of a chain also serves as what an earlier balancer has learnt.
  if (!head.setup.chains.empty()) balancer->learn(head.setup.chains.back().name);
  return balancer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  balance::TraceReader reader, again;
  std::unique_ptr<Balancer> balancer;
  std::string name;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    balance::TraceLine line, copy;
    if (!reader.read(text.substr(0, end), line)) {
      require_that(!reader.error().empty(), "no reason");
    } else if (const auto* head = std::get_if<balance::TraceHead>(&line)) {
      if (!is_small(head->setup)) return 0;
      balancer = balancer_of(*head);
      name = head->balancer;
      require_that(again.read(balance::trace_line(*head), copy), again.error());
      require_that(balance::trace_line(std::get<balance::TraceHead>(copy)) == balance::trace_line(*head), "setup");
    } else if (const auto* sample = std::get_if<BalanceSample>(&line)) {
      BalanceDecision decision = balancer->step(*sample);
      const std::string decided = balance::trace_line(decision, name);
      require_that(again.read(decided, copy), again.error());
      require_that(balance::trace_line(std::get<BalanceDecision>(copy), name) == decided, "decision");
      balance::Corrections corrections;
      balance::sanitize(decision, balancer->setup(), corrections);
      require_that(corrections.all() == 0, corrections.all() == 0 ? "" : corrections.lines()[0]);
      balancer->learn(balancer->learnt());
    } else {
      // A decision of somebody else.
      balance::Corrections first, second;
      BalanceDecision decision = std::get<BalanceDecision>(line);
      balance::sanitize(decision, balancer->setup(), first);
      balance::sanitize(decision, balancer->setup(), second);
      require_that(second.all() == 0, "repaired twice");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}
