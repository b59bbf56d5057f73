#pragma once
/// \file
/// What a balancer was told and what it answered, as JSON lines: the setup first, then samples and decisions in turn.
/// Where another configuration took over, its setup follows, for a new balancer. Where a router has several, each has a
/// first line, and a decision about each sample, in the same order. A line is made of the same bytes wherever it is made
/// from the same values, and reading it gives these values back.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// The first line of a balancer.
struct TraceHead {
  BalanceSetup setup;
  std::string balancer;  ///< as make_balancer() takes it
  std::string learnt;    ///< what it was told of a balancer before it; empty: nothing
  bool beside = false;   ///< it is in the router of the balancer of the line before, not in the next one
};

/// Lines, without their ends.
std::string trace_line(const TraceHead& head);
std::string trace_line(const BalanceSample& sample);
/// \param balancer whose decision it is; empty where there is only one
std::string trace_line(const BalanceDecision& decision, const std::string& balancer = {});

using TraceLine = std::variant<TraceHead, BalanceSample, BalanceDecision>;

/// Reads lines in their order, and knows the balancers once it has read their setups.
class TraceReader {
 public:
  /// False if the line is not one of a trace, or comes out of order; error() then says where and what was expected.
  bool read(std::string_view text, TraceLine& line);
  const std::string& error() const { return error_; }
  /// Lines read.
  int lines() const { return lines_; }

 private:
  bool knows(const std::string& balancer) const;

  std::vector<std::string> balancers_;  // of the present router
  bool in_heads_ = false;               // the line before had a setup
  int lines_ = 0;
  std::string error_;
};

}  // namespace headrace::balance
