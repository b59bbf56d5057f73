#pragma once
/// \file
/// What new flows of a rewriter look like: the patterns in its input specs.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/element.hh"
#include "tables/flow/flow_id.hh"

namespace headrace {

/// `SADDR SPORT DADDR DPORT`, `SADDR DADDR SPORT`, or `SADDR DADDR`: each a value or `-` for the packet's own. SADDR
/// may be a range `L-H` or a prefix, or SPORT a range; a suffix `#` takes its values in turn, `?` at random. Without
/// one, a port is the packet's own if that is in the range and free, else random.
class RewriterPattern {
 public:
  /// Reads a pattern. Null, with what is wrong in `error`, when it is none.
  static std::shared_ptr<RewriterPattern> parse(const std::vector<std::string>& words, const Element& user,
                                                const ArgContext& context, std::string& error);
  std::string unparse() const;

  /// What flow ids mean where there are no ports.
  enum class Ports { kPorts, kPingIds };

  /// Finds what packets with `id` become. `is_free` says whether a way back, as it would come in, is not in use. False
  /// when no value of the range is free.
  template <typename IsFree>
  bool rewrite(const FlowId& id, Ports ports, int64_t now, FlowId& out, const IsFree& is_free) {
    out = fixed(id);
    if (range_ == Range::kNone) {
      if (ports == Ports::kPingIds) out.dport = static_cast<uint16_t>(out.sport + 1);
      return true;
    }
    const auto is_free_at = [&](uint32_t offset) {
      if (range_ == Range::kAddress)
        out.src = IpAddress::from_host_order(saddr_.host_order() + offset);
      else
        out.sport = static_cast<uint16_t>(sport_ + offset);
      if (ports == Ports::kPingIds) out.dport = static_cast<uint16_t>(out.sport + 1);
      return is_free(out.reversed());
    };
    if (order_ == Order::kOwnFirst && range_ == Range::kPort && id.sport >= sport_ &&
        static_cast<uint32_t>(id.sport - sport_) <= last_ && is_free_at(static_cast<uint32_t>(id.sport - sport_)))
      return true;
    if (exhausted(out, now)) return false;
    // All values of a small range are tried. In a large one that many tries fail only when it is all but full.
    uint32_t offset = order_ == Order::kInTurn ? next_.load(std::memory_order_relaxed) : random_below(last_ + 1);
    if (offset > last_) offset = 0;
    const uint32_t tries = last_ < kMostTries ? last_ + 1 : kMostTries;
    for (uint32_t n = 0; n < tries; ++n) {
      if (is_free_at(offset)) {
        next_.store(offset + 1, std::memory_order_relaxed);
        return true;
      }
      if (order_ != Order::kInTurn && last_ >= kMostTries)
        offset = random_below(last_ + 1);
      else
        offset = offset == last_ ? 0 : offset + 1;
    }
    note_exhausted(out, now);
    return false;
  }

 private:
  enum class Range : uint8_t { kNone, kAddress, kPort };
  enum class Order : uint8_t { kOwnFirst, kRandom, kInTurn };
  static constexpr uint32_t kMostTries = 1024;
  /// How long a search that failed in a large range is not repeated for the same destination.
  static constexpr int64_t kPauseNs = 10'000'000;

  FlowId fixed(const FlowId& id) const {
    return {saddr_ ? saddr_ : id.src, daddr_ ? daddr_ : id.dst, sport_ ? sport_ : id.sport, dport_ ? dport_ : id.dport};
  }
  static uint32_t random_below(uint32_t n);
  std::atomic<int64_t>& pause_of(const FlowId& out) {
    return pauses_[((out.dst.network_order() + out.dport) * 0x9e3779b1u) >> 28];
  }
  bool exhausted(const FlowId& out, int64_t now) {
    return last_ >= kMostTries && now < pause_of(out).load(std::memory_order_relaxed);
  }
  void note_exhausted(const FlowId& out, int64_t now) {
    if (last_ >= kMostTries) pause_of(out).store(now + kPauseNs, std::memory_order_relaxed);
  }
  bool parse_address(std::string_view text, const ArgContext& context);
  bool parse_port(std::string_view text);
  std::string_view take_suffix(std::string_view text);

  IpAddress saddr_, daddr_;
  uint16_t sport_ = 0, dport_ = 0;
  bool with_ports_ = false;
  Range range_ = Range::kNone;
  Order order_ = Order::kOwnFirst;
  uint32_t last_ = 0;  // the greatest offset in the range
  std::atomic<uint32_t> next_{0};
  std::atomic<int64_t> pauses_[16] = {};
};

}  // namespace headrace
