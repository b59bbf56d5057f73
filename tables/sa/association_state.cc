#include "tables/sa/association_state.hh"

#include <utility>

namespace headrace {

AssociationState::AssociationState(const AssociationConfig& config, std::shared_ptr<NonceCounter> nonces,
                                   uint32_t order)
    : limit_(config.last_sequence()), order_(order), last_sent_(config.first_sequence - 1), nonces_(std::move(nonces)) {
  if (config.direction == IPsecDirection::kIn)
    window_ = std::make_unique<ReplayWindow>(config.replay_window, config.extended_sequence, config.first_sequence - 1);
}

AssociationStates& AssociationStates::process() {
  static AssociationStates states(NonceSource::process());
  return states;
}

std::shared_ptr<AssociationState> AssociationStates::get(const AssociationConfig& config) {
  const Identity identity{config.direction, config.spi, config.destination, config.extended_sequence,
                          config.fingerprint()};
  const std::lock_guard lock(mutex_);
  if (const auto found = states_.find(identity); found != states_.end()) {
    if (config.direction == IPsecDirection::kIn) found->second->window().set_size(config.replay_window);
    return found->second;
  }
  if (states_.size() >= most_) std::erase_if(states_, [](const auto& entry) { return entry.second.use_count() == 1; });
  auto state = std::make_shared<AssociationState>(config, nonces_.counter(config.cipher_fingerprint()), made_++);
  states_.emplace(identity, state);
  return state;
}

size_t AssociationStates::size() const {
  const std::lock_guard lock(mutex_);
  return states_.size();
}

}  // namespace headrace
