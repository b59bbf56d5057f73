#include "elements/ipsec/xfrm_follower.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/timestamp.hh"

namespace headrace {

namespace {

/// Reasons that are said; later ones are only counted.
constexpr size_t kMostSaid = 64;
/// Numbers that a state skips when another process has sent by it: more than that can have sent since its last report.
constexpr uint64_t kSkipped = uint64_t{1} << 25;
/// The first reqid where the kernel's own is not free.
constexpr uint32_t kFirstReqid = 1u << 31;

std::string name_of(const io::XfrmState& state) {
  return fmt::format("state {:#010x} from {} to {}", state.id.spi, unparse_either(state.binding.source),
                     unparse_either(state.id.destination));
}

std::string name_of(const io::XfrmPolicy& policy) {
  if (policy.policies.empty()) return "policy";
  return "policy " + policy.policies[0].unparse();
}

uint64_t seconds_now() { return static_cast<uint64_t>(clock::now().sec()); }

}  // namespace

bool XfrmFollower::is_own(const Ip6Address& address) const {
  return std::find(own_.begin(), own_.end(), address) != own_.end();
}

void XfrmFollower::refuse(const std::string& what, const std::string& problem) {
  if (said_.size() < kMostSaid && said_.insert(problem).second) say_(fmt::format("{} is refused: {}", what, problem));
}

uint32_t XfrmFollower::bind(const io::XfrmBinding& binding) {
  Bound& bound = bindings_[binding];
  if (bound.users++ > 0) return bound.reqid;
  bound.reqid = binding.reqid;
  if (bound.reqid == 0 || reqids_.contains(bound.reqid))
    for (bound.reqid = kFirstReqid; reqids_.contains(bound.reqid);) ++bound.reqid;
  reqids_.insert(bound.reqid);
  return bound.reqid;
}

void XfrmFollower::unbind(const io::XfrmBinding& binding) {
  const auto found = bindings_.find(binding);
  if (--found->second.users > 0) return;
  reqids_.erase(found->second.reqid);
  bindings_.erase(found);
}

// --- States

void XfrmFollower::remove(StateEntry& entry) {
  if (entry.index == AssociationTable::kNone) return;
  // A handler may have removed it, and its index may be another's.
  const Association* const mine = database_.associations().at(entry.index);
  if (mine != nullptr && mine->serial == entry.serial) database_.remove_association(entry.index);
  unbind(entry.state.binding);
  entry.index = AssociationTable::kNone;
  erase_ = true;
}

bool XfrmFollower::add(StateEntry& entry) {
  io::XfrmState& state = entry.state;
  AssociationConfig& config = state.config;
  if (!state.problem.empty()) return false;
  if (!is_own(state.id.destination) && !is_own(state.binding.source)) {
    state.problem = "neither end is an address of an unprotected port";
    return false;
  }
  const bool in = is_own(state.id.destination);
  config.direction = in ? IPsecDirection::kIn : IPsecDirection::kOut;
  if (state.sequence > 0) {
    const uint64_t last = config.last_sequence(), step = 1 + (in ? 0 : kSkipped);
    config.first_sequence = state.sequence < last - step ? state.sequence + step : last;
  }
  config.reqid = bind(state.binding);
  entry.index = database_.add_association(config, state.problem);
  if (entry.index == AssociationTable::kNone) unbind(state.binding);
  return entry.index != AssociationTable::kNone;
}

void XfrmFollower::take_state(io::XfrmState& state) {
  if (state.larval) return;
  StateEntry next;
  next.keys = state.config.fingerprint();
  next.text = state.config.unparse();
  next.seen = true;
  const auto [at, is_new] = states_.try_emplace(state.id);
  StateEntry& entry = at->second;
  if (!is_new && entry.keys == next.keys && entry.text == next.text && entry.state.binding == state.binding &&
      entry.state.problem.empty() && state.problem.empty()) {
    entry.seen = true;
    entry.state.limits = state.limits;
    return;
  }
  const bool said = !is_new && !entry.state.problem.empty();
  remove(entry);
  next.state = std::move(state);
  entry = std::move(next);
  const bool added = add(entry);
  entry.state.config.key.wipe();
  entry.state.config.integrity_key.wipe();
  if (added) {
    entry.serial = database_.associations().at(entry.index)->serial;
    return;
  }
  if (!said) ++refused_states_;
  refuse(name_of(entry.state), entry.state.problem);
}

// --- Policies

void XfrmFollower::remove(PolicyEntry& entry) {
  gone_.insert(gone_.end(), entry.policy.policies.begin(), entry.policy.policies.end());
  if (entry.policy.binding) unbind(*entry.policy.binding);
}

void XfrmFollower::take_policy(io::XfrmPolicy& policy) {
  if (policy.policies.empty() && policy.problem.empty()) return;
  const auto [at, is_new] = policies_.try_emplace(policy.id);
  PolicyEntry& entry = at->second;
  const bool said = !is_new && !entry.policy.problem.empty();
  const uint32_t reqid = policy.binding ? bind(*policy.binding) : 0;
  for (Policy& p : policy.policies) p.reqid = reqid;
  // What is there already goes and comes in one step.
  if (!is_new) remove(entry);
  fresh_.insert(fresh_.end(), policy.policies.begin(), policy.policies.end());
  entry.policy = std::move(policy);
  entry.seen = true;
  if (entry.policy.problem.empty()) return;
  if (!said) ++refused_policies_;
  refuse(name_of(entry.policy), entry.policy.problem);
}

// --- Messages

void XfrmFollower::take(io::XfrmMessage& message) {
  switch (message.change) {
    case io::XfrmChange::kState:
      take_state(message.state);
      break;
    case io::XfrmChange::kStateGone:
      // A policy that has come before may say by what to send instead.
      change_policies();
      if (const auto found = states_.find(message.state.id); found != states_.end()) {
        remove(found->second);
        states_.erase(found);
      }
      break;
    case io::XfrmChange::kStatesGone:
      for (auto& [id, entry] : states_) remove(entry);
      states_.clear();
      break;
    case io::XfrmChange::kPolicy:
      take_policy(message.policy);
      break;
    case io::XfrmChange::kPolicyGone:
      if (const auto found = policies_.find(message.policy.id); found != policies_.end()) {
        remove(found->second);
        policies_.erase(found);
      }
      break;
    case io::XfrmChange::kPoliciesGone:
      for (auto& [id, entry] : policies_) remove(entry);
      policies_.clear();
      break;
    case io::XfrmChange::kNone:
    case io::XfrmChange::kEnd:
      break;
  }
}

void XfrmFollower::change_policies() {
  // What comes and goes within a series was never there.
  std::erase_if(gone_, [this](const Policy& policy) {
    const auto same = std::find(fresh_.begin(), fresh_.end(), policy);
    if (same == fresh_.end()) return false;
    fresh_.erase(same);
    return true;
  });
  if (!gone_.empty() || !fresh_.empty()) database_.change_policies(gone_, fresh_);
  gone_.clear();
  fresh_.clear();
}

void XfrmFollower::settle() {
  change_policies();
  if (std::exchange(erase_, false)) database_.erase_removed();
}

void XfrmFollower::begin_dump() {
  for (auto& [id, entry] : states_) entry.seen = false;
  for (auto& [id, entry] : policies_) entry.seen = false;
}

void XfrmFollower::end_dump() {
  const auto sweep = [this](auto& entries) {
    for (auto at = entries.begin(); at != entries.end();) {
      if (at->second.seen) {
        ++at;
      } else {
        remove(at->second);
        at = entries.erase(at);
      }
    }
  };
  sweep(states_);
  sweep(policies_);
  settle();
}

// --- To the kernel

void XfrmFollower::report(const std::function<void(std::span<const uint8_t>)>& send) {
  std::map<uint64_t, io::XfrmUse> uses;  // by serial
  database_.for_each([&uses](const Association& a) {
    io::XfrmUse& use = uses[a.serial];
    use.packets = a.state->packets();
    use.bytes = a.state->bytes();
    use.outbound = a.config.direction == IPsecDirection::kOut;
    use.sequence = use.outbound ? a.state->last_sent() : a.state->window().last();
  });
  for (auto& [id, entry] : states_) {
    const auto found = uses.find(entry.serial);
    if (entry.index == AssociationTable::kNone || found == uses.end()) continue;
    io::XfrmUse& use = found->second;
    if (use.packets == 0 || (use.packets == entry.told.packets && use.sequence == entry.told.sequence)) continue;
    use.used_at = entry.told.used_at != 0 ? entry.told.used_at : seconds_now();
    entry.told = use;
    send(io::xfrm_use_message(entry.state, use));
    const io::XfrmLimits& limits = entry.state.limits;
    const auto reached = [&](uint64_t bytes, uint64_t packets) {
      return (bytes != 0 && use.bytes >= bytes) || (packets != 0 && use.packets >= packets);
    };
    if (reached(limits.hard_bytes, limits.hard_packets) && !std::exchange(entry.hard_told, true)) {
      ++expired_;
      send(io::xfrm_expire_message(entry.state, true));
    } else if (reached(limits.soft_bytes, limits.soft_packets) && !std::exchange(entry.soft_told, true)) {
      send(io::xfrm_expire_message(entry.state, false));
    }
  }
}

// --- Handlers

std::string XfrmFollower::counts() const {
  const auto taken = std::count_if(states_.begin(), states_.end(),
                                   [](const auto& item) { return item.second.index != AssociationTable::kNone; });
  const auto good = std::count_if(policies_.begin(), policies_.end(),
                                  [](const auto& item) { return item.second.policy.problem.empty(); });
  return fmt::format(
      "{} states\n{} policies\n{} states refused\n{} policies refused\n{} states ended by packets or bytes\n", taken,
      good, refused_states_, refused_policies_, expired_);
}

std::string XfrmFollower::refused() const {
  std::string out;
  for (const auto& [id, entry] : states_)
    if (!entry.state.problem.empty()) out += fmt::format("{}: {}\n", name_of(entry.state), entry.state.problem);
  for (const auto& [id, entry] : policies_)
    if (!entry.policy.problem.empty()) out += fmt::format("{}: {}\n", name_of(entry.policy), entry.policy.problem);
  return out;
}

}  // namespace headrace
