#pragma once
/// \file
/// What a balancer was told and what it answered, as JSON lines: the setup first, then samples and decisions in turn.
/// Where another configuration took over, its setup follows, for a new balancer. A line is made of the same bytes
/// wherever it is made from the same values, and reading it gives these values back.

#include <string>
#include <string_view>
#include <variant>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// The first line of a router.
struct TraceHead {
  BalanceSetup setup;
  std::string balancer;  ///< as make_balancer() takes it
  std::string learnt;    ///< what it was told of a balancer before it; empty: nothing
};

/// Lines, without their ends.
std::string trace_line(const TraceHead& head);
std::string trace_line(const BalanceSample& sample);
std::string trace_line(const BalanceDecision& decision);

using TraceLine = std::variant<TraceHead, BalanceSample, BalanceDecision>;

/// Reads lines in their order, and knows the setup once it has read it.
class TraceReader {
 public:
  /// False if the line is not one of a trace, or comes out of order; error() then says where and what was expected.
  bool read(std::string_view text, TraceLine& line);
  const std::string& error() const { return error_; }
  /// Lines read.
  int lines() const { return lines_; }

 private:
  bool has_head_ = false;
  int lines_ = 0;
  std::string error_;
};

}  // namespace headrace::balance
